//! Blocks of whole lines out of a regular file, or out of memory.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use flate2::bufread::MultiGzDecoder;

use super::Text;
use super::buffers::{Buffers, Lent};
use super::cut::{Cutter, Line};

/// Bytes that are read at once: a block is about as long, so that what threads tell each other of it weighs little, and
/// short enough to stay in the cache between reading and scanning.
///
/// Measured on two Zen cores with `scan_jsonl` of 512 records of 9,675 ids (64 kB a line), in ns an id by one and two
/// threads: 2.88 and 1.64 with 64 KiB, 2.67 and 1.56 with 128, 2.70 and 2.01 with 256. `benches/bench.py files` measures
/// such reading.
pub const CHUNK: usize = 1 << 17;

/// Bytes of compressed data that are read at once.
const COMPRESSED: usize = 1 << 16;

/// Where text is read from.
enum Input {
    /// A file as it is, and what tells that it was changed, from before the text that waits in `carry` was read.
    Plain(File, Stamp),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<File>>>),
    Memory(Cursor<Text>),
}

/// What of a file changes when somebody writes to it.
type Stamp = (u64, Option<SystemTime>);

/// A file that is read in blocks.
pub struct Reader {
    input: Input,
    /// The beginning of the next block, read with the one before.
    carry: Vec<u8>,
    cutter: Cutter,
    /// Why there is no further block: true at the end, false where somebody else must read on.
    ended: Option<bool>,
    buffers: Arc<Buffers>,
}

/// Why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The file ends here.
    Whole,
    /// Somebody else must read on: this many lines and bytes were given.
    Unsure(Cutter),
}

impl Reader {
    /// A regular file, compressed or not by its name; None where somebody else must say what is wrong with it.
    pub fn open(path: &Path, buffers: &Arc<Buffers>) -> Option<Self> {
        // Opening a pipe may wait for ever.
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        let name = path.as_os_str().as_encoded_bytes();
        // Compressed data have a head; the decoders take nothing at all for the end.
        if (name.ends_with(b".gz") || name.ends_with(b".zst")) && file.metadata().ok()?.len() == 0 {
            return None;
        }
        let input = if name.ends_with(b".gz") {
            Input::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(COMPRESSED, file))))
        } else if name.ends_with(b".zst") {
            let compressed = BufReader::with_capacity(COMPRESSED, file);
            Input::Zstd(Box::new(zstd::Decoder::with_buffer(compressed).ok()?))
        } else {
            let stamp = stamp(&file.metadata().ok()?);
            Input::Plain(file, stamp)
        };
        Some(Self::of(input, buffers))
    }

    /// Text in memory.
    pub fn over(text: Text, buffers: &Arc<Buffers>) -> Self {
        Self::of(Input::Memory(Cursor::new(text)), buffers)
    }

    fn of(input: Input, buffers: &Arc<Buffers>) -> Self {
        Self { input, carry: buffers.get(), cutter: Cutter::default(), ended: None, buffers: Arc::clone(buffers) }
    }

    /// The next block and its lines; the last line of the last block may lack its line break.
    ///
    /// # Errors
    /// There is none.
    pub fn next(&mut self, stop: &AtomicBool) -> Result<(Text, Vec<Line>), Ended> {
        let text = match self.ended {
            None => self.block(stop),
            Some(_) => Vec::new(),
        };
        let lines = self.cutter.cut(&text);
        let text = Lent::new(text, &self.buffers);
        if text.as_ref().is_empty() {
            return Err(if self.ended == Some(true) { Ended::Whole } else { Ended::Unsure(self.cutter) });
        }
        Ok((Text::new(text), lines))
    }

    /// The text of the next block, the same in two readings where the file was changed meanwhile.
    ///
    /// A writer that appends cuts off a line that another one left unfinished, and writes its own in that place. Read
    /// in several pieces, a line could be the beginning of one and the end of the other.
    fn block(&mut self, stop: &AtomicBool) -> Vec<u8> {
        let mut text = self.gather(stop);
        while let Input::Plain(file, before) = &mut self.input {
            let now = file.metadata().map(|found| stamp(&found));
            if now.as_ref().is_ok_and(|now| *now == *before) || stop.load(Ordering::Relaxed) {
                break;
            }
            let Ok(now) = now else {
                self.ended = Some(false);
                return Vec::new();
            };
            if !is_line_start(file, self.cutter.offset) {
                // It was cut off below that place: what stands there now is no part of what was read so far.
                self.ended = Some(true);
                return Vec::new();
            }
            *before = now;
            (self.carry, self.ended) = (Vec::new(), None);
            let again = self.gather(stop);
            if again == text {
                break;
            }
            text = again;
        }
        text
    }

    /// Reads on to the next line break behind a chunk, or to the end.
    fn gather(&mut self, stop: &AtomicBool) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.carry);
        loop {
            let start = text.len();
            let read = match &mut self.input {
                Input::Plain(file, (size, _)) => {
                    let left = size.saturating_sub(self.cutter.offset + start as u64);
                    read_chunk(file, &mut text, left)
                }
                Input::Gzip(decoder) => read_chunk(decoder, &mut text, u64::MAX),
                Input::Zstd(decoder) => read_chunk(decoder, &mut text, u64::MAX),
                Input::Memory(memory) => {
                    let left = (memory.get_ref().as_ref().len() as u64).saturating_sub(memory.position());
                    read_chunk(memory, &mut text, left)
                }
            };
            let last_break = memchr::memrchr(b'\n', &text[start..]).map(|at| start + at + 1);
            match read {
                // Not even the rest of a line: the end of the file is not known to be there.
                Err(_) => {
                    self.ended = Some(false);
                    text.truncate(last_break.unwrap_or(0));
                    return text;
                }
                Ok(0) => {
                    self.ended = Some(true);
                    return text;
                }
                Ok(_) if stop.load(Ordering::Relaxed) => return Vec::new(),
                Ok(_) => {}
            }
            if let Some(end) = last_break {
                self.carry = self.buffers.get();
                self.carry.extend_from_slice(&text[end..]);
                text.truncate(end);
                return text;
            }
        }
    }
}

/// Goes to a place in the file; true if a line starts there.
fn is_line_start(file: &mut File, offset: u64) -> bool {
    let mut byte = [b'\n'];
    let to = |file: &mut File, offset| file.seek(SeekFrom::Start(offset)).is_ok();
    match offset.checked_sub(1) {
        None => to(file, 0),
        Some(before) => to(file, before) && file.read_exact(&mut byte).is_ok() && byte == *b"\n",
    }
}

/// Appends up to a chunk, of what is `left` as far as that is known; gives how many bytes there were, 0 at the end.
///
/// Memory that is not there is an error too.
fn read_chunk(input: &mut impl Read, text: &mut Vec<u8>, left: u64) -> io::Result<usize> {
    text.try_reserve(usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK)))?;
    input.take(CHUNK as u64).read_to_end(text)
}

fn stamp(found: &Metadata) -> Stamp {
    (found.len(), found.modified().ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    /// A file of its own for a test, which takes it away.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, content: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("tokenrecords-{}-{name}", std::process::id()));
            fs::write(&path, content).unwrap();
            Self(path)
        }

        fn open(&self) -> Reader {
            Reader::open(&self.0, &Arc::<Buffers>::default()).unwrap()
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            fs::remove_file(&self.0).unwrap();
        }
    }

    /// The text of all blocks, and how they end.
    fn rest(reader: &mut Reader) -> (Vec<u8>, Ended) {
        let mut whole = Vec::new();
        loop {
            match reader.next(&AtomicBool::new(false)) {
                Ok((text, _)) => whole.extend_from_slice(text.as_ref()),
                Err(ended) => return (whole, ended),
            }
        }
    }

    fn lines(count: usize) -> Vec<u8> {
        (0..count).flat_map(|i| format!("{i}{}\n", "x".repeat(i % 997)).into_bytes()).collect()
    }

    #[test]
    fn blocks_are_whole_lines_of_about_a_chunk() {
        let text = lines(3000);
        let file = Temporary::new("blocks", &text);
        let mut reader = file.open();
        let mut whole = Vec::new();
        let mut blocks = 0;
        while let Ok((block, lines)) = reader.next(&AtomicBool::new(false)) {
            assert!(block.as_ref().ends_with(b"\n") && block.as_ref().len() < 2 * CHUNK);
            assert_eq!(lines.len(), memchr::memchr_iter(b'\n', block.as_ref()).count());
            assert_eq!(lines[0].offset, whole.len() as u64);
            whole.extend_from_slice(block.as_ref());
            blocks += 1;
        }
        assert!(whole == text && blocks > 5);
        assert_eq!(rest(&mut reader), (Vec::new(), Ended::Whole));
    }

    #[test]
    fn a_line_longer_than_many_chunks_is_one_block() {
        let text = [vec![b'x'; 5 * CHUNK], b"\nshort\nlast".to_vec()].concat();
        let file = Temporary::new("long", &text);
        assert_eq!(rest(&mut file.open()), (text.clone(), Ended::Whole));
        let mut memory = Reader::over(Text::new(text.clone()), &Arc::<Buffers>::default());
        assert_eq!(rest(&mut memory), (text, Ended::Whole));
    }

    #[test]
    fn what_is_no_regular_file_is_left_to_others() {
        let buffers = Arc::<Buffers>::default();
        assert!(Reader::open(&std::env::temp_dir(), &buffers).is_none());
        assert!(Reader::open(Path::new("/nowhere/at/all"), &buffers).is_none());
    }

    #[test]
    fn compressed_text_is_read_up_to_where_it_is_damaged() {
        let text = lines(3000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        for (name, packed) in [("a.gz", gzip.finish().unwrap()), ("a.zst", zstd::encode_all(&text[..], 1).unwrap())] {
            let twice = Temporary::new(name, &packed.repeat(2));
            assert_eq!(rest(&mut twice.open()), (text.repeat(2), Ended::Whole));
            let cut = Temporary::new(&format!("cut-{name}"), &packed[..packed.len() / 2]);
            let (found, ended) = rest(&mut cut.open());
            assert!(!found.is_empty() && found.ends_with(b"\n") && text.starts_with(&found));
            let number = memchr::memchr_iter(b'\n', &found).count() as u64;
            assert_eq!(ended, Ended::Unsure(Cutter { number, offset: found.len() as u64 }));
            let other = Temporary::new(&format!("other-{name}"), &text);
            assert_eq!(rest(&mut other.open()), (Vec::new(), Ended::Unsure(Cutter::default())));
        }
    }

    #[test]
    fn a_tail_that_a_writer_mends_while_it_is_read_is_read_again() {
        let first = [vec![b'a'; CHUNK - 100], b"\n".to_vec()].concat();
        // More than the first chunk holds: its beginning is read before, its end after the writer was there.
        let torn = vec![b'b'; 300];
        let file = Temporary::new("mended", &[&first[..], &torn].concat());
        let mut reader = file.open();
        let (block, _) = reader.next(&AtomicBool::new(false)).unwrap();
        assert_eq!(block.as_ref(), first);
        assert!(!reader.carry.is_empty());
        let mended = [vec![b'c'; 500], b"\nd\n".to_vec()].concat();
        fs::write(&file.0, [&first[..], &mended].concat()).unwrap();
        let (block, lines) = reader.next(&AtomicBool::new(false)).unwrap();
        assert_eq!(block.as_ref(), mended);
        assert_eq!(lines.iter().map(|line| (line.number, line.is_last)).collect::<Vec<_>>(), [(2, false), (3, false)]);
        assert_eq!(rest(&mut reader), (Vec::new(), Ended::Whole));
    }

    #[test]
    fn a_file_that_is_cut_off_below_what_was_read_ends_there() {
        let first = lines(1000);
        let file = Temporary::new("below", &first);
        for shorter in [first[..1000].to_vec(), [&first[..1000], &b"x".repeat(900_000), b"\n"].concat()] {
            fs::write(&file.0, &first).unwrap();
            let mut reader = file.open();
            let (block, _) = reader.next(&AtomicBool::new(false)).unwrap();
            assert!(block.as_ref().len() < first.len());
            fs::write(&file.0, &shorter).unwrap();
            assert_eq!(rest(&mut reader), (Vec::new(), Ended::Whole));
        }
    }

    #[test]
    fn a_file_that_grows_is_read_on_from_where_the_reading_stands() {
        let text = lines(1000);
        let file = Temporary::new("grows", &text);
        let mut reader = file.open();
        let (block, _) = reader.next(&AtomicBool::new(false)).unwrap();
        fs::OpenOptions::new().append(true).open(&file.0).unwrap().write_all(b"more\n").unwrap();
        let (found, ended) = rest(&mut reader);
        assert!([block.as_ref(), &found].concat() == [&text[..], b"more\n"].concat());
        assert_eq!(ended, Ended::Whole);
    }

    #[test]
    fn a_stop_ends_even_a_long_line() {
        let file = Temporary::new("stop", &vec![b'x'; 3 * CHUNK]);
        assert!(file.open().next(&AtomicBool::new(true)).is_err());
    }
}
