//! The items of Python lists and tuples.
#![expect(unsafe_code, reason = "borrows items, and fills a list that is not complete")]

use super::errors::{self, Name};
use super::prefetch::prefetch;
use super::small_int::small_int;
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

/// Reads an id that is not an exact int of one digit.
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
        Err(_) => index_of(item).map_err(|error| {
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

/// The int that the object's `__index__` gives.
fn index_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the object is alive and the thread attached.
    let int = unsafe { ffi::PyNumber_Index(object.as_ptr()) };
    // SAFETY: it is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), int) }
}

/// A new list with the items of `value` if it is an exact list of exact ints.
pub fn copy_if_all_ints<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    copy_if_all(value.cast_exact().ok()?, PyInt::type_object_raw(value.py()))
}

/// A new list with the items of `value` if it is an exact list of exact floats.
pub fn copy_if_all_floats<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    copy_if_all(value.cast_exact().ok()?, PyFloat::type_object_raw(value.py()))
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
    // No Python code runs before the copy is full, so that the list keeps its length and its items, and nobody sees the
    // copy. One that is given up has null for the items that are not there yet, which its deallocation allows.
    let len = list.len().cast_signed();
    // SAFETY: the thread is attached.
    let copy = unsafe { ffi::PyList_New(len) };
    // SAFETY: it is a new reference, or null.
    let copy = unsafe { Bound::from_owned_ptr_or_opt(list.py(), copy) }?;
    for index in 0..len {
        // SAFETY: the list has `len` items.
        let item = unsafe { item_at(list, index, len) };
        // SAFETY: the list still keeps the item alive.
        if unsafe { ffi::Py_TYPE(item) } != wanted {
            return None;
        }
        // SAFETY: as above.
        unsafe { ffi::Py_INCREF(item) };
        // SAFETY: the copy is a list of `len` items with null at `index`, and takes the reference that was just made.
        unsafe { ffi::PyList_SET_ITEM(copy.as_ptr(), index, item) };
    }
    // SAFETY: it was made as a list.
    Some(unsafe { copy.cast_into_unchecked() })
}

/// The copy is checked, not the original, which another thread may change.
#[cfg(Py_GIL_DISABLED)]
fn copy_if_all<'py>(list: &Bound<'py, PyList>, wanted: *mut ffi::PyTypeObject) -> Option<Bound<'py, PyList>> {
    let copy = list.get_slice(0, usize::MAX);
    let len = copy.len().cast_signed();
    let is_wanted = |index| {
        // SAFETY: nobody else knows the copy (who finds it by `gc` is to leave it alone), so that it keeps its length.
        let item = unsafe { item_at(&copy, index, len) };
        // SAFETY: for the same reason it keeps its items alive.
        unsafe { ffi::Py_TYPE(item) == wanted }
    };
    (0..len).all(is_wanted).then_some(copy)
}

/// Item `index` of a list of `len` items, without a reference of its own; the item [`AHEAD`] of it is fetched.
///
/// # Safety
/// The list has `len` items, and `index` is not negative and below that.
#[inline]
unsafe fn item_at(list: &Bound<'_, PyList>, index: isize, len: isize) -> *mut ffi::PyObject {
    if index + AHEAD < len {
        // SAFETY: the list has such an item.
        prefetch(unsafe { ffi::PyList_GET_ITEM(list.as_ptr(), index + AHEAD) }.cast_const());
    }
    // SAFETY: as above.
    unsafe { ffi::PyList_GET_ITEM(list.as_ptr(), index) }
}

/// How many items ahead of the one that is read the processor is told of. The items of a long list lie anywhere in
/// memory, and waiting for each in turn takes longer than all else.
///
/// Measured on a Zen 5 server core with a shuffled list of 32,768 ints, after 64 MiB of other memory were read: without
/// it `copy_int_list`, `int32_array` and `compute_digest` take 13.6, 19.9 and 22.2 ns an item; with 16 they take 12.9,
/// 13.7 and 17.0, with 32 12.6, 13.4 and 16.6, with 64 11.8, 14.9 and 17.9.
const AHEAD: isize = 32;

/// Item `index` of a list if it is there and an exact float.
#[inline]
pub fn float_at(list: &Bound<'_, PyList>, index: usize) -> Option<f64> {
    #[cfg(not(Py_GIL_DISABLED))]
    {
        let len = list.len();
        if index >= len {
            return None;
        }
        // SAFETY: the list has `len` items, `index` is below that, and no list has more than an `isize` counts.
        let item = unsafe { item_at(list, index.cast_signed(), len.cast_signed()) };
        // SAFETY: the list keeps the item, for no Python code runs before its value is read.
        let item = unsafe { Borrowed::from_ptr(list.py(), item) };
        item.cast_exact::<PyFloat>().ok().map(|float| float.value())
    }
    // Another thread may replace the item meanwhile, so that a reference of our own is needed.
    #[cfg(Py_GIL_DISABLED)]
    list.get_item(index).ok()?.cast_exact::<PyFloat>().ok().map(PyFloatMethods::value)
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
        #[cfg(not(Py_GIL_DISABLED))]
        {
            let len = self.len();
            if index >= len {
                return None;
            }
            // SAFETY: the list has `len` items, `index` is below that, and no list has more than an `isize` counts.
            let item = unsafe { item_at(self, index.cast_signed(), len.cast_signed()) };
            // SAFETY: the list keeps the item, for no Python code runs before its digit is read.
            small_int(unsafe { Borrowed::from_ptr(self.py(), item) })
        }
        // Another thread may replace the item meanwhile, so that a reference of our own is needed.
        #[cfg(Py_GIL_DISABLED)]
        small_int(self.get_item(index).ok()?.as_borrowed())
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
