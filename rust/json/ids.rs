//! Token ids: the narrowest integers that hold a whole array.

use super::array::{Item, read_array, trim};
use super::backend::Backend;
use super::halt::{Halt, Reading};

/// Token ids in the narrowest of three widths that holds them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// All ids are within the range of `i32`.
    I32(Vec<i32>),
    /// Some id needs `i64`.
    I64(Vec<i64>),
    /// Some id is 2**63 or more; none is negative.
    U64(Vec<u64>),
}

/// Reads the array of ids whose `[` is at `open`; gives it and where its `]` is.
///
/// A wider type is rare, so it is tried only once the narrower one has failed.
pub(crate) fn read_ids(line: &[u8], open: usize) -> Reading<(Ids, usize)> {
    let short = Backend::detect().read_short_ids(line, open).map(|(ids, close)| (Ids::I32(ids), close));
    let narrow = or_else(short, || read(line, open, Ids::I32));
    let wide = or_else(narrow, || read(line, open, Ids::I64));
    or_else(wide, || read(line, open, Ids::U64))
}

fn read<T: Item>(line: &[u8], open: usize, ids: fn(Vec<T>) -> Ids) -> Reading<(Ids, usize)> {
    let (found, close) = read_array(line, open)?;
    Ok((ids(found), close))
}

/// Another way of reading, where one found the text odd.
fn or_else<T>(read: Reading<T>, another: impl FnOnce() -> Reading<T>) -> Reading<T> {
    if read.as_ref().is_err_and(|&halt| halt == Halt::Odd) { another() } else { read }
}

/// Splits a plain JSON integer in whether it has a minus sign and its digits.
///
/// None for a sign without digits, a leading zero or any other byte.
pub(crate) fn split_integer(text: &[u8]) -> Option<(bool, &[u8])> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] | [b'0', _, ..] => None,
        _ if digits.iter().all(u8::is_ascii_digit) => Some((negative, digits)),
        _ => None,
    }
}

/// Reads a plain integer of any length up to what `i128` holds for sure.
fn read_integer(text: &[u8]) -> Option<i128> {
    let (negative, digits) = split_integer(text)?;
    if digits.len() > 20 {
        return None;
    }
    let size = digits.iter().fold(0, |n, digit| n * 10 + i128::from(digit - b'0'));
    Some(if negative { -size } else { size })
}

impl Item for i32 {
    fn read(line: &[u8], start: usize, end: usize) -> Option<Self> {
        read_integer(trim(&line[start..end]))?.try_into().ok()
    }
}

impl Item for i64 {
    fn read(line: &[u8], start: usize, end: usize) -> Option<Self> {
        read_integer(trim(&line[start..end]))?.try_into().ok()
    }
}

impl Item for u64 {
    fn read(line: &[u8], start: usize, end: usize) -> Option<Self> {
        read_integer(trim(&line[start..end]))?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the array behind enough other text, as it stands in a record.
    fn ids(array: &str) -> Option<Ids> {
        let line = format!("{{\"prompt_token_ids\":{array}}}");
        let open = line.find('[').unwrap();
        let (ids, close) = read_ids(line.as_bytes(), open).ok()?;
        assert_eq!(close, line.find(']').unwrap());
        Some(ids)
    }

    #[test]
    fn picks_the_narrowest_width() {
        assert_eq!(ids("[]"), Some(Ids::I32(vec![])));
        assert_eq!(ids("[ \t\r\n]"), Some(Ids::I32(vec![])));
        assert_eq!(ids("[0, -0,\t-7 ,2147483647,-2147483648]"), Some(Ids::I32(vec![0, 0, -7, i32::MAX, i32::MIN])));
        assert_eq!(ids("[1,2147483648,-9223372036854775808]"), Some(Ids::I64(vec![1, 1 << 31, i64::MIN])));
        assert_eq!(ids("[9223372036854775808,18446744073709551615,0]"), Some(Ids::U64(vec![1 << 63, u64::MAX, 0])));
        assert_eq!(ids("[18446744073709551616]"), None);
        assert_eq!(ids("[-1,9223372036854775808]"), None);
    }

    #[test]
    fn refuses_what_is_not_a_plain_integer() {
        for odd in [
            "01", "-01", "00", "-", "+1", "1.0", "1e3", "true", "null", "\"7\"", "[1]", "1 2", "1\u{b}", "- 1", "1\0",
            "0x1", "1_0", "١",
        ] {
            assert_eq!(ids(&format!("[{odd}]")), None, "{odd:?}");
            assert_eq!(ids(&format!("[5,{odd}]")), None, "{odd:?}");
            assert_eq!(ids(&format!("[{odd},5]")), None, "{odd:?}");
        }
        assert_eq!(ids("[1,2"), None);
    }

    #[test]
    fn reads_every_length_in_every_place() {
        let mut want = Vec::new();
        let mut number: i32 = 1;
        for i in 0..500 {
            want.push(if i % 7 == 0 { -number } else { number });
            number = if number > 99_999_999 { 3 } else { number * 10 + i % 10 };
        }
        let texts: Vec<String> = want.iter().map(ToString::to_string).collect();
        for separator in [",", ", ", " ,", " , ", ",\r\n\t"] {
            let array = format!("[{}]", texts.join(separator));
            assert_eq!(ids(&array), Some(Ids::I32(want.clone())));
        }
    }
}
