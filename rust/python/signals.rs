//! Ctrl-C, and whatever else the handler of a signal raises, while Rust works.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::source::Source;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// The least time between two looks.
const LEAST: Duration = Duration::from_millis(5);

/// The work between two looks, as a multiple of the time that the last one took: a look waits for the GIL, where another
/// thread runs Python code usually 5 ms.
///
/// Measured on two busy Zen 5 server cores with `compute_digests(arrays, threads=1)` beside a thread that counts, as a
/// multiple of the time without that thread: 3.3 with a look each 2 ms, 2.2 with this, 2.0 without looks.
const WORK: u32 = 10;

/// Ids between two questions of a source whether it is time to look: 2 ms of hashing.
const IDS: usize = 1 << 19;

/// Looks for signals now and then, with or without the GIL.
pub struct Signals(Mutex<State>);

struct State {
    /// When to look again; none before the first question.
    next: Option<Instant>,
    /// What a handler raised.
    raised: Option<PyErr>,
}

impl Signals {
    pub const fn new() -> Self {
        Self(Mutex::new(State { next: None, raised: None }))
    }

    /// False when a handler has raised. Looks where it is time to.
    pub fn are_quiet(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        if state.raised.is_none() && state.next.is_none_or(|next| next <= start) {
            #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over lifetimes")]
            let looked = Python::attach(|py| py.check_signals());
            state.raised = looked.err();
            state.next = Some(Instant::now() + LEAST.max(WORK * start.elapsed()));
        }
        state.raised.is_none()
    }

    /// What a handler raised.
    pub fn into_error(self) -> PyErr {
        let state = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
    }
}

/// Ids whose reading ends when a signal's handler has raised.
pub struct Interruptible<'a, S> {
    pub ids: &'a S,
    pub signals: &'a Signals,
}

impl<S: Source> Source for Interruptible<'_, S> {
    /// What the ids report; none for a signal.
    type Error = Option<S::Error>;

    fn len(&self) -> usize {
        self.ids.len()
    }

    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Self::Error> {
        if at / IDS != (at + out.len()) / IDS && !self.signals.are_quiet() {
            return Err(None);
        }
        self.ids.read(at, out).map_err(Some)
    }
}
