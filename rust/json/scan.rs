//! Finding the three big arrays in the text of one record.
//!
//! The rest of the record stays JSON text, which the caller gives to a real JSON reader. That reader also finds the
//! faults of the rest, so the walk here need only be right for valid JSON and may pass over other faults, as long as
//! they stay in the rest.

use super::array::{is_space, read_array};
use super::halt::{Halt, Reading, room};
use super::ids::{Ids, read_ids};
use super::log_probs::LogProb;
use super::skip::{expect, skip_space, skip_string};

/// A record's three arrays, apart from the rest of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned<F> {
    /// The array `prompt_token_ids`, if the record has it.
    pub prompt_token_ids: Option<Ids>,
    /// The array `generation_token_ids`, if the record has it.
    pub generation_token_ids: Option<Ids>,
    /// The array `generation_log_probs`, if the record has it.
    pub generation_log_probs: Option<Vec<F>>,
    /// The record's text with `[]` in place of each array that was read.
    ///
    /// So a required field that is there stays there, and one that is missing stays missing.
    pub rest: Vec<u8>,
}

/// Takes the three arrays out of a record.
///
/// A result promises nothing about the rest: where it is refused, so would be the whole line.
///
/// # Errors
///
/// [`Halt::Odd`] where the slow path must read the record, [`Halt::Memory`] where there is none for the arrays.
pub fn scan_record<F: LogProb>(line: &[u8]) -> Result<Scanned<F>, Halt> {
    let mut prompt_token_ids = None;
    let mut generation_token_ids = None;
    let mut generation_log_probs = None;
    let mut cuts = Cuts::default();

    let mut at = expect(line, 0, b'{').ok_or(Halt::Odd)?;
    loop {
        let (key, value) = member(line, at).ok_or(Halt::Odd)?;
        at = match key {
            b"prompt_token_ids" => cuts.take(line, value, &mut prompt_token_ids, read_ids)?,
            b"generation_token_ids" => cuts.take(line, value, &mut generation_token_ids, read_ids)?,
            b"generation_log_probs" => cuts.take(line, value, &mut generation_log_probs, read_array)?,
            // Written with an escape, the key might be one of the three.
            key if key.contains(&b'\\') => return Err(Halt::Odd),
            _ => skip_value(line, value).ok_or(Halt::Odd)?,
        };
        at = skip_space(line, at);
        match line.get(at) {
            Some(b',') => at += 1,
            Some(b'}') => break,
            _ => return Err(Halt::Odd),
        }
    }
    if skip_space(line, at + 1) != line.len() {
        return Err(Halt::Odd);
    }
    Ok(Scanned { prompt_token_ids, generation_token_ids, generation_log_probs, rest: cuts.rest(line)? })
}

/// The key of the member of an object that begins at `at`, and where its value does.
fn member(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let key = expect(line, at, b'"')?;
    let key_end = skip_string(line, key)?;
    Some((&line[key..key_end - 1], skip_space(line, expect(line, key_end, b':')?)))
}

/// Reads the array whose `[` is at a place; gives it and where its `]` is.
type Read<T> = fn(&[u8], usize) -> Reading<(T, usize)>;

/// Where the insides of the arrays that were read are; in order.
#[derive(Default)]
struct Cuts(Vec<(usize, usize)>);

impl Cuts {
    /// Reads the array at `value` into `slot`; gives the place after it.
    ///
    /// Odd if `slot` is full: of two equal keys the slow path picks one.
    fn take<T>(&mut self, line: &[u8], value: usize, slot: &mut Option<T>, read: Read<T>) -> Reading<usize> {
        if slot.is_some() || line.get(value) != Some(&b'[') {
            return Err(Halt::Odd);
        }
        let (array, close) = read(line, value)?;
        *slot = Some(array);
        self.0.push((value + 1, close));
        Ok(close + 1)
    }

    /// The line without the insides.
    fn rest(&self, line: &[u8]) -> Reading<Vec<u8>> {
        let inside: usize = self.0.iter().map(|(start, end)| end - start).sum();
        let mut rest = room(line.len() - inside)?;
        let mut kept = 0;
        for &(start, end) in &self.0 {
            rest.extend_from_slice(&line[kept..start]);
            kept = end;
        }
        rest.extend_from_slice(&line[kept..]);
        Ok(rest)
    }
}

/// The place after the value that starts at `at`.
fn skip_value(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => skip_string(line, at + 1),
        b'{' | b'[' => skip_nested(line, at),
        _ => {
            let ends = |b: &u8| matches!(b, b',' | b'}') || is_space(*b);
            Some(at + line[at..].iter().position(ends)?)
        }
    }
}

/// The place after the object or array that starts at `at`.
///
/// Whether each closing bracket is of the right kind is for the rest's reader.
fn skip_nested(line: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let matters = |b: &u8| matches!(b, b'"' | b'{' | b'[' | b'}' | b']');
        at += line.get(at..)?.iter().position(matters)?;
        let byte = line[at];
        at += 1;
        match byte {
            b'"' => at = skip_string(line, at)?,
            b'{' | b'[' => depth += 1,
            _ if depth == 1 => return Some(at),
            _ => depth -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(line: &str) -> Option<Scanned<f64>> {
        scan_record(line.as_bytes()).ok()
    }

    fn rest(line: &str) -> Option<String> {
        scan(line).map(|found| String::from_utf8(found.rest).unwrap())
    }

    #[test]
    fn takes_the_arrays_out_in_any_order() {
        let found = scan(
            " {\"generation_log_probs\" : [-0.5, \"NaN\", 2],\t\"a\":[1,{\"prompt_token_ids\":[5]}] , \
             \"prompt_token_ids\":[ ],\"b\":\"\\\\\",\"generation_token_ids\":[7,8],\"c\":null}\r ",
        )
        .unwrap();
        assert_eq!(found.prompt_token_ids, Some(Ids::I32(vec![])));
        assert_eq!(found.generation_token_ids, Some(Ids::I32(vec![7, 8])));
        let log_probs = found.generation_log_probs.unwrap();
        assert_eq!(log_probs[0].to_bits(), (-0.5_f64).to_bits());
        assert!(log_probs[1].is_nan());
        assert_eq!(log_probs[2].to_bits(), 2_f64.to_bits());
        assert_eq!(
            String::from_utf8(found.rest).unwrap(),
            " {\"generation_log_probs\" : [],\t\"a\":[1,{\"prompt_token_ids\":[5]}] , \
             \"prompt_token_ids\":[],\"b\":\"\\\\\",\"generation_token_ids\":[],\"c\":null}\r "
        );
    }

    #[test]
    fn finds_the_ends_of_other_values() {
        for value in [
            "1",
            "-1.5e3",
            "true",
            "null",
            "NaN",
            "\"\"",
            "\"]}\"",
            "\"\\\"\"",
            "\"\\\\\"",
            "[]",
            "{}",
            "[[\"]\"],{\"a\":\"}\"}]",
            "{\"\\\"\":[\"\\\\\"]}",
            "[ 1 , 2 ]",
            "\"\u{1f600}\"",
        ] {
            for line in [
                format!("{{\"a\":{value},\"prompt_token_ids\":[1]}}"),
                format!("{{ \"a\" : {value} , \"prompt_token_ids\" : [1] }}"),
                format!("{{\"prompt_token_ids\":[1],\"a\":{value}}}"),
            ] {
                assert_eq!(rest(&line), Some(line.replace("[1]", "[]")), "{line}");
            }
        }
    }

    #[test]
    fn leaves_odd_records_to_the_slow_path() {
        for line in [
            "",
            " ",
            "{",
            "{}",
            "[]",
            "{\"a\"}",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1}x",
            "{\"a\":1}\0",
            "{\"a\":1}\u{c}",
            "\u{feff}{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{,\"a\":1}",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\":\"\\\"",
            "{\"a\":[1",
            "{\"a\":[\"]}",
            "{\"a",
            "{\"\\u0061\":1}",
            "{\"prompt_token_ids\":null}",
            "{\"prompt_token_ids\":[1,]}",
            "{\"prompt_token_ids\":[1]",
            "{\"prompt_token_ids\":[1",
            "{\"prompt_token_ids\":",
            "{\"prompt_token_ids\":[1],\"prompt_token_ids\":[1]}",
            "{\"prompt_token_ids\":{}}",
            "{\"prompt_token_ids\":[1]]}",
            "{\"prompt_token_ids\":\"[1]\"}",
        ] {
            assert_eq!(scan(line), None, "{line:?}");
        }
    }

    #[test]
    fn leaves_faults_of_the_rest_in_the_rest() {
        for line in ["{\"a\":tru}", "{\"a\":[1,],\"b\":\"\u{1}\"}", "{\"a\":[1}}", "{\"a\":1-}"] {
            assert_eq!(rest(line).as_deref(), Some(line));
        }
    }
}
