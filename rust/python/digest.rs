//! The digest of token sequences from Python.

use super::signals::{Interruptible, Signals};
use super::tokens::{Tokens, views};
use crate::digest::{Hash, digest};
use crate::source::{Parts, Source};
use crate::wire;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Hashing more bytes than this releases the GIL: the threshold of Python's hashlib (`HASHLIB_GIL_MINSIZE`).
pub const GIL_MIN_SIZE: usize = 2_048;

/// The digest of the parts as one sequence, without the GIL where all of them are arrays and there is enough to do.
pub fn digest_of(py: Python<'_>, parts: &[Tokens<'_, '_>]) -> PyResult<Hash> {
    let signals = Signals::new();
    let size = wire::encoded_len(Parts(parts).len()).unwrap_or(usize::MAX);
    match views(parts) {
        Some(views) if size > GIL_MIN_SIZE => {
            let ids = Parts(&views);
            py.detach(|| digest(&Interruptible { ids: &ids, signals: &signals }))
                .map_err(|error| error.map(|(part, found)| parts[part].negative(found)))
        }
        _ => {
            let ids = Parts(parts);
            digest(&Interruptible { ids: &ids, signals: &signals }).map_err(|error| error.map(|(_, error)| error))
        }
    }
    .map_err(|error| error.unwrap_or_else(|| signals.into_error()))
}

/// A hash as text.
pub fn hex<'py>(py: Python<'py>, hash: &Hash) -> Bound<'py, PyString> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 64];
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(hash) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    #[expect(clippy::expect_used, reason = "hex digits are ASCII")]
    PyString::new(py, std::str::from_utf8(&text).expect("hex digits are ASCII"))
}
