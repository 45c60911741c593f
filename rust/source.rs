//! Where token ids come from.

/// A sequence of token ids that can be read piece by piece.
///
/// `read` copies each element once to memory that nobody else sees and checks it there. A caller that
/// hashes or compares what `read` gave therefore stays consistent even if another thread writes to
/// the memory behind the source meanwhile.
pub trait Source {
    /// What a bad element looks like.
    type Error;

    /// The number of ids.
    fn len(&self) -> usize;

    /// True if there are no ids.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the ids from `at` on to `out`, as many as `out` holds.
    ///
    /// # Errors
    /// The first element in that range that is no token id.
    ///
    /// # Panics
    /// May panic if `at + out.len()` is above `len()`.
    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Self::Error>;
}

impl Source for [u64] {
    type Error = std::convert::Infallible;

    fn len(&self) -> usize {
        self.len()
    }

    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Self::Error> {
        out.copy_from_slice(&self[at..at + out.len()]);
        Ok(())
    }
}

/// Several sources, one after the other, as one sequence.
pub struct Parts<'a, S>(pub &'a [S]);

impl<S: Source> Source for Parts<'_, S> {
    /// The part's place in the slice, and what that part reports.
    type Error = (usize, S::Error);

    fn len(&self) -> usize {
        self.0.iter().map(Source::len).sum()
    }

    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    fn read(&self, mut at: usize, mut out: &mut [u64]) -> Result<(), Self::Error> {
        for (place, part) in self.0.iter().enumerate() {
            if at >= part.len() {
                at -= part.len();
                continue;
            }
            let (now, later) = out.split_at_mut(out.len().min(part.len() - at));
            part.read(at, now).map_err(|error| (place, error))?;
            (at, out) = (0, later);
            if out.is_empty() {
                break;
            }
        }
        assert!(out.is_empty(), "read past the end of the parts");
        Ok(())
    }
}

/// How many ids are read at a time where nothing else sets the pace: their words stay in the first-level cache.
pub(crate) const CHUNK: usize = 128;

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
/// The first element on either side that is no token id, up to the first difference.
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Bad;

    impl Source for Bad {
        type Error = &'static str;

        fn len(&self) -> usize {
            2
        }

        fn read(&self, _: usize, _: &mut [u64]) -> Result<(), Self::Error> {
            Err("bad")
        }
    }

    fn all<S: Source>(source: &S) -> Result<Vec<u64>, S::Error> {
        let mut out = vec![0; source.len()];
        source.read(0, &mut out)?;
        Ok(out)
    }

    struct Owned(Vec<u64>);

    impl Source for Owned {
        type Error = std::convert::Infallible;

        fn len(&self) -> usize {
            self.0.len()
        }

        fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Self::Error> {
            self.0.as_slice().read(at, out)
        }
    }

    #[test]
    fn parts_are_one_sequence() {
        let parts = [vec![], vec![1, 2], vec![], vec![3], vec![]].map(Owned);
        assert_eq!(all(&Parts(&parts)), Ok(vec![1, 2, 3]));
        let mut two = [0; 2];
        Parts(&parts).read(1, &mut two).unwrap();
        assert_eq!(two, [2, 3]);
        Parts(&parts).read(3, &mut []).unwrap();
        assert_eq!(all(&Parts::<Owned>(&[])), Ok(vec![]));
    }

    #[test]
    fn an_error_names_its_part() {
        assert_eq!(all(&Parts(&[Bad, Bad])), Err((0, "bad")));
        assert_eq!(Parts(&[Bad, Bad]).read(2, &mut [0]), Err((1, "bad")));
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
        assert_eq!(stands_at(&Bad, 0, [1].as_slice()), Err(Side::Whole("bad")));
        assert_eq!(stands_at([1, 2].as_slice(), 0, &Bad), Err(Side::Piece("bad")));
    }
}
