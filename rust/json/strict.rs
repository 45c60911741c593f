//! Small pieces of JSON, read strictly: what is taken here no other reader checks.

use super::array::is_space;
use super::{short_ids, swar};

/// The most digits of an integer among floats: any such is an `f64`.
const MOST_DIGITS: usize = 15;

/// The most digits of a number of any length: each reader makes a number of them.
const LONGEST_NUMBER: usize = 1_000;

/// A place in a text. A method that gives None may have moved it.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// All bytes of strings so far, and of those near them, in one.
    seen: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, seen: 0 }
    }

    /// Whether strings so far are surely ASCII; all else is.
    pub(super) fn is_ascii(&self) -> bool {
        self.seen.to_le_bytes().is_ascii()
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space, to which it moves.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Moves behind the byte, which must be next after any white space.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Whether an array or object goes on; moves behind the comma or `end`.
    #[inline]
    pub(super) fn goes_on(&mut self, end: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            _ => (byte == end).then_some(false),
        }
    }

    /// Moves behind the text if it is next, exactly so.
    #[inline]
    pub(super) fn skips(&mut self, text: &[u8]) -> bool {
        let is_next = self.text[self.at..].starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    /// The text from `start` to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        &self.text[start..self.at]
    }

    /// The key of a member; moves behind its colon. None for one that is written with an escape.
    #[inline]
    pub(super) fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.string()?;
        self.take(b':')?;
        (!key.contains(&b'\\')).then_some(key)
    }

    /// What stands between the quotes of a string, as it is written. Whether it is UTF-8 is not asked.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let text = self.text.get(self.at..)?;
            if let Some(word) = text.first_chunk() {
                let word = u64::from_le_bytes(*word);
                self.seen |= word;
                let ends = swar::string_ends(word);
                if ends == 0 {
                    self.at += 8;
                    continue;
                }
                self.at += ends.trailing_zeros() as usize / 8;
            } else {
                self.seen |= text.iter().fold(0, |all, &byte| all | u64::from(byte));
                self.at += text.iter().position(|&b| b < b' ' || b == b'"' || b == b'\\')?;
            }
            match self.text[self.at] {
                b'"' => {
                    self.at += 1;
                    return Some(&self.text[start..self.at - 1]);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    /// Moves behind an escape.
    fn escape(&mut self) -> Option<()> {
        let kind = *self.text.get(self.at + 1)?;
        self.at += 2;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => match self.code()? {
                // Half a character; the other half must follow.
                0xd800..=0xdbff => {
                    let other = self.text.get(self.at..self.at + 2)?;
                    self.at += 2;
                    (other == b"\\u" && matches!(self.code()?, 0xdc00..=0xdfff)).then_some(())
                }
                0xdc00..=0xdfff => None,
                _ => Some(()),
            },
            _ => None,
        }
    }

    /// The four hex digits of an escape.
    fn code(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += digits.len();
        digits.iter().try_fold(0, |code, &digit| Some(code * 16 + char::from(digit).to_digit(16)?))
    }

    /// A number; an integer only if an `f64` holds any of its length.
    #[inline]
    pub(super) fn number(&mut self) -> Option<f64> {
        self.peek()?;
        let text = &self.text[self.at..];
        let unsigned = text.strip_prefix(b"-").unwrap_or(text);
        let whole = unsigned.iter().take_while(|b| b.is_ascii_digit()).count();
        if whole == 0 || whole > 1 && unsigned[0] == b'0' {
            return None;
        }
        let after = unsigned.get(whole);
        // The crate takes a point without digits behind it, JSON doesn't.
        if after == Some(&b'.') && !unsigned.get(whole + 1)?.is_ascii_digit() {
            return None;
        }
        let (number, length) = fast_float2::parse_partial::<f64, _>(text).ok()?;
        self.at += length;
        match after {
            Some(b'.' | b'e' | b'E') => Some(number),
            // The zero of -0 has no sign.
            _ => (whole <= MOST_DIGITS).then_some(number + 0.0),
        }
    }

    /// A number, whatever holds it.
    #[inline]
    pub(super) fn number_of_any_length(&mut self) -> Option<()> {
        self.peek()?;
        self.skips(b"-");
        let start = self.at;
        let whole = self.digit_run()?;
        if whole > 1 && self.text[start] == b'0' {
            return None;
        }
        if self.skips(b".") {
            self.digit_run()?;
        }
        if self.skips(b"e") || self.skips(b"E") {
            let _ = self.skips(b"-") || self.skips(b"+");
            self.digit_run()?;
        }
        (self.at - start <= LONGEST_NUMBER).then_some(())
    }

    /// Moves behind one or more digits; gives how many.
    fn digit_run(&mut self) -> Option<usize> {
        let count = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(count)
    }

    /// An integer that an `i32` holds.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<i32> {
        let negative = self.peek()? == b'-';
        self.at += usize::from(negative);
        let size = self.digits(10)?;
        i32::try_from(if negative { -size } else { size }).ok()
    }

    /// An integer without sign, of at most so many digits.
    #[inline]
    fn digits(&mut self, most: usize) -> Option<i64> {
        let start = self.at;
        let mut size = 0;
        while let Some(digit) = self.text.get(self.at).map(|byte| byte.wrapping_sub(b'0'))
            && digit < 10
            && self.at - start <= most
        {
            size = size * 10 + i64::from(digit);
            self.at += 1;
        }
        let count = self.at - start;
        (count > 0 && count <= most && (count == 1 || self.text[start] != b'0')).then_some(size)
    }

    /// Moves behind a string, a number or a literal.
    pub(super) fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number().map(drop),
        }
    }

    #[inline]
    pub(super) fn literal<const N: usize>(&mut self, word: &[u8; N]) -> Option<()> {
        self.peek()?;
        (self.text[self.at..].first_chunk() == Some(word)).then(|| self.at += N)
    }

    /// Moves behind an array of integers without sign, if it is next and of the usual spelling.
    pub(super) fn integers(&mut self) -> Option<()> {
        let starts = |array: &[u8]| matches!(array, [b'[', b'0'..=b'9', ..]);
        self.at = starts(&self.text[self.at..]).then(|| short_ids::skip(self.text, self.at))??;
        Some(())
    }

    /// Moves behind the rest of an array of numbers of up to three digits, as the bytes of a text are.
    pub(super) fn bytes(&mut self) -> Option<()> {
        loop {
            self.peek()?;
            self.digits(3)?;
            if !self.goes_on(b']')? {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a method reads of the whole text.
    fn whole<'a, T>(text: &'a str, read: impl Fn(&mut Cursor<'a>) -> Option<T>) -> Option<T> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let found = read(&mut cursor)?;
        (cursor.at() == text.len()).then_some(found)
    }

    #[test]
    fn moves_behind_plain_integers() {
        for text in ["[0]", "[1,20, 3]", "[123456789012345678901]"] {
            assert_eq!(whole(text, Cursor::integers), Some(()), "{text}");
        }
        for text in ["", "[", "[]", "[1", "[1,]", "[01]", "[-1]", "[1.5]", "[[1]]", "[1,\"a\"]", "[1 ]", " [1]", "{1]"]
        {
            assert_eq!(whole(text, Cursor::integers), None, "{text}");
        }
        let mut cursor = Cursor::new(b"[1,]", 0);
        assert_eq!((cursor.integers(), cursor.at()), (None, 0));
    }

    #[test]
    fn reads_strings_as_they_are_written() {
        for inside in [
            "",
            "a",
            "12345678",
            "123456789012345",
            "é😀",
            "\u{7f}",
            r#"\"\\\/\b\f\n\r\t"#,
            r"\u0041\uFFff",
            r"\ud83d\ude00",
            r"1234567\u0041",
        ] {
            let text = format!("\"{inside}\"");
            assert_eq!(whole(&text, Cursor::string), Some(inside.as_bytes()), "{text}");
        }
    }

    #[test]
    fn refuses_strings_that_are_none() {
        for text in [
            "\"",
            "\"a",
            "\"a\\\"",
            "\"12345678",
            "a",
            "\"a\nb\"",
            "\"12345678\u{1f}\"",
            "\"\0\"",
            r#""\x""#,
            r#""\u004""#,
            r#""\u004g""#,
            r#""\u+041""#,
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ud83d\n""#,
            r#""\ud83d\u0041""#,
            r#""\ud83d\ud83d""#,
            r#""\ude00""#,
            r#""\"#,
            r#""\u"#,
            r#""\ud83d\"#,
        ] {
            assert_eq!(whole(text, Cursor::string), None, "{text:?}");
        }
    }

    #[test]
    fn reads_numbers_as_the_standard_library_does() {
        for text in [
            "-0.125",
            "0.0",
            "-0.0",
            "-0.10000000149011612",
            "0",
            "7",
            "-12",
            "999999999999999",
            "1e5",
            "-1E-7",
            "0e0",
            "1.5e+300",
            "1e400",
            "4.9e-324",
            "2.4703282292062328e-324",
            "9007199254740993.0",
            "0.1000000000000000055511151231257827",
        ] {
            let want: f64 = text.parse().unwrap();
            assert_eq!(whole(text, Cursor::number).map(f64::to_bits), Some(want.to_bits()), "{text}");
        }
        // An integer has no negative zero.
        assert_eq!(whole("-0", Cursor::number).map(f64::to_bits), Some(0));
    }

    #[test]
    fn refuses_what_is_no_number_of_json_or_no_exact_one() {
        for text in [
            "",
            "-",
            "+1",
            ".5",
            "-.5",
            "1.",
            "1.e5",
            "1e",
            "1e+",
            "01",
            "-01",
            "00",
            "1.5.5",
            "NaN",
            "nan",
            "Infinity",
            "-Infinity",
            "inf",
            "\"1\"",
            "null",
            "1_0",
            "0x1",
            "1000000000000000",
        ] {
            assert_eq!(whole(text, Cursor::number), None, "{text:?}");
        }
    }

    #[test]
    fn reads_integers_of_32_bits() {
        for value in [0, 7, -7, i32::MAX, i32::MIN] {
            assert_eq!(whole(&value.to_string(), Cursor::integer), Some(value));
        }
        assert_eq!(whole("-0", Cursor::integer), Some(0));
        for text in ["2147483648", "-2147483649", "12345678901", "01", "-", "", "1.0", "1e1", "--1"] {
            assert_eq!(whole(text, Cursor::integer), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_of_any_length_have_bounds() {
        for text in ["0", "-0", "1e5", "1E+5", "-1.5e-05", "1.25", "12345678901234567890"] {
            assert_eq!(whole(text, Cursor::number_of_any_length), Some(()), "{text}");
        }
        for text in ["", "-", "01", "-01", "1.", ".5", "1e", "1e+", "1.e5", "1e+-5", "+1"] {
            assert_eq!(whole(text, Cursor::number_of_any_length), None, "{text}");
        }
        for head in ["", "-", "0.", "1e"] {
            let of = |length: usize| format!("{head}{}", "1".repeat(length - head.trim_start_matches('-').len()));
            assert_eq!(whole(&of(LONGEST_NUMBER), Cursor::number_of_any_length), Some(()));
            assert_eq!(whole(&of(LONGEST_NUMBER + 1), Cursor::number_of_any_length), None);
        }
        // Python makes an integer of 4,300 digits at most.
        const { assert!(LONGEST_NUMBER <= 4_300) };
    }

    #[test]
    fn moves_behind_scalars() {
        for text in ["true", "false", "null", "\"x\"", "-1.5", " \t\r\nnull"] {
            assert_eq!(whole(text, Cursor::scalar), Some(()), "{text:?}");
        }
        for text in ["tru", "nul", "True", "[]", "{}", "", "nulll"] {
            assert_eq!(whole(text, Cursor::scalar), None, "{text:?}");
        }
    }

    #[test]
    fn moves_behind_bytes() {
        for text in ["1]", "104, 0,255 ]", "999]"] {
            assert_eq!(whole(text, Cursor::bytes), Some(()), "{text:?}");
        }
        for text in ["]", "1,]", "1", "1000]", "01]", "-1]", "1.5]", "null]", "1 2]"] {
            assert_eq!(whole(text, Cursor::bytes), None, "{text:?}");
        }
    }
}
