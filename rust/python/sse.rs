//! The events of a stream for Python, and how its chunks are put together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::json::unless_odd;
use super::members::MemberCutter;
use crate::json::{Rule, Rules, Words, join_chunks};
use crate::sse::{Events, Kind};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// What becomes of the members of chunks. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct ChunkRules(Rules);

#[pymethods]
impl ChunkRules {
    #[new]
    fn new(rules: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self(rules_of(rules)?))
    }
}

fn rules_of(given: &Bound<'_, PyDict>) -> PyResult<Rules> {
    let mut rules = Rules { keys: Vec::new(), other: Rule::Never };
    for (key, rule) in given {
        match key.extract::<&str>()? {
            "*" => rules.other = rule_of(&rule)?,
            key => rules.keys.push((key.as_bytes().to_vec(), rule_of(&rule)?)),
        }
    }
    Ok(rules)
}

fn rule_of(given: &Bound<'_, PyAny>) -> PyResult<Rule> {
    if let Ok(rules) = given.cast::<PyDict>() {
        return Ok(Rule::Object(Box::new(rules_of(rules)?)));
    }
    if let Ok(list) = given.cast::<PyList>() {
        return Ok(Rule::Single(Box::new(rules_of(list.get_item(0)?.cast()?)?)));
    }
    if let Ok(words) = given.cast::<PyTuple>() {
        let quoted = |word: Bound<'_, PyAny>| Ok(format!("\"{}\"", word.extract::<&str>()?).into_bytes());
        return Ok(Rule::OneOf(words.iter().map(quoted).collect::<PyResult<_>>()?));
    }
    Ok(match given.extract::<&str>()? {
        "text" => Rule::Text,
        "list" => Rule::List,
        "entries" => Rule::Entries,
        "same" => Rule::Same,
        "grows" => Rule::Grows,
        "told" => Rule::Told,
        "count" => Rule::Count,
        "last" => Rule::Last,
        "never" => Rule::Never,
        word => return Err(PyTypeError::new_err(format!("rule is {word:?}: the name of a rule is needed"))),
    })
}

/// The events of a stream. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct SseEvents(Mutex<Events>);

impl SseEvents {
    fn held(&self, py: Python<'_>) -> MutexGuard<'_, Events> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl SseEvents {
    #[new]
    #[pyo3(signature = (words=None))]
    fn new(words: Option<Vec<String>>) -> PyResult<Self> {
        let words = Words::new(words.unwrap_or_default().into_iter().map(String::into_bytes).collect());
        let words =
            words.ok_or_else(|| PyValueError::new_err("words are of 1 to 63 bytes, without quotes and backslashes"))?;
        Ok(Self(Mutex::new(Events::watched_for(words))))
    }

    fn feed(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        self.held(py).feed(data).map_err(|_| PyMemoryError::new_err(()))
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.held(py).end().map_err(|_| PyMemoryError::new_err(()))
    }

    #[pyo3(signature = (cutter=None, end=None))]
    fn pass_on<'py>(
        &self,
        py: Python<'py>,
        cutter: Option<&MemberCutter>,
        end: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let passed = self.held(py).pass(cutter.map(|cutter| &cutter.0), end);
        Ok(PyBytes::new(py, &passed.map_err(|_| PyMemoryError::new_err(()))?))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.held(py).len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<(&'static str, usize, Bound<'py, PyBytes>)> {
        let events = self.held(py);
        let (kind, begin, data) = events.get(index).ok_or_else(|| PyIndexError::new_err("no such event"))?;
        let kind = match kind {
            Kind::Data => "data",
            Kind::Error => "error",
            Kind::Unknown => "unknown",
        };
        Ok((kind, begin, PyBytes::new(py, data)))
    }

    fn telling(&self, py: Python<'_>) -> Vec<usize> {
        self.held(py).telling()
    }

    #[getter]
    fn is_done(&self, py: Python<'_>) -> bool {
        self.held(py).is_done()
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.held(py).bytes())
    }

    fn joined<'py>(&self, py: Python<'py>, rules: &ChunkRules) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let text = py.detach(|| {
            let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            events.chunks().map(|chunks| join_chunks(chunks, &rules.0))
        });
        match text {
            Some(text) => Ok(unless_odd(text)?.map(|text| PyBytes::new(py, &text))),
            None => Ok(None),
        }
    }
}
