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
