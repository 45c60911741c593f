//! Prefix questions: whether one sequence stands in another, and which of many sequences start a given one.

use crate::source::{CHUNK, Source};
use std::collections::HashMap;

/// Which of two sources a comparison could not read, with that source's own error.
#[derive(Debug, PartialEq, Eq)]
pub enum Side<A, B> {
    /// The whole sequence.
    Whole(A),
    /// The piece that is looked for in it.
    Piece(B),
}

/// True if `piece` stands in `whole` at position `at`.
///
/// # Errors
/// The first element on either side that is not a token id, up to the first difference.
pub fn stands_at<A, B>(whole: &A, at: usize, piece: &B) -> Result<bool, Side<A::Error, B::Error>>
where
    A: Source + ?Sized,
    B: Source + ?Sized,
{
    let len = piece.len();
    if at.checked_add(len).is_none_or(|end| end > whole.len()) {
        return Ok(false);
    }
    let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
    for start in (0..len).step_by(CHUNK) {
        let n = CHUNK.min(len - start);
        whole.read(at + start, &mut left[..n]).map_err(Side::Whole)?;
        piece.read(start, &mut right[..n]).map_err(Side::Piece)?;
        if left[..n] != right[..n] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Many sequences, to be found as prefixes of others.
///
/// It holds a fingerprint of each sequence and no ids: one pass over a sequence finds its longest prefix among any
/// number of them. Two sequences may share a fingerprint, so what is found is to be compared id by id.
pub struct PrefixIndex {
    /// The lengths that occur, ascending.
    lengths: Vec<usize>,
    /// The positions of the sequences of one length and fingerprint.
    positions: HashMap<(usize, u64), Vec<usize>>,
}

impl PrefixIndex {
    /// An index of sequences by their length and fingerprint; `None` stands for one that is never found.
    #[must_use]
    pub fn new(sequences: impl IntoIterator<Item = Option<(usize, u64)>>) -> Self {
        let mut positions: HashMap<_, Vec<usize>> = HashMap::new();
        for (position, key) in sequences.into_iter().enumerate() {
            if let Some(key) = key {
                positions.entry(key).or_default().push(position);
            }
        }
        let mut lengths: Vec<usize> = positions.keys().map(|&(length, _)| length).collect();
        lengths.sort_unstable();
        lengths.dedup();
        Self { lengths, positions }
    }

    /// The positions of the longest sequences that seem to start `sequence` and have at most `limit` ids.
    ///
    /// An element that is not a token id ends the sequence.
    pub fn longest<S: Source + ?Sized>(&self, sequence: &S, limit: usize) -> &[usize] {
        let limit = limit.min(sequence.len());
        let mut fingerprint = Fingerprint::default();
        let mut longest: &[usize] = &[];
        let mut at = 0;
        for &length in self.lengths.iter().take_while(|&&length| length <= limit) {
            if fingerprint.add(sequence, at, length).is_err() {
                break;
            }
            at = length;
            if let Some(found) = self.positions.get(&(length, fingerprint.0)) {
                longest = found;
            }
        }
        longest
    }
}

/// The fingerprint of a sequence.
///
/// # Errors
/// The first element that is not a token id.
pub fn fingerprint<S: Source + ?Sized>(sequence: &S) -> Result<u64, S::Error> {
    let mut fingerprint = Fingerprint::default();
    fingerprint.add(sequence, 0, sequence.len())?;
    Ok(fingerprint.0)
}

/// The fingerprint of the ids so far.
#[derive(Default)]
struct Fingerprint(u64);

impl Fingerprint {
    fn add<S: Source + ?Sized>(&mut self, sequence: &S, from: usize, to: usize) -> Result<(), S::Error> {
        // Fast to compute is what counts: a collision costs a comparison, not the result.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut ids = [0; CHUNK];
        for at in (from..to).step_by(CHUNK) {
            let ids = &mut ids[..CHUNK.min(to - at)];
            sequence.read(at, ids)?;
            for id in ids {
                self.0 = (self.0.rotate_left(23) ^ *id).wrapping_mul(ODD);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Ids;

    fn index(sequences: &[&[u64]]) -> PrefixIndex {
        PrefixIndex::new(sequences.iter().map(|ids| Some((ids.len(), fingerprint(*ids).unwrap()))))
    }

    #[test]
    fn the_longest_is_found() {
        let long: Vec<u64> = (0..1_000).collect();
        let index = index(&[&long[..300], &long[..128], &long[..300], &[0, 2], &[], &long]);
        assert_eq!(index.longest(long.as_slice(), usize::MAX), [5]);
        assert_eq!(index.longest(long.as_slice(), 999), [0, 2]);
        assert_eq!(index.longest(&long[..300], usize::MAX), [0, 2]);
        assert_eq!(index.longest(&long[..299], usize::MAX), [1]);
        assert_eq!(index.longest([0, 2, 1].as_slice(), usize::MAX), [3]);
        assert_eq!(index.longest([7].as_slice(), usize::MAX), [4]);
        assert_eq!(index.longest([].as_slice(), usize::MAX), [4]);
    }

    #[test]
    fn zeros_count() {
        let index = index(&[&[0], &[0, 0, 0]]);
        assert_eq!(index.longest([0, 0].as_slice(), usize::MAX), [0]);
        assert_eq!(index.longest([0, 0, 0].as_slice(), usize::MAX), [1]);
    }

    #[test]
    fn what_can_not_be_read_is_not_found() {
        struct EndsBadly;

        impl Source for EndsBadly {
            type Error = ();

            fn len(&self) -> usize {
                3
            }

            fn read(&self, at: usize, out: &mut [u64]) -> Result<(), ()> {
                out.fill(5);
                if at + out.len() < 3 { Ok(()) } else { Err(()) }
            }
        }
        assert_eq!(fingerprint(&EndsBadly), Err(()));
        let keys = [None, Some((2, fingerprint([5, 5].as_slice()).unwrap())), Some((3, 0))];
        assert_eq!(PrefixIndex::new(keys).longest(&EndsBadly, usize::MAX), [1]);
        assert_eq!(PrefixIndex::new([]).longest(&EndsBadly, usize::MAX), [] as [usize; 0]);
    }

    #[test]
    fn a_piece_is_found_only_at_its_place() {
        let whole: Vec<u64> = (0..1_000).collect();
        for (at, piece) in [(0, 0..1_000), (1, 1..1_000), (999, 999..1_000), (1_000, 0..0), (3, 3..300)] {
            let piece: Vec<u64> = piece.collect();
            assert_eq!(stands_at(whole.as_slice(), at, piece.as_slice()), Ok(true));
            assert_eq!(stands_at(whole.as_slice(), at + 1, piece.as_slice()), Ok(false));
        }
        let mut other = whole.clone();
        for changed in [0, 127, 128, 999] {
            other[changed] += 1;
            assert_eq!(stands_at(whole.as_slice(), 0, other.as_slice()), Ok(false));
            other[changed] -= 1;
        }
        assert_eq!(stands_at(whole.as_slice(), usize::MAX, whole.as_slice()), Ok(false));
        assert_eq!(stands_at(&Ids(vec![-9]), 0, [1].as_slice()), Err(Side::Whole(-9)));
        assert_eq!(stands_at([1, 2].as_slice(), 0, &Ids(vec![1, -9])), Err(Side::Piece(-9)));
    }
}
