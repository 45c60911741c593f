//! What grows from chunk to chunk, and how.

/// How a chunk goes on with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its pieces follow.
    Alike,
    /// It says all again, and more: only the last such chunk counts.
    Again,
    /// What grows is longer by its pieces.
    Further,
}

/// What a chunk says of what grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    pub(super) is_there: bool,
    /// How long each of its lists is.
    pub(super) len: Option<usize>,
    /// How long they are by now.
    pub(super) total: Option<usize>,
    /// Whether each list begins with that of the chunk before.
    pub(super) is_again: bool,
}

impl Growth {
    /// How the next chunk goes on, where both say how much there is by now.
    pub(super) fn step(self, next: Self) -> Option<Step> {
        let (len, total) = (self.len?, self.total?);
        let (next_len, next_total) = (next.len?, next.total?);
        if len == 0 || next_len == 0 || total == 0 {
            None
        } else if total == len && next_total == next_len && next.is_again {
            Some(Step::Again)
        } else {
            (next_total.checked_sub(total) == Some(next_len)).then_some(Step::Further)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_tell_how_a_chunk_goes_on() {
        let growth = |len, total, is_again| Growth { is_there: true, len: Some(len), total: Some(total), is_again };
        for (before, next, is_again, step) in [
            ((1, 1), (2, 2), true, Some(Step::Again)),
            ((1, 1), (2, 2), false, None),
            ((1, 2), (2, 2), true, None), // of a piece nothing is said again
            ((1, 2), (1, 1), true, None),
            ((1, 1), (2, 3), true, Some(Step::Further)),
            ((1, 5), (2, 7), false, Some(Step::Further)),
            ((1, 1), (2, 4), true, None),
            ((1, 1), (2, 1), true, None),
            ((2, 2), (1, 2), true, None),
            ((0, 1), (1, 1), true, None),
            ((0, 0), (1, 1), true, None),
            ((1, 0), (1, 1), true, None),
            ((1, 1), (0, 1), true, None),
            ((1, 1), (0, 0), true, None),
        ] {
            let step_of = growth(before.0, before.1, false).step(growth(next.0, next.1, is_again));
            assert_eq!(step_of, step, "{before:?} {next:?}");
        }
        let uncounted = Growth { total: None, ..growth(1, 1, true) };
        let unmeasured = Growth { len: None, ..growth(1, 1, true) };
        for odd in [uncounted, unmeasured] {
            assert_eq!(odd.step(growth(2, 2, true)), None);
            assert_eq!(growth(1, 1, true).step(odd), None);
        }
    }
}
