//! Reading a flat JSON array of numbers into a vector of exactly its length.

use super::halt::{Halt, Reading, room};
use super::swar;

/// Whether JSON counts the byte as white space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The text without white space at its ends.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, inner @ ..] = text
        && is_space(*first)
    {
        text = inner;
    }
    while let [inner @ .., last] = text
        && is_space(*last)
    {
        text = inner;
    }
    text
}

/// A number that an array can hold.
pub(crate) trait Item: Sized {
    /// Reads `line[start..end]`, which may have white space around the number.
    ///
    /// None for a spelling that isn't surely right. The bytes before `start` are given too so that a whole word can be
    /// loaded that ends at `end`.
    fn read(line: &[u8], start: usize, end: usize) -> Option<Self>;
}

/// Where the array ends whose first byte after `[` is at `body`, and how many elements it has at most.
///
/// No element that we take holds a `]` or a comma, so the first `]` must be the end and each comma must part two
/// elements; else an element is refused. Counting first costs little and spares the growing.
pub(crate) fn measure(line: &[u8], body: usize) -> Option<(usize, usize)> {
    let close = body + memchr::memchr(b']', line.get(body..)?)?;
    let text = &line[body..close];
    if text.iter().all(|&b| is_space(b)) {
        return Some((close, 0));
    }
    Some((close, memchr::memchr_iter(b',', text).count() + 1))
}

/// Reads the array whose `[` is at `open`; gives it and where its `]` is.
pub(crate) fn read_array<T: Item>(line: &[u8], open: usize) -> Reading<(Vec<T>, usize)> {
    let body = open + 1;
    let (close, count) = measure(line, body).ok_or(Halt::Odd)?;
    let mut out = room(count)?;
    if count > 0 {
        fill(&mut out, line, body, close).ok_or(Halt::Odd)?;
    }
    Ok((out, close))
}

/// Reads the elements between `body` and `close`, of which there is at least one, into a vector with room for them.
fn fill<T: Item>(out: &mut Vec<T>, line: &[u8], body: usize, close: usize) -> Option<()> {
    let mut start = body;
    // All commas of 64 bytes are found at once, so that reading an element needn't wait for the length of the one
    // before.
    for block in (body..close).step_by(64) {
        let mut commas = find_commas(&line[block..close]);
        while commas != 0 {
            let end = block + commas.trailing_zeros() as usize;
            commas &= commas - 1;
            out.push(T::read(line, start, end)?);
            start = end + 1;
        }
    }
    out.push(T::read(line, start, close)?);
    Some(())
}

/// Marks the commas among the first 64 bytes.
#[inline]
fn find_commas(text: &[u8]) -> u64 {
    if let Some(block) = text.first_chunk() {
        return swar::commas(block);
    }
    let mut block = [0; 64];
    block[..text.len()].copy_from_slice(text);
    swar::commas(&block)
}
