//! The chunks of a stream: those that are alike but for what comes in pieces become one, as text, before they are parsed.
//!
//! What a stream's reader does with a chunk it says as [`Rules`]. By them one chunk is made of several that it would read
//! to the same result; whatever the rules do not surely cover stays a chunk of its own.

mod growth;
mod outline;
mod rules;
mod walk;

pub use rules::{Rule, Rules};

use super::halt::{Halt, Reading, room};
use growth::Step;
use outline::{Outline, Piece};

/// Chunks that become one.
struct Run<'a> {
    /// The text that stands for them, but for what has been joined; where all is said again the last one, else the first.
    text: &'a [u8],
    pieces: Vec<Piece>,
    /// What has been joined for each piece, once there is a second chunk.
    joined: Vec<Vec<u8>>,
    /// How the first of them goes on with the chunk before it.
    step: Option<Step>,
    /// The last of them.
    last: (&'a [u8], Outline),
}

/// Puts together what is alike; gives a JSON array of what it then is.
///
/// # Errors
///
/// [`Halt::Odd`] where a chunk is no object that is surely well-formed, [`Halt::Memory`] where there is no memory.
pub fn join_chunks<'a>(chunks: impl Iterator<Item = &'a [u8]>, rules: &Rules) -> Result<Vec<u8>, Halt> {
    let mut out = vec![b'['];
    let mut run: Option<Run<'a>> = None;
    let mut outline = Outline::default();
    for text in chunks {
        let before = run.as_ref().map(|run| (run.last.0, &run.last.1));
        outline.read(text, rules, before).ok_or(Halt::Odd)?;
        let step = before.and_then(|(_, before)| before.step(&outline));
        match &mut run {
            Some(run) if run.takes(step) => run.add(text, &mut outline)?,
            _ => {
                let next = Run::new(text, std::mem::take(&mut outline), step);
                if let Some(done) = run.replace(next) {
                    done.push_to(&mut out)?;
                }
            }
        }
    }
    if let Some(done) = run {
        done.push_to(&mut out)?;
    }
    push(&mut out, b"]")?;
    Ok(out)
}

impl<'a> Run<'a> {
    fn new(text: &'a [u8], outline: Outline, step: Option<Step>) -> Self {
        Self { text, pieces: outline.pieces.clone(), joined: Vec::new(), step, last: (text, outline) }
    }

    /// Whether a chunk with this step belongs to them. What grows is measured by a chunk that stays: that before them.
    fn takes(&self, step: Option<Step>) -> bool {
        step == Some(Step::Alike) || step.is_some() && step == self.step
    }

    /// Takes the next one.
    fn add(&mut self, text: &'a [u8], outline: &mut Outline) -> Reading<()> {
        if self.step == Some(Step::Again) {
            self.text = text; // nothing is joined to it
        } else {
            self.join(text, &outline.pieces)?;
        }
        self.last.0 = text;
        std::mem::swap(&mut self.last.1, outline);
        Ok(())
    }

    fn join(&mut self, text: &[u8], pieces: &[Piece]) -> Reading<()> {
        if self.joined.is_empty() {
            self.joined = room(self.pieces.len())?;
            for piece in &self.pieces {
                let mut first = Vec::new();
                push(&mut first, &self.text[piece.place()])?;
                self.joined.push(first);
            }
        }
        for (joined, piece) in self.joined.iter_mut().zip(pieces) {
            let text = &text[piece.place()];
            match piece {
                Piece::Text(_) => {}
                // One that is empty follows empty ones alone.
                Piece::List(_) | Piece::Entries(_) if super::trim(text).is_empty() => {}
                Piece::List(_) | Piece::Entries(_) => push(joined, b",")?,
                Piece::Last(_) => joined.clear(),
            }
            push(joined, text)?;
        }
        Ok(())
    }

    /// Writes the one that they have become.
    fn push_to(&self, out: &mut Vec<u8>) -> Reading<()> {
        if out.len() > 1 {
            push(out, b",")?;
        }
        let mut kept = 0;
        for (joined, piece) in self.joined.iter().zip(&self.pieces) {
            let place = piece.place();
            push(out, &self.text[kept..place.start])?;
            push(out, joined)?;
            kept = place.end;
        }
        push(out, &self.text[kept..])
    }
}

fn push(out: &mut Vec<u8>, text: &[u8]) -> Reading<()> {
    out.try_reserve(text.len())?;
    out.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let key = |key: &str, rule| (key.as_bytes().to_vec(), rule);
        let inner =
            Rules { keys: vec![key("t", Rule::Text), key("l", Rule::List), key("m", Rule::List)], other: Rule::Same };
        let keys = vec![
            key("t", Rule::Text),
            key("l", Rule::List),
            key("e", Rule::Entries),
            key("v", Rule::Last),
            key("n", Rule::Never),
            key("o", Rule::Object(Box::new(inner.clone()))),
            key("s", Rule::Single(Box::new(inner))),
            key("grown", Rule::Grows),
            key("more", Rule::Grows),
            key("told", Rule::Told),
            key("count", Rule::Count),
        ];
        Rules { keys, other: Rule::Same }
    }

    fn joined(chunks: &[&str]) -> Option<String> {
        let text = join_chunks(chunks.iter().map(|text| text.as_bytes()), &rules()).ok()?;
        Some(String::from_utf8(text).unwrap())
    }

    #[test]
    fn pieces_are_joined_as_they_are_written() {
        let chunks = [
            r#"{"t" : "a\n", "l":[ 1 ], "v":1, "o":{"t":"x"},"s":[{"m":["token_id:1"],"x":[1]}], "e":[{"a":1}]}"#,
            r#"{"t":"é","l":[2],"v":{"w":[]},"o":{"t":"\ud83d\ude00"},"s":[{"m":["token_id:2"],"x":[1]}],"e":[{"a":2}]}"#,
        ];
        assert_eq!(
            joined(&chunks).unwrap(),
            r#"[{"t" : "a\né", "l":[ 1 ,2], "v":{"w":[]}, "o":{"t":"x\ud83d\ude00"},"#.to_owned()
                + r#""s":[{"m":["token_id:1","token_id:2"],"x":[1]}], "e":[{"a":1},{"a":2}]}]"#
        );
        assert_eq!(joined(&[]).unwrap(), "[]");
        assert_eq!(joined(&[r#"{"l":[],"e":[ ]}"#; 3]).unwrap(), r#"[{"l":[],"e":[   ]}]"#);
        assert_eq!(joined(&["{}", " {} ", "{}"]).unwrap(), "[{}]");
    }

    #[test]
    fn pieces_may_be_spaced_otherwise_than_before() {
        let chunks =
            [r#"{"t":"a","l":[1],"v":1}"#, r#"{"t": "b","l": [2 ],"v": 2}"#, r#"{"t":  "c", "l":[3],"v":3 } "#];
        assert_eq!(joined(&chunks).unwrap(), r#"[{"t":"abc","l":[1,2 ,3],"v":3}]"#);
    }

    #[test]
    fn what_is_spelled_alike_may_still_differ() {
        let chunk = r#"{"t":"a","l":["x"],"e":[{"a":1}],"v":1}"#;
        for (from, to) in [
            ("\"x\"", "1"),
            ("\"x\"", "\"token_id:1\""),
            ("\"x\"", "\"x\",1"),
            ("[\"x\"]", "null"),
            ("[\"x\"]", "[]"),
            ("{\"a\":1}", "{\"b\":1}"),
            ("{\"a\":1}", "{\"a\":null}"),
            ("{\"a\":1}", "1"),
            ("\"a\",", "null,"),
            ("\"v\":1", "\"v\":null"),
            ("\"v\":1", "\"v\":[1]"),
            ("\"v\":1", "\"v\":1,\"w\":1"),
        ] {
            let other = chunk.replacen(from, to, 1);
            assert_eq!(joined(&[chunk, &other, chunk]).unwrap(), format!("[{chunk},{other},{chunk}]"));
        }
        for odd in [r#"{"t":"a","l":["x"],"e":[{"a":1}],"v":1}}"#, r#"{"t":"a","l":["x"],"e":[{"a":1}],"v":01}"#] {
            assert_eq!(joined(&[chunk, odd]), None);
        }
        assert_eq!(joined(&[r#"{"v":1}"#, "1}"]), None);
    }

    #[test]
    fn what_differs_stays_apart() {
        for (a, b) in [
            (r#"{"x":1}"#, r#"{"x":2}"#),
            (r#"{"x":1}"#, r#"{"x":1,"v":1}"#),
            (r#"{"t":"a"}"#, r#"{"t":null}"#),
            (r#"{"t":["a"]}"#, r#"{"t":["a"]}"#),
            (r#"{"l":[1]}"#, r#"{"l":["a"]}"#),
            (r#"{"l":[1,"a"]}"#, r#"{"l":[1,2]}"#),
            (r#"{"l":["token_id:1","a"]}"#, r#"{"l":["token_id:1","token_id:2"]}"#),
            (r#"{"e":[{"a":1},{"b":1}]}"#, r#"{"e":[{"a":1},{"a":1}]}"#),
            (r#"{"e":[{"a":1},1]}"#, r#"{"e":[{"a":1},{"a":1}]}"#),
            (r#"{"e":[{"a":1}]}"#, r#"{"e":[{"a":null}]}"#),
            (r#"{"v":[1]}"#, r#"{"v":[1]}"#),
            (r#"{"v":[],"t":"a"}"#, r#"{"v":1,"t":"b"}"#),
            (r#"{"v":1,"t":"a"}"#, r#"{"v":[],"t":"b"}"#),
            (r#"{"n":1}"#, r#"{"n":1}"#),
            (r#"{"s":[{},{}]}"#, r#"{"s":[{},{}]}"#),
            (r#"{"l":[1],"o":{"l":[1]}}"#, r#"{"l":[1],"o":{"l":[1]}}"#),
        ] {
            assert_eq!(joined(&[a, b]).unwrap(), format!("[{a},{b}]"));
        }
        for alone in [r#"{"n":1}"#, r#"{"v":[1]}"#, r#"{"s":[{},{}]}"#, r#"{"t":"a","n":1}"#] {
            assert_eq!(joined(&[alone; 4]).unwrap(), format!("[{alone},{alone},{alone},{alone}]"));
        }
    }

    #[test]
    fn chunks_of_another_kind_stand_alone() {
        let key = |key: &str, rule| (key.as_bytes().to_vec(), rule);
        let kinds = vec![br#""a""#.to_vec(), br#""b""#.to_vec()];
        let keys =
            vec![key("k", Rule::OneOf(kinds)), key("v", Rule::Last), key("e", Rule::Entries), key("f", Rule::Entries)];
        let rules = Rules { keys, other: Rule::Same };
        let joined = |chunks: &[&str]| {
            let text = join_chunks(chunks.iter().map(|text| text.as_bytes()), &rules).unwrap();
            String::from_utf8(text).unwrap()
        };
        for alone in [
            r#"{"v":1}"#,
            r#"{"k":null,"v":1}"#,
            r#"{"k":"c","v":1}"#,
            r#"{"k":1,"v":1}"#,
            r#"{"k":["a"],"v":1}"#,
            r#"{"k":"a","e":[{"x":1}],"f":[{"x":1}]}"#,
        ] {
            assert_eq!(joined(&[alone, alone]), format!("[{alone},{alone}]"));
        }
        for kind in ["a", "b"] {
            let part = |value: usize| format!(r#"{{"k":"{kind}","v":{value},"e":[{{"x":1}}],"f":null}}"#);
            let both = part(2).replace(r#"{"x":1}"#, r#"{"x":1},{"x":1}"#);
            assert_eq!(joined(&[&part(1), &part(2)]), format!("[{both}]"));
        }
        let (a, b) = (r#"{"k":"a","v":1}"#, r#"{"k":"b","v":1}"#);
        assert_eq!(joined(&[a, b]), format!("[{a},{b}]"));
    }

    #[test]
    fn words_that_might_name_an_id_stand_alone() {
        let part = |word: &str| format!(r#"{{"l":["{word}"]}}"#);
        for odd in [
            "token_id:",
            "token_id:1x",
            "token_id:-1",
            "token_id:1234567890",
            r"token_id:\u0031",
            r"\u0074oken_id:1",
            r"t\u006fken_id:1",
        ] {
            let odd = part(odd);
            assert_eq!(joined(&[&odd, &odd]).unwrap(), format!("[{odd},{odd}]"));
        }
        for word in ["token_id:123456789", "token_id:0", "token", r"\u0075", r"x\u0074", "Token_id:"] {
            let plain = part(word);
            assert_eq!(joined(&[&plain, &plain]).unwrap(), format!(r#"[{{"l":["{word}","{word}"]}}]"#));
        }
    }

    #[test]
    fn lists_of_a_chunk_that_are_as_long_as_each_other_stay_so() {
        let part = |l: &str, e: &str| format!(r#"{{"l":[{l}],"e":[{e}]}}"#);
        let (one, two) = (r#"{"a":1}"#, r#"{"a":1},{"a":2}"#);
        let apart = |a: &str, b: &str| assert_eq!(joined(&[a, b]).unwrap(), format!("[{a},{b}]"));
        apart(&part("1", one), &part("1,2", one));
        apart(&part("1,2", one), &part("1", two));
        apart(&part("1", one), &part("1", two));
        apart(&part("1,2", one), &part("1", one));
        let both = part("1,1,2", &format!("{one},{two}"));
        assert_eq!(joined(&[&part("1", one), &part("1,2", two)]).unwrap(), format!("[{both}]"));
        let uneven = part("1,2,1,2", &format!("{one},{one}"));
        assert_eq!(joined(&[&part("1,2", one), &part("1,2", one)]).unwrap(), format!("[{uneven}]"));
    }

    #[test]
    fn what_grows_beside_what_comes_in_pieces_stays_apart() {
        let grown = |count: usize, more: &str| {
            let ids = (0..count).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
            format!(r#"{{"count":{count},"grown":[{ids}],{more}}}"#)
        };
        for more in [r#""t":"a""#, r#""l":[1]"#, r#""e":[{"a":1}]"#] {
            let chunks: Vec<_> = (1..4).map(|count| grown(count, more)).collect();
            let texts: Vec<_> = chunks.iter().map(String::as_str).collect();
            assert_eq!(joined(&texts).unwrap(), format!("[{}]", chunks.join(",")));
            let pieces: Vec<_> = (1..4).map(|count| format!(r#"{{"count":{count},"grown":[7],{more}}}"#)).collect();
            let texts: Vec<_> = pieces.iter().map(String::as_str).collect();
            assert_eq!(joined(&texts).unwrap(), format!("[{}]", pieces.join(",")));
        }
        let chunks: Vec<_> = (1..4).map(|count| grown(count, r#""v":1"#)).collect();
        let texts: Vec<_> = chunks.iter().map(String::as_str).collect();
        assert_eq!(joined(&texts).unwrap(), format!("[{},{}]", chunks[0], chunks[2]));
    }

    #[test]
    fn what_comes_again_counts_once() {
        let again = |count: usize| {
            let ids = (0..count).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
            format!(r#"{{"told":"{}","count":{count},"grown":[{ids}]}}"#, "x".repeat(count))
        };
        let chunks: Vec<_> = (1..50).map(again).collect();
        let texts: Vec<_> = chunks.iter().map(String::as_str).collect();
        assert_eq!(joined(&texts).unwrap(), format!("[{},{}]", again(1), again(49)));
    }

    #[test]
    fn lists_that_grow_are_as_long_as_each_other() {
        let part =
            |count: usize, ids: &str, more: &str| format!(r#"{{"count":{count},"grown":[{ids}],"more":[{more}]}}"#);
        let apart = [part(1, "0", "5,5"), part(2, "0,1", "5,5,6"), part(3, "0,1,2", "5,5,6,7")];
        let longer = [part(1, "0,0", "5"), part(2, "0,0,1", "5,6"), part(3, "0,0,1,2", "5,6,7")];
        let alike = [part(1, "0", "5"), part(2, "0,1", "5,6"), part(3, "0,1,2", "5,6,7")];
        let texts = |chunks: &[String]| joined(&chunks.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        for apart in [apart, longer] {
            assert_eq!(texts(&apart), format!("[{}]", apart.join(",")));
        }
        assert_eq!(texts(&alike), format!("[{},{}]", alike[0], alike[2]));
    }

    #[test]
    fn what_does_not_come_again_stays() {
        let part = |count: usize, ids: &str| format!(r#"{{"count":{count},"grown":[{ids}]}}"#);
        for chunks in [
            [part(1, "1"), part(2, "5,1"), part(3, "5,1,2")],
            [part(1, "1"), part(2, "12,1"), part(3, "12,1,2")],
            [part(1, "1"), part(1, "1"), part(1, "2")],
            [part(1, "1"), part(2, "1"), part(2, "1,1")],
        ] {
            let texts: Vec<_> = chunks.iter().map(String::as_str).collect();
            assert_eq!(joined(&texts).unwrap(), format!("[{}]", chunks.join(",")));
        }
    }

    #[test]
    fn what_comes_in_pieces_is_joined_behind_the_first() {
        let piece = |count: usize| format!(r#"{{"told":"x","count":{count},"grown":[[{count}]]}}"#);
        let chunks: Vec<_> = (1..5).map(piece).collect();
        let texts: Vec<_> = chunks.iter().map(String::as_str).collect();
        let rest = r#"{"told":"xxx","count":4,"grown":[[2],[3],[4]]}"#;
        assert_eq!(joined(&texts).unwrap(), format!("[{},{rest}]", piece(1)));
    }

    #[test]
    fn deep_nesting_is_left_to_another_reader() {
        let nested = |depth: usize| format!(r#"{{"v":{}"x"{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert_eq!(joined(&[&nested(63)]).unwrap(), format!("[{}]", nested(63)));
        for depth in [64, 100_000] {
            assert_eq!(joined(&[&nested(depth)]), None);
        }
    }

    #[test]
    fn odd_chunks_are_left_to_another_reader() {
        for text in
            ["", "[]", "{", "{}}", "{\"a\":1", "{\"n\":tru}", "{\"v\":\"\u{1}\"}", "{\"grown\":[1,]}", "{\"count\":01}"]
        {
            assert_eq!(joined(&["{}", text]), None, "{text:?}");
        }
        let latin = join_chunks([&b"{\"v\":\"\xff\"}"[..]].into_iter(), &rules());
        assert_eq!(latin, Err(Halt::Odd));
    }
}
