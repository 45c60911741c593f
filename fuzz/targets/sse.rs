//! The events of a stream: the same however the bytes are cut, each where it says, and those of a plain splitter.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tokenrecords::json::Words;
use tokenrecords::sse::{Events, Kind};
use tokenrecords_fuzz::plain_events;

// The first bytes say where the rest is cut.
fuzz_target!(|input: &[u8]| {
    let (cuts, text) = input.split_at(input.len().min(8));
    let watched = || {
        let words = Words::new(vec![b"error".to_vec(), b"a".to_vec()]).expect("two short words");
        Events::watched_for(words)
    };
    let mut whole = watched();
    whole.feed(text).expect("memory");
    whole.end().expect("memory");

    let mut parts = watched();
    let (mut left, mut telling) = (text, Vec::new());
    for cut in cuts {
        let (now, later) = left.split_at(usize::from(*cut).min(left.len()));
        parts.feed(now).expect("memory");
        telling.extend(parts.telling());
        left = later;
    }
    parts.feed(left).expect("memory");
    parts.end().expect("memory");
    telling.extend(parts.telling());

    assert_eq!((parts.bytes(), parts.len(), parts.is_done()), (text, whole.len(), whole.is_done()));
    assert_eq!(telling, whole.telling());
    let said = |index| whole.get(index).map(|(kind, _, text): (Kind, _, &[u8])| (kind, text.to_vec()));
    assert_eq!((0..whole.len()).filter_map(said).collect::<Vec<_>>(), plain_events(text));
    let mut before = 0;
    for index in 0..whole.len() {
        let (_, begin, said) = whole.get(index).expect("an event");
        assert_eq!(parts.get(index), whole.get(index));
        assert!(before <= begin && begin < text.len() && !said.is_empty());
        before = begin;
    }
    let chunks = |events: &Events| events.chunks().map(|chunks| chunks.map(<[u8]>::to_vec).collect::<Vec<_>>());
    assert_eq!(chunks(&parts), chunks(&whole));
});
