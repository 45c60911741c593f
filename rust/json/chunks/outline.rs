//! What two chunks must have in common to be put together, and what of them is.

use std::ops::Range;

use super::rules::{Rule, Rules};
use crate::json::strict::Cursor;

/// Deeper values are left to another reader.
const DEEPEST: usize = 64;

/// What a word begins with that names an id.
const ID_WORD: &[u8] = b"token_id:";

/// More digits are left to the reader of the whole stream.
const MOST_DIGITS: usize = 9;

/// Ends a part of a shape. No JSON text has it.
const END: u8 = 0;

/// What is joined of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A text, between its quotes.
    Text(Range<usize>),
    /// A list, between its brackets.
    List(Range<usize>),
    /// All of the last one.
    Last(Range<usize>),
}

impl Piece {
    /// Where it stands in the chunk.
    pub(super) fn place(&self) -> Range<usize> {
        match self {
            Self::Text(place) | Self::List(place) | Self::Last(place) => place.clone(),
        }
    }
}

/// A chunk as far as it decides what is joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    /// Keys in their order, kinds of values, and the values that must be the same.
    shape: Vec<u8>,
    /// What is joined, in order.
    pub(super) pieces: Vec<Piece>,
    /// How many elements each list has.
    counts: Vec<usize>,
    /// Whether the chunk stands alone.
    stands_alone: bool,
}

impl Outline {
    /// Reads a chunk; None where it is no object that is surely well-formed.
    pub(super) fn read(&mut self, text: &[u8], rules: &Rules) -> Option<()> {
        self.shape.clear();
        self.pieces.clear();
        self.counts.clear();
        self.stands_alone = false;
        let mut walk = Walk { cursor: Cursor::new(text, 0), outline: self, lists: Vec::new(), has_entries: false };
        walk.object(rules, 0)?;
        (walk.cursor.peek().is_none() && str::from_utf8(text).is_ok()).then_some(())
    }

    /// Whether the other chunk goes on with this one.
    ///
    /// Where lists of one chunk are as long as each other those of the next must be: the reader compares their lengths
    /// chunk by chunk, and then sees as much in the sums.
    pub(super) fn goes_on(&self, other: &Self) -> bool {
        let alone = self.stands_alone || other.stands_alone;
        !alone && self.shape == other.shape && (self.counts == other.counts || self.is_even() && other.is_even())
    }

    fn is_even(&self) -> bool {
        self.counts.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// A walk over a chunk. None everywhere: it is not surely well-formed.
struct Walk<'a, 'b> {
    cursor: Cursor<'a>,
    outline: &'b mut Outline,
    /// The keys of lists so far: two of one key may become one list, and take turns in it.
    lists: Vec<&'a [u8]>,
    has_entries: bool,
}

impl<'a> Walk<'a, '_> {
    fn object(&mut self, rules: &Rules, depth: usize) -> Option<()> {
        self.cursor.take(b'{')?;
        self.outline.shape.push(b'{');
        if self.cursor.take(b'}').is_none() {
            loop {
                let key = self.cursor.key()?;
                self.outline.shape.extend_from_slice(key);
                self.outline.shape.push(END);
                self.member(key, rules.of(key), depth + 1)?;
                if !self.cursor.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.outline.shape.push(b'}');
        Some(())
    }

    fn member(&mut self, key: &'a [u8], rule: &Rule, depth: usize) -> Option<()> {
        let first = self.cursor.peek()?;
        let start = self.cursor.at();
        match (rule, first) {
            (_, b'n') => {
                self.cursor.literal(b"null")?;
                self.outline.shape.push(b'n');
            }
            (Rule::Text, b'"') => {
                self.cursor.string()?;
                self.outline.pieces.push(Piece::Text(start + 1..self.cursor.at() - 1));
                self.outline.shape.push(b't');
            }
            (Rule::List, b'[') => {
                self.outline.stands_alone |= self.lists.contains(&key);
                self.lists.push(key);
                self.list(false, depth)?;
            }
            (Rule::Entries, b'[') => {
                self.outline.stands_alone |= self.has_entries;
                self.has_entries = true;
                self.list(true, depth)?;
            }
            (Rule::Same | Rule::OneOf(_), _) => {
                self.skip(depth)?;
                let text = self.cursor.since(start);
                if let Rule::OneOf(words) = rule {
                    self.outline.stands_alone |= !words.iter().any(|word| word == text);
                }
                self.outline.shape.extend_from_slice(text);
                self.outline.shape.push(END);
            }
            (Rule::Object(rules), b'{') => self.object(rules, depth)?,
            (Rule::Single(rules), b'[') => self.single(rules, depth)?,
            (Rule::Last, b'[') => {
                self.skip(depth)?;
                self.outline.stands_alone |= self.cursor.since(start) != b"[]";
                self.outline.shape.push(b'e');
            }
            (Rule::Last, _) => {
                self.skip(depth)?;
                self.outline.pieces.push(Piece::Last(start..self.cursor.at()));
                self.outline.shape.push(b'v');
            }
            _ => {
                self.outline.stands_alone = true;
                self.skip(depth)?;
            }
        }
        Some(())
    }

    /// A list of one object, or of none.
    fn single(&mut self, rules: &Rules, depth: usize) -> Option<()> {
        self.cursor.take(b'[')?;
        self.outline.shape.push(b'[');
        if self.cursor.take(b']').is_some() {
            return Some(());
        }
        if self.cursor.peek()? == b'{' {
            self.object(rules, depth + 1)?;
        } else {
            self.outline.stands_alone = true;
            self.skip(depth + 1)?;
        }
        while self.cursor.goes_on(b']')? {
            self.outline.stands_alone = true;
            self.skip(depth + 1)?;
        }
        Some(())
    }

    /// A list that is joined, and which kinds of elements it has one after the other.
    fn list(&mut self, of_entries: bool, depth: usize) -> Option<()> {
        self.cursor.take(b'[')?;
        let start = self.cursor.at();
        let (mut count, mut before) = (0, None);
        self.outline.shape.push(b'[');
        if self.cursor.take(b']').is_none() {
            loop {
                count += 1;
                let kind = self.outline.shape.len();
                match self.cursor.peek()? {
                    b'{' if of_entries => self.entry(depth + 1)?,
                    _ => self.kind(depth + 1)?,
                }
                let shape = &mut self.outline.shape;
                match before {
                    Some(before) if shape[before..kind] == shape[kind..] => shape.truncate(kind),
                    _ => before = Some(kind),
                }
                if !self.cursor.goes_on(b']')? {
                    break;
                }
            }
        }
        self.outline.shape.push(b']');
        self.outline.pieces.push(Piece::List(start..self.cursor.at() - 1));
        self.outline.counts.push(count);
        Some(())
    }

    /// The keys of an entry, and of what kind each value is.
    fn entry(&mut self, depth: usize) -> Option<()> {
        self.cursor.take(b'{')?;
        if self.cursor.take(b'}').is_none() {
            loop {
                let key = self.cursor.key()?;
                self.outline.shape.extend_from_slice(key);
                self.outline.shape.push(END);
                self.kind(depth + 1)?;
                if !self.cursor.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.outline.shape.push(END);
        Some(())
    }

    /// Moves behind a value and notes of what kind it is.
    fn kind(&mut self, depth: usize) -> Option<()> {
        let first = self.cursor.peek()?;
        let kind = match first {
            b'"' => {
                let word = self.cursor.string()?;
                self.outline.stands_alone |= is_odd_word(word);
                if word.starts_with(ID_WORD) { b'w' } else { b's' }
            }
            b'-' | b'0'..=b'9' => {
                self.cursor.number_of_any_length()?;
                b'0'
            }
            _ => {
                self.skip(depth)?;
                first
            }
        };
        self.outline.shape.push(kind);
        Some(())
    }

    /// Moves behind a value.
    fn skip(&mut self, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match self.cursor.peek()? {
            open @ (b'{' | b'[') => {
                // In ASCII the bracket that closes stands two behind the one that opens.
                let close = open + 2;
                self.cursor.take(open)?;
                if self.cursor.take(close).is_some() {
                    return Some(());
                }
                loop {
                    if open == b'{' {
                        self.cursor.key()?;
                    }
                    self.skip(depth + 1)?;
                    if !self.cursor.goes_on(close)? {
                        return Some(());
                    }
                }
            }
            b'-' | b'0'..=b'9' => self.cursor.number_of_any_length(),
            _ => self.cursor.scalar(),
        }
    }
}

/// Whether the word, as it is written, only might name an id.
fn is_odd_word(word: &[u8]) -> bool {
    match word.strip_prefix(ID_WORD) {
        Some(digits) => !(1..=MOST_DIGITS).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit),
        None => word.starts_with(br"\u0074") || word.starts_with(b"t") && memchr::memmem::find(word, br"\u").is_some(),
    }
}
