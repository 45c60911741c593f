//! The walk over a body.

use memchr::memmem;

use super::body::{Body, Found, Step, Value};
use super::columns::read_columns;
use super::halt::{Halt, Reading, room};
use super::numbers::{read_numbers, read_words};
use super::skip::{expect, skip_space, skip_string};

/// Below this nothing is looked for: a body may be nested deeper, its tokens are not.
pub(super) const DEEPEST: usize = 64;

/// The first digits of each mark. It has 19 in all, and an `i64` holds it.
pub(super) const MARK: &str = "46116860184";

/// What the first mark is.
pub(super) const FIRST_MARK: u64 = 4_611_686_018_400_000_000;

/// How many marks there are.
const MARKS: usize = 100_000_000;

/// A step as the body spells it.
#[derive(Clone, Copy)]
enum Place<'a> {
    Key(&'a [u8]),
    Index(usize),
}

/// A walk over all values of a body.
pub(super) struct Walk<'a> {
    text: &'a [u8],
    /// What has fewer elements stays.
    least: usize,
    path: Vec<Place<'a>>,
    found: Vec<Found>,
    /// Where each of the found begins and ends.
    cuts: Vec<(usize, usize)>,
    /// The size of all their paths.
    steps: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a [u8], least: usize) -> Self {
        Self { text, least, path: Vec::new(), found: Vec::new(), cuts: Vec::new(), steps: 0 }
    }

    /// Walks over the whole body.
    pub(super) fn whole(mut self) -> Reading<Body> {
        let end = self.value(0)?;
        if skip_space(self.text, end) != self.text.len() {
            return Err(Halt::Odd);
        }
        Ok(Body { rest: self.rest()?, found: self.found })
    }

    /// Walks over the value that begins at `at`, after any white space; gives the place after it.
    fn value(&mut self, at: usize) -> Reading<usize> {
        let at = skip_space(self.text, at);
        match self.text.get(at).ok_or(Halt::Odd)? {
            b'"' => skip_string(self.text, at + 1).ok_or(Halt::Odd),
            b'{' | b'[' if self.path.len() == DEEPEST => Err(Halt::Odd),
            b'{' => self.object(at + 1),
            b'[' => match self.take(at)? {
                Some(end) => Ok(end),
                None => self.array(at + 1),
            },
            _ => {
                let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                Ok(at + self.text[at..].iter().position(ends).ok_or(Halt::Odd)?)
            }
        }
    }

    /// Walks over the members of an object.
    fn object(&mut self, mut at: usize) -> Reading<usize> {
        if let Some(end) = expect(self.text, at, b'}') {
            return Ok(end);
        }
        loop {
            let key = expect(self.text, at, b'"').ok_or(Halt::Odd)?;
            let key_end = skip_string(self.text, key).ok_or(Halt::Odd)?;
            let value = expect(self.text, key_end, b':').ok_or(Halt::Odd)?;
            self.path.push(Place::Key(&self.text[key..key_end - 1]));
            at = skip_space(self.text, self.value(value)?);
            self.path.pop();
            match self.text.get(at) {
                Some(b',') => at += 1,
                Some(b'}') => return Ok(at + 1),
                _ => return Err(Halt::Odd),
            }
        }
    }

    /// Walks over the elements of an array.
    fn array(&mut self, mut at: usize) -> Reading<usize> {
        if let Some(end) = expect(self.text, at, b']') {
            return Ok(end);
        }
        for index in 0.. {
            self.path.push(Place::Index(index));
            at = skip_space(self.text, self.value(at)?);
            self.path.pop();
            match self.text.get(at) {
                Some(b',') => at += 1,
                Some(b']') => return Ok(at + 1),
                _ => break,
            }
        }
        Err(Halt::Odd)
    }

    /// Takes the array whose `[` is at `open`, if it is one of those that are looked for; gives the place after it.
    fn take(&mut self, open: usize) -> Reading<Option<usize>> {
        let first = self.text.get(skip_space(self.text, open + 1)).ok_or(Halt::Odd)?;
        // Tokens stand in an array under a key, or in one of several such arrays.
        let (key, nested) = match self.path[..] {
            [.., Place::Key(key)] => (key, false),
            [.., Place::Key(key), Place::Index(_)] => (key, true),
            _ => return Ok(None),
        };
        let read = match first {
            b'-' | b'0'..=b'9' if speaks_of_tokens(key) && is_long(self.text, open, self.least) => {
                read_numbers(self.text, open).map(|(numbers, close)| (Value::Numbers(numbers), close))
            }
            b'"' if speaks_of_tokens(key) && is_long(self.text, open, self.least) => {
                read_words(self.text, open).map(|(ids, close)| (Value::Words(ids), close))
            }
            b'{' | b'[' if !nested => {
                read_columns(self.text, open).map(|(columns, close)| (Value::Columns(columns), close))
            }
            _ => return Ok(None),
        };
        let (value, close) = match read {
            Ok(read) => read,
            Err(Halt::Odd) => return Ok(None),
            Err(Halt::Memory) => return Err(Halt::Memory),
        };
        if matches!(&value, Value::Columns(columns) if columns.len < self.least) {
            return Ok(None);
        }
        let Some(path) = self.path.iter().map(Place::step).collect() else { return Ok(None) };
        // All paths together are not longer than the body, else keys that many share could fill the memory.
        self.steps += self.path.iter().map(Place::size).sum::<usize>();
        if self.steps > self.text.len() || self.found.len() == MARKS {
            return Err(Halt::Odd);
        }
        self.found.try_reserve(1)?;
        self.found.push(Found { path, mark: FIRST_MARK + self.found.len() as u64, value });
        self.cuts.try_reserve(1)?;
        self.cuts.push((open, close + 1));
        Ok(Some(close + 1))
    }

    /// The text with marks in place of what was found; odd if it has the digits of a mark itself.
    fn rest(&self) -> Reading<Vec<u8>> {
        let inside: usize = self.cuts.iter().map(|(start, end)| end - start).sum();
        let mut rest = room(self.text.len() - inside + self.cuts.len() * 19)?;
        let mark = memmem::Finder::new(MARK);
        let mut kept = 0;
        let part = |start: usize, end: usize| {
            let part = &self.text[start..end];
            if mark.find(part).is_none() { Ok(part) } else { Err(Halt::Odd) }
        };
        for (&(start, end), found) in self.cuts.iter().zip(&self.found) {
            rest.extend_from_slice(part(kept, start)?);
            rest.extend_from_slice(itoa::Buffer::new().format(found.mark).as_bytes());
            kept = end;
        }
        rest.extend_from_slice(part(kept, self.text.len())?);
        Ok(rest)
    }
}

impl Place<'_> {
    /// The bytes of the step, at least.
    fn size(&self) -> usize {
        match self {
            Self::Key(key) => key.len(),
            Self::Index(_) => 1,
        }
    }

    /// The step; None for a key that would have to be decoded.
    fn step(&self) -> Option<Step> {
        Some(match self {
            Self::Key(key) if key.contains(&b'\\') => return None,
            Self::Key(key) => Step::Key(str::from_utf8(key).ok()?.to_owned()),
            Self::Index(index) => Step::Index(*index),
        })
    }
}

/// Whether arrays under the key are likely those of tokens. Others stay lists, as what the model said must.
fn speaks_of_tokens(key: &[u8]) -> bool {
    let speaks = |word: &[u8]| key.windows(word.len()).any(|part| part == word);
    key.ends_with(b"ids") || speaks(b"token") || speaks(b"logprob") || speaks(b"log_prob")
}

/// Whether the array whose `[` is at `open` has enough elements, if they hold neither commas nor brackets.
fn is_long(text: &[u8], open: usize, least: usize) -> bool {
    let mut ends = memchr::memchr2_iter(b',', b']', &text[open..]).map(|place| text[open + place]);
    (1..least).all(|_| ends.next() == Some(b','))
}
