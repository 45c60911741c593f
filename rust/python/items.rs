//! The items of Python lists and tuples. Unsafe: this file reads borrowed items and the inline digit of small ints.
#![allow(unsafe_code)]

use super::errors::{self, Name};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};

/// Reads the ids `at..at + out.len()` of a list or tuple.
pub fn read<'py, I: Items<'py>>(items: &I, name: Name<'_>, at: usize, out: &mut [u64]) -> PyResult<()> {
    for (index, id) in (at..).zip(out) {
        *id = match items.small_int(index) {
            Some(small) if small >= 0 => small.unsigned_abs(),
            _ => read_item(items, name, index)?,
        };
    }
    Ok(())
}

/// Reads an id that is no exact int of one digit.
#[cold]
fn read_item<'py, I: Items<'py>>(items: &I, name: Name<'_>, index: usize) -> PyResult<u64> {
    let item = items
        .item(index)
        .ok_or_else(|| PyRuntimeError::new_err(format!("{name} became shorter while it was read: no item {index}")))?;
    to_id(name, index, &item)
}

/// The id that `item` stands for: an int, or what has an `__index__`.
fn to_id(name: Name<'_>, index: usize, item: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = item.py();
    // numpy's bool has an `__index__` up to numpy 1.
    if errors::type_name(item) == "bool_" {
        return Err(errors::not_an_integer(name, index, item));
    }
    let int = match item.cast::<PyInt>() {
        Ok(int) => int.clone().into_any(),
        // SAFETY: `item` is a live object, and the result is a new reference or null with an exception set.
        Err(_) => unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(item.as_ptr())) }.map_err(|error| {
            if error.is_instance_of::<PyTypeError>(py) {
                return errors::because(py, errors::not_an_integer(name, index, item), error);
            }
            errors::no_stop(py, error, format_args!("{name}[{index}]"))
        })?,
    };
    int.extract::<u64>().map_err(|_| {
        // Compared as an int, whatever a subclass says of itself.
        let is_negative = PyInt::type_object(py).call_method1(intern!(py, "__lt__"), (&int, 0));
        if is_negative.and_then(|is| is.is_truthy()).unwrap_or(false) {
            errors::negative(name, index, errors::shown(&int))
        } else {
            errors::too_large(name, index, &int)
        }
    })
}

/// `value` copied to a new list if it is an exact list of exact ints.
pub fn copy_if_all_ints<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    copy_if_all(value.cast_exact().ok()?, PyInt::type_object_raw(value.py()))
}

/// `value` copied to a new list if it is an exact list of exact floats.
pub fn copy_if_all_floats<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    copy_if_all(value.cast_exact().ok()?, PyFloat::type_object_raw(value.py()))
}

/// True if `value` is an exact list of exact ints of one digit that are not negative.
pub fn are_small_ids(value: &Bound<'_, PyAny>) -> bool {
    value
        .cast_exact::<PyList>()
        .is_ok_and(|list| (0..list.len()).all(|index| list.small_int(index).is_some_and(|small| small >= 0)))
}

/// The items of an exact list if all of them are exact ints of one digit.
pub fn small_ints(value: &Bound<'_, PyAny>) -> Option<Vec<i32>> {
    let list = value.cast_exact::<PyList>().ok()?;
    let mut ids = vec![0; list.len()];
    for (index, id) in ids.iter_mut().enumerate() {
        *id = i32::try_from(list.small_int(index)?).ok()?;
    }
    Some(ids)
}

/// Type and reference count of an item stand side by side, so that both are touched in one pass.
#[cfg(not(Py_GIL_DISABLED))]
fn copy_if_all<'py>(list: &Bound<'py, PyList>, wanted: *mut ffi::PyTypeObject) -> Option<Bound<'py, PyList>> {
    let len = list.len().cast_signed();
    // SAFETY: the thread is attached and runs no Python code before the copy is full, so that the list keeps its length
    // and its items, and nobody sees the copy. Each item is a live object; the copy gets a reference of its own. A copy
    // that is given up has null for the items that are not there yet, which its deallocation allows.
    unsafe {
        let copy = Bound::from_owned_ptr_or_opt(list.py(), ffi::PyList_New(len))?.cast_into_unchecked::<PyList>();
        for index in 0..len {
            if index + AHEAD < len {
                prefetch(ffi::PyList_GET_ITEM(list.as_ptr(), index + AHEAD));
            }
            let item = ffi::PyList_GET_ITEM(list.as_ptr(), index);
            if ffi::Py_TYPE(item) != wanted {
                return None;
            }
            ffi::Py_INCREF(item);
            ffi::PyList_SET_ITEM(copy.as_ptr(), index, item);
        }
        Some(copy)
    }
}

/// The copy is checked, not the original, which another thread may change.
#[cfg(Py_GIL_DISABLED)]
fn copy_if_all<'py>(list: &Bound<'py, PyList>, wanted: *mut ffi::PyTypeObject) -> Option<Bound<'py, PyList>> {
    let copy = list.get_slice(0, usize::MAX);
    (0..copy.len())
        // SAFETY: nobody else knows the new list, so that its length stays and it keeps its items alive.
        .all(|index| unsafe { ffi::Py_TYPE(ffi::PyList_GET_ITEM(copy.as_ptr(), index.cast_signed())) == wanted })
        .then_some(copy)
}

/// How many items ahead of the one that is read the processor is told of. The items of a long list lie anywhere in
/// memory, and waiting for each in turn takes longer than all else.
#[cfg(not(Py_GIL_DISABLED))]
const AHEAD: isize = 48;

/// Tells the processor that an object will be read.
#[cfg(not(Py_GIL_DISABLED))]
#[inline]
fn prefetch(object: *mut ffi::PyObject) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(object.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

/// What an exact list and an exact tuple have in common.
pub trait Items<'py> {
    /// Item `index`, or `None` if there is none (a list may change while an item's `__index__` runs).
    fn item(&self, index: usize) -> Option<Bound<'py, PyAny>>;

    /// Item `index` if it is there and an exact int of one digit.
    fn small_int(&self, index: usize) -> Option<i64>;
}

impl<'py> Items<'py> for Bound<'py, PyList> {
    fn item(&self, index: usize) -> Option<Bound<'py, PyAny>> {
        self.get_item(index).ok()
    }

    #[inline]
    fn small_int(&self, index: usize) -> Option<i64> {
        #[cfg(Py_GIL_DISABLED)]
        // Another thread may replace the item meanwhile, so that a reference of our own is needed.
        return small_int(self.get_item(index).ok()?.as_borrowed());
        #[cfg(not(Py_GIL_DISABLED))]
        // SAFETY: the thread is attached and runs no Python code between the test of the length and the read of the
        // digit, so the list keeps its length and its item.
        unsafe {
            let len = ffi::PyList_GET_SIZE(self.as_ptr());
            if index.cast_signed() >= len {
                return None;
            }
            if index.cast_signed() + AHEAD < len {
                prefetch(ffi::PyList_GET_ITEM(self.as_ptr(), index.cast_signed() + AHEAD));
            }
            small_int(Borrowed::from_ptr(self.py(), ffi::PyList_GET_ITEM(self.as_ptr(), index.cast_signed())))
        }
    }
}

impl<'py> Items<'py> for Bound<'py, PyTuple> {
    fn item(&self, index: usize) -> Option<Bound<'py, PyAny>> {
        self.get_item(index).ok()
    }

    #[inline]
    fn small_int(&self, index: usize) -> Option<i64> {
        small_int(self.get_borrowed_item(index).ok()?)
    }
}

/// The value of `item` if it is an exact int of at most one 30-bit digit, as every token id in use is.
#[inline]
#[cfg(all(Py_3_12, not(Py_3_16), not(PyPy), not(GraalPy)))]
fn small_int(item: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    /// A `PyLongObject` of `CPython` 3.12 to 3.15 (`Include/cpython/longintrepr.h`).
    #[repr(C)]
    struct Long {
        object: ffi::PyObject,
        /// Number of digits above three bits of flags; the low two of these are the sign: 0 plus, 1 zero, 2 minus.
        tag: usize,
        digit: [u32; 1],
    }
    if !item.is_exact_instance_of::<PyInt>() {
        return None;
    }
    // SAFETY: an exact int of these versions has this layout, and it always has one digit; ints are immutable.
    let (tag, digit) = unsafe {
        let long = item.as_ptr().cast::<Long>();
        ((*long).tag, (&raw const (*long).digit).cast::<u32>().read())
    };
    // Fewer than two digits, and the tag's sign turned to 1, 0 or -1.
    (tag < 2 << 3).then(|| i64::from(digit) * (1 - (tag & 3) as i64))
}

/// The value of `item` if it is an exact int of at most one 30-bit digit, as every token id in use is.
#[inline]
#[cfg(all(not(Py_3_12), not(PyPy), not(GraalPy)))]
fn small_int(item: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    /// The `_longobject` of `CPython` 3.11 (`Include/cpython/longintrepr.h`).
    #[repr(C)]
    struct Long {
        object: ffi::PyVarObject,
        digit: [u32; 1],
    }
    if !item.is_exact_instance_of::<PyInt>() {
        return None;
    }
    // SAFETY: an exact int of this version has this layout: `ob_size` counts the digits, negative for a negative int,
    // and one digit is always allocated; ints are immutable.
    let (digits, digit) = unsafe {
        let long = item.as_ptr().cast::<Long>();
        ((*long).object.ob_size, (&raw const (*long).digit).cast::<u32>().read())
    };
    // For zero the digit is not specified.
    matches!(digits, -1..=1).then(|| i64::from(digit) * digits as i64)
}

/// Another Python, or one whose ints nobody has looked at yet: every int goes the way of large ones.
#[cfg(any(Py_3_16, PyPy, GraalPy))]
fn small_int(_: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    None
}
