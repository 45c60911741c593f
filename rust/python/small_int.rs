//! The inline digit of small ints.
//!
//! The C-API has no way to it that is as fast: CONTRIBUTING.md has the numbers.
#![cfg_attr(not(any(Py_3_16, PyPy, GraalPy)), expect(unsafe_code, reason = "reads the digit of an int"))]

#[cfg(not(any(Py_3_16, PyPy, GraalPy)))]
use pyo3::ffi;
use pyo3::prelude::*;
#[cfg(not(any(Py_3_16, PyPy, GraalPy)))]
use pyo3::types::PyInt;

/// The value of `item` if it is an exact int of at most one 30-bit digit, as every token id in use is.
#[inline]
#[cfg(all(Py_3_12, not(Py_3_16), not(PyPy), not(GraalPy)))]
pub fn small_int(item: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    /// A `PyLongObject` of `CPython` 3.12 to 3.15 (`Include/cpython/longintrepr.h`).
    #[repr(C)]
    struct Long {
        object: ffi::PyObject,
        /// Number of digits above three bits of flags; the low two of these are the sign: 0 plus, 1 zero, 2 minus.
        tag: usize,
        /// The first one; there is always one.
        digit: u32,
    }
    if !item.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let long = item.as_ptr().cast::<Long>();
    // SAFETY: `item` is alive, an exact int of these versions has this layout, and its value never changes.
    let tag = unsafe { (*long).tag };
    // SAFETY: as above.
    let digit = unsafe { (*long).digit };
    // Fewer than two digits, and the tag's sign turned to 1, 0 or -1.
    (tag < 2 << 3).then(|| i64::from(digit) * (1 - (tag & 3).cast_signed()) as i64)
}

/// The value of `item` if it is an exact int of at most one 30-bit digit, as every token id in use is.
#[inline]
#[cfg(all(not(Py_3_12), not(PyPy), not(GraalPy)))]
pub fn small_int(item: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    /// The `_longobject` of `CPython` 3.11 (`Include/cpython/longintrepr.h`).
    #[repr(C)]
    struct Long {
        /// Its size is the number of digits, negative for a negative int.
        object: ffi::PyVarObject,
        /// The first one; there is always room for one.
        digit: u32,
    }
    if !item.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let long = item.as_ptr().cast::<Long>();
    // SAFETY: `item` is alive, an exact int of this version has this layout, and its value never changes.
    let digits = unsafe { (*long).object.ob_size };
    // SAFETY: as above.
    let digit = unsafe { (*long).digit };
    // For zero the digit is not specified.
    matches!(digits, -1..=1).then(|| i64::from(digit) * digits as i64)
}

/// Another Python, or one whose ints nobody has looked at yet: every int goes the way of large ones.
#[cfg(any(Py_3_16, PyPy, GraalPy))]
pub fn small_int(_: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    None
}
