//! Several threads that read and scan ahead of the one that takes the lines, in the order of the files.
//!
//! The unit of work is a block of whole lines: one thread reads it, which nobody else can do of that file meanwhile,
//! then scans it while another thread reads on. The taker does the same work whenever what it is to take is not ready,
//! so that everything gets done where no thread can be started.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::Duration;

use super::Text;
use super::buffers::Buffers;
use super::cut::{Cutter, Line};
use super::queue::{Job, Origin, Queue, Taken};
use super::reader::{Ended, Reader};

/// The time between two polls of a taker that waits.
const POLL: Duration = Duration::from_millis(5);

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

/// What is held under the lock, but not while a block is read or scanned.
struct State<T, E> {
    queue: Queue<T, E>,
    /// Workers that wait.
    idle: usize,
    taker_waits: bool,
}

impl<T: Send + 'static, E: Send + 'static> Ahead<T, E> {
    /// Sources, to be read by at most `threads` threads, of which the taker's is the first; by default as many as there
    /// are CPUs that the process may use.
    pub fn new(sources: Vec<Origin>, threads: Option<usize>, scan: fn(&[u8]) -> T) -> Self {
        Self::with(sources, threads, scan, || Builder::new().name("tokenrecords".into()))
    }

    fn with(sources: Vec<Origin>, threads: Option<usize>, scan: fn(&[u8]) -> T, thread: fn() -> Builder) -> Self {
        let shared = Shared {
            scan,
            threads: AtomicUsize::new(threads.unwrap_or(1)),
            buffers: Arc::default(),
            state: Mutex::new(State { queue: Queue::new(sources), idle: 0, taker_waits: false }),
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
            if let Some(taken) = state.queue.take(self.shared.threads()) {
                self.shared.tell(&state);
                return taken;
            }
            if let Some(job) = state.queue.job(self.shared.threads(), true) {
                let is_worth_a_thread = state.queue.is_worth_a_thread();
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
        state.queue.give(text);
        self.shared.tell(&state);
    }

    /// Ends the source that wanted a line.
    pub fn end(&self, failure: Option<E>) {
        self.shared.lock().queue.end(failure);
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
        self.shared.lock().queue.clear();
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
            if let Some(job) = state.queue.job(self.threads(), false) {
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
            state.queue.broken = true;
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
        state.queue.put_scanned(at, number, text, found);
        self.tell_taker(&state);
    }

    /// Reads the next block of the source at a position: that position, the block's number, its text and its lines.
    fn read(&self, at: usize, reader: Option<Box<Reader>>) -> Option<(usize, usize, Text, Vec<Line>)> {
        let read = match reader {
            Some(mut reader) => reader.next(&self.stop).map(|block| (reader, block)),
            None => Err(Ended::Unsure(Cutter::default())),
        };
        let mut state = self.lock();
        match read {
            Ok((reader, (text, lines))) => {
                let number = state.queue.put_read(at, reader, text.as_ref().len())?;
                self.tell(&state);
                Some((at, number, text, lines))
            }
            Err(ended) => {
                state.queue.put_ended(at, ended);
                self.tell_taker(&state);
                self.tell(&state);
                None
            }
        }
    }

    /// Wakes a worker where one waits and there is enough to do.
    fn tell(&self, state: &State<T, E>) {
        if state.idle > 0 && state.queue.is_worth_a_call(self.threads()) {
            self.work.notify_one();
        }
    }

    fn tell_taker(&self, state: &State<T, E>) {
        if state.taker_waits {
            self.done.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock; a thread that did before is no reason to give up.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::queue::AHEAD;
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
            assert!(all(&ahead, &mut |_, _| panic!()) == want, "{threads} threads");
            assert_eq!(lock(&ahead.workers).started.is_empty(), threads == 1);
        }
    }

    #[test]
    fn where_no_thread_can_be_started_the_taker_does_it_all() {
        // No system has room for such a stack.
        let huge = || Builder::new().stack_size(usize::MAX / 2);
        let texts = texts(10, 200);
        let ahead = Ahead::with(memory(&texts), Some(4), length, huge);
        assert!(all(&ahead, &mut |_, _| panic!()) == expected(&texts));
        let workers = lock(&ahead.workers);
        assert_eq!((workers.started.len(), workers.most), (0, Some(0)));
    }

    #[test]
    fn there_are_as_many_threads_as_cpus_where_nobody_says() {
        let texts = texts(40, 120);
        let ahead = Ahead::new(memory(&texts), None, length);
        assert!(all(&ahead, &mut |_, _| panic!()) == expected(&texts));
        let cpus = available_parallelism().unwrap().get();
        assert_eq!((ahead.shared.threads(), lock(&ahead.workers).most), (cpus, Some(cpus - 1)));
    }

    #[test]
    fn small_work_starts_no_thread() {
        let texts = texts(3, 10);
        let ahead = Ahead::new(memory(&texts), Some(8), length);
        assert!(all(&ahead, &mut |_, _| panic!()) == expected(&texts));
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
        assert!(all(&ahead, &mut |_, _| panic!()) == expected(&texts));
    }
}
