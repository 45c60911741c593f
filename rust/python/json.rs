//! Records as JSON for Python: lines to arrays, fields to lines.

use super::array::ArrayView;
use super::errors::{shown, type_name};
use super::items;
use crate::json::{self, Halt, Ids, LogProb};
use crate::source::Source;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyUntypedArray};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The most arrays and objects around a value: in more, the record among them, pydantic does not read it.
const MAX_DEPTH: usize = 200;

/// What `scan` gives: the rest of the line, then the arrays, each None where the line has no such field.
pub type Scanned<'py> = (Bound<'py, PyBytes>, [Option<Bound<'py, PyAny>>; 3]);

/// The arrays of a line, read without the GIL; None where pydantic must read the line.
pub fn scan<'py, F: LogProb + numpy::Element>(py: Python<'py>, line: &[u8]) -> PyResult<Option<Scanned<'py>>> {
    arrays_of(py, py.detach(|| json::scan_record::<F>(line)))
}

/// What was read in a line, as Python objects.
pub fn arrays_of<F: LogProb + numpy::Element>(
    py: Python<'_>,
    read: Result<json::Scanned<F>, Halt>,
) -> PyResult<Option<Scanned<'_>>> {
    let Some(found) = unless_odd(read)? else { return Ok(None) };
    let arrays = [
        found.prompt_token_ids.map(|ids| ids_array(py, ids)),
        found.generation_token_ids.map(|ids| ids_array(py, ids)),
        found.generation_log_probs.map(|log_probs| log_probs.into_pyarray(py).into_any()),
    ];
    Ok(Some((PyBytes::new(py, &found.rest), arrays)))
}

/// The ids as an array, without a copy.
pub fn ids_array(py: Python<'_>, ids: Ids) -> Bound<'_, PyAny> {
    match ids {
        Ids::I32(ids) => ids.into_pyarray(py).into_any(),
        Ids::I64(ids) => ids.into_pyarray(py).into_any(),
        Ids::U64(ids) => ids.into_pyarray(py).into_any(),
    }
}

/// What was read; None where the text is odd.
pub fn unless_odd<T>(read: Result<T, Halt>) -> PyResult<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Halt::Odd) => Ok(None),
        Err(Halt::Memory) => Err(PyMemoryError::new_err(())),
    }
}

/// The line of a record, without its line break: keys sorted, no spaces, as orjson writes it.
///
/// `fields` holds JSON values as pydantic dumps them, and the three arrays as lists or arrays.
pub fn line<'py>(fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    write_object(&mut out, fields, |out, name, value| {
        let written = match name {
            "prompt_token_ids" | "generation_token_ids" => write_ids(out, value),
            "generation_log_probs" => write_log_probs(out, value),
            _ => write(out, value, 1),
        };
        written.map_err(|error| match error.is_instance_of::<PyMemoryError>(value.py()) {
            true => error,
            false => PyValueError::new_err(format!("{name}: {}", error.value(value.py()))),
        })
    })?;
    Ok(PyBytes::new(fields.py(), &out))
}

/// Bytes that an id takes as text, with its comma, in all vocabularies that there are.
const TEXT: usize = 8;

/// Room for so many ids, zeros.
///
/// # Errors
/// A `MemoryError` where there is none: an array may say that it has any number of them.
pub fn words(count: usize) -> PyResult<Vec<u64>> {
    let mut words = Vec::new();
    words.try_reserve_exact(count).map_err(|_| PyMemoryError::new_err(()))?;
    words.resize(count, 0);
    Ok(words)
}

fn write_ids(out: &mut Vec<u8>, ids: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(view) = ids.cast::<PyUntypedArray>().ok().and_then(|array| ArrayView::new(array)) {
        let mut words = words(view.len())?;
        view.read_words(0, &mut words);
        out.try_reserve(words.len().saturating_mul(TEXT)).map_err(|_| PyMemoryError::new_err(()))?;
        match view.is_signed() {
            true => json::push_ints(out, &words.into_iter().map(u64::cast_signed).collect::<Vec<_>>()),
            false => json::push_ints(out, &words),
        }
        return Ok(());
    }
    let list = ids.cast::<PyList>()?;
    match items::small_ints(list) {
        Some(ids) => json::push_ints(out, &ids),
        None => write_array(out, list.iter(), 0)?,
    }
    Ok(())
}

fn write_log_probs(out: &mut Vec<u8>, log_probs: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(array) = log_probs.cast::<PyArray1<f64>>() {
        json::push_floats(out, array.readonly().as_array().iter().copied());
        return Ok(());
    }
    let list = log_probs.cast::<PyList>()?;
    match list.iter().map(|x| Ok(x.cast::<PyFloat>()?.value())).collect::<PyResult<Vec<f64>>>() {
        Ok(floats) => json::push_floats(out, floats),
        Err(_) => write_array(out, list.iter(), 0)?,
    }
    Ok(())
}

/// Appends a JSON value; `depth` is the number of arrays and objects around it.
fn write(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("nested deeper than {MAX_DEPTH}, which no reader takes back")));
    }
    if let Ok(string) = value.cast::<PyString>() {
        json::push_string(out, string.to_str()?);
    } else if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(flag) = value.cast::<PyBool>() {
        out.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
    } else if let Ok(int) = value.cast::<PyInt>() {
        write_int(out, int)?;
    } else if let Ok(float) = value.cast::<PyFloat>() {
        match float.value() {
            finite if finite.is_finite() => json::push_float(out, finite),
            _ => out.extend_from_slice(b"null"),
        }
    } else if let Ok(list) = value.cast::<PyList>() {
        write_array(out, list.iter(), depth)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        write_array(out, tuple.iter(), depth)?;
    } else if let Ok(dict) = value.cast::<PyDict>() {
        write_object(out, dict, |out, _, value| write(out, value, depth + 1))?;
    } else {
        return Err(PyTypeError::new_err(format!("{} is not a JSON value, got {}", shown(value), type_name(value))));
    }
    Ok(())
}

fn write_int(out: &mut Vec<u8>, int: &Bound<'_, PyInt>) -> PyResult<()> {
    if let Ok(signed) = int.extract::<i64>() {
        out.extend_from_slice(itoa::Buffer::new().format(signed).as_bytes());
    } else if let Ok(unsigned) = int.extract::<u64>() {
        out.extend_from_slice(itoa::Buffer::new().format(unsigned).as_bytes());
    } else {
        return Err(PyValueError::new_err(format!("{} does not fit 64 bits", shown(int))));
    }
    Ok(())
}

fn write_array<'py>(out: &mut Vec<u8>, values: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<()> {
    out.push(b'[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, &value, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

/// Appends an object, its keys in the order of their UTF-8 bytes.
fn write_object<'py>(
    out: &mut Vec<u8>,
    object: &Bound<'py, PyDict>,
    mut write_value: impl FnMut(&mut Vec<u8>, &str, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let mut members = object
        .iter()
        .map(|(key, value)| Ok((key.cast::<PyString>()?.to_str()?.to_owned(), value)))
        .collect::<PyResult<Vec<_>>>()?;
    members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    out.push(b'{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::push_string(out, key);
        out.push(b':');
        write_value(out, key, value)?;
    }
    out.push(b'}');
    Ok(())
}
