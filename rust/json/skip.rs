//! Passing over JSON text that stays as it is.
//!
//! Only valid JSON is passed over rightly: whoever keeps the text has a full JSON reader find its faults.

use super::array::is_space;

/// The first place from `at` on that is not white space.
pub(super) fn skip_space(line: &[u8], at: usize) -> usize {
    let spaces = line[at..].iter().take_while(|&&b| is_space(b)).count();
    at + spaces
}

/// The place after `wanted`, which must be next after any white space.
pub(super) fn expect(line: &[u8], at: usize, wanted: u8) -> Option<usize> {
    let at = skip_space(line, at);
    (*line.get(at)? == wanted).then_some(at + 1)
}

/// The place after the string whose first byte after the quote is at `at`.
pub(super) fn skip_string(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', line.get(at..)?)?;
        if line[at] == b'"' {
            return Some(at + 1);
        }
        // The escaped byte may be a quote or a backslash.
        at += 2;
    }
}
