//! A JSON text without some of its members, all else byte for byte.

use std::borrow::Cow;

use super::halt::{Halt, Reading, room};
use super::skip::{expect, skip_space, skip_string};
use super::walk::DEEPEST;

/// Names of members: to be cut out, or to be looked into, in an object or in each element of an array.
#[derive(Debug, Default)]
pub struct Members(pub Vec<(Vec<u8>, Option<Members>)>);

impl Members {
    /// The text without these members; itself where it has none of them.
    ///
    /// The text should be JSON: of what is none, the result is none either, or it is odd. Within more than
    /// 64 lists, one in the other, nothing is looked for.
    ///
    /// # Errors
    /// Odd where the text is surely no JSON; where there is no memory for it.
    pub fn cut<'a>(&self, text: &'a [u8]) -> Reading<Cow<'a, [u8]>> {
        let mut cutting = Cutting { text, cuts: Vec::new() };
        let end = cutting.value(0, Some(self), 0).ok_or(Halt::Odd)?;
        if skip_space(text, end) != text.len() {
            return Err(Halt::Odd);
        }
        cutting.rest()
    }

    fn get(&self, key: &[u8]) -> Option<&(Vec<u8>, Option<Self>)> {
        let is_escaped = key.contains(&b'\\');
        let key = if is_escaped { Cow::Owned(unescaped(key)) } else { Cow::Borrowed(key) };
        self.0.iter().find(|(member, _)| *member == *key)
    }
}

struct Cutting<'a> {
    text: &'a [u8],
    /// From where to where, in order; they may touch.
    cuts: Vec<(usize, usize)>,
}

impl<'a> Cutting<'a> {
    /// Goes over the value that begins at `at`, after any white space; gives the place after it.
    fn value(&mut self, at: usize, members: Option<&Members>, depth: usize) -> Option<usize> {
        let at = skip_space(self.text, at);
        match self.text.get(at)? {
            b'"' => skip_string(self.text, at + 1),
            b'{' | b'[' if depth == DEEPEST => skip_nested(self.text, at),
            b'{' if let Some(members) = members => self.object(at + 1, members, depth),
            b'[' if members.is_some() => self.array(at + 1, members, depth),
            b'{' | b'[' => skip_nested(self.text, at),
            _ => {
                let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                let length = self.text[at..].iter().position(ends).unwrap_or(self.text.len() - at);
                Some(at + length)
            }
        }
    }

    fn object(&mut self, mut at: usize, members: &Members, depth: usize) -> Option<usize> {
        if let Some(end) = expect(self.text, at, b'}') {
            return Some(end);
        }
        let mut keeps = false; // a member before this one
        let mut before = at; // where it ended
        loop {
            let key = expect(self.text, at, b'"')?;
            let key_end = skip_string(self.text, key)?;
            let value = expect(self.text, key_end, b':')?;
            let found = members.get(&self.text[key..key_end - 1]);
            let end = self.value(value, found.and_then(|(_, within)| within.as_ref()), depth + 1)?;
            let next = skip_space(self.text, end);
            let goes_on = match self.text.get(next)? {
                b',' => true,
                b'}' => false,
                _ => return None,
            };
            if !matches!(found, Some((_, None))) {
                keeps = true;
            } else if keeps {
                self.cuts.push((before, end)); // with the comma before it
            } else {
                let start = key - 1;
                self.cuts.push((start, if goes_on { skip_space(self.text, next + 1) } else { end }));
            }
            if !goes_on {
                return Some(next + 1);
            }
            (at, before) = (next + 1, end);
        }
    }

    fn array(&mut self, mut at: usize, members: Option<&Members>, depth: usize) -> Option<usize> {
        if let Some(end) = expect(self.text, at, b']') {
            return Some(end);
        }
        loop {
            at = skip_space(self.text, self.value(at, members, depth + 1)?);
            match self.text.get(at)? {
                b',' => at += 1,
                b']' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    fn rest(self) -> Reading<Cow<'a, [u8]>> {
        if self.cuts.is_empty() {
            return Ok(self.text.into());
        }
        let mut rest = room(self.text.len())?;
        let mut kept = 0;
        for (start, end) in self.cuts {
            rest.extend_from_slice(&self.text[kept..start]);
            kept = end;
        }
        rest.extend_from_slice(&self.text[kept..]);
        Ok(rest.into())
    }
}

/// A key without its escapes, as far as a name of ASCII letters could be written with them.
fn unescaped(key: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = key;
    while let [first, after @ ..] = rest {
        let code = match rest {
            [b'\\', b'u', digits @ ..] if digits.len() >= 4 => std::str::from_utf8(&digits[..4]).ok(),
            _ => None,
        };
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            plain.push(byte);
            rest = &rest[6..];
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

/// The place after the array or object that begins at `at`.
fn skip_nested(text: &[u8], at: usize) -> Option<usize> {
    // The first bracket behind a list of numbers is its end.
    if text[at] == b'['
        && let Some(next) = memchr::memchr3(b']', b'[', b'"', &text[at + 1..])
        && text[at + 1 + next] == b']'
    {
        return Some(at + 1 + next + 1);
    }
    let mut open = 0_usize;
    let mut at = at;
    loop {
        match text.get(at)? {
            b'"' => at = skip_string(text, at + 1)? - 1,
            b'{' | b'[' => open += 1,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        at += 1;
        if open == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Members {
        Members(names.iter().map(|name| (name.as_bytes().to_vec(), None)).collect())
    }

    fn cut(text: &str, members: &Members) -> Option<String> {
        match members.cut(text.as_bytes()).unwrap() {
            Cow::Owned(rest) => Some(String::from_utf8(rest).unwrap()),
            Cow::Borrowed(same) => {
                assert_eq!(same, text.as_bytes());
                None
            }
        }
    }

    #[test]
    fn a_member_goes_with_one_comma() {
        let members = names(&["a", "b"]);
        for (text, rest) in [
            (r#"{"a":1}"#, "{}"),
            (r#"{ "a" : 1 }"#, "{  }"),
            (r#"{"a":1,"b":[2]}"#, "{}"),
            (r#"{"a":1,"c":2}"#, r#"{"c":2}"#),
            (r#"{"c":2,"a":1}"#, r#"{"c":2}"#),
            (r#"{"c":2, "a":1 , "d":3}"#, r#"{"c":2 , "d":3}"#),
            (r#"{"a":1,"b":{"x":"}"},"c":2,"a":[[1],"]"],"b":"\"","d":null}"#, r#"{"c":2,"d":null}"#),
            (r#" {"c":{"a":1},"a":true} "#, r#" {"c":{"a":1}} "#),
        ] {
            assert_eq!(cut(text, &members).as_deref(), Some(rest), "{text}");
        }
    }

    #[test]
    fn members_are_found_within_objects_and_lists() {
        let members = Members(vec![(b"choices".to_vec(), Some(names(&["ids"]))), (b"ids".to_vec(), None)]);
        let text = r#"{"choices":[{"ids":[1,2],"m":{"ids":3}},{"x":0},4,[{"ids":5}]],"ids":[],"z":{"ids":1}}"#;
        let rest = r#"{"choices":[{"m":{"ids":3}},{"x":0},4,[{}]],"z":{"ids":1}}"#;
        assert_eq!(cut(text, &members).as_deref(), Some(rest));
        assert_eq!(cut(r#"[{"ids":1},{"k":[]}]"#, &members).as_deref(), Some(r#"[{},{"k":[]}]"#));
    }

    #[test]
    fn a_text_without_them_stays() {
        for text in ["{}", "[]", "1", "\"ids\"", r#"{"x":"ids","y":{"ids":1},"z":[1,{"ids":"]"},[2]]}"#] {
            assert_eq!(cut(text, &names(&["ids"])), None, "{text}");
        }
    }

    #[test]
    fn a_key_may_be_written_with_escapes() {
        let text = r#"{"\u0061":1,"\u0062":2,"\\u0061":3,"\u00e9":4,"c\n":6}"#;
        assert_eq!(cut(text, &names(&["a"])).as_deref(), Some(&text.replacen(r#""\u0061":1,"#, "", 1)[..]));
        assert_eq!(cut(text, &names(&["\u{e9}", "c\n"])), None);
    }

    #[test]
    fn a_name_may_be_empty() {
        let text = r#"{"":1,"a":{"":2},"\u0000":3}"#;
        assert_eq!(cut(text, &names(&[""])).as_deref(), Some(&text.replacen(r#""":1,"#, "", 1)[..]));
        assert_eq!(cut(text, &names(&["b"])), None);
    }

    #[test]
    fn what_is_nested_too_deep_is_passed_over() {
        let deep = |depth| format!("{}{{\"a\":1}}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(cut(&deep(DEEPEST), &names(&["a"])), None);
        assert_eq!(cut(&deep(DEEPEST - 1), &names(&["a"])), Some(deep(DEEPEST - 1).replace("\"a\":1", "")));
    }

    #[test]
    fn what_is_no_json_is_odd() {
        for text in ["", "{", r#"{"a"}"#, r#"{"a":1"#, r#"{"a":1}x"#, r#"{"a":[];"b":2}"#, "[1 2]", r#"{"x":["}"#] {
            assert_eq!(names(&["a"]).cut(text.as_bytes()), Err(Halt::Odd), "{text}");
        }
    }
}
