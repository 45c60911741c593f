//! Prefix questions about sequences from Python.

use super::errors::{Name, no_stop};
use super::tokens::{Tokens, views};
use crate::prefixes::{self, Side, fingerprint, stands_at};
use crate::source::{Parts, Source};
use pyo3::prelude::*;

/// True if the parts, as one sequence, stand in `whole` at position `at`.
pub fn stands_in(py: Python<'_>, whole: &Tokens<'_, '_>, at: usize, parts: &[Tokens<'_, '_>]) -> PyResult<bool> {
    match (whole.view(), views(parts)) {
        (Some(view), Some(views)) => py.detach(|| stands_at(view, at, &Parts(&views))).map_err(|side| match side {
            Side::Whole(found) => whole.negative(found),
            Side::Piece((part, found)) => parts[part].negative(found),
        }),
        _ => stands_at(whole, at, &Parts(parts)).map_err(|side| match side {
            Side::Whole(error) | Side::Piece((_, error)) => error,
        }),
    }
}

/// Sequences that can be found as prefixes of others. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct PrefixIndex(prefixes::PrefixIndex);

#[pymethods]
impl PrefixIndex {
    #[new]
    fn new(sequences: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = sequences.py();
        let keys: Vec<_> = sequences
            .try_iter()
            .map_err(|error| no_stop(py, error, "sequences"))?
            .enumerate()
            .map(|(place, parts)| key(Name::Sequence(place), &parts?))
            .collect::<PyResult<_>>()?;
        Ok(Self(prefixes::PrefixIndex::new(keys)))
    }

    fn longest(&self, token_ids: &Bound<'_, PyAny>, limit: usize) -> PyResult<Vec<usize>> {
        let tokens = Tokens::new(Name::Argument("token_ids"), token_ids)?;
        Ok(match tokens.view() {
            Some(view) => token_ids.py().detach(|| self.0.longest(view, limit)),
            None => self.0.longest(&tokens, limit),
        }
        .to_vec())
    }
}

/// Length and fingerprint of the parts as one sequence, `None` where they hold what is not a token id.
fn key(name: Name<'_>, parts: &Bound<'_, PyAny>) -> PyResult<Option<(usize, u64)>> {
    let py = parts.py();
    let parts: Vec<_> = parts.try_iter()?.map(|part| Tokens::new(name, &part?)).collect::<PyResult<_>>()?;
    let fingerprint = match views(&parts) {
        Some(views) => py.detach(|| fingerprint(&Parts(&views)).ok()),
        None => fingerprint(&Parts(&parts)).ok(),
    };
    Ok(fingerprint.map(|fingerprint| (Parts(&parts).len(), fingerprint)))
}
