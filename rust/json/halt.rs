//! Why reading stops before a result.

use std::collections::TryReserveError;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The text is unusual: a full JSON reader says what it is.
    Odd,
    /// There is no memory for what the text holds.
    Memory,
}

impl From<TryReserveError> for Halt {
    fn from(_: TryReserveError) -> Self {
        Self::Memory
    }
}

/// What reading gives.
pub(super) type Reading<T> = Result<T, Halt>;

/// A vector with room for `count` elements.
pub(super) fn room<T>(count: usize) -> Reading<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(count)?;
    Ok(out)
}
