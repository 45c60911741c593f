//! What is to be read and scanned next, and what the taker gets next: the decisions of reading ahead, without a thread.

use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;

use super::Text;
use super::cut::{Cutter, Line};
use super::reader::{Ended, Reader};

/// Bytes of text that may be held for each thread, but for the last block of each: enough to keep the threads busy while
/// the taker works on one record.
pub const AHEAD: usize = 1 << 20;

/// What a block weighs beside its text, so that many tiny files are not read far ahead.
const BLOCK: usize = 1 << 12;

/// Bytes of text that were read when the first thread is started: about 50 microseconds of reading and scanning on a
/// Zen core (`benches/bench.py files`), where starting and joining a thread takes 13 (`digest::batch`).
const WORTH: usize = 1 << 17;

/// Where lines come from.
pub enum Origin {
    /// A file, which other threads may read.
    File(PathBuf),
    /// Text in memory.
    Memory(Text),
    /// What the taker gives: see `Taken::Wanted`.
    Given,
}

/// What the taker gets.
pub enum Taken<T, E> {
    /// The lines of a block of the source at this position, each with what was found in it.
    Lines(usize, Text, Vec<(Line, T)>),
    /// The source at this position needs its next line: to be answered with `give` or `end`. The lines so far.
    Wanted(usize, Cutter),
    /// What `end` was given, in its place.
    Failed(E),
    /// All lines were taken.
    End,
    /// The poll answered `false`.
    Interrupted,
    /// Scanning panicked.
    Broken,
    /// The threads are in the process that this one was forked from.
    Forked,
}

/// What was read, what is being read, and what is to be.
pub struct Queue<T, E> {
    /// Sources that nobody has begun to read.
    waiting: VecDeque<Origin>,
    /// The others, but for those of which everything was taken.
    sources: VecDeque<Source<T, E>>,
    /// The position of the first of `sources` among all.
    first: usize,
    /// Blocks that are read or were, and not taken.
    blocks: usize,
    /// What those of them weigh that were read.
    held: usize,
    /// Bytes of text that were read so far.
    read: usize,
    /// Readers that are open.
    open: usize,
    /// True where scanning panicked.
    pub broken: bool,
}

struct Source<T, E> {
    input: Input<E>,
    blocks: VecDeque<Block<T>>,
    /// The number of blocks that were taken.
    taken: usize,
}

enum Input<E> {
    Open(Box<Reader>),
    /// A thread reads it.
    Busy,
    /// The taker gives its lines.
    Given(Cutter),
    Ended(Option<E>),
}

enum Block<T> {
    Read(Text, Vec<Line>),
    /// A thread scans it.
    Busy,
    Done(Text, Vec<(Line, T)>),
}

/// Something to do, for the source at a position.
pub enum Job {
    Open(usize, PathBuf),
    Over(usize, Text),
    Read(usize, Box<Reader>),
    Scan(usize, usize, Text, Vec<Line>),
}

impl<T, E> Queue<T, E> {
    /// Sources of which nothing was read.
    pub fn new(sources: Vec<Origin>) -> Self {
        Self {
            waiting: sources.into(),
            sources: VecDeque::new(),
            first: 0,
            blocks: 0,
            held: 0,
            read: 0,
            open: 0,
            broken: false,
        }
    }

    /// True where so much was read that another thread is worth its start.
    pub fn is_worth_a_thread(&self) -> bool {
        self.read >= WORTH
    }

    /// True where there is enough to do to wake a thread for it: not for each block that is taken.
    pub fn is_worth_a_call(&self, threads: usize) -> bool {
        self.has_room(threads, AHEAD / 2)
    }

    /// The block of the source that wanted a line: that line.
    pub fn give(&mut self, text: Text) {
        let size = text.as_ref().len();
        if let Some(Source { input: Input::Given(cutter), blocks, .. }) = self.sources.front_mut() {
            let lines = cutter.line(text.as_ref(), 0, size).into_iter().collect();
            blocks.push_back(Block::Read(text, lines));
            self.blocks += 1;
            self.hold(size);
        }
    }

    /// Ends the source that wanted a line.
    pub fn end(&mut self, failure: Option<E>) {
        if let Some(Source { input: input @ Input::Given(_), .. }) = self.sources.front_mut() {
            *input = Input::Ended(failure);
        }
    }

    /// Puts back a reader whose next block was read, with so many bytes of text: the block's number. None if the source
    /// is gone, because all reading was ended meanwhile.
    pub fn put_read(&mut self, at: usize, reader: Box<Reader>, text: usize) -> Option<usize> {
        let source = self.source(at)?;
        source.input = Input::Open(reader);
        source.blocks.push_back(Block::Busy);
        let number = source.taken + source.blocks.len() - 1;
        self.hold(text);
        Some(number)
    }

    /// Ends a source that a thread was reading.
    pub fn put_ended(&mut self, at: usize, ended: Ended) {
        let Some(source) = self.source(at) else { return };
        source.input = match ended {
            Ended::Whole => Input::Ended(None),
            Ended::Unsure(cutter) => Input::Given(cutter),
        };
        self.open -= 1;
        self.blocks -= 1;
    }

    /// Puts back a block that was scanned.
    pub fn put_scanned(&mut self, at: usize, number: usize, text: Text, found: Vec<(Line, T)>) {
        if let Some(source) = self.source(at) {
            let place = number - source.taken;
            source.blocks[place] = Block::Done(text, found);
        }
    }

    /// Forgets all sources.
    pub fn clear(&mut self) {
        (self.waiting, self.sources) = (VecDeque::new(), VecDeque::new());
    }

    fn source(&mut self, at: usize) -> Option<&mut Source<T, E>> {
        self.sources.get_mut(at.checked_sub(self.first)?)
    }

    fn hold(&mut self, text: usize) {
        self.held += text + BLOCK;
        self.read += text;
    }

    /// True if another block may be read, with so many bytes held for each thread.
    fn has_room(&self, threads: usize, ahead: usize) -> bool {
        self.blocks < threads || self.held < threads * ahead
    }

    /// What the taker gets next; None while it is not ready.
    pub fn take(&mut self, threads: usize) -> Option<Taken<T, E>> {
        // As many lines as there are threads, and one more, so that no thread waits for the taker's next one.
        let given = if threads > 1 { threads + 1 } else { 1 };
        loop {
            if self.broken {
                return Some(Taken::Broken);
            }
            let Some(source) = self.sources.front_mut() else {
                return self.waiting.is_empty().then_some(Taken::End);
            };
            if let Input::Given(cutter) = source.input
                && source.blocks.len() < given
            {
                return Some(Taken::Wanted(self.first, cutter));
            }
            match source.blocks.pop_front() {
                Some(Block::Done(text, lines)) => {
                    source.taken += 1;
                    self.blocks -= 1;
                    self.held -= text.as_ref().len() + BLOCK;
                    if !lines.is_empty() {
                        return Some(Taken::Lines(self.first, text, lines));
                    }
                }
                Some(block) => {
                    source.blocks.push_front(block);
                    return None;
                }
                None => {
                    let Input::Ended(failure) = &mut source.input else { return None };
                    let failure = failure.take();
                    self.sources.pop_front();
                    self.first += 1;
                    if let Some(failure) = failure {
                        return Some(Taken::Failed(failure));
                    }
                }
            }
        }
    }

    /// What a thread does next; None where it is to wait.
    pub fn job(&mut self, threads: usize, is_taker: bool) -> Option<Job> {
        // Lines are given to the first source alone, so that no other one has blocks to scan.
        if let Some(source) = self.sources.front_mut()
            && let Some(place) = source.blocks.iter().position(|block| matches!(block, Block::Read(..)))
            && let Block::Read(text, lines) = mem::replace(&mut source.blocks[place], Block::Busy)
        {
            return Some(Job::Scan(self.first, source.taken + place, text, lines));
        }
        // What the taker waits for is read in any case.
        let is_first = |source: &Source<T, E>| source.blocks.is_empty() && matches!(source.input, Input::Open(_));
        let is_needed = is_taker && self.sources.front().is_none_or(is_first);
        if !is_needed && !self.has_room(threads, AHEAD) {
            return None;
        }
        for (place, source) in self.sources.iter_mut().enumerate() {
            if let Input::Open(_) = source.input
                && let Input::Open(reader) = mem::replace(&mut source.input, Input::Busy)
            {
                self.blocks += 1;
                return Some(Job::Read(self.first + place, reader));
            }
        }
        while self.open < threads {
            let at = self.first + self.sources.len();
            let (input, job) = match self.waiting.pop_front()? {
                Origin::File(path) => (Input::Busy, Some(Job::Open(at, path))),
                Origin::Memory(text) => (Input::Busy, Some(Job::Over(at, text))),
                Origin::Given => (Input::Given(Cutter::default()), None),
            };
            self.sources.push_back(Source { input, blocks: VecDeque::new(), taken: 0 });
            if job.is_some() {
                self.open += 1;
                self.blocks += 1;
                return job;
            }
        }
        None
    }
}
