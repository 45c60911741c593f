//! The digests of staged calls: what the caller lays out before and behind, token ids and columns of floats between.
//!
//! The domains and versions are the caller's, so that a new layout of the same parts needs no change here. Their lengths
//! leave the ids at any place of a block, hence the hasher of bytes and not the kernels of words.

use sha2::{Digest, Sha256};

use super::Hash;
use crate::sha256::with_vectors;
use crate::source::{CHUNK, Source};

/// SHA-256 over `head` and the encoding of `ids`.
///
/// # Errors
/// The first element that is not a token id.
pub fn of_ids<S: Source>(head: &[u8], ids: &S) -> Result<Hash, S::Error> {
    let mut sha = Sha256::new_with_prefix(head);
    encode(ids, |piece| sha.update(piece))?;
    Ok(sha.finalize().into())
}

/// SHA-256 over `head`, the three columns, each behind the number of its bytes, and `tail`.
///
/// # Errors
/// The first element that is not a token id.
pub fn of_call<S: Source>(head: &[u8], ids: &S, floats: [&[f32]; 2], tail: &[u8]) -> Result<Hash, S::Error> {
    let mut sha = Sha256::new_with_prefix(head);
    sha.update(count(8 + 8 * ids.len()));
    encode(ids, |piece| sha.update(piece))?;
    for column in floats {
        sha.update(count(8 + 4 * column.len()));
        sha.update(count(column.len()));
        for piece in column.chunks(CHUNK) {
            let mut bytes = [[0; 4]; CHUNK];
            for (bytes, value) in bytes.iter_mut().zip(piece) {
                *bytes = value.to_be_bytes();
            }
            sha.update(bytes[..piece.len()].as_flattened());
        }
    }
    sha.update(tail);
    Ok(sha.finalize().into())
}

/// Gives the encoding of `ids` to `sink`, piece by piece: their number, then each, unsigned 64-bit big-endian.
///
/// # Errors
/// The first element that is not a token id.
pub fn encode<S: Source>(ids: &S, mut sink: impl FnMut(&[u8])) -> Result<(), S::Error> {
    let len = ids.len();
    sink(&count(len));
    let (mut words, mut bytes) = ([0; CHUNK], [[0; 8]; CHUNK]);
    for at in (0..len).step_by(CHUNK) {
        let (words, bytes) = (&mut words[..CHUNK.min(len - at)], &mut bytes[..CHUNK.min(len - at)]);
        with_vectors(
            #[inline(always)]
            || {
                ids.read(at, words)?;
                for (bytes, word) in bytes.iter_mut().zip(&*words) {
                    *bytes = word.to_be_bytes();
                }
                Ok(())
            },
        )?;
        sink(bytes.as_flattened());
    }
    Ok(())
}

/// A number of things, as it is hashed before them.
#[must_use]
pub const fn count(len: usize) -> [u8; 8] {
    (len as u64).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Ids;

    /// The encoding, from the definition.
    fn encoded(ids: &[i64]) -> Vec<u8> {
        let count = (ids.len() as u64).to_be_bytes();
        count.into_iter().chain(ids.iter().flat_map(|id| id.to_be_bytes())).collect()
    }

    /// A column behind the number of its bytes, from the definition.
    fn blob(column: &[f32]) -> Vec<u8> {
        let mut blob = (8 + 4 * column.len() as u64).to_be_bytes().to_vec();
        blob.extend((column.len() as u64).to_be_bytes());
        blob.extend(column.iter().flat_map(|value| value.to_be_bytes()));
        blob
    }

    #[test]
    fn every_length_around_a_chunk() {
        for len in (0..20).chain(CHUNK - 2..CHUNK + 3).chain([2 * CHUNK, 10_007]) {
            let ids = Ids::new(len, 5);
            let column: Vec<f32> = (0..len).map(|place| 0.25 - f32::from(u16::try_from(place).unwrap())).collect();
            let wanted = Sha256::digest([b"head", &*encoded(&ids.0)].concat());
            assert_eq!(of_ids(b"head", &ids), Ok(wanted.into()), "{len}");
            let blob_of_ids = [&(8 + 8 * len as u64).to_be_bytes(), &*encoded(&ids.0)].concat();
            let wanted =
                Sha256::digest([b"head", &*blob_of_ids, &blob(&column), &blob(&column[..len / 2]), b"tail"].concat());
            assert_eq!(of_call(b"head", &ids, [&column, &column[..len / 2]], b"tail"), Ok(wanted.into()), "{len}");
        }
    }

    #[test]
    fn a_fault_anywhere() {
        for at in [0, CHUNK - 1, CHUNK, 500] {
            let mut ids = Ids::new(501, 5);
            ids.0[at] = -7;
            assert_eq!(of_ids(b"", &ids), Err(-7));
            assert_eq!(of_call(b"", &ids, [&[], &[]], b""), Err(-7));
        }
    }
}
