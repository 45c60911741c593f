//! Several threads that read and scan ahead of the one that takes the lines, in the order of the files.
//!
//! The unit of work is a block of whole lines: one thread reads it, which nobody else can do of that file meanwhile,
//! then scans it while another thread reads on. The taker does the same work whenever what it is to take is not ready,
//! so that everything gets done where no thread can be started.

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::Duration;

use super::Text;
use super::buffers::Buffers;
use super::cut::{Cutter, Line};
use super::reader::{Ended, Reader};

/// Bytes of text that may be held for each thread, but for the last block of each: enough to keep the threads busy while
/// the taker works on one record.
const AHEAD: usize = 1 << 20;

/// What a block weighs beside its text, so that many tiny files are not read far ahead.
const BLOCK: usize = 1 << 12;

/// Bytes of text that were read when the first thread is started: about 50 microseconds of reading and scanning on a
/// Zen core (`benches/bench.py files`), where starting and joining a thread takes 13 (`digest::batch`).
const WORTH: usize = 1 << 17;

/// The time between two polls of a taker that waits.
const POLL: Duration = Duration::from_millis(5);

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

/// Sources that are read ahead of who takes their lines.
pub struct Ahead<T, E> {
    shared: Arc<Shared<T, E>>,
    workers: Mutex<Workers>,
    /// The process that the workers are in; 0 where none was started.
    process: AtomicU32,
    /// How a thread is started.
    thread: fn() -> Builder,
}

struct Workers {
    started: Vec<JoinHandle<()>>,
    /// The most of them; None where nobody has asked yet how many CPUs there are, which takes 20 microseconds.
    most: Option<usize>,
}

struct Shared<T, E> {
    scan: fn(&[u8]) -> T,
    /// The most threads, the taker's among them; 1 until it is known.
    threads: AtomicUsize,
    buffers: Arc<Buffers>,
    state: Mutex<State<T, E>>,
    /// Told where there is work.
    work: Condvar,
    /// Told where a block is done.
    done: Condvar,
    stop: AtomicBool,
}

struct State<T, E> {
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
    /// Workers that wait.
    idle: usize,
    taker_waits: bool,
    /// True where scanning panicked.
    broken: bool,
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
enum Job {
    Open(usize, PathBuf),
    Over(usize, Text),
    Read(usize, Box<Reader>),
    Scan(usize, usize, Text, Vec<Line>),
}

impl<T: Send + 'static, E: Send + 'static> Ahead<T, E> {
    /// Sources, to be read by at most `threads` threads, of which the taker's is the first; by default as many as there
    /// are CPUs that the process may use.
    pub fn new(sources: Vec<Origin>, threads: Option<usize>, scan: fn(&[u8]) -> T) -> Self {
        Self::with(sources, threads, scan, || Builder::new().name("tokenrecords".into()))
    }

    fn with(sources: Vec<Origin>, threads: Option<usize>, scan: fn(&[u8]) -> T, thread: fn() -> Builder) -> Self {
        let state = State {
            waiting: sources.into(),
            sources: VecDeque::new(),
            first: 0,
            blocks: 0,
            held: 0,
            read: 0,
            open: 0,
            idle: 0,
            taker_waits: false,
            broken: false,
        };
        let shared = Shared {
            scan,
            threads: AtomicUsize::new(threads.unwrap_or(1)),
            buffers: Arc::default(),
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
            stop: AtomicBool::new(false),
        };
        let workers = Workers { started: Vec::new(), most: threads.map(|threads| threads - 1) };
        Self { shared: Arc::new(shared), workers: Mutex::new(workers), process: AtomicU32::new(0), thread }
    }

    /// What comes next. `poll` is asked every few milliseconds whether to keep waiting.
    pub fn take(&self, poll: &mut dyn FnMut() -> bool) -> Taken<T, E> {
        if self.is_forked() {
            return Taken::Forked;
        }
        loop {
            let mut state = self.shared.lock();
            if let Some(taken) = state.take(self.shared.threads()) {
                self.shared.tell(&state);
                return taken;
            }
            if let Some(job) = state.job(self.shared.threads(), true) {
                let is_worth_a_thread = state.read >= WORTH;
                drop(state);
                if is_worth_a_thread {
                    self.start_one();
                }
                self.shared.run(job);
            } else {
                state.taker_waits = true;
                state = self.shared.done.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
                state.taker_waits = false;
                drop(state);
            }
            if !poll() {
                return Taken::Interrupted;
            }
        }
    }

    /// Gives the next line, with its line break if it has one, to the source that wanted it.
    pub fn give(&self, text: Text) {
        let mut state = self.shared.lock();
        let size = text.as_ref().len();
        if let Some(Source { input: Input::Given(cutter), blocks, .. }) = state.sources.front_mut() {
            let lines = cutter.line(text.as_ref(), 0, size).into_iter().collect();
            blocks.push_back(Block::Read(text, lines));
            state.blocks += 1;
            state.hold(size);
        }
        self.shared.tell(&state);
    }

    /// Ends the source that wanted a line.
    pub fn end(&self, failure: Option<E>) {
        if let Some(Source { input: input @ Input::Given(_), .. }) = self.shared.lock().sources.front_mut() {
            *input = Input::Ended(failure);
        }
    }

    fn start_one(&self) {
        let mut workers = lock(&self.workers);
        let most = *workers.most.get_or_insert_with(|| {
            // Affinity and cgroup quota are taken into account.
            let threads = available_parallelism().map_or(1, usize::from);
            self.shared.threads.store(threads, Ordering::Relaxed);
            threads - 1
        });
        if workers.started.len() < most {
            let shared = Arc::clone(&self.shared);
            self.process.store(process::id(), Ordering::Relaxed);
            match (self.thread)().spawn(move || shared.work()) {
                Ok(worker) => workers.started.push(worker),
                // The threads that there are do the work, down to the taker's alone.
                Err(_) => workers.most = Some(workers.started.len()),
            }
        }
    }
}

impl<T, E> Ahead<T, E> {
    /// Ends all reading and waits for the threads, which look for it with each block and chunk.
    pub fn close(&self) {
        if self.is_forked() {
            return;
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut state = self.shared.lock();
        (state.waiting, state.sources) = (VecDeque::new(), VecDeque::new());
        drop(state);
        self.shared.work.notify_all();
        for worker in mem::take(&mut lock(&self.workers).started) {
            // Its panics were caught.
            _ = worker.join();
        }
    }

    fn is_forked(&self) -> bool {
        let process = self.process.load(Ordering::Relaxed);
        process != 0 && process != process::id()
    }
}

impl<T, E> Drop for Ahead<T, E> {
    fn drop(&mut self) {
        if self.is_forked() {
            // Threads that are not there can be neither joined nor detached.
            let workers = self.workers.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(mem::take(&mut workers.started));
        }
        self.close();
    }
}

impl<T, E> Shared<T, E> {
    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        lock(&self.state)
    }

    fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// What a worker does until it is stopped.
    fn work(&self) {
        let mut state = self.lock();
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(job) = state.job(self.threads(), false) {
                drop(state);
                self.run(job);
                state = self.lock();
            } else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }

    fn run(&self, job: Job) {
        if catch_unwind(AssertUnwindSafe(|| self.carry_out(job))).is_err() {
            let mut state = self.lock();
            state.broken = true;
            self.tell_taker(&state);
        }
    }

    fn carry_out(&self, job: Job) {
        let block = match job {
            Job::Open(at, path) => self.read(at, Reader::open(&path, &self.buffers).map(Box::new)),
            Job::Over(at, text) => self.read(at, Some(Box::new(Reader::over(text, &self.buffers)))),
            Job::Read(at, reader) => self.read(at, Some(reader)),
            Job::Scan(at, number, text, lines) => Some((at, number, text, lines)),
        };
        let Some((at, number, text, lines)) = block else { return };
        let bytes = text.as_ref();
        let found = lines.into_iter().map(|line| (line, (self.scan)(&bytes[line.start..line.end]))).collect();
        let mut state = self.lock();
        if let Some(source) = state.source(at) {
            let place = number - source.taken;
            source.blocks[place] = Block::Done(text, found);
        }
        self.tell_taker(&state);
    }

    /// Reads the next block of the source at a position: that position, the block's number, its text and its lines.
    fn read(&self, at: usize, reader: Option<Box<Reader>>) -> Option<(usize, usize, Text, Vec<Line>)> {
        let read = match reader {
            Some(mut reader) => reader.next(&self.stop).map(|block| (reader, block)),
            None => Err(Ended::Unsure(Cutter::default())),
        };
        let mut state = self.lock();
        let source = state.source(at)?;
        match read {
            Ok((reader, (text, lines))) => {
                source.input = Input::Open(reader);
                source.blocks.push_back(Block::Busy);
                let number = source.taken + source.blocks.len() - 1;
                state.hold(text.as_ref().len());
                self.tell(&state);
                Some((at, number, text, lines))
            }
            Err(ended) => {
                source.input = match ended {
                    Ended::Whole => Input::Ended(None),
                    Ended::Unsure(cutter) => Input::Given(cutter),
                };
                state.open -= 1;
                state.blocks -= 1;
                self.tell_taker(&state);
                self.tell(&state);
                None
            }
        }
    }

    /// Wakes a worker if there is enough to do: not for each block that is taken.
    fn tell(&self, state: &State<T, E>) {
        if state.idle > 0 && state.has_room(self.threads(), AHEAD / 2) {
            self.work.notify_one();
        }
    }

    fn tell_taker(&self, state: &State<T, E>) {
        if state.taker_waits {
            self.done.notify_one();
        }
    }
}

impl<T, E> State<T, E> {
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
    fn take(&mut self, threads: usize) -> Option<Taken<T, E>> {
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
    fn job(&mut self, threads: usize, is_taker: bool) -> Option<Job> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock; a thread that did before is no reason to give up.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::reader::CHUNK;
    use super::*;

    /// How long a line is; one that starts with `!` panics.
    fn length(line: &[u8]) -> usize {
        assert!(!line.starts_with(b"!"), "planted");
        line.len()
    }

    fn texts(sources: usize, lines: usize) -> Vec<Vec<u8>> {
        let line = |source: usize, i: usize| format!("{source} {}\n", "x".repeat((source * 31 + i * 7) % 3000));
        (0..sources).map(|source| (0..lines).map(|i| line(source, i)).collect::<String>().into_bytes()).collect()
    }

    fn memory(texts: &[Vec<u8>]) -> Vec<Origin> {
        texts.iter().map(|text| Origin::Memory(Text::new(text.clone()))).collect()
    }

    /// Where each line was found, and what in it; given lines come from `give`.
    fn all(
        ahead: &Ahead<usize, &'static str>,
        give: &mut dyn FnMut(usize, u64) -> Option<Vec<u8>>,
    ) -> Vec<(usize, u64, usize)> {
        let mut found = Vec::new();
        loop {
            match ahead.take(&mut || true) {
                Taken::Lines(at, _, lines) => found.extend(lines.iter().map(|(line, size)| (at, line.number, *size))),
                Taken::Wanted(at, so_far) => match give(at, so_far.number) {
                    Some(line) => ahead.give(Text::new(line)),
                    None => ahead.end(Some("failure")),
                },
                Taken::Failed(_) => found.push((usize::MAX, 0, 0)),
                Taken::End => return found,
                Taken::Interrupted | Taken::Broken | Taken::Forked => panic!("nobody did that"),
            }
        }
    }

    fn expected(texts: &[Vec<u8>]) -> Vec<(usize, u64, usize)> {
        let lines = |text: &[u8]| text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>();
        let numbered = |(at, text): (usize, &Vec<u8>)| {
            lines(text).into_iter().zip(1..).map(move |(size, number)| (at, number, size)).collect::<Vec<_>>()
        };
        texts.iter().enumerate().flat_map(numbered).collect()
    }

    #[test]
    fn any_number_of_threads_gives_the_lines_in_order() {
        let texts = texts(40, 120);
        let want = expected(&texts);
        for threads in [1, 2, 3, 8] {
            let ahead = Ahead::new(memory(&texts), Some(threads), length);
            assert!(all(&ahead, &mut |_, _| unreachable!()) == want, "{threads} threads");
            assert_eq!(lock(&ahead.workers).started.is_empty(), threads == 1);
        }
    }

    #[test]
    fn where_no_thread_can_be_started_the_taker_does_it_all() {
        // No system has room for such a stack.
        let huge = || Builder::new().stack_size(usize::MAX / 2);
        let texts = texts(10, 200);
        let ahead = Ahead::with(memory(&texts), Some(4), length, huge);
        assert!(all(&ahead, &mut |_, _| unreachable!()) == expected(&texts));
        let workers = lock(&ahead.workers);
        assert_eq!((workers.started.len(), workers.most), (0, Some(0)));
    }

    #[test]
    fn there_are_as_many_threads_as_cpus_where_nobody_says() {
        let texts = texts(40, 120);
        let ahead = Ahead::new(memory(&texts), None, length);
        assert!(all(&ahead, &mut |_, _| unreachable!()) == expected(&texts));
        let cpus = available_parallelism().unwrap().get();
        assert_eq!((ahead.shared.threads(), lock(&ahead.workers).most), (cpus, Some(cpus - 1)));
    }

    #[test]
    fn small_work_starts_no_thread() {
        let texts = texts(3, 10);
        let ahead = Ahead::new(memory(&texts), Some(8), length);
        assert!(all(&ahead, &mut |_, _| unreachable!()) == expected(&texts));
        assert!(lock(&ahead.workers).started.is_empty());
    }

    #[test]
    fn given_lines_stand_between_those_that_are_read() {
        let mut texts = texts(5, 100);
        texts[2] = b"given\n".repeat(50_000);
        for threads in [1, 2, 5] {
            let mut sources = memory(&texts);
            sources[2] = Origin::Given;
            let ahead = Ahead::new(sources, Some(threads), length);
            let mut give = |at, number| {
                assert_eq!(at, 2);
                (number < 50_000).then(|| b"given\n".to_vec())
            };
            let mut want = expected(&texts);
            let behind = want.iter().position(|line| line.0 == 3).unwrap();
            want.insert(behind, (usize::MAX, 0, 0));
            assert!(all(&ahead, &mut give) == want, "{threads} threads");
        }
    }

    #[test]
    fn no_more_is_read_ahead_than_is_said() {
        static SCANNED: AtomicUsize = AtomicUsize::new(0);
        fn count(line: &[u8]) {
            SCANNED.fetch_add(line.len(), Ordering::Relaxed);
        }
        let text = [b"x".repeat(999), b"\n".to_vec()].concat().repeat(64_000);
        let threads = 3;
        let ahead: Ahead<(), ()> = Ahead::new(vec![Origin::Memory(Text::new(text))], Some(threads), count);
        for _ in 0..8 {
            assert!(matches!(ahead.take(&mut || true), Taken::Lines(..)));
        }
        // Time to read all of it, if they did.
        std::thread::sleep(Duration::from_millis(200));
        assert!(SCANNED.load(Ordering::Relaxed) <= threads * AHEAD + (8 + threads) * 2 * CHUNK);
    }

    #[test]
    fn a_reader_that_is_closed_or_dropped_at_any_moment_ends() {
        let texts = texts(20, 300);
        for moment in 0..30 {
            let ahead: Ahead<usize, ()> = Ahead::new(memory(&texts), Some(4), length);
            for _ in 0..moment {
                assert!(matches!(ahead.take(&mut || true), Taken::Lines(..)));
            }
            if moment % 2 == 0 {
                ahead.close();
                assert!(matches!(ahead.take(&mut || true), Taken::End));
            }
        }
    }

    #[test]
    fn a_panic_in_any_thread_is_reported() {
        let mut texts = texts(20, 300);
        texts[7].extend_from_slice(b"!\n");
        for threads in [1, 3] {
            let ahead: Ahead<usize, ()> = Ahead::new(memory(&texts), Some(threads), length);
            let mut taken = ahead.take(&mut || true);
            while let Taken::Lines(..) = taken {
                taken = ahead.take(&mut || true);
            }
            assert!(matches!(taken, Taken::Broken));
        }
    }

    #[test]
    fn a_poll_that_says_no_interrupts_and_costs_nothing() {
        let texts = texts(4, 300);
        let ahead: Ahead<usize, &'static str> = Ahead::new(memory(&texts), Some(2), length);
        assert!(matches!(ahead.take(&mut || false), Taken::Interrupted));
        assert!(all(&ahead, &mut |_, _| unreachable!()) == expected(&texts));
    }
}
