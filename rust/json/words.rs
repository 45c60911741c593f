//! Quoted words in JSON texts: a sign that a text may say something, found without a walk over it.

/// Words of 1 to 63 bytes, without quotes and backslashes.
#[derive(Clone, Debug)]
pub struct Words {
    words: Vec<Vec<u8>>,
    /// For each byte a bit for each length of those that begin with it.
    lengths: [u64; 256],
}

impl Words {
    /// Of these words. None if one of them is of another length or would not stand in a text as it is.
    #[must_use]
    pub fn new(words: Vec<Vec<u8>>) -> Option<Self> {
        let mut lengths = [0; 256];
        for word in &words {
            if word.len() >= 64 || word.iter().any(|b| matches!(b, b'"' | b'\\')) {
                return None;
            }
            lengths[usize::from(*word.first()?)] |= 1_u64 << word.len();
        }
        Some(Self { words, lengths })
    }

    /// Whether one of them stands in the text between quotes. In a string a quote has a backslash before it, so there
    /// none is found but the whole string.
    #[must_use]
    pub fn stand_in(&self, text: &[u8]) -> bool {
        let mut start = text.len();
        for quote in memchr::memchr_iter(b'"', text) {
            let word = text.get(start..quote).unwrap_or_default();
            let lengths = word.first().map_or(0, |&first| self.lengths[usize::from(first)]);
            if word.len() < 64 && lengths >> word.len() & 1 == 1 && self.words.iter().any(|known| known == word) {
                return true;
            }
            start = quote + 1;
        }
        false
    }
}

impl Default for Words {
    fn default() -> Self {
        Self { words: Vec::new(), lengths: [0; 256] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Option<Words> {
        Words::new(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn words_are_found_between_quotes() {
        let words = words(&["error", "a.b"]).unwrap();
        for text in [r#"{"error":1}"#, r#""x""error"#, r#"["a.b"]"#, r#"x"error"x"#] {
            let held = text.to_owned() + "\"";
            assert!(words.stand_in(held.as_bytes()), "{text}");
        }
        for text in
            ["", "\"", "error", r#"{"errors":1}"#, r#""\"error\"""#, r#""error"#, r#"error""#, r#""a_b" "#, r#""""#]
        {
            assert!(!words.stand_in(text.as_bytes()), "{text}");
        }
        assert!(!Words::default().stand_in(b"\"\""));
    }

    #[test]
    fn long_words_are_not_taken_for_short_ones() {
        let (short, long) = ("a", "a".repeat(65));
        let words = words(&[short]).unwrap();
        assert!(words.stand_in(b"\"a\""));
        assert!(!words.stand_in(format!("\"{long}\"").as_bytes()));
    }

    #[test]
    fn what_would_not_stand_so_is_refused() {
        assert!(words(&["a", &"a".repeat(63)]).is_some());
        for word in ["", "a\"", "\\", &"a".repeat(64)] {
            assert!(words(&["a", word]).is_none());
        }
    }
}
