//! Arrays of numbers of any kind, and of words that name ids.

use super::array::measure;
use super::entry::Token;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(array: &str) -> Option<Numbers> {
        let (numbers, close) = read_numbers(array.as_bytes(), 0).ok()?;
        assert_eq!(close, array.len() - 1);
        Some(numbers)
    }

    #[test]
    fn reads_integers_as_ids_and_others_as_floats() {
        assert_eq!(numbers("[1, 7]"), Some(Numbers::Ids(Ids::I32(vec![1, 7]))));
        assert_eq!(numbers("[1,18446744073709551615]"), Some(Numbers::Ids(Ids::U64(vec![1, u64::MAX]))));
        assert_eq!(numbers("[-0.5, 1 ,2e3]"), Some(Numbers::Floats(vec![-0.5, 1.0, 2000.0])));
        assert_eq!(numbers("[1.0]"), Some(Numbers::Floats(vec![1.0])));
    }

    #[test]
    fn leaves_what_is_unusual() {
        for odd in
            ["", "null", "NaN", "\"NaN\"", "[1]", "1000000000000000", "18446744073709551616", "01", "1.", "{}", "x"]
        {
            assert_eq!(numbers(&format!("[0.5,{odd}]")), None, "{odd}");
            assert_eq!(numbers(&format!("[{odd},0.5]")), None, "{odd}");
        }
        assert_eq!(numbers("[0.5"), None);
        assert_eq!(numbers("[0.5,"), None);
    }

    #[test]
    fn reads_words_as_ids() {
        let words = |array: &str| read_words(array.as_bytes(), 0).ok();
        assert_eq!(words(r#"["token_id:41", "token_id:2"]"#), Some((vec![41, 2], 28)));
        for odd in ["\"a\"", "1", "null", "", "\"token_id:1"] {
            assert_eq!(words(&format!("[\"token_id:41\",{odd}]")), None, "{odd}");
            assert_eq!(words(&format!("[{odd},\"token_id:41\"]")), None, "{odd}");
        }
    }
}
