//! Lists of one entry for each token, read into columns: objects with a `logprob`, and rows of log-prob and id.
//!
//! What is not in every entry alike makes a list odd: it stays where it is.

use super::entry::{Entry, Token, object, row};
use super::halt::{Halt, Reading, room};
use super::strict::Cursor;

/// The entries for which there is room at first. By then their length is known, and with it how many may follow.
const FIRST: usize = 64;

/// The values of the entries of a list, by their key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// How many entries there are.
    pub len: usize,
    /// How many elements each row has; 0 where the entries are objects.
    pub width: usize,
    /// The log-probs, key `logprob` or place 0; none where one is null, as that of a prompt's first token is.
    pub log_probs: Option<Vec<f64>>,
    /// The ids under the key `token_id`.
    pub token_ids: Option<Vec<i32>>,
    /// The ids under the key `id`, or at place 1.
    pub ids: Option<Vec<i32>>,
    /// The ids that the words under the key `token` name.
    pub words: Option<Vec<i32>>,
}

/// Reads the list whose `[` is at `open`; gives it and where its `]` is.
pub(super) fn read_columns(text: &[u8], open: usize) -> Reading<(Columns, usize)> {
    let mut cursor = Cursor::new(text, open + 1);
    let mut columns = Columns::default();
    let mut members = Vec::new();
    let rows = cursor.peek() == Some(b'[');
    loop {
        let entry = if rows { row(&mut cursor) } else { object(&mut cursor, &mut members) };
        columns.push(&entry.ok_or(Halt::Odd)?)?;
        if columns.len == FIRST {
            let length = (cursor.at() - open) / FIRST;
            columns.reserve((text.len() - cursor.at()) / length)?;
        }
        if !cursor.goes_on(b']').ok_or(Halt::Odd)? {
            break;
        }
    }
    let close = cursor.at() - 1;
    let read = columns.finish() && (cursor.is_ascii() || std::str::from_utf8(&text[open..close]).is_ok());
    if read { Ok((columns, close)) } else { Err(Halt::Odd) }
}

impl Columns {
    /// Adds an entry, which must have what the others have.
    #[inline]
    fn push(&mut self, entry: &Entry) -> Reading<()> {
        let first = self.len == 0;
        let log_prob = entry.log_prob.ok_or(Halt::Odd)?;
        if first {
            self.width = entry.width;
        } else if self.width != entry.width {
            return Err(Halt::Odd);
        }
        add(&mut self.log_probs, Some(log_prob), first)?;
        add(&mut self.token_ids, entry.token_id, first)?;
        add(&mut self.ids, entry.id, first)?;
        let named = match entry.token {
            Some(Token::Id(id)) => Some(id),
            _ => None,
        };
        add(&mut self.words, named, first)?;
        self.len += 1;
        Ok(())
    }

    /// Makes room for so many more entries: what is not needed is given back in the end.
    fn reserve(&mut self, more: usize) -> Reading<()> {
        self.log_probs.iter_mut().try_for_each(|column| column.try_reserve_exact(more))?;
        let ids = [&mut self.token_ids, &mut self.ids, &mut self.words];
        ids.into_iter().flatten().try_for_each(|column| column.try_reserve_exact(more))?;
        Ok(())
    }

    /// Whether rows are of log-prob and id: in rows of two ids nothing is negative or has a fraction.
    fn are_scored(&self) -> bool {
        let is_log_prob = |number: &f64| number.is_sign_negative() || number.fract() > 0.0;
        self.width > 2 || self.log_probs.iter().flatten().any(is_log_prob)
    }

    /// Gives back the room that is not needed, and the log-probs if they are not those of all; tells whether the list is
    /// one of tokens.
    fn finish(&mut self) -> bool {
        if self.width > 0 && !self.are_scored() {
            return false;
        }
        self.log_probs.take_if(|log_probs| log_probs.iter().any(|log_prob| log_prob.is_nan()));
        self.log_probs.iter_mut().for_each(Vec::shrink_to_fit);
        for ids in [&mut self.token_ids, &mut self.ids, &mut self.words] {
            ids.iter_mut().for_each(Vec::shrink_to_fit);
        }
        [&self.token_ids, &self.ids, &self.words].iter().any(|ids| ids.is_some()) || self.log_probs.is_some()
    }
}

/// Adds a value to a column, which is there from the first entry on or never.
#[inline]
fn add<T>(column: &mut Option<Vec<T>>, value: Option<T>, first: bool) -> Reading<()> {
    match (column, value) {
        (None, None) => Ok(()),
        (Some(column), Some(value)) => {
            column.try_reserve(1)?;
            column.push(value);
            Ok(())
        }
        (column @ None, Some(value)) if first => {
            let mut started = room(FIRST)?;
            started.push(value);
            *column = Some(started);
            Ok(())
        }
        _ => Err(Halt::Odd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::entry::MOST_MEMBERS;

    fn read(list: &str) -> Option<Columns> {
        let (columns, close) = read_columns(list.as_bytes(), 0).ok()?;
        assert_eq!(close, list.len() - 1);
        Some(columns)
    }

    #[test]
    fn reads_objects_into_columns() {
        assert_eq!(
            read(
                r#"[{"token":"token_id:41","logprob":-0.5,"bytes":[104,105],"top_logprobs":[]},
                    {"token":"token_id:0002","logprob":0,"bytes":null,"top_logprobs":[{"token":"a","bytes":[1]}]}]"#
            ),
            Some(Columns { len: 2, log_probs: Some(vec![-0.5, 0.0]), words: Some(vec![41, 2]), ..Columns::default() })
        );
        assert_eq!(
            read(r#"[{"id":41,"text":" a\n","logprob":-1.5,"special":false,"token_id":7}]"#),
            Some(Columns {
                len: 1,
                log_probs: Some(vec![-1.5]),
                ids: Some(vec![41]),
                token_ids: Some(vec![7]),
                ..Columns::default()
            })
        );
    }

    #[test]
    fn room_for_what_does_not_follow_is_given_back() {
        let row = "[-0.5,7,null]";
        for count in [FIRST - 1, FIRST, FIRST + 1, 10 * FIRST] {
            let list = format!("[{}]{}", vec![row; count].join(","), " ".repeat(100_000));
            let (columns, _) = read_columns(list.as_bytes(), 0).unwrap();
            assert_eq!(columns.ids.as_ref().map(|ids| (ids.len(), ids.capacity())), Some((count, count)));
            assert_eq!(columns.log_probs.map(|found| (found.len(), found.capacity())), Some((count, count)));
        }
    }

    #[test]
    fn reads_members_in_any_order_and_spelling() {
        let want = read(r#"[{"logprob":-1,"id":1},{"logprob":-2,"id":2}]"#);
        assert!(want.is_some());
        for list in [
            r#"[{"logprob":-1,"id":1},{"id":2,"logprob":-2}]"#,
            r#"[{"logprob":-1,"id":1}, { "logprob" : -2 , "id" : 2 } ]"#,
            r#"[{"logprob":-1,"id":1,"x":1},{"logprob":-2,"id":2}]"#,
            r#"[{"logprob":-1,"id":1},{"x":"{","logprob":-2,"id":2,"y":true}]"#,
        ] {
            assert_eq!(read(list), want, "{list}");
        }
    }

    #[test]
    fn reads_rows_into_columns() {
        let triples = |log_probs, ids| Some(Columns { len: 2, width: 3, log_probs, ids, ..Columns::default() });
        assert_eq!(
            read(r#"[[-0.5,41,null], [ -1.5 , 2 , "a\"]" ]]"#),
            triples(Some(vec![-0.5, -1.5]), Some(vec![41, 2]))
        );
        assert_eq!(read("[[null,41,null],[-1.5,2,null]]"), triples(None, Some(vec![41, 2])));
        assert_eq!(read("[[-0.5,41,null],[null,2,null]]"), triples(None, Some(vec![41, 2])));
        assert_eq!(read("[[0,41,null],[0,2,null]]"), triples(Some(vec![0.0, 0.0]), Some(vec![41, 2])));
        let pairs = read("[[-0.5,41]]").map(|columns| (columns.width, columns.ids));
        assert_eq!(pairs, Some((2, Some(vec![41]))));
    }

    #[test]
    fn lists_of_ids_are_not_log_probs() {
        assert_eq!(read("[[1,7],[2,8]]"), None);
        assert!(read("[[1,7],[-2,8]]").is_some());
        assert!(read("[[1,7],[0.5,8]]").is_some());
        assert!(read("[[-0.0,7]]").is_some());
    }

    #[test]
    fn leaves_lists_that_are_not_alike() {
        let entry = r#"{"logprob":-1,"id":1,"token":"token_id:1"}"#;
        for odd in [
            r#"{"logprob":-1,"id":1}"#,
            r#"{"logprob":-1,"token":"token_id:1"}"#,
            r#"{"id":1,"token":"token_id:1"}"#,
            r#"{"logprob":-1,"id":1,"token":"a"}"#,
            r#"{"logprob":-1,"id":1,"token":"token_id:1","token_id":1}"#,
            "null",
            "{}",
            "[-1,1]",
        ] {
            assert_eq!(read(&format!("[{entry},{odd}]")), None, "{odd}");
            assert_eq!(read(&format!("[{entry},{entry},{odd}]")), None, "{odd}");
        }
        for odd in ["[-1,1]", "[-1,1,null,null]", "[-1]", "[]", "[-1,1,null,]", "{}", "null"] {
            assert_eq!(read(&format!("[[-1,1,null],{odd}]")), None, "{odd}");
        }
    }

    #[test]
    fn leaves_entries_that_are_odd() {
        for odd in [
            "",
            r#"{"logprob":null}"#,
            r#"{"logprob":"NaN","id":1}"#,
            r#"{"logprob":NaN,"id":1}"#,
            r#"{"logprob":-1,"logprob":-1}"#,
            r#"{"logprob":-1,"id":1,"id":1}"#,
            r#"{"logprob":-1,"token":"a","token":"a"}"#,
            r#"{"logprob":-1,"id":"1"}"#,
            r#"{"logprob":-1,"id":null}"#,
            r#"{"logprob":-1,"id":2147483648}"#,
            r#"{"logprob":-1,"token":1}"#,
            r#"{"logprob":-1,"token":"token_id:2147483648"}"#,
            r#"{"logprob":-1,"\u0069d":1}"#,
            r#"{"logprob":-1,"x":{}}"#,
            r#"{"logprob":-1,"x":[[]]}"#,
            r#"{"logprob":-1,"x":["a"]}"#,
            r#"{"logprob":-1,"x":[1000]}"#,
            r#"{"logprob":-1,"x":[{"y":{}}]}"#,
            r#"{"logprob":-1,"x":[{"y":[{}]}]}"#,
            r#"{"logprob":-1,"x":1000000000000000}"#,
            r#"{"logprob":-1,}"#,
            r#"{"logprob":-1"#,
            r#"{"logprob":-1]"#,
            r#"{"logprob" -1}"#,
            r#"{"logprob":-1 "id":1}"#,
            r"{logprob:-1}",
            "{\"logprob\":-1,\"x\":\"\u{1}\"}",
        ] {
            assert_eq!(read(&format!("[{odd}]")), None, "{odd}");
        }
        let with = |members: usize| read(&format!("[{{\"logprob\":-1{}}}]", ",\"a\":0".repeat(members)));
        assert!(with(MOST_MEMBERS - 1).is_some());
        assert_eq!(with(MOST_MEMBERS), None);
    }

    #[test]
    fn leaves_text_that_is_not_utf8() {
        for before in 0..20 {
            for (head, end) in
                [("[{\"logprob\":-1,\"token\":\"", "\"}]"), ("[[-1,7,\"", "\"]]"), ("[{\"logprob\":-1,\"", "\":1}]")]
            {
                let list = |text: &[u8]| [head.as_bytes(), &b"a".repeat(before), text, end.as_bytes()].concat();
                assert_eq!(read_columns(&list(b"\xff"), 0), Err(Halt::Odd));
                assert_eq!(read_columns(&list(b"\xc3"), 0), Err(Halt::Odd));
                assert!(read_columns(&list("é".as_bytes()), 0).is_ok());
            }
        }
    }
}
