//! Chunks put together say what they said apart: their texts and lists one after the other, the last of the rest.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokenrecords::json::{Rule, Rules, join_chunks};
use tokenrecords_fuzz::{may_be_half, parse};

fn rules() -> Rules {
    let key = |key: &str, rule| (key.as_bytes().to_vec(), rule);
    let keys = vec![key("t", Rule::Text), key("l", Rule::List), key("e", Rule::Entries), key("v", Rule::Last)];
    let inner = Rules { keys: keys.clone(), other: Rule::Same };
    let one_of = Rule::OneOf(vec![b"\"x\"".to_vec(), b"null".to_vec()]);
    let more = vec![
        key("n", Rule::Never),
        key("o", Rule::Object(Box::new(inner.clone()))),
        key("f", Rule::Object(Box::new(Rules { keys: vec![key("r", one_of)], other: Rule::Same }))),
        key("s", Rule::Single(Box::new(inner))),
        key("g", Rule::Grows),
        key("d", Rule::Told),
        key("c", Rule::Count),
    ];
    Rules { keys: [keys, more].concat(), other: Rule::Same }
}

/// What some chunks say: all text, all elements, and the last value of each kind that stays.
#[derive(Debug, Default, PartialEq)]
struct Said {
    texts: [String; 3],
    lists: [Vec<Value>; 6],
    last: [Value; 4],
}

impl Said {
    fn add(&mut self, chunk: &Value) {
        for (place, object) in [chunk, &chunk["o"], &chunk["s"][0]].into_iter().enumerate() {
            if let Some(text) = object["t"].as_str() {
                self.texts[place].push_str(text);
            }
            for (list, key) in [(place, "l"), (3 + place, "e")] {
                self.lists[list].extend(object[key].as_array().into_iter().flatten().cloned());
            }
            if !object["v"].is_null() {
                self.last[place] = object["v"].clone();
            }
        }
        if !chunk["n"].is_null() {
            self.last[3] = chunk["n"].clone();
        }
    }
}

fuzz_target!(|text: &[u8]| {
    let chunks: Vec<_> = text.split(|&byte| byte == b'\n').collect();
    let Ok(joined) = join_chunks(chunks.iter().copied(), &rules()) else { return };
    let Some(joined) = parse(&joined) else {
        assert!(may_be_half(text), "what was well-formed is no more");
        return;
    };
    let chunks: Vec<_> = chunks.iter().map(|chunk| parse(chunk).expect("a chunk of what was joined")).collect();
    let (mut before, mut after) = (Said::default(), Said::default());
    chunks.iter().for_each(|chunk| before.add(chunk));
    let joined = joined.as_array().expect("a list");
    joined.iter().for_each(|chunk| after.add(chunk));
    assert!(joined.len() <= chunks.len());
    assert_eq!(before, after);
});
