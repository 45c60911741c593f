//! A body without some members is what a plain reader makes of it without them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokenrecords::json::Members;
use tokenrecords_fuzz::{may_be_half, parse};

/// `a` goes, and so do `b` in `c` and `a` and `c` in the `d` in `c`.
fn members() -> Members {
    let name = |name: &str| (name.as_bytes().to_vec(), None);
    let inside = |key: &str, inner| (key.as_bytes().to_vec(), Some(Members(inner)));
    Members(vec![name("a"), inside("c", vec![name("b"), inside("d", vec![name("a"), name("c")])])])
}

fn without(value: &mut Value, members: &Members) {
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

fuzz_target!(|text: &[u8]| {
    let members = members();
    _ = members.cut_events(text);
    let Ok(cut) = members.cut(text) else { return };
    let Some(mut whole) = parse(text) else { return };
    without(&mut whole, &members);
    assert_eq!(parse(&cut), Some(whole));
    assert!(may_be_half(text) || members.cut(&cut).is_ok_and(|again| again == cut));
});
