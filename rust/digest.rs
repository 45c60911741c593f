//! The digest of one sequence.

use crate::lanes::backend::{Backend, States};
use crate::source::Source;
use crate::words::Words;

/// The most blocks that are filled before they are compressed: enough to make
/// the cost of a call small, few enough to stay in the L1 cache.
const RUN: usize = 32;

/// A SHA-256 value.
pub type Hash = [u8; 32];

/// The digest of `source`: SHA-256 over the domain and the encoding, or over the domain alone for no ids.
///
/// # Errors
/// The first element that is no token id.
pub fn digest<S: Source + ?Sized>(source: &S) -> Result<Hash, S::Error> {
    digest_by(Backend::detect(), source)
}

/// The same by a given back end.
///
/// The processor fills the next run while it still waits for the rounds of the
/// current one: the two depend on each other only through the buffer, and a
/// lone lane leaves most execution units idle.
fn digest_by<S: Source + ?Sized>(backend: Backend, source: &S) -> Result<Hash, S::Error> {
    let mut words = Words::new(source);
    let mut states = States::new();
    let mut run = [[0; 8]; RUN];
    while words.left() > 0 {
        let count = backend.inside(
            #[inline(always)]
            || words.fill(&mut run),
        )?;
        backend.compress(&mut states, &[&run[..count]]);
    }
    Ok(states.digest(0))
}
