//! Lines and their places.

/// The byte order mark that a file may start with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line of a block, and its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it starts in the block.
    pub start: usize,
    /// Where it ends in the block, behind its line break.
    pub end: usize,
    /// The line's number, from 1.
    pub number: u64,
    /// Bytes before the line, uncompressed.
    pub offset: u64,
    /// True if it has no line break.
    pub is_last: bool,
}

/// Cuts the text of a file, which comes in blocks, into lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cutter {
    /// Lines so far.
    pub number: u64,
    /// Bytes so far.
    pub offset: u64,
}

impl Cutter {
    /// The lines of the next block, without a byte order mark at the start of the file and without blank lines.
    pub fn cut(&mut self, text: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let found = memchr::memchr(b'\n', &text[start..]);
            let end = found.map_or(text.len(), |at| start + at + 1);
            lines.extend(self.line(text, start, end));
            start = end;
        }
        lines
    }

    /// The next line, which is this part of a block; None if it is blank.
    pub fn line(&mut self, text: &[u8], start: usize, end: usize) -> Option<Line> {
        let offset = self.offset;
        self.number += 1;
        self.offset += (end - start) as u64;
        let marked = self.number == 1 && text[start..end].starts_with(BOM);
        let start = if marked { start + BOM.len() } else { start };
        let content = &text[start..end];
        let is_blank = content.iter().all(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
        (!is_blank).then(|| Line { start, end, number: self.number, offset, is_last: !content.ends_with(b"\n") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_places_go_on_from_block_to_block() {
        let mut cutter = Cutter::default();
        let first = cutter.cut(b"\xef\xbb\xbfab\n \t\x0b\x0c\r\nc\n");
        let line = |start, end, number, offset, is_last| Line { start, end, number, offset, is_last };
        assert_eq!(first, [line(3, 6, 1, 0, false), line(12, 14, 3, 12, false)]);
        assert_eq!(cutter.cut(b"\xef\xbb\xbfd\n\ne"), [line(0, 5, 4, 14, false), line(6, 7, 6, 20, true)]);
        assert_eq!(cutter.cut(b""), []);
        assert_eq!((cutter.number, cutter.offset), (6, 21));
    }

    #[test]
    fn a_mark_alone_is_a_blank_line() {
        assert_eq!(Cutter::default().cut(b"\xef\xbb\xbf\n"), []);
        assert_eq!(Cutter::default().cut(b"\xef\xbb\xbf"), []);
    }
}
