//! Finding what is large in the body of a served response: arrays of numbers, and lists of one entry for each token.
//!
//! What is found is told by its place, and a number that nothing else in the body is stands for it in the rest. So a
//! full JSON reader reads the rest, finds its faults, and says which of two equal keys counts: if the number stands at
//! the place, the value is what the body has there.

use memchr::memmem;

use super::columns::{Columns, read_columns};
use super::halt::{Halt, Reading, room};
use super::numbers::{Numbers, read_numbers, read_words};
use super::skip::{expect, skip_space, skip_string};

/// Fewer elements are not worth it.
const LEAST: usize = 16;

/// Below this nothing is looked for: a body may be nested deeper, its tokens are not.
const DEEPEST: usize = 64;

/// The first digits of each mark. It has 19 in all, and an `i64` holds it.
const MARK: &str = "46116860184";

/// What the first mark is.
const FIRST_MARK: u64 = 4_611_686_018_400_000_000;

/// How many marks there are.
const MARKS: usize = 100_000_000;

/// A body in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The text with a mark in place of each value that was found.
    pub rest: Vec<u8>,
    /// The values, in order.
    pub found: Vec<Found>,
}

/// A value of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its place.
    pub path: Vec<Step>,
    /// The integer that stands there in the rest, and nowhere else.
    pub mark: u64,
    /// What it is.
    pub value: Value,
}

/// A step from the whole body to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into an object.
    Key(String),
    /// Into an array.
    Index(usize),
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An array of numbers.
    Numbers(Numbers),
    /// The ids that an array of words names.
    Words(Vec<i32>),
    /// A list of entries.
    Columns(Columns),
}

/// Finds what is large in a body.
///
/// # Errors
///
/// [`Halt::Odd`] where a full reader must read the whole, [`Halt::Memory`] where there is no memory for what it holds.
pub fn scan_body(text: &[u8]) -> Result<Body, Halt> {
    let mut walk = Walk { text, path: Vec::new(), found: Vec::new(), cuts: Vec::new(), steps: 0 };
    let end = walk.value(0)?;
    if skip_space(text, end) != text.len() {
        return Err(Halt::Odd);
    }
    Ok(Body { rest: walk.rest()?, found: walk.found })
}

/// A step as the body spells it.
#[derive(Clone, Copy)]
enum Place<'a> {
    Key(&'a [u8]),
    Index(usize),
}

/// A walk over all values of a body.
struct Walk<'a> {
    text: &'a [u8],
    path: Vec<Place<'a>>,
    found: Vec<Found>,
    /// Where each of the found begins and ends.
    cuts: Vec<(usize, usize)>,
    /// The size of all their paths.
    steps: usize,
}

impl Walk<'_> {
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
            b'-' | b'0'..=b'9' if speaks_of_tokens(key) && is_long(self.text, open) => {
                read_numbers(self.text, open).map(|(numbers, close)| (Value::Numbers(numbers), close))
            }
            b'"' if speaks_of_tokens(key) && is_long(self.text, open) => {
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
        if matches!(&value, Value::Columns(columns) if columns.len < LEAST) {
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
fn is_long(text: &[u8], open: usize) -> bool {
    let mut ends = memchr::memchr2_iter(b',', b']', &text[open..]).map(|place| text[open + place]);
    (1..LEAST).all(|_| ends.next() == Some(b','))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Ids;
    use proptest::prelude::*;

    fn scan(text: &str) -> Option<Body> {
        scan_body(text.as_bytes()).ok()
    }

    /// An array of that many times the text.
    fn many(count: usize, text: &str) -> String {
        format!("[{}]", vec![text; count].join(","))
    }

    /// The places of what was found, and the rest with `*` for each mark.
    fn parts(text: &str) -> Option<(Vec<String>, String)> {
        let body = scan(text)?;
        let mut rest = String::from_utf8(body.rest).unwrap();
        let mut paths = Vec::new();
        for (number, found) in body.found.iter().enumerate() {
            assert_eq!(found.mark, FIRST_MARK + number as u64);
            let mark = found.mark.to_string();
            assert_eq!(rest.matches(&mark).count(), 1);
            rest = rest.replace(&mark, "*");
            let steps = found.path.iter().map(|step| match step {
                Step::Key(key) => key.clone(),
                Step::Index(index) => index.to_string(),
            });
            paths.push(steps.collect::<Vec<_>>().join("."));
        }
        Some((paths, rest))
    }

    fn found(text: &str) -> Vec<String> {
        parts(text).expect("a body").0
    }

    #[test]
    fn finds_what_is_large_wherever_it_stands() {
        let (ids, words) = (many(16, "7"), many(16, "\"token_id:7\""));
        let (objects, triples) = (many(16, "{\"logprob\":-1}"), many(16, "[-1,7,null]"));
        let text = format!(
            " {{\"a\" : [1, \"]\", {{\"token_ids\":{ids}}}],\"b\":{{\"output_ids\":[{ids} , {ids}]}},\"c\":[],\"d\":{{}},\
             \"tokens\":{words},\"content\":{objects} , \"é\":{{\"e\":{triples}}},\"f\":-1.5e3,\"g\":null}} \n"
        );
        let (paths, rest) = parts(&text).unwrap();
        assert_eq!(paths, ["a.2.token_ids", "b.output_ids.0", "b.output_ids.1", "tokens", "content", "é.e"]);
        assert_eq!(
            rest,
            " {\"a\" : [1, \"]\", {\"token_ids\":*}],\"b\":{\"output_ids\":[* , *]},\"c\":[],\"d\":{},\
             \"tokens\":*,\"content\":* , \"é\":{\"e\":*},\"f\":-1.5e3,\"g\":null} \n"
        );
        let body = scan(&text).unwrap();
        assert_eq!(body.found[0].value, Value::Numbers(Numbers::Ids(Ids::I32(vec![7; 16]))));
        assert_eq!(body.found[3].value, Value::Words(vec![7; 16]));
    }

    #[test]
    fn arrays_of_tokens_are_known_by_their_key() {
        let ids = many(16, "7");
        for key in ["prompt_token_ids", "tokens", "input_ids", "completion_logprobs", "generation_log_probs", "ids"] {
            assert_eq!(found(&format!("{{\"{key}\":{ids}}}")), [key]);
        }
        for key in ["embedding", "text_offset", "", "ids_of", "x"] {
            assert_eq!(found(&format!("{{\"{key}\":{ids}}}")), [""; 0]);
        }
    }

    #[test]
    fn leaves_what_is_small_or_elsewhere() {
        for text in [
            format!("{{\"ids\":{}}}", many(15, "7")),
            format!("{{\"a\":{}}}", many(15, "{\"logprob\":-1}")),
            format!("{{\"a\":{}}}", many(15, "[-1,7]")),
            format!("{{\"ids\":[[{}]]}}", many(16, "7")),
            format!("{{\"a\":[{}]}}", many(16, "{\"logprob\":-1}")),
            format!("{{\"a\\n\":{{\"ids\":{}}}}}", many(16, "7")),
            format!("{{\"ids\":[null,{}]}}", many(16, "7").trim_matches(['[', ']'])),
            many(16, "7"),
            format!("[{}]", many(16, "7")),
            "7".to_owned() + " ",
            "\"a\"".to_owned(),
        ] {
            assert_eq!(parts(&text), Some((vec![], text.clone())), "{text}");
        }
    }

    #[test]
    fn leaves_odd_bodies_whole() {
        let ids = many(16, "7");
        for text in [
            "",
            " ",
            "{",
            "{\"ids\"",
            "{\"ids\":",
            "{\"ids\":[",
            "{\"ids\":[1",
            "{\"ids\":[1,",
            "[",
            "[1",
            "[1,",
            "\"a",
            "\"a\\",
            "\"a\\\"",
            "{\"a\":1}}",
            "{\"a\":1}x",
            "{\"a\":1]",
            "[1}",
            "{a:1}",
            "{\"a\" 1}",
            "{,}",
            "{\"a\":1,}",
            "\u{feff}{\"a\":1}",
            "{\"a\":46116860184}",
        ] {
            assert_eq!(scan(text), None, "{text:?}");
        }
        assert_eq!(scan(&format!("{{\"ids\":{ids},\"a\":\"4611686018400000000\"}}")), None);
        assert_eq!(scan(&format!("{{\"ids\":{ids}")), None);
    }

    #[test]
    fn leaves_faults_in_the_rest() {
        let ids = many(16, "7");
        for (before, after) in
            [("{\"a\":tru,\"ids\":", "}"), ("{\"a\":[1,],\"ids\":", ",\"b\":\"\u{1}\"}"), ("{\"ids\":", ",\"a\":01}")]
        {
            let want = (vec!["ids".to_owned()], format!("{before}*{after}"));
            assert_eq!(parts(&format!("{before}{ids}{after}")), Some(want));
        }
    }

    #[test]
    fn of_two_equal_keys_each_has_its_mark() {
        let ids = many(16, "7");
        assert_eq!(
            parts(&format!("{{\"ids\":{ids},\"ids\":{ids}}}")),
            Some((vec!["ids".to_owned(); 2], "{\"ids\":*,\"ids\":*}".to_owned()))
        );
    }

    #[test]
    fn deep_nesting_is_left_to_another_reader() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan(&nested(DEEPEST)).is_some());
        assert_eq!(scan(&nested(DEEPEST + 1)), None);
        assert_eq!(scan(&nested(1_000_000)), None);
        assert_eq!(scan(&"[".repeat(1_000_000)), None);
        assert_eq!(scan(&"{\"a\":".repeat(1_000_000)), None);
    }

    #[test]
    fn shared_keys_do_not_fill_the_memory() {
        let key = "k".repeat(500);
        let arrays =
            |count| format!("{{\"{key}\":[{}]}}", vec![format!("{{\"ids\":{}}}", many(16, "7")); count].join(","));
        assert_eq!(found(&arrays(1)).len(), 1);
        assert_eq!(scan(&arrays(100)), None);
    }

    /// Bodies like those that engines send, with up to one fault.
    fn bodies() -> impl Strategy<Value = Vec<u8>> {
        let element = prop_oneof![
            Just("7"),
            Just("-0.5"),
            Just("\"token_id:7\""),
            Just("{\"token\":\"token_id:5\",\"logprob\":-1,\"bytes\":[1]}"),
            Just("[-0.5,7,null]"),
            Just("null"),
        ];
        let array = (element, 14..20_usize).prop_map(|(element, count)| many(count, element));
        let key = prop_oneof![Just("token_ids"), Just("content"), Just("a\\n"), Just("")];
        let member = (key, array).prop_map(|(key, array)| format!("\"{key}\":{array}"));
        let object = proptest::collection::vec(member, 1..5).prop_map(|members| format!("{{{}}}", members.join(", ")));
        let nested = (object.clone(), object).prop_map(|(a, b)| format!("{{\"choices\":[{a},{b}],\"usage\":{{}}}}"));
        (nested, any::<prop::sample::Index>(), proptest::option::of(any::<u8>())).prop_map(|(text, place, fault)| {
            let mut text = text.into_bytes();
            let place = place.index(text.len());
            text[place] = fault.unwrap_or(text[place]);
            text
        })
    }

    proptest! {
        #[test]
        fn the_rest_is_the_body_but_for_the_marks(text in bodies()) {
            if let Ok(body) = scan_body(&text) {
                let mut rest = body.rest.as_slice();
                let mut left = text.as_slice();
                for found in &body.found {
                    let mark = found.mark.to_string();
                    let at = memmem::find(rest, mark.as_bytes()).unwrap();
                    prop_assert_eq!(&rest[..at], &left[..at]);
                    rest = &rest[at + mark.len()..];
                    prop_assert_eq!(left[at], b'[');
                    // The array ends where the text before the next mark begins.
                    let next = memmem::find(rest, MARK.as_bytes()).unwrap_or(rest.len());
                    let ends = |&end: &usize| left[end] == b']' && left[end + 1..].starts_with(&rest[..next]);
                    let close = (at..left.len()).find(ends);
                    left = &left[close.unwrap() + 1..];
                }
                prop_assert!(left.ends_with(rest));
            }
        }
    }
}
