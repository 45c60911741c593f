//! What two chunks must have in common to be put together, and what of them is.

use std::ops::Range;

use super::growth::{Growth, Step};
use super::rules::Rules;
use super::walk::Walk;

/// What is joined of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A text, between its quotes.
    Text(Range<usize>),
    /// A list, between its brackets.
    List(Range<usize>),
    /// A list of entries, between its brackets.
    Entries(Range<usize>),
    /// All of the last one.
    Last(Range<usize>),
}

impl Piece {
    /// Where it stands in the chunk.
    pub(super) fn place(&self) -> Range<usize> {
        match self {
            Self::Text(place) | Self::List(place) | Self::Entries(place) | Self::Last(place) => place.clone(),
        }
    }

    /// The same with its quotes or brackets.
    pub(super) fn whole(&self) -> Range<usize> {
        match self {
            Self::Last(place) => place.clone(),
            _ => self.place().start - 1..self.place().end + 1,
        }
    }
}

/// A chunk as far as it decides what is joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    /// Keys in their order, kinds of values, and the values that must be the same.
    pub(super) shape: Vec<u8>,
    /// The kinds of the elements of each list that is joined.
    pub(super) kinds: Vec<u8>,
    /// What is joined, in order.
    pub(super) pieces: Vec<Piece>,
    /// How many elements each list has.
    pub(super) counts: Vec<usize>,
    pub(super) growth: Growth,
    /// Whether there are texts and lists that do not grow.
    pub(super) has_others: bool,
    /// Whether the chunk stands alone.
    pub(super) stands_alone: bool,
}

impl Outline {
    /// Reads a chunk; None where it is no object that is surely well-formed.
    ///
    /// Of one that is spelled as the chunk before, which was read, only the pieces are read; of a list that begins as
    /// that of the chunk before only the rest.
    pub(super) fn read<'a>(&mut self, text: &'a [u8], rules: &Rules, before: Option<(&'a [u8], &Self)>) -> Option<()> {
        self.clear();
        if Walk::new(text, self, before).like_the_one_before().is_none() {
            self.clear();
            Walk::new(text, self, before).whole(rules)?;
        }
        str::from_utf8(text).is_ok().then_some(())
    }

    fn clear(&mut self) {
        self.shape.clear();
        self.kinds.clear();
        self.pieces.clear();
        self.counts.clear();
        self.growth = Growth { is_again: true, ..Growth::default() };
        (self.has_others, self.stands_alone) = (false, false);
    }

    /// How the next chunk goes on with this one, if they may be one.
    ///
    /// Where lists of one chunk are as long as each other those of the next must be: the reader compares their lengths
    /// chunk by chunk, and then sees as much in the sums.
    pub(super) fn step(&self, next: &Self) -> Option<Step> {
        if self.stands_alone || next.stands_alone || self.shape != next.shape || self.kinds != next.kinds {
            return None;
        }
        if self.growth.is_there {
            return if self.has_others { None } else { self.growth.step(next.growth) };
        }
        (self.counts == next.counts || self.is_even() && next.is_even()).then_some(Step::Alike)
    }

    fn is_even(&self) -> bool {
        self.counts.windows(2).all(|pair| pair[0] == pair[1])
    }
}
