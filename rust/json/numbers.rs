//! Arrays of numbers of any kind, and of words that name ids.

use super::array::measure;
use super::columns::Token;
use super::halt::{Halt, Reading, room};
use super::ids::{Ids, read_ids};
use super::strict::Cursor;

/// An array of numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Nothing but integers.
    Ids(Ids),
    /// Floats, with or without integers among them.
    Floats(Vec<f64>),
}

/// Reads the array whose `[` is at `open`; gives it and where its `]` is.
pub(super) fn read_numbers(text: &[u8], open: usize) -> Reading<(Numbers, usize)> {
    match read_ids(text, open) {
        Err(Halt::Odd) => read_floats(text, open).map(|(floats, close)| (Numbers::Floats(floats), close)),
        read => read.map(|(ids, close)| (Numbers::Ids(ids), close)),
    }
}

fn read_floats(text: &[u8], open: usize) -> Reading<(Vec<f64>, usize)> {
    let (_, count) = measure(text, open + 1).ok_or(Halt::Odd)?;
    let mut floats = room(count)?;
    let mut cursor = Cursor::new(text, open + 1);
    loop {
        floats.push(cursor.number().ok_or(Halt::Odd)?);
        if !cursor.goes_on(b']').ok_or(Halt::Odd)? {
            return Ok((floats, cursor.at() - 1));
        }
    }
}

/// Reads the array of words like `token_id:41` whose `[` is at `open`; gives their ids and where its `]` is.
pub(super) fn read_words(text: &[u8], open: usize) -> Reading<(Vec<i32>, usize)> {
    let mut cursor = Cursor::new(text, open + 1);
    let (_, count) = measure(text, open + 1).ok_or(Halt::Odd)?;
    let mut ids = room(count)?;
    loop {
        match cursor.string().and_then(Token::of) {
            Some(Token::Id(id)) => ids.push(id),
            _ => return Err(Halt::Odd),
        }
        if !cursor.goes_on(b']').ok_or(Halt::Odd)? {
            return Ok((ids, cursor.at() - 1));
        }
    }
}
