//! A body without some members is what a plain reader makes of it without them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tokenrecords_fuzz::{may_be_half, members, parse, without};

fuzz_target!(|text: &[u8]| {
    let members = members();
    let Some(mut whole) = parse(text) else {
        _ = members.cut(text);
        return;
    };
    let Ok(cut) = members.cut(text) else {
        let deep = text.iter().filter(|b| matches!(b, b'[' | b'{')).count() > 64;
        assert!(deep || text.contains(&b'\\'), "nothing is odd about it");
        return;
    };
    without(&mut whole, &members);
    assert_eq!(parse(&cut), Some(whole));
    assert!(may_be_half(text) || members.cut(&cut).is_ok_and(|again| again == cut));
});
