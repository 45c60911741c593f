//! A stream that is passed on without some members: of other events nothing changes, of these a plain reader sees what
//! it makes of them itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tokenrecords::json::Members;
use tokenrecords::sse::Events;
use tokenrecords_fuzz::{members, parse, without};

/// What is passed on as the bytes come in, cut where the first ones say, and the events that are seen on the way.
fn passed(cuts: &[u8], text: &[u8], members: Option<&Members>) -> (Vec<u8>, Events) {
    let (mut events, mut out, mut left) = (Events::default(), Vec::new(), text);
    for cut in cuts {
        let (now, later) = left.split_at(usize::from(*cut).min(left.len()));
        events.feed(now).expect("memory");
        out.extend(events.pass(members, None).expect("memory"));
        left = later;
    }
    events.feed(left).expect("memory");
    events.end().expect("memory");
    out.extend(events.pass(members, Some(text.len())).expect("memory"));
    (out, events)
}

fuzz_target!(|input: &[u8]| {
    let (cuts, text) = input.split_at(input.len().min(8));
    assert_eq!(passed(cuts, text, None).0, text);
    let members = members();
    let (hidden, before) = passed(cuts, text, Some(&members));
    let (_, after) = passed(&[], &hidden, None);
    assert_eq!((after.len(), after.is_done()), (before.len(), before.is_done()));
    for index in 0..before.len() {
        let (kind, _, said) = before.get(index).expect("an event");
        let (same_kind, _, says) = after.get(index).expect("an event");
        assert_eq!(kind, same_kind);
        if said != says
            && let Some(mut value) = parse(said)
        {
            without(&mut value, &members);
            assert_eq!(parse(says), Some(value));
        }
    }
});
