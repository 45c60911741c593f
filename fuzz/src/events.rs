//! The events of a stream, from copies of its lines.

use tokenrecords::sse::Kind;

#[derive(Default)]
struct Pending {
    is_error: bool,
    data: Option<Vec<u8>>,
    words: Option<Vec<u8>>,
    comment: Option<Vec<u8>>,
}

/// What the events of a whole stream are, and say.
pub fn plain_events(stream: &[u8]) -> Vec<(Kind, Vec<u8>)> {
    let mut events = Vec::new();
    let mut pending = Pending::default();
    for line in lines(stream).iter().map(|line| trimmed(line)) {
        let (name, value) = match line.iter().position(|&b| b == b':') {
            Some(colon) => (&line[..colon], trimmed(&line[colon + 1..])),
            None => (line, trimmed(&[])),
        };
        let data = if line.starts_with(b"{") { Some(line) } else { (name == b"data").then_some(value) };
        match name {
            _ if data.is_some() => {
                let data = data.unwrap_or_default();
                let ends = pending.data.as_ref().is_some_and(|before| spaceless(before).ends_with(b"}"));
                if ends && matches!(data, [b'{' | b'[', ..]) {
                    dispatch(&mut pending, &mut events);
                }
                let is_first = pending.data.is_none();
                let before = pending.data.take().map_or_else(Vec::new, |before| [&before[..], b"\n"].concat());
                pending.data = Some([&before[..], data].concat());
                if is_first && data == b"[DONE]" {
                    let is_done = !pending.is_error;
                    dispatch(&mut pending, &mut events);
                    if is_done {
                        return events;
                    }
                }
            }
            b"" if line.is_empty() => dispatch(&mut pending, &mut events),
            b"" => pending.comment = Some(value.to_vec()),
            b"event" => pending.is_error = value == b"error",
            b"error" => (pending.is_error, pending.words) = (true, Some(value.to_vec())),
            b"id" | b"retry" => {}
            _ => {
                dispatch(&mut pending, &mut events);
                events.push((Kind::Unknown, line.to_vec()));
            }
        }
    }
    dispatch(&mut pending, &mut events);
    events
}

fn dispatch(pending: &mut Pending, events: &mut Vec<(Kind, Vec<u8>)>) {
    let Pending { is_error, data, words, comment } = std::mem::take(pending);
    let (kind, text) = if is_error { (Kind::Error, words.or(data).or(comment)) } else { (Kind::Data, data) };
    events.extend(text.filter(|text| !spaceless(text).is_empty()).map(|text| (kind, text)));
}

/// The lines, whichever of the three ways they end in.
fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut lines, mut line, mut before) = (Vec::new(), Vec::new(), 0);
    for &byte in stream {
        match byte {
            b'\n' if before == b'\r' => {}
            b'\r' | b'\n' => lines.push(std::mem::take(&mut line)),
            _ => line.push(byte),
        }
        before = byte;
    }
    lines.push(line);
    lines
}

/// The text without a byte order mark before it, and without white space at its ends.
fn trimmed(text: &[u8]) -> &[u8] {
    spaceless(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
}

/// The text without white space at its ends.
fn spaceless(text: &[u8]) -> &[u8] {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    let start = text.iter().position(|b| !is_space(b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !is_space(b)).map_or(start, |last| last + 1);
    &text[start..end]
}
