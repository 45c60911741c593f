//! Finding what is large in the body of a served response: arrays of numbers, and lists of one entry for each token.
//!
//! What is found is told by its place, and a number that nothing else in the body is stands for it in the rest. So a
//! full JSON reader reads the rest, finds its faults, and says which of two equal keys counts: if the number stands at
//! the place, the value is what the body has there.

use super::columns::Columns;
use super::halt::Halt;
use super::numbers::Numbers;
use super::walk::Walk;

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

/// Finds what has so many elements in a body, or more.
///
/// # Errors
///
/// [`Halt::Odd`] where a full reader must read the whole, [`Halt::Memory`] where there is no memory for what it holds.
pub fn scan_body(text: &[u8], least: usize) -> Result<Body, Halt> {
    Walk::new(text, least).whole()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Ids;
    use crate::json::walk::{DEEPEST, FIRST_MARK, MARK};
    use memchr::memmem;
    use proptest::prelude::*;

    fn scan(text: &str) -> Option<Body> {
        scan_body(text.as_bytes(), 16).ok()
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
            if let Ok(body) = scan_body(&text, 16) {
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
