//! What several targets need: a plain reader of JSON, and comparisons with what it reads.

mod events;

pub use events::plain_events;

use serde::Deserialize;
use serde_json::Value;
use tokenrecords::json::{Ids, Members, Numbers};

/// The value of a JSON text, with its numbers as they are written.
pub fn parse(text: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| value)
}

/// Whether the text has an escape for half of a pair, which Python's readers take and the plain reader does not.
pub fn may_be_half(text: &[u8]) -> bool {
    text.windows(3).any(|part| matches!(part, [b'\\', b'u', b'd' | b'D']))
}

/// The elements of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Fails where the list does not hold just these ids.
pub fn same_ids(ids: &Ids, value: &Value) {
    let found: Vec<i128> = match ids {
        Ids::I32(ids) => ids.iter().map(|&id| id.into()).collect(),
        Ids::I64(ids) => ids.iter().map(|&id| id.into()).collect(),
        Ids::U64(ids) => ids.iter().map(|&id| id.into()).collect(),
    };
    assert_eq!(found, list(value).iter().map(integer).collect::<Vec<_>>());
}

/// Fails where the list does not hold just these numbers.
pub fn same_numbers(numbers: &Numbers, value: &Value) {
    match numbers {
        Numbers::Ids(ids) => same_ids(ids, value),
        Numbers::Floats(floats) => same_floats(floats, value),
    }
}

/// Fails where the list does not hold just these floats.
pub fn same_floats(floats: &[f64], value: &Value) {
    let want = list(value).iter().map(float);
    assert_eq!(
        floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>(),
        want.map(f64::to_bits).collect::<Vec<_>>()
    );
}

/// The integer that the value is.
pub fn integer(value: &Value) -> i128 {
    value.as_number().expect("a number").as_str().parse().expect("an integer")
}

/// The float that the value is.
pub fn float(value: &Value) -> f64 {
    match value.as_number().expect("a number").as_str() {
        "-0" => 0.0, // an integer, of which there is one zero
        text => text.parse().expect("a float"),
    }
}

/// The id in a word like `token_id:41`.
pub fn word(value: &Value) -> i32 {
    value.as_str().and_then(|word| word.strip_prefix("token_id:")).expect("a word").parse().expect("an id")
}

/// `a` goes, and so do `b` in `c` and `a` and `c` in the `d` in `c`.
pub fn members() -> Members {
    let name = |name: &str| (name.as_bytes().to_vec(), None);
    let inside = |key: &str, inner| (key.as_bytes().to_vec(), Some(Members(inner)));
    Members(vec![name("a"), inside("c", vec![name("b"), inside("d", vec![name("a"), name("c")])])])
}

/// The value without these members.
pub fn without(value: &mut Value, members: &Members) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, members)),
        Value::Object(object) => {
            for (name, inner) in &members.0 {
                let name = std::str::from_utf8(name).expect("a name");
                match inner {
                    None => drop(object.remove(name)),
                    Some(inner) => object.get_mut(name).into_iter().for_each(|value| without(value, inner)),
                }
            }
        }
        _ => {}
    }
}
