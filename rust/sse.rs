//! The events of a stream of server-sent events, cut from its bytes as they come in.
//!
//! Read is what servers send, not only what the standard has them send: a line of JSON alone is data, white space around
//! a line and a byte order mark before it are nothing, and objects on lines one below the other are an event each, where
//! no blank line parts them.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use crate::json::{Halt, Members, Words, trim};

/// Comes before a text whose bytes say that it is UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The data of the event that ends a stream.
const DONE: &[u8] = b"[DONE]";

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has data.
    Data,
    /// It has the words of an error.
    Error,
    /// It is a line that no stream of events has.
    Unknown,
}

/// A place among the bytes, or what stands at several places, joined.
#[derive(Clone, Debug)]
enum Text {
    Line(Range<usize>),
    Lines(Vec<u8>, Vec<Range<usize>>),
}

/// An event.
#[derive(Clone, Debug)]
struct Event {
    kind: Kind,
    /// Where its first line begins.
    begin: usize,
    text: Text,
}

/// An event of which lines may still come.
#[derive(Debug, Default)]
struct Pending {
    begin: Option<usize>,
    is_error: bool,
    data: Option<Text>,
    /// What an error says elsewhere than in its data.
    words: Option<Range<usize>>,
    comment: Option<Range<usize>>,
}

/// The events of a stream so far.
#[derive(Debug, Default)]
pub struct Events {
    bytes: Vec<u8>,
    /// Where the line begins whose end has not come.
    line: usize,
    /// Up to where that end was looked for.
    seen: usize,
    /// Whether the line before ended in CR, to which an LF belongs.
    after_cr: bool,
    is_done: bool,
    pending: Pending,
    whole: Vec<Event>,
    /// What makes an event telling.
    words: Words,
    /// How many events were asked about.
    told: usize,
    /// How many bytes and events were passed on.
    passed: (usize, usize),
}

impl Events {
    /// No events yet, of which those will be telling that hold one of the words.
    #[must_use]
    pub fn watched_for(words: Words) -> Self {
        Self { words, ..Self::default() }
    }

    /// All bytes so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many events are whole.
    #[must_use]
    pub fn len(&self) -> usize {
        self.whole.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// What an event is, where its first line begins, and what it says.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(Kind, usize, &[u8])> {
        self.whole.get(index).map(|event| (event.kind, event.begin, self.text(&event.text)))
    }

    /// Whether the data `[DONE]` came: what comes behind it is no event.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The chunks that the events hold, in order; None where one of them is no data.
    #[must_use]
    pub fn chunks(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let all_data = self.whole.iter().all(|event| event.kind == Kind::Data);
        let texts = self.whole.iter().map(|event| self.text(&event.text));
        all_data.then(|| texts.filter(|&text| text != DONE))
    }

    /// The places of telling events, of those that have become whole since it was asked last: those that are no data,
    /// or are `[DONE]`, or hold one of the words between quotes.
    pub fn telling(&mut self) -> Vec<usize> {
        let says = |place: &usize| {
            let Event { kind, text, .. } = &self.whole[*place];
            let text = self.text(text);
            *kind != Kind::Data || text == DONE || self.words.stand_in(text)
        };
        let places = (self.told..self.whole.len()).filter(says).collect();
        self.told = self.whole.len();
        places
    }

    /// The bytes of whole events that were not passed on yet, without these members of their data.
    ///
    /// `end` is where the bytes end that may be passed on: in place of where those of the whole events do.
    ///
    /// # Errors
    ///
    /// [`Halt::Memory`]: there is none for them, and nothing was passed on.
    pub fn pass(&mut self, members: Option<&Members>, end: Option<usize>) -> Result<Vec<u8>, Halt> {
        let (mut kept, mut index) = self.passed;
        let end = end.unwrap_or_else(|| self.pending.begin.unwrap_or(self.line)).clamp(kept, self.bytes.len());
        let mut passed = Vec::new();
        passed.try_reserve(end - kept)?;
        while let Some(event) = self.whole.get(index).filter(|event| event.begin < end) {
            index += 1;
            let Some(members) = members else { continue };
            let rest = match members.cut(self.text(&event.text)) {
                Ok(Cow::Owned(rest)) => rest,
                Ok(Cow::Borrowed(_)) | Err(Halt::Odd) => continue,
                Err(halt) => return Err(halt),
            };
            let places = match &event.text {
                Text::Line(place) => std::slice::from_ref(place),
                Text::Lines(_, places) => places,
            };
            // All on the first line that says something (`data` alone has no place for it): a line break in JSON says
            // as much as a space.
            let places = &places[places.iter().position(|place| !place.is_empty()).unwrap_or(0)..];
            let rest = rest.into_iter().map(|b| if b == b'\n' { b' ' } else { b });
            passed.extend_from_slice(&self.bytes[kept..places[0].start]);
            passed.extend(rest);
            for ends in places.windows(2) {
                passed.extend_from_slice(&self.bytes[ends[0].end..ends[1].start]);
            }
            kept = places[places.len() - 1].end;
        }
        passed.extend_from_slice(&self.bytes[kept..end]);
        self.passed = (end, index);
        Ok(passed)
    }

    /// Takes the next bytes, cut anywhere.
    ///
    /// # Errors
    ///
    /// [`Halt::Memory`]: there is none for them, and nothing was taken.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        self.bytes.try_reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        while let Some(place) = memchr2(b'\r', b'\n', &self.bytes[self.seen..]) {
            let end = self.seen + place;
            let is_rest = self.after_cr && end == self.line && self.bytes[end] == b'\n';
            if !is_rest {
                self.take(self.line..end)?;
            }
            self.after_cr = self.bytes[end] == b'\r';
            self.line = end + 1;
            self.seen = self.line;
        }
        self.seen = self.bytes.len();
        Ok(())
    }

    /// Takes what has come of a line and an event as all of them.
    ///
    /// # Errors
    ///
    /// [`Halt::Memory`]: there is none for the event.
    pub fn end(&mut self) -> Result<(), Halt> {
        self.take(self.line..self.bytes.len())?;
        self.line = self.bytes.len();
        self.dispatch()
    }

    /// Takes a line.
    fn take(&mut self, line: Range<usize>) -> Result<(), Halt> {
        if self.is_done {
            return Ok(());
        }
        let begin = line.start;
        let line = self.inner(line);
        let text = &self.bytes[line.clone()];
        let colon = text.iter().position(|&b| b == b':');
        let value = || self.inner(line.start + colon.map_or(text.len(), |colon| colon + 1)..line.end);
        match &text[..colon.unwrap_or(text.len())] {
            b"" if colon.is_none() => return self.dispatch(),
            _ if text[0] == b'{' => return self.data(begin, line),
            b"data" => return self.data(begin, value()),
            b"event" => self.pending.is_error = self.bytes[value()] == *b"error",
            b"error" => (self.pending.is_error, self.pending.words) = (true, Some(value())),
            b"" => self.pending.comment = Some(value()),
            b"id" | b"retry" => {}
            _ => {
                self.dispatch()?;
                return self.push(Kind::Unknown, begin, Text::Line(line));
            }
        }
        self.pending.begin.get_or_insert(begin);
        Ok(())
    }

    /// Takes a line of data; `begin` is where it begins with its name.
    fn data(&mut self, begin: usize, line: Range<usize>) -> Result<(), Halt> {
        let text = &self.bytes[line.clone()];
        // In no JSON text does a bracket that opens follow one that closes.
        let is_another = |data: &Text| trim(self.text(data)).ends_with(b"}") && matches!(text, [b'{' | b'[', ..]);
        if self.pending.data.as_ref().is_some_and(is_another) {
            self.dispatch()?;
        }
        let text = &self.bytes[line.clone()];
        self.pending.begin.get_or_insert(begin);
        let is_last = text == DONE && self.pending.data.is_none();
        let before = self.pending.data.take();
        self.pending.data = Some(match before {
            None => Text::Line(line),
            Some(before) => {
                let (mut lines, mut places) = match before {
                    Text::Line(first) => (copied(&self.bytes[first.clone()])?, vec![first]),
                    Text::Lines(lines, places) => (lines, places),
                };
                lines.try_reserve(text.len() + 1)?;
                places.try_reserve(1)?;
                lines.push(b'\n');
                lines.extend_from_slice(text);
                places.push(line);
                Text::Lines(lines, places)
            }
        });
        if !is_last {
            return Ok(());
        }
        self.is_done = !self.pending.is_error;
        self.dispatch()
    }

    /// Ends the event, if it says anything.
    fn dispatch(&mut self) -> Result<(), Halt> {
        let Pending { begin, is_error, data, words, comment } = std::mem::take(&mut self.pending);
        let (kind, text) = match is_error {
            true => (Kind::Error, words.map(Text::Line).or(data).or(comment.map(Text::Line))),
            false => (Kind::Data, data),
        };
        match (begin, text) {
            (Some(begin), Some(text)) if !trim(self.text(&text)).is_empty() => self.push(kind, begin, text),
            _ => Ok(()),
        }
    }

    fn push(&mut self, kind: Kind, begin: usize, text: Text) -> Result<(), Halt> {
        self.whole.try_reserve(1)?;
        self.whole.push(Event { kind, begin, text });
        Ok(())
    }

    fn text<'a>(&'a self, text: &'a Text) -> &'a [u8] {
        match text {
            Text::Line(place) => &self.bytes[place.clone()],
            Text::Lines(lines, _) => lines,
        }
    }

    /// The place without what is nothing at its ends.
    fn inner(&self, place: Range<usize>) -> Range<usize> {
        let whole = &self.bytes[place.clone()];
        let inner = trim(whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole));
        let start = place.end - whole.len() + inner.as_ptr().addr() - whole.as_ptr().addr();
        start..start + inner.len()
    }
}

fn copied(text: &[u8]) -> Result<Vec<u8>, Halt> {
    let mut copy = Vec::new();
    copy.try_reserve(text.len())?;
    copy.extend_from_slice(text);
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Found = Vec<(Kind, usize, String)>;

    fn events(packets: &[&[u8]]) -> Events {
        let mut events = Events::default();
        for packet in packets {
            events.feed(packet).unwrap();
        }
        events.end().unwrap();
        events
    }

    fn found(events: &Events) -> Found {
        (0..events.len())
            .filter_map(|index| events.get(index))
            .map(|(kind, begin, text)| (kind, begin, String::from_utf8_lossy(text).into_owned()))
            .collect()
    }

    fn data(text: &str) -> Vec<String> {
        found(&events(&[text.as_bytes()])).into_iter().map(|(_, _, text)| text).collect()
    }

    #[test]
    fn lines_end_in_any_way() {
        for end in ["\n", "\r\n", "\r"] {
            assert_eq!(data(&["data: a", "data:b", "", ": c", "data:  d ", "", ""].join(end)), ["a\nb", "d"]);
        }
    }

    #[test]
    fn objects_on_lines_of_their_own_are_events() {
        assert_eq!(data("data: {\"a\":{}}\n{}\ndata: [1]\ndata: ,{}\n"), ["{\"a\":{}}", "{}", "[1]\n,{}"]);
        assert_eq!(data("data: {}\ndata: x\ndata: {\ndata: {}"), ["{}\nx\n{\n{}"]);
    }

    #[test]
    fn nothing_comes_behind_done() {
        let events = events(&[b"data: {}\ndata: [DONE]\ndata: {}\n<html>"]);
        assert!(events.is_done() && !events.is_empty());
        assert_eq!(found(&events).len(), 2);
        assert_eq!(events.chunks().unwrap().collect::<Vec<_>>(), [b"{}"]);
        assert_eq!(events.bytes().len(), 37);
    }

    #[test]
    fn what_is_no_data_gives_no_chunks() {
        for text in ["event: error\ndata: x\n\n", "error: x\n\n", "what\n"] {
            assert!(events(&[text.as_bytes()]).chunks().is_none());
        }
        assert_eq!(found(&events(&[b"data: a\nwhat\n"]))[1], (Kind::Unknown, 8, "what".to_owned()));
        assert_eq!(found(&events(&[b"\n: b\nevent: error\n"])), [(Kind::Error, 1, "b".to_owned())]);
    }

    #[test]
    fn what_an_event_is_and_says() {
        let one = |text: &str| {
            let events = events(&[text.as_bytes()]);
            let [(kind, _, text)] = &found(&events)[..] else { panic!("one event is there") };
            (*kind, text.clone(), events.is_done())
        };
        for (stream, kind, text, is_done) in [
            ("event: error\nevent: x\ndata: {}\n\n", Kind::Data, "{}", false), // the last name counts
            ("event: x\nevent: error\ndata: {}\n\n", Kind::Error, "{}", false),
            ("error: x\ndata: y\n\n", Kind::Error, "x", false), // its own words before its data
            ("data: y\nerror: x\n\n", Kind::Error, "x", false),
            (": z\nevent: error\ndata: y\n\n", Kind::Error, "y", false),
            ("event: error\ndata: [DONE]\n\n", Kind::Error, "[DONE]", false),
            ("data: x\ndata: [DONE]\n\n", Kind::Data, "x\n[DONE]", false),
            ("data: [DONE]\ndata: x\n\n", Kind::Data, "[DONE]", true),
            (" retry: 1\nid: 2\ndata: x\n\n", Kind::Data, "x", false),
        ] {
            assert_eq!(one(stream), (kind, text.to_owned(), is_done), "{stream:?}");
        }
    }

    #[test]
    fn each_telling_event_is_told_once() {
        let mut events = Events::watched_for(Words::new(vec![b"error".to_vec()]).unwrap());
        events.feed(b"data: {\"a\":\"\\\"error\\\"\"}\n\ndata: {\"error\":1}\n\nwhat\ndata: {\"error\"").unwrap();
        assert_eq!((events.telling(), events.telling()), (vec![1, 2], vec![]));
        events.feed(b":1}\n\nerror: x\n\ndata: {}\n\ndata: [DONE]\n").unwrap();
        assert_eq!((events.telling(), events.telling()), (vec![3, 4, 6], vec![]));
    }

    fn hiding(stream: &str, name: &str) -> (String, bool) {
        let members = Members(vec![(name.as_bytes().to_vec(), None)]);
        let mut hidden = Vec::new();
        let mut events = Events::default();
        for packet in stream.as_bytes().chunks(7) {
            events.feed(packet).unwrap();
            hidden.extend(events.pass(Some(&members), None).unwrap());
        }
        let before = hidden.len();
        events.end().unwrap();
        hidden.extend(events.pass(Some(&members), Some(stream.len())).unwrap());
        (String::from_utf8(hidden).unwrap(), before == stream.len())
    }

    #[test]
    fn events_are_passed_on_without_members_of_their_data() {
        for (stream, rest) in [
            (
                ": {\"ids\":0}\n\ndata: {\"ids\":[1],\"t\":\"\u{2028}\"}\r\n\r\nid: 7\ndata:{\"t\":1,\"ids\":2}\n\n",
                None,
            ),
            ("\u{feff}data:\t{\"ids\":1} \r\rdata: {\"ids\":2}\r\r", Some("\u{feff}data:\t{} \r\rdata: {}\r\r")),
            ("  data: {\"ids\":1}\n\n{\"ids\":2}\n{\"ids\":3}\n\n", Some("  data: {}\n\n{}\n{}\n\n")),
            (
                "data: {\"ids\":[1\nid: 3\ndata: ],\"t\":\ndata:2}\n\ndata: [DONE]\n\n",
                Some("data: {\"t\": 2}\nid: 3\ndata: \ndata:\n\ndata: [DONE]\n\n"),
            ),
            (
                "event: error\ndata: {\"ids\":1}\n\nwhat\ndata: {ids\n\n",
                Some("event: error\ndata: {}\n\nwhat\ndata: {ids\n\n"),
            ),
        ] {
            let rest = rest.map_or_else(|| stream.replace("\"ids\":[1],", "").replace(",\"ids\":2", ""), str::to_owned);
            assert_eq!(hiding(stream, "ids").0, rest);
            assert_eq!(hiding(&rest, "ids"), (rest.clone(), true), "nothing waits, and nothing else is cut");
        }
    }

    #[test]
    fn an_event_that_begins_at_the_end_waits() {
        let members = Members(vec![(b"ids".to_vec(), None)]);
        let mut events = Events::default();
        events.feed(b"data: {\"ids\":1}\n\ndata: {\"ids\":2,\"t\":3}\n\n").unwrap();
        let begin = events.get(1).unwrap().1;
        assert_eq!(events.pass(Some(&members), Some(begin)).unwrap(), b"data: {}\n\n");
        assert_eq!(events.pass(Some(&members), Some(begin)).unwrap(), b"");
        assert_eq!(events.pass(Some(&members), None).unwrap(), b"data: {\"t\":3}\n\n");
    }

    #[test]
    fn what_is_left_of_an_event_stands_where_it_said_something() {
        let (rest, _) = hiding("data\ndata:\n{\"ids\":1}\n\ndata\ndata: {\"ids\":1,\ndata: \"t\":2}\n\n", "ids");
        assert_eq!(rest, "data\ndata:\n  {}\n\ndata\ndata:  {\"t\":2}\ndata: \n\n");
    }

    #[test]
    fn lines_of_data_that_say_nothing_are_no_event() {
        assert!(events(&[b"data\ndata:\ndata: \n\nevent: error\ndata\ndata\n\n"]).is_empty());
        let (rest, _) = hiding("data: {\"ids\":1,\"t\":\n{}}\ndata:\ndata:\n\n", "ids");
        assert_eq!(rest, "data: {\"t\": {}}  \n\ndata:\ndata:\n\n");
        assert_eq!(events(&[rest.as_bytes()]).len(), 1);
    }

    #[test]
    fn an_object_below_another_is_an_event_also_where_empty_lines_of_data_stand_between() {
        let stream = "data: {\"ids\":[1,\ndata: 2]}\n{\"t\":3}\n\n";
        let (rest, _) = hiding(stream, "ids");
        assert_eq!(rest, "data: {}\ndata: \n{\"t\":3}\n\n");
        let texts =
            |stream: &str| found(&events(&[stream.as_bytes()])).into_iter().map(|(.., text)| text).collect::<Vec<_>>();
        assert_eq!(texts(stream), ["{\"ids\":[1,\n2]}", "{\"t\":3}"]);
        assert_eq!(texts(&rest), ["{}\n", "{\"t\":3}"]);
    }

    #[test]
    fn only_whole_events_are_passed_on() {
        let mut events = Events::default();
        let mut pass = |packet: &str| {
            events.feed(packet.as_bytes()).unwrap();
            String::from_utf8(events.pass(None, None).unwrap()).unwrap()
        };
        assert_eq!(pass(": ping\n\nda"), ": ping\n\n");
        assert_eq!(pass("ta: {}\n"), "");
        assert_eq!(pass("{}\n"), "data: {}\n");
        assert_eq!(pass("\r"), "{}\n\r");
        assert_eq!(pass("\nevent: x\n"), "\n");
        assert_eq!(pass("data: {}\n\n"), "event: x\ndata: {}\n\n");
        events.feed(b"data: {}\n\ndata: []\n\n").unwrap();
        let begin = events.get(4).unwrap().1;
        assert_eq!(events.pass(None, Some(begin)).unwrap(), b"data: {}\n\n");
        assert_eq!(events.pass(None, Some(begin)).unwrap(), b"");
        assert_eq!(events.pass(None, Some(0)).unwrap(), b"");
        assert_eq!(events.pass(None, Some(99)).unwrap(), b"data: []\n\n");
    }

    proptest! {
        #[test]
        fn packets_may_be_cut_anywhere(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("\r"), Just("\n"), Just("data:"), Just("{"), Just("}"), Just("["), Just(" "), Just("event: error"),
                    Just("error:"), Just(":"), Just("[DONE]"), Just("\u{feff}"), Just("x"), Just("data: {}\n"), Just("\n\n"),
                ],
                0..20,
            ),
            places in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let text = parts.concat().into_bytes();
            let mut places: Vec<_> = places.iter().map(|place| place.index(text.len() + 1)).collect();
            places.extend([0, text.len()]);
            places.sort_unstable();
            let packets: Vec<_> = places.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
            let (whole, cut) = (events(&[&text]), events(&packets));
            prop_assert_eq!(found(&whole), found(&cut));
            prop_assert_eq!((whole.bytes(), whole.is_done()), (cut.bytes(), cut.is_done()));
        }
    }
}
