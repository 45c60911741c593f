//! What several tests need: a source, and the digest by the book.

use sha2::{Digest, Sha256};

use crate::digest::Hash;
use crate::source::Source;

/// Ids in memory, of which negative ones are refused.
pub struct Ids(pub Vec<i64>);

impl Ids {
    /// Ids, `len` of them, that differ within and between sequences.
    pub fn new(len: usize, seed: i64) -> Self {
        Self((0..).map(|i| seed * 1_000_003 + i * 7).take(len).collect())
    }
}

impl Source for Ids {
    type Error = i64;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), i64> {
        for (out, &id) in out.iter_mut().zip(&self.0[at..]) {
            *out = u64::try_from(id).map_err(|_| id)?;
        }
        Ok(())
    }
}

/// The digest, from the definition.
pub fn expected(ids: &[i64]) -> Hash {
    let mut bytes = b"nemo-gym-tokens".to_vec();
    if !ids.is_empty() {
        bytes.push(1);
        bytes.extend((ids.len() as u64).to_be_bytes());
        bytes.extend(ids.iter().flat_map(|id| id.to_be_bytes()));
    }
    Sha256::digest(bytes).into()
}
