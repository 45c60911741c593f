//! The array fields of a record, of the kinds that nearly all of them are: no Python code runs for those.

use super::array::ArrayView;
use super::items;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// What a field of token ids holds that is given `value`, as a wrap validator of pydantic.
///
/// Returns:
///     `value` if it is a one-dimensional array of integers, a copy of an exact list of exact ints, else what
///     `otherwise(value, handler)` gives.
#[pyfunction]
#[pyo3(signature = (otherwise, value, handler, /))]
pub fn kept_ids<'py>(
    otherwise: &Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    handler: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if is_plain(&value, |kind, _| matches!(kind, b'i' | b'u')) {
        return Ok(value);
    }
    items::copy_if_all_ints(&value).map_or_else(|| otherwise.call1((value, handler)), |list| Ok(list.into_any()))
}

/// The same for log-probs: float16, float32 and float64 arrays, and exact floats.
#[pyfunction]
#[pyo3(signature = (otherwise, value, handler, /))]
pub fn kept_log_probs<'py>(
    otherwise: &Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    handler: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if is_plain(&value, |kind, size| kind == b'f' && size <= 8) {
        return Ok(value);
    }
    items::copy_if_all_floats(&value).map_or_else(|| otherwise.call1((value, handler)), |list| Ok(list.into_any()))
}

/// Two exact lists, or two one-dimensional integer arrays of one dtype, one after the other; None for all else.
///
/// Returns:
///     A new list, or a new array of shape `(first + second,)` and that dtype.
#[pyfunction]
#[pyo3(signature = (first, second, /))]
pub fn joined_ids<'py>(first: &Bound<'py, PyAny>, second: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let (Ok(first), Ok(second)) = (first.cast::<PyUntypedArray>(), second.cast::<PyUntypedArray>()) {
        let (Some(a), Some(b)) = (ArrayView::new(first), ArrayView::new(second)) else { return Ok(None) };
        return ArrayView::joined(first.py(), [&a, &b]);
    }
    match (first.cast_exact::<PyList>(), second.cast_exact::<PyList>()) {
        (Ok(first), Ok(second)) => Ok(Some(first.as_sequence().concat(second.as_sequence())?.into_any())),
        _ => Ok(None),
    }
}

/// True for numpy's own one-dimensional arrays of a dtype whose kind and size in bytes are wanted.
fn is_plain(value: &Bound<'_, PyAny>, wanted: impl Fn(u8, usize) -> bool) -> bool {
    value.cast_exact::<PyUntypedArray>().is_ok_and(|array| {
        let dtype = array.dtype();
        array.ndim() == 1 && wanted(dtype.kind(), dtype.itemsize())
    })
}
