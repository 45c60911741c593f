//! The walk over a chunk.

use super::growth::Growth;
use super::outline::{Outline, Piece};
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

/// Ends the kinds of a list, as nothing else does.
const END_OF_LIST: u8 = 1;

/// A walk over a chunk. None everywhere: it is not surely well-formed.
pub(super) struct Walk<'a, 'b> {
    cursor: Cursor<'a>,
    outline: &'b mut Outline,
    /// The chunk before, and its outline.
    before: Option<(&'a [u8], &'b Outline)>,
    /// The keys of lists so far: two of one key may become one list, and take turns in it.
    lists: Vec<&'a [u8]>,
    has_entries: bool,
}

impl<'a, 'b> Walk<'a, 'b> {
    pub(super) fn new(text: &'a [u8], outline: &'b mut Outline, before: Option<(&'a [u8], &'b Outline)>) -> Self {
        Self { cursor: Cursor::new(text, 0), outline, before, lists: Vec::new(), has_entries: false }
    }

    /// Walks over the whole chunk.
    pub(super) fn whole(mut self, rules: &Rules) -> Option<()> {
        self.object(rules, 0)?;
        self.cursor.peek().is_none().then_some(())
    }

    /// Walks over a chunk that is spelled as the one before but for its pieces; None for others.
    pub(super) fn like_the_one_before(mut self) -> Option<()> {
        let (text, before) = self.before.filter(|(_, before)| !before.stands_alone && !before.growth.is_there)?;
        let mut kept = 0;
        for piece in &before.pieces {
            let whole = piece.whole();
            self.cursor.skips(&text[kept..whole.start]).then_some(())?;
            kept = whole.end;
            let first = self.cursor.peek()?;
            let start = self.cursor.at();
            match piece {
                Piece::Text(_) => self.text(start)?,
                Piece::List(_) => self.list(false, 0)?,
                Piece::Entries(_) => self.list(true, 0)?,
                // A list or null is not what was there.
                Piece::Last(_) if matches!(first, b'[' | b'n') => return None,
                Piece::Last(_) => {
                    self.skip(0)?;
                    self.last(start);
                }
            }
        }
        let is_like = self.cursor.skips(&text[kept..]) && self.cursor.peek().is_none();
        self.outline.shape.clone_from(&before.shape);
        is_like.then_some(())
    }

    fn object(&mut self, rules: &Rules, depth: usize) -> Option<()> {
        self.cursor.take(b'{')?;
        self.outline.shape.push(b'{');
        let mut lacks_one = rules.keys.iter().any(|(_, rule)| matches!(rule, Rule::OneOf(_)));
        if self.cursor.take(b'}').is_none() {
            loop {
                let key = self.cursor.key()?;
                self.outline.shape.extend_from_slice(key);
                self.outline.shape.push(END);
                let rule = rules.of(key);
                lacks_one &= !matches!(rule, Rule::OneOf(_)) || self.cursor.peek()? == b'n';
                self.member(key, rule, depth + 1)?;
                if !self.cursor.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.outline.stands_alone |= lacks_one;
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
                self.outline.has_others = true;
                self.text(start)?;
            }
            (Rule::Told, b'"') => {
                self.outline.growth.is_there = true;
                self.text(start)?;
            }
            (Rule::Grows, b'[') => self.growing(depth)?,
            (Rule::Count, b'0'..=b'9') => {
                self.cursor.number_of_any_length()?;
                self.outline.growth.is_there = true;
                self.outline.growth.total = str::from_utf8(self.cursor.since(start)).ok()?.parse().ok();
                self.last(start);
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
                self.outline.shape.try_reserve(text.len()).ok()?;
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
                self.last(start);
            }
            _ => {
                self.outline.stands_alone = true;
                self.skip(depth)?;
            }
        }
        Some(())
    }

    /// A text that begins with the quote at `start`.
    fn text(&mut self, start: usize) -> Option<()> {
        self.cursor.string()?;
        self.outline.pieces.push(Piece::Text(start + 1..self.cursor.at() - 1));
        self.outline.shape.push(b't');
        Some(())
    }

    /// A value that was read from `start` on, of which the last one stays.
    fn last(&mut self, start: usize) {
        self.outline.pieces.push(Piece::Last(start..self.cursor.at()));
        self.outline.shape.push(b'v');
    }

    /// A list that grows.
    fn growing(&mut self, depth: usize) -> Option<()> {
        self.cursor.take(b'[')?;
        let start = self.cursor.at();
        let mut len = 0;
        if self.cursor.take(b']').is_none() {
            len = self.elements_again().unwrap_or(0);
            self.outline.growth.is_again &= len > 0;
            if len == 0 {
                self.skip(depth + 1)?;
                len = 1;
            }
            while self.cursor.goes_on(b']')? {
                self.skip(depth + 1)?;
                len += 1;
            }
        }
        self.outline.pieces.push(Piece::List(start..self.cursor.at() - 1));
        self.outline.shape.push(b'[');
        let Growth { is_there, len: others, .. } = &mut self.outline.growth;
        self.outline.stands_alone |= others.is_some_and(|others| others != len);
        (*is_there, *others) = (true, Some(len));
        Some(())
    }

    /// Moves behind the elements of the same list of the chunk before, if they are next; gives how many they are.
    fn elements_again(&mut self) -> Option<usize> {
        let (text, before) = self.before.filter(|(_, before)| !before.stands_alone && !before.has_others)?;
        let len = before.growth.len?;
        let Piece::List(place) = before.pieces.get(self.outline.pieces.len())? else { return None };
        let mut cursor = self.cursor.clone();
        let is_again = cursor.skips(&text[place.clone()]) && matches!(cursor.peek()?, b',' | b']');
        self.cursor = if is_again { cursor } else { return None };
        Some(len)
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
        self.outline.has_others = true;
        self.cursor.take(b'[')?;
        let start = self.cursor.at();
        let (mut count, mut before) = (0, None);
        self.outline.shape.push(b'[');
        if self.cursor.take(b']').is_none() {
            loop {
                count += 1;
                let kind = self.outline.kinds.len();
                match self.cursor.peek()? {
                    b'{' if of_entries => self.entry(depth + 1)?,
                    _ => self.kind(depth + 1)?,
                }
                let kinds = &mut self.outline.kinds;
                match before {
                    Some(before) if kinds[before..kind] == kinds[kind..] => kinds.truncate(kind),
                    _ => before = Some(kind),
                }
                if !self.cursor.goes_on(b']')? {
                    break;
                }
            }
        }
        self.outline.kinds.push(END_OF_LIST);
        let place = start..self.cursor.at() - 1;
        self.outline.pieces.push(if of_entries { Piece::Entries(place) } else { Piece::List(place) });
        self.outline.counts.push(count);
        Some(())
    }

    /// The keys of an entry, and of what kind each value is.
    fn entry(&mut self, depth: usize) -> Option<()> {
        self.cursor.take(b'{')?;
        if self.cursor.take(b'}').is_none() {
            loop {
                let key = self.cursor.key()?;
                self.outline.kinds.extend_from_slice(key);
                self.outline.kinds.push(END);
                self.kind(depth + 1)?;
                if !self.cursor.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.outline.kinds.push(END);
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
        self.outline.kinds.push(kind);
        Some(())
    }

    /// Moves behind a value.
    fn skip(&mut self, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match self.cursor.peek()? {
            b'[' if self.cursor.integers().is_some() => Some(()),
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
