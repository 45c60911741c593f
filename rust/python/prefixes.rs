//! `PrefixIndex`, for sequences from Python.

use super::errors::{Name, no_stop};
use super::tokens::{Tokens, views};
use crate::prefixes::{self, fingerprint};
use crate::source::{Parts, Source};
use pyo3::prelude::*;

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

/// Length and fingerprint of the parts as one sequence, `None` where they hold what is no token id.
fn key(name: Name<'_>, parts: &Bound<'_, PyAny>) -> PyResult<Option<(usize, u64)>> {
    let py = parts.py();
    let parts: Vec<_> = parts.try_iter()?.map(|part| Tokens::new(name, &part?)).collect::<PyResult<_>>()?;
    let fingerprint = match views(&parts) {
        Some(views) => py.detach(|| fingerprint(&Parts(&views)).ok()),
        None => fingerprint(&Parts(&parts)).ok(),
    };
    Ok(fingerprint.map(|fingerprint| (Parts(&parts).len(), fingerprint)))
}
