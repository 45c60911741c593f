//! The digest of one sequence.

use crate::source::{CHUNK, Source};
use crate::wire;
use sha2::{Digest, Sha256};

/// A SHA-256 value.
pub type Hash = [u8; 32];

/// The digest of `source`: SHA-256 over the domain and the encoding, or over the domain alone for no ids.
///
/// # Errors
/// The first element that is no token id.
pub fn digest<S: Source + ?Sized>(source: &S) -> Result<Hash, S::Error> {
    let mut hash = Sha256::new_with_prefix(wire::DOMAIN);
    let len = source.len();
    if len > 0 {
        hash.update([wire::VERSION]);
        hash.update((len as u64).to_be_bytes());
    }
    let mut ids = [0; CHUNK];
    let mut bytes = [0; 8 * CHUNK];
    for at in (0..len).step_by(CHUNK) {
        let ids = &mut ids[..CHUNK.min(len - at)];
        source.read(at, ids)?;
        for (to, id) in bytes.chunks_exact_mut(8).zip(&*ids) {
            to.copy_from_slice(&id.to_be_bytes());
        }
        hash.update(&bytes[..8 * ids.len()]);
    }
    Ok(hash.finalize().into())
}
