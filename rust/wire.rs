//! The wire format: what is written and hashed for a sequence of token ids. The crate's docs specify it.

use crate::source::{CHUNK, Source};

/// The version of the format, its first byte.
pub const VERSION: u8 = 1;

/// What a digest hashes before the encoding, so that no other use of SHA-256 gives the same value.
pub const DOMAIN: [u8; 15] = *b"nemo-gym-tokens";

/// Bytes before the first id: the version and the length.
pub const HEADER_LEN: usize = 9;

/// The number of bytes that encode `n` ids, or `None` if no address space holds them.
///
/// ```
/// assert_eq!(tokenrecords::wire::encoded_len(2), Some(25));
/// ```
#[must_use]
pub fn encoded_len(n: usize) -> Option<usize> {
    n.checked_mul(8)?.checked_add(HEADER_LEN).filter(|&len| isize::try_from(len).is_ok())
}

/// Writes the encoding of `source` to `out`, which must be [`encoded_len`] bytes long.
///
/// ```
/// let ids = [1, 258];
/// let mut out = [0; 25];
/// tokenrecords::wire::encode(ids.as_slice(), &mut out).unwrap();
/// assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2]);
/// ```
///
/// # Errors
/// The first element that is not a token id.
///
/// # Panics
/// If `out` has another length.
#[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
#[inline(always)]
pub fn encode<S: Source + ?Sized>(source: &S, out: &mut [u8]) -> Result<(), S::Error> {
    let len = source.len();
    assert_eq!(Some(out.len()), encoded_len(len), "the buffer has the wrong length");
    out[0] = VERSION;
    out[1..HEADER_LEN].copy_from_slice(&(len as u64).to_be_bytes());
    let mut ids = [0; CHUNK];
    let mut at = 0;
    for piece in out[HEADER_LEN..].chunks_mut(8 * CHUNK) {
        let ids = &mut ids[..piece.len() / 8];
        source.read(at, ids)?;
        at += ids.len();
        for (to, id) in piece.chunks_exact_mut(8).zip(ids) {
            to.copy_from_slice(&id.to_be_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_around_a_chunk_is_encoded() {
        for n in (0..20).chain(CHUNK - 2..CHUNK + 3).chain([2 * CHUNK, 2 * CHUNK + 1]) {
            let ids: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            let mut out = vec![0; encoded_len(n).unwrap()];
            encode(ids.as_slice(), &mut out).unwrap();
            let mut wanted = vec![1];
            wanted.extend((n as u64).to_be_bytes());
            wanted.extend(ids.iter().flat_map(|id| id.to_be_bytes()));
            assert_eq!(out, wanted, "{n} ids");
        }
    }

    #[test]
    fn a_length_beyond_the_address_space_is_none() {
        let most = (isize::MAX.unsigned_abs() - HEADER_LEN) / 8;
        assert_eq!(encoded_len(most), Some(8 * most + 9));
        assert_eq!(encoded_len(most + 1), None);
        assert_eq!(encoded_len(usize::MAX), None);
    }
}
