//! Stretches of flat arrays, copied to other places.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

/// Copy stretches of an array's elements to places of another array.
///
/// Args:
///     source: The bytes of elements: contiguous, of shape `(n * width,)`.
///     target: Those that are written, in other memory.
///     starts: Where each stretch starts, in elements: contiguous, of shape `(stretches,)`.
///     lengths: How many elements each has.
///     places: Where each goes, in elements of `target`.
///     width: Bytes an element.
///
/// Raises:
///     TypeError: An array is of another dtype, not contiguous or not to be written.
///     ValueError: The last three are not of one length.
///     IndexError: A stretch is not within its array; those before it are copied.
#[pyfunction]
#[pyo3(signature = (source, target, starts, lengths, places, width, /))]
pub fn copy_stretches(
    source: &Bound<'_, PyArray1<u8>>,
    target: &Bound<'_, PyArray1<u8>>,
    starts: &Bound<'_, PyArray1<i64>>,
    lengths: &Bound<'_, PyArray1<i64>>,
    places: &Bound<'_, PyArray1<i64>>,
    width: usize,
) -> PyResult<()> {
    let (source, mut target) = (source.try_readonly()?, target.try_readwrite()?);
    let (starts, lengths, places) = (starts.try_readonly()?, lengths.try_readonly()?, places.try_readonly()?);
    let (source, target) = (source.as_slice()?, target.as_slice_mut()?);
    let (starts, lengths, places) = (starts.as_slice()?, lengths.as_slice()?, places.as_slice()?);
    if starts.len() != lengths.len() || starts.len() != places.len() {
        return Err(PyValueError::new_err("starts, lengths and places are not of one length"));
    }
    for (index, ((&start, &length), &place)) in starts.iter().zip(lengths).zip(places).enumerate() {
        let from = range(start, length, width).and_then(|range| source.get(range));
        let to = range(place, length, width).and_then(|range| target.get_mut(range));
        match (from, to) {
            (Some(from), Some(to)) => to.copy_from_slice(from),
            _ => return Err(PyIndexError::new_err(format!("stretch {index} is not within the arrays"))),
        }
    }
    Ok(())
}

/// The bytes of `length` elements from `start` on.
fn range(start: i64, length: i64, width: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(start).ok()?.checked_mul(width)?;
    let end = start.checked_add(usize::try_from(length).ok()?.checked_mul(width)?)?;
    Some(start..end)
}
