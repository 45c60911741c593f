//! Small pieces of JSON, read strictly: what is taken here no other reader checks.

use super::array::is_space;
use super::swar;

/// The most digits of an integer among floats: any such is an `f64`.
const MOST_DIGITS: usize = 15;

/// A place in a text. A method that gives None may have moved it.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
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
            self.at += match text.first_chunk() {
                Some(word) => match swar::string_ends(u64::from_le_bytes(*word)) {
                    0 => {
                        self.at += word.len();
                        continue;
                    }
                    ends => ends.trailing_zeros() as usize / 8,
                },
                None => text.iter().position(|&b| b < b' ' || b == b'"' || b == b'\\')?,
            };
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

    /// An integer that an `i32` holds.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<i32> {
        let negative = self.peek()? == b'-';
        self.at += usize::from(negative);
        let digits = self.digits(10)?;
        let size = digits.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0'));
        i32::try_from(if negative { -size } else { size }).ok()
    }

    /// The digits of an integer without sign, at most so many.
    #[inline]
    fn digits(&mut self, most: usize) -> Option<&'a [u8]> {
        let text = &self.text[self.at..];
        let count = text.iter().take(most + 1).take_while(|b| b.is_ascii_digit()).count();
        if count == 0 || count > most || count > 1 && text[0] == b'0' {
            return None;
        }
        self.at += count;
        Some(&text[..count])
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
    pub(super) fn literal(&mut self, word: &[u8]) -> Option<()> {
        self.peek()?;
        self.skips(word).then_some(())
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
