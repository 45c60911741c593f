//! Lines of records for Python: read, scanned and kept in order by other threads, made objects when they are taken.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use super::batch::most_threads;
use super::json::{self, arrays_of};
use crate::files::{Ahead, Cutter, Line, Origin, Taken, Text};
use crate::json::{Halt, Scanned, scan_record};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};
use std::path::PathBuf;

/// The time between two looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(5);

/// What was found in a line.
enum Found {
    Text,
    Narrow(Result<Scanned<f32>, Halt>),
    Wide(Result<Scanned<f64>, Halt>),
}

/// A line of a file, which becomes bytes only where somebody asks for them. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct RecordLine {
    text: Text,
    line: Line,
    #[pyo3(get)]
    path: Py<PyString>,
}

#[pymethods]
impl RecordLine {
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.text.as_ref()[self.line.start..self.line.end])
    }

    #[getter]
    fn number(&self) -> u64 {
        self.line.number
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.line.offset
    }

    #[getter]
    fn is_last(&self) -> bool {
        self.line.is_last
    }
}

/// The lines of a block that were not taken yet, and the file's name.
type Rest = (Text, IntoIter<(Line, Found)>, Py<PyString>);

/// The records' lines of several sources, in order. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct RecordScanner {
    ahead: Ahead<Found, PyErr>,
    names: Vec<Py<PyString>>,
    feed: Py<PyAny>,
    rest: Mutex<Option<Rest>>,
}

#[pymethods]
impl RecordScanner {
    #[new]
    #[pyo3(signature = (sources, feed, *, threads, arrays, narrow))]
    fn new(
        sources: Vec<(Py<PyString>, Option<Bound<'_, PyAny>>)>,
        feed: Py<PyAny>,
        threads: Option<&Bound<'_, PyAny>>,
        arrays: bool,
        narrow: bool,
    ) -> PyResult<Self> {
        let mut names = Vec::with_capacity(sources.len());
        let mut origins = Vec::with_capacity(sources.len());
        for (name, origin) in sources {
            names.push(name);
            origins.push(match origin {
                None => Origin::Given,
                Some(origin) => match origin.extract::<PyBackedBytes>() {
                    Ok(bytes) => Origin::Memory(Text::new(bytes)),
                    Err(_) => Origin::File(origin.extract::<PathBuf>()?),
                },
            });
        }
        let scan: fn(&[u8]) -> Found = match (arrays, narrow) {
            (false, _) => |_| Found::Text,
            (true, true) => |line| Found::Narrow(scan_record(line)),
            (true, false) => |line| Found::Wide(scan_record(line)),
        };
        let ahead = Ahead::new(origins, most_threads(threads)?, scan);
        Ok(Self { ahead, names, feed, rest: Mutex::default() })
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(RecordLine, Option<json::Scanned<'py>>)>> {
        loop {
            if let Some((line, found)) = self.next_of_block(py) {
                let arrays = match found {
                    Found::Text => None,
                    Found::Narrow(found) => arrays_of(py, found)?,
                    Found::Wide(found) => arrays_of(py, found)?,
                };
                return Ok(Some((line, arrays)));
            }
            let mut interrupt = None;
            let mut looked = Instant::now();
            let mut poll = || {
                if looked.elapsed() >= POLL {
                    looked = Instant::now();
                    #[expect(clippy::redundant_closure_for_method_calls, reason = "it is not general over lifetimes")]
                    let signals = Python::attach(|py| py.check_signals());
                    interrupt = signals.err();
                }
                interrupt.is_none()
            };
            match py.detach(|| self.ahead.take(&mut poll)) {
                Taken::Lines(at, text, lines) => {
                    *self.rest() = Some((text, lines.into_iter(), self.names[at].clone_ref(py)));
                }
                Taken::Wanted(at, so_far) => self.ask(py, at, so_far)?,
                Taken::Failed(error) => return Err(error),
                Taken::End => return Ok(None),
                Taken::Interrupted => return interrupt.map_or(Ok(None), Err),
                Taken::Broken => {
                    return Err(PyRuntimeError::new_err("reading broke down: this is a bug of tokenrecords"));
                }
                Taken::Forked => {
                    let message = "the reader's threads are in another process: open the files again after a fork";
                    return Err(PyRuntimeError::new_err(message));
                }
            }
        }
    }

    fn close(&self, py: Python<'_>) {
        *self.rest() = None;
        py.detach(|| self.ahead.close());
    }
}

impl RecordScanner {
    fn rest(&self) -> std::sync::MutexGuard<'_, Option<Rest>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_of_block(&self, py: Python<'_>) -> Option<(RecordLine, Found)> {
        let mut rest = self.rest();
        let (text, lines, path) = rest.as_mut()?;
        let next = lines.next().map(|(line, found)| {
            let line = RecordLine { text: text.clone(), line, path: path.clone_ref(py) };
            (line, found)
        });
        if lines.len() == 0 {
            // The text must not outlive its lines while the next block is read.
            *rest = None;
        }
        next
    }

    /// Asks for the next line of the source at a position.
    fn ask(&self, py: Python<'_>, at: usize, so_far: Cutter) -> PyResult<()> {
        match self.feed.call1(py, (at, so_far.number, so_far.offset)).and_then(|line| {
            let line: PyBackedBytes = line.extract(py)?;
            Ok(line)
        }) {
            Ok(line) if line.is_empty() => self.ahead.end(None),
            Ok(line) => self.ahead.give(Text::new(line)),
            // It is raised in its place, behind the lines that came before.
            Err(error) if error.is_instance_of::<PyException>(py) => self.ahead.end(Some(error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
