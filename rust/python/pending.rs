//! Digests that another thread computes while Python goes on.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use super::batch::{Item, item, thread_count};
use super::digest::hex;
use super::errors::{Name, negative};
use super::signals::Signals;
use super::tokens::Tokens;
use crate::digest::{Hash, Stopped, digest_many};
use crate::dtype::Negative;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The time between two looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(5);

type Outcome = Result<Vec<Hash>, Stopped<Negative>>;

/// Digests that are being computed. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct PendingDigests {
    sequences: Arc<Vec<Item>>,
    threads: usize,
    /// What the other thread sends, None where none could be started.
    outcome: Mutex<Option<Receiver<Outcome>>>,
    abandoned: Arc<AtomicBool>,
    /// The process that the other thread is in.
    process: u32,
}

#[pymethods]
impl PendingDigests {
    #[new]
    #[pyo3(signature = (sequences, *, threads=None))]
    fn new(sequences: Vec<Bound<'_, PyAny>>, threads: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let count = thread_count(threads)?;
        // One is left to who goes on meanwhile.
        let threads = if threads.is_none() { (count - 1).max(1) } else { count };
        let sequences = sequences
            .into_iter()
            .enumerate()
            .map(|(place, ids)| item(Tokens::new(Name::Sequence(place), &ids)?))
            .collect::<PyResult<_>>()?;
        let sequences: Arc<Vec<Item>> = Arc::new(sequences);
        let abandoned = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let (theirs, flag) = (Arc::clone(&sequences), Arc::clone(&abandoned));
        let work = move || {
            let outcome = digest_many(&theirs, threads, &|| !flag.load(Ordering::Relaxed));
            // The sequences go first, so that whoever waits for the digests has the last reference to the arrays.
            drop(theirs);
            // Nobody may be there to receive it any more.
            _ = sender.send(outcome);
        };
        let started = Builder::new().name("tokenrecords".into()).spawn(work).is_ok();
        let outcome = Mutex::new(started.then_some(receiver));
        Ok(Self { sequences, threads, outcome, abandoned, process: process::id() })
    }

    fn result<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyString>>> {
        let outcome = match self.receiver() {
            Some(receiver) if self.process == process::id() => wait(py, receiver)?,
            // The thread could not be started, or is in the process that this one was forked from.
            _ => None,
        };
        let signals = Signals::new();
        let outcome = outcome.unwrap_or_else(|| {
            py.detach(|| digest_many(self.sequences.as_slice(), self.threads, &|| signals.are_quiet()))
        });
        match outcome {
            Ok(hashes) => Ok(hashes.iter().map(|hash| hex(py, hash)).collect()),
            Err(Stopped::Fault { index, error }) => Err(negative(Name::Sequence(index), error.index, error.value)),
            Err(Stopped::Cancelled) => Err(signals.into_error()),
        }
    }
}

impl PendingDigests {
    fn receiver(&self) -> Option<Receiver<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for PendingDigests {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

/// What the other thread found, None where it ended without a word.
fn wait(py: Python<'_>, mut receiver: Receiver<Outcome>) -> PyResult<Option<Outcome>> {
    loop {
        let outcome;
        (outcome, receiver) = py.detach(move || (receiver.recv_timeout(POLL), receiver));
        match outcome {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}
