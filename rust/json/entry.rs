//! One entry of a list, which is about one token: an object with a `logprob`, or a row of log-prob and id.
//!
//! Its text, its bytes and its candidates are passed over, strictly, for no full reader sees them. Whatever else is in
//! it makes it odd.

use super::strict::Cursor;

/// An object with more members is no entry of a token.
pub(super) const MOST_MEMBERS: usize = 32;

/// What a token is called whose text is its id.
const ID_WORD: &[u8] = b"token_id:";

/// One entry of a list.
#[derive(Default)]
pub(super) struct Entry {
    /// NaN for null: no JSON number is.
    pub(super) log_prob: Option<f64>,
    /// Under the key `token_id`.
    pub(super) token_id: Option<i32>,
    /// Under the key `id`, or at place 1.
    pub(super) id: Option<i32>,
    /// What the word under the key `token` is.
    pub(super) token: Option<Token>,
    /// How many elements a row has; 0 for an object.
    pub(super) width: usize,
}

/// What the word of a token is.
pub(super) enum Token {
    Text,
    Id(i32),
}

/// Reads a row: log-prob, id, and what is text or null.
#[inline]
pub(super) fn row(cursor: &mut Cursor<'_>) -> Option<Entry> {
    cursor.take(b'[')?;
    let log_prob = log_prob(cursor)?;
    cursor.take(b',')?;
    let id = cursor.integer()?;
    let mut width = 2;
    while cursor.goes_on(b']')? {
        match cursor.peek()? {
            b'"' => drop(cursor.string()?),
            _ => cursor.literal(b"null")?,
        }
        width += 1;
    }
    Some(Entry { log_prob: Some(log_prob), id: Some(id), width, ..Entry::default() })
}

/// A member of an object.
#[derive(Clone, Copy)]
pub(super) enum Member {
    LogProb,
    TokenId,
    Id,
    Token,
    Unread,
}

impl Member {
    fn of(key: &[u8]) -> Self {
        match key {
            b"logprob" => Self::LogProb,
            b"token_id" => Self::TokenId,
            b"id" => Self::Id,
            b"token" => Self::Token,
            _ => Self::Unread,
        }
    }
}

/// Reads an object. `members` has the text before each value of the object that was read first, with what is behind
/// it: the others are nearly always spelled alike.
#[inline]
pub(super) fn object<'a>(cursor: &mut Cursor<'a>, members: &mut Vec<(&'a [u8], Member)>) -> Option<Entry> {
    let mut entry = Entry::default();
    for place in 0..MOST_MEMBERS {
        let start = cursor.at();
        let member = match members.get(place) {
            Some(&(text, member)) if cursor.skips(text) => member,
            known => {
                cursor.take(if place == 0 { b'{' } else { b',' })?;
                let member = Member::of(cursor.key()?);
                if known.is_none() {
                    members.push((cursor.since(start), member));
                }
                member
            }
        };
        match member {
            Member::LogProb => set(&mut entry.log_prob, log_prob(cursor)?)?,
            Member::TokenId => set(&mut entry.token_id, cursor.integer()?)?,
            Member::Id => set(&mut entry.id, cursor.integer()?)?,
            Member::Token => set(&mut entry.token, Token::of(cursor.string()?)?)?,
            Member::Unread => unread(cursor)?,
        }
        if cursor.peek()? == b'}' {
            cursor.take(b'}')?;
            return Some(entry);
        }
    }
    None
}

/// Reads a number or null.
#[inline]
fn log_prob(cursor: &mut Cursor<'_>) -> Option<f64> {
    match cursor.peek()? {
        b'n' => cursor.literal(b"null").map(|()| f64::NAN),
        _ => cursor.number(),
    }
}

/// Sets a value that is not there yet: of two equal keys a full reader picks one.
fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

impl Token {
    /// What the word is; None where an escape may hide an id.
    #[inline]
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        if let Some(digits) = word.strip_prefix(ID_WORD)
            && !digits.is_empty()
            && digits.iter().all(u8::is_ascii_digit)
        {
            // As Python's int() does, so with any zeros before it.
            let id = digits.iter().try_fold(0_i32, |id, digit| id.checked_mul(10)?.checked_add((digit - b'0').into()));
            return id.map(Self::Id);
        }
        let escapes = |text: &[u8]| text.windows(2).any(|pair| pair == b"\\u");
        match word {
            [b't', rest @ ..] if escapes(rest) => None,
            [b'\\', b'u', b'0', b'0', b'7', b'4', ..] => None,
            _ => Some(Self::Text),
        }
    }
}

/// Moves behind a value that nobody reads: a scalar, the bytes of a text, or candidates.
fn unread(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.peek()? != b'[' {
        return cursor.scalar();
    }
    cursor.take(b'[')?;
    match cursor.peek()? {
        b']' => cursor.take(b']'),
        b'{' => candidates(cursor),
        _ => cursor.bytes(),
    }
}

/// Moves behind the rest of an array of objects that hold no others.
fn candidates(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        cursor.take(b'{')?;
        loop {
            cursor.key()?;
            match cursor.peek()? {
                b'[' => {
                    cursor.take(b'[')?;
                    cursor.bytes()?;
                }
                _ => cursor.scalar()?,
            }
            if !cursor.goes_on(b'}')? {
                break;
            }
        }
        if !cursor.goes_on(b']')? {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_words_that_are_ids() {
        let of = |word: &str| {
            Token::of(word.as_bytes()).map(|token| match token {
                Token::Text => None,
                Token::Id(id) => Some(id),
            })
        };
        for (word, id) in
            [("token_id:41", 41), ("token_id:0", 0), ("token_id:007", 7), ("token_id:2147483647", i32::MAX)]
        {
            assert_eq!(of(word), Some(Some(id)), "{word}");
        }
        for text in [
            "",
            "the",
            "token_id:",
            "token_id:-1",
            "token_id:4x",
            " token_id:4",
            r"t\n",
            r"\n",
            r"\u00e9",
            "Token_id:4",
        ] {
            assert_eq!(of(text), Some(None), "{text}");
        }
        for odd in [r"\u0074oken_id:4", r"token_id:\u0034", r"t\u006fken_id:4", "token_id:2147483648"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
