//! The digests of many sequences: several at once on one core, then threads.
//!
//! A lane is a sequence being hashed. Every thread keeps as many lanes as its plan likes and advances them
//! together; a lane that ends takes the next sequence from a queue that all threads share, longest sequence first, so
//! that lanes and threads come to their end at about the same time.

use std::cmp::Reverse;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Builder};
use std::time::Duration;

use super::message;
use super::worker::{Job, Outcome};
use crate::sha256::{Hash, Plan};
use crate::source::Source;

/// The work that a further thread must find to be worth its start, in blocks: 22 to 65 microseconds on a Zen 5 server
/// core, at 11 to 32 ns a block (64 bytes by the rates that `cargo bench -- '^kernels'` prints), where starting and
/// joining a thread takes 13.
const BLOCKS_PER_THREAD: usize = 1 << 11;

/// The time between two questions whether to keep going, while other threads still work.
const POLL: Duration = Duration::from_millis(5);

/// Why there are no digests.
#[derive(Debug, PartialEq, Eq)]
pub enum Stopped<E> {
    /// A source refused an element.
    Fault {
        /// The position of the source: the lowest of all faulty ones.
        index: usize,
        /// What the source said.
        error: E,
    },
    /// The caller did not want to keep going.
    Cancelled,
}

/// The digests of `sources`, in their order, by at most `threads` threads, of which the calling one is the first.
///
/// `keep_going` is asked on the calling thread every few milliseconds; when it answers `false` the work is given up.
///
/// # Errors
/// A source refuses an element, or `keep_going` answered `false`.
pub fn digest_many<S: Source + Sync>(
    sources: &[S],
    threads: usize,
    keep_going: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Hash>, Stopped<S::Error>>
where
    S::Error: Send,
{
    let blocks = sources.iter().map(|source| message::blocks(source.len())).sum::<usize>();
    let threads = threads.min(blocks / BLOCKS_PER_THREAD);
    digest_by(Plan::chosen(), sources, threads, Builder::new, keep_going)
}

/// The same by a given plan and number of threads, which `thread` describes.
///
/// Where a thread cannot be started, its work is left to those that there are.
fn digest_by<S: Source + Sync>(
    plan: &Plan,
    sources: &[S],
    threads: usize,
    thread: impl Fn() -> Builder,
    keep_going: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Hash>, Stopped<S::Error>>
where
    S::Error: Send,
{
    let threads = threads.clamp(1, sources.len().max(1));
    let width = plan.width().min(sources.len().div_ceil(threads));
    let mut order: Vec<_> = (0..sources.len()).collect();
    order.sort_by_key(|&index| Reverse(sources[index].len()));
    let job = Job::new(plan, width, sources, order);

    let mut digests = vec![[0; 32]; sources.len()];
    let mut fault: Option<(usize, S::Error)> = None;
    let mut collect = |outcome: Outcome<S::Error>| {
        for (index, digest) in outcome.digests {
            digests[index] = digest;
        }
        // Each thread ends with its lowest fault; keep the lowest of these.
        if let Some(new) = outcome.fault
            && fault.as_ref().is_none_or(|old| new.0 < old.0)
        {
            fault = Some(new);
        }
    };
    let mut cancelled = false;
    let mut poll = || {
        if !cancelled && !keep_going() {
            cancelled = true;
            job.cancel();
        }
    };

    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 1..threads {
            let (sender, job) = (sender.clone(), &job);
            // The receiver outlives all senders, so a send cannot fail.
            let work = move || drop(sender.send(job.work(|| ())));
            if thread().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        drop(sender);
        collect(job.work(&mut poll));
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(outcome) => collect(outcome),
                Err(RecvTimeoutError::Timeout) => poll(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });

    match fault {
        _ if cancelled => Err(Stopped::Cancelled),
        Some((index, error)) => Err(Stopped::Fault { index, error }),
        None => Ok(digests),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::replace;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::ThreadId;
    use std::time::Instant;

    use super::*;
    use crate::testing::{Ids, expected};

    /// Digests by every plan and several numbers of threads must be those of the definition.
    fn check(lens: impl IntoIterator<Item = usize>) {
        let ids: Vec<_> = lens.into_iter().zip(0..).map(|(len, i)| Ids::new(len, i)).collect();
        let expected: Vec<_> = ids.iter().map(|ids| expected(&ids.0)).collect();
        for plan in &Plan::all() {
            for threads in [1, 2, 3, 7] {
                let digests = digest_by(plan, &ids, threads, Builder::new, &|| true);
                assert!(digests.as_ref() == Ok(&expected), "{plan:?}, {threads} threads");
            }
        }
    }

    #[test]
    fn every_block_edge() {
        check(0..=40);
        check((0..=40).rev());
        check((100..150).chain(0..20));
    }

    #[test]
    fn every_number_of_lanes() {
        for count in (0..=20).chain([31, 32, 33, 48]) {
            check((0..count).map(|i| i * 37 % 100));
            check((0..count).map(|_| 14));
        }
    }

    #[test]
    fn one_long_among_short() {
        check((0..30).map(|i| if i == 17 { 9_001 } else { i }));
    }

    #[test]
    fn ids_around_32_bits_anywhere() {
        let check = |ids: &[Ids], expected: &[Hash]| {
            for plan in &Plan::all() {
                let digests = digest_by(plan, ids, 1, Builder::new, &|| true);
                assert_eq!(digests.as_deref(), Ok(expected), "{plan:?}");
            }
        };
        for id in [u32::MAX.into(), 1 << 32, (1 << 32) | 1, i64::MAX] {
            let mut ids: Vec<_> = (0..16).map(|i| Ids::new(40, i)).collect();
            let mut digests: Vec<_> = ids.iter().map(|ids| expected(&ids.0)).collect();
            check(&ids, &digests);
            // In one place of one lane, from the first block to the last.
            for at in 0..40 {
                let lane = at * 7 % 16;
                let small = replace(&mut ids[lane].0[at], id);
                let digest = replace(&mut digests[lane], expected(&ids[lane].0));
                check(&ids, &digests);
                ids[lane].0[at] = small;
                digests[lane] = digest;
            }
            // In more and more places, until all ids are such.
            for at in 0..40 {
                for (lane, ids) in ids.iter_mut().enumerate() {
                    ids.0[(at + lane) % 40] = id;
                }
                let digests: Vec<_> = ids.iter().map(|ids| expected(&ids.0)).collect();
                check(&ids, &digests);
            }
        }
    }

    #[test]
    fn the_public_function_starts_threads_for_large_batches() {
        // A thread that is started may begin late, and is waited for.
        for (len, threads, started) in [(2_000, 2, 2), (2_000, 1, 1), (2, 2, 1)] {
            let readers = Mutex::new(HashSet::new());
            let until = Instant::now() + Duration::from_secs(if started == 2 { 30 } else { 0 });
            let ids: Vec<_> = (0..40).map(|i| Met { ids: Ids::new(len, i), readers: &readers, until }).collect();
            let expected: Vec<_> = ids.iter().map(|met| expected(&met.ids.0)).collect();
            assert!(digest_many(&ids, threads, &|| true) == Ok(expected));
            assert_eq!(readers.into_inner().unwrap().len(), started, "{len} ids, {threads} threads");
        }
    }

    /// Ids that wait, until some time, for a second thread that reads.
    struct Met<'a> {
        ids: Ids,
        readers: &'a Mutex<HashSet<ThreadId>>,
        until: Instant,
    }

    impl Source for Met<'_> {
        type Error = i64;

        fn len(&self) -> usize {
            self.ids.len()
        }

        fn read(&self, at: usize, out: &mut [u64]) -> Result<(), i64> {
            self.readers.lock().unwrap().insert(thread::current().id());
            while self.readers.lock().unwrap().len() < 2 && Instant::now() < self.until {
                thread::yield_now();
            }
            self.ids.read(at, out)
        }
    }

    #[test]
    fn threads_that_do_not_start_leave_their_work_to_the_others() {
        let ids: Vec<_> = (0..40).map(|i| Ids::new(200, i)).collect();
        let expected: Vec<_> = ids.iter().map(|ids| expected(&ids.0)).collect();
        for started in [0, 1, 2] {
            let asked = AtomicUsize::new(0);
            let thread = || match asked.fetch_add(1, Ordering::Relaxed) < started {
                true => Builder::new(),
                // No address space has room for this stack.
                false => Builder::new().stack_size(usize::MAX >> 1 & !0xffff),
            };
            let digests = digest_by(Plan::chosen(), &ids, 5, thread, &|| true);
            assert!(digests.as_ref() == Ok(&expected), "{started} threads started");
            assert_eq!(asked.into_inner(), started + 1, "none is asked for after the one that did not start");
        }
    }

    #[test]
    fn the_lowest_fault_is_reported() {
        for plan in &Plan::all() {
            for threads in [1, 2, 3, 7] {
                for lowest in [0, 1, 20, 58] {
                    let mut ids: Vec<_> = (0..60).map(|i| Ids::new(300, i)).collect();
                    // Later in its sequence than those of higher index, and of a shorter sequence, which is begun last.
                    ids[lowest].0.truncate(260);
                    ids[lowest].0[259] = -1;
                    for (i, ids) in ids.iter_mut().enumerate().skip(lowest + 1) {
                        ids.0[i] = -2;
                    }
                    let fault = Stopped::Fault { index: lowest, error: -1 };
                    assert_eq!(digest_by(plan, &ids, threads, Builder::new, &|| true), Err(fault));
                }
            }
        }
    }

    /// Ids that only the calling thread can read before it has asked whether to go on.
    struct Waiting<'a> {
        ids: Ids,
        asked: &'a AtomicUsize,
        caller: ThreadId,
    }

    impl Source for Waiting<'_> {
        type Error = i64;

        fn len(&self) -> usize {
            self.ids.len()
        }

        fn read(&self, at: usize, out: &mut [u64]) -> Result<(), i64> {
            while thread::current().id() != self.caller && self.asked.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            self.ids.read(at, out)
        }
    }

    #[test]
    fn cancelled() {
        for plan in &Plan::all() {
            for threads in [1, 2] {
                let asked = AtomicUsize::new(0);
                let caller = thread::current().id();
                let ids: Vec<_> =
                    (0..16).map(|i| Waiting { ids: Ids::new(100_000, i), asked: &asked, caller }).collect();
                let keep_going = || asked.fetch_add(1, Ordering::Relaxed) > 0;
                let stopped = digest_by(plan, &ids, threads, Builder::new, &keep_going);
                assert!(stopped == Err(Stopped::Cancelled), "{plan:?}, {threads} threads");
                assert_eq!(asked.load(Ordering::Relaxed), 1);
            }
        }
    }
}
