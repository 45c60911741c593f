//! Bodies of served responses for Python: what is large in them as arrays, and the rest.

use super::json::{ids_array, unless_odd};
use crate::json::{self, Columns, Found, Ids, Numbers, Step, Value};
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple};

/// A body of fewer bytes is read sooner than the GIL is given away and taken again.
const WORTH_DETACHING: usize = 16_384;

/// A vector of fewer elements is copied sooner than it is made the memory of an array.
const WORTH_KEEPING: usize = 1_024;

/// What `scan` gives: the rest, then place, mark and value of each that was found.
pub type Scanned<'py> = (Bound<'py, PyBytes>, Vec<(Bound<'py, PyTuple>, u64, Bound<'py, PyAny>)>);

/// The words of a list that are ids each. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct IdWords {
    #[pyo3(get)]
    ids: Py<PyArray1<i32>>,
}

#[pymethods]
impl IdWords {
    #[new]
    fn new(ids: Py<PyArray1<i32>>) -> Self {
        Self { ids }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.ids.bind(py).len()
    }
}

/// The parts of a body; None where there is nothing to find, or a full reader must read the whole.
pub fn scan<'py>(py: Python<'py>, text: &[u8], least: usize) -> PyResult<Option<Scanned<'py>>> {
    let body = match text.len() {
        ..WORTH_DETACHING => json::scan_body(text, least),
        _ => py.detach(|| json::scan_body(text, least)),
    };
    match unless_odd(body)? {
        Some(body) if !body.found.is_empty() => {
            let found = body.found.into_iter().map(|found| part(py, found)).collect::<PyResult<_>>()?;
            Ok(Some((PyBytes::new(py, &body.rest), found)))
        }
        _ => Ok(None),
    }
}

fn part(py: Python<'_>, found: Found) -> PyResult<(Bound<'_, PyTuple>, u64, Bound<'_, PyAny>)> {
    let steps = found.path.iter().map(|step| match step {
        Step::Key(key) => PyString::new(py, key).into_any(),
        Step::Index(index) => PyInt::new(py, *index).into_any(),
    });
    let value = match found.value {
        Value::Numbers(Numbers::Ids(Ids::I32(ids))) => array(py, ids).into_any(),
        Value::Numbers(Numbers::Ids(ids)) => ids_array(py, ids),
        Value::Numbers(Numbers::Floats(floats)) => array(py, floats).into_any(),
        Value::Words(ids) => id_words(py, ids)?,
        Value::Columns(columns) if columns.width > 0 => rows(py, columns)?,
        Value::Columns(columns) => objects(py, columns)?,
    };
    Ok((PyTuple::new(py, steps.collect::<Vec<_>>())?, found.mark, value))
}

/// The values as an array: a short one is copied, which is faster than to keep the vector alive for it.
fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    if values.len() < WORTH_KEEPING { PyArray1::from_slice(py, &values) } else { values.into_pyarray(py) }
}

fn id_words(py: Python<'_>, ids: Vec<i32>) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, IdWords { ids: array(py, ids).unbind() })?.into_any())
}

/// The columns of rows, by their place.
fn rows(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyAny>> {
    let mut places = vec![py.None().into_bound(py); columns.width];
    if let Some(log_probs) = columns.log_probs {
        places[0] = array(py, log_probs).into_any();
    }
    if let Some(ids) = columns.ids {
        places[1] = array(py, ids).into_any();
    }
    Ok(PyTuple::new(py, places)?.into_any())
}

/// The columns of objects, by their key.
fn objects(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyAny>> {
    let keys = PyDict::new(py);
    if let Some(log_probs) = columns.log_probs {
        keys.set_item(intern!(py, "logprob"), array(py, log_probs))?;
    }
    for (key, ids) in [(intern!(py, "token_id"), columns.token_ids), (intern!(py, "id"), columns.ids)] {
        if let Some(ids) = ids {
            keys.set_item(key, array(py, ids))?;
        }
    }
    if let Some(ids) = columns.words {
        keys.set_item(intern!(py, "token"), id_words(py, ids)?)?;
    }
    Ok(keys.into_any())
}
