//! A served body: put back where their marks stand, the values make it what a plain reader reads.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value as Json;
use tokenrecords::json::{Columns, Step, Value, scan_body};
use tokenrecords_fuzz::{float, integer, list, may_be_half, parse, same_numbers, word};

const LEAST: usize = 4;

fuzz_target!(|text: &[u8]| {
    let Ok(body) = scan_body(text, LEAST) else { return };
    let Some(whole) = parse(text) else {
        assert!(parse(&body.rest).is_none() || may_be_half(text), "the fault is gone");
        return;
    };
    let mut rest = parse(&body.rest).expect("a rest that can be read");
    for found in &body.found {
        let (Some(mark), Some(value)) = (at(&mut rest, &found.path), at(&mut whole.clone(), &found.path).cloned())
        else {
            continue; // it stood under one of two equal keys, of which the last counts
        };
        if mark.as_u64() != Some(found.mark) {
            continue;
        }
        same(&found.value, &value);
        *mark = value;
    }
    assert_eq!(rest, whole);
});

/// The value at the place, if there is one.
fn at<'a>(value: &'a mut Json, path: &[Step]) -> Option<&'a mut Json> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.as_object_mut()?.get_mut(key),
        Step::Index(index) => value.as_array_mut()?.get_mut(*index),
    })
}

fn same(found: &Value, value: &Json) {
    let values = list(value);
    match found {
        Value::Numbers(numbers) => same_numbers(numbers, value),
        Value::Words(ids) => assert_eq!(*ids, values.iter().map(word).collect::<Vec<_>>()),
        Value::Columns(columns) => same_columns(columns, values),
    }
    assert!(values.len() >= LEAST);
}

fn same_columns(columns: &Columns, entries: &[Json]) {
    assert_eq!(columns.len, entries.len());
    let rows = columns.width > 0;
    let of = |entry: &Json, key: &str, place: usize| if rows { entry[place].clone() } else { entry[key].clone() };
    for (index, entry) in entries.iter().enumerate() {
        if rows {
            assert_eq!(list(entry).len(), columns.width);
        }
        if let Some(log_probs) = &columns.log_probs {
            assert_eq!(log_probs[index].to_bits(), float(&of(entry, "logprob", 0)).to_bits());
        }
        if let Some(ids) = &columns.ids {
            assert_eq!(i128::from(ids[index]), integer(&of(entry, "id", 1)));
        }
        if let Some(ids) = &columns.token_ids {
            assert_eq!(i128::from(ids[index]), integer(&entry["token_id"]));
        }
        if let Some(words) = &columns.words {
            assert_eq!(words[index], word(&entry["token"]));
        }
    }
    if columns.log_probs.is_none() {
        assert!(entries.iter().any(|entry| of(entry, "logprob", 0).is_null()));
    }
}
