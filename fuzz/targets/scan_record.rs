//! A record's line: its arrays are those that a plain reader finds, and the rest is all else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokenrecords::json::scan_record;
use tokenrecords_fuzz::{float, list, may_be_half, parse, same_floats, same_ids};

fuzz_target!(|line: &[u8]| {
    let (Ok(wide), narrow) = (scan_record::<f64>(line), scan_record::<f32>(line)) else { return };
    let Some(mut whole) = parse(line) else {
        assert!(parse(&wide.rest).is_none() || may_be_half(line), "the fault is gone");
        return;
    };
    if let Ok(narrow) = narrow {
        assert_eq!(narrow.rest, wide.rest);
        if let Some(floats) = narrow.generation_log_probs {
            for (found, value) in floats.iter().zip(list(&whole["generation_log_probs"])) {
                let want = value.as_number().map_or(f32::NAN, |number| number.as_str().parse().unwrap_or(f32::NAN));
                assert!(found.to_bits() == want.to_bits() || *found == 0.0 && float(value) == 0.0);
            }
        }
    }
    let ids = [("prompt_token_ids", wide.prompt_token_ids), ("generation_token_ids", wide.generation_token_ids)];
    for (key, found) in ids {
        let Some(found) = found else { continue };
        same_ids(&found, &whole[key]);
        whole[key] = Value::Array(Vec::new());
    }
    if let Some(found) = wide.generation_log_probs {
        same_floats(&found, &whole["generation_log_probs"]);
        whole["generation_log_probs"] = Value::Array(Vec::new());
    }
    assert_eq!(parse(&wide.rest), Some(whole));
});
