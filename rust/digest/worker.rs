//! One thread's share of a batch: the lanes and what is in them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::message::Message;
use crate::sha256::{Hash, LANES, Plan, RUN, Run, States, with_vectors};
use crate::source::Source;

/// Blocks between two polls: 0.7 to 2 milliseconds of work, at 11 to 32 ns a block (see `batch`).
const POLL_BLOCKS: usize = 1 << 16;

/// A batch, shared by the threads that work on it.
pub struct Job<'a, S> {
    /// What compresses.
    plan: &'a Plan,
    /// The number of lanes of each thread.
    width: usize,
    /// The sequences.
    sources: &'a [S],
    /// The sequences' indices in the order in which they are begun.
    order: Vec<usize>,
    /// The next position in `order`.
    next: AtomicUsize,
    /// Only sequences of a lower index are still wanted: the lowest fault so far, or zero when cancelled. It only
    /// falls, so every sequence below the final one is finished, whatever the threads do.
    limit: AtomicUsize,
}

/// What one thread has done.
pub struct Outcome<E> {
    /// Digests with the indices of their sequences.
    pub digests: Vec<(usize, Hash)>,
    /// The fault of lowest index that this thread met.
    pub fault: Option<(usize, E)>,
}

/// A sequence being hashed.
struct Lane<'a, S> {
    /// Its index in the batch.
    index: usize,
    /// The rest of its message.
    message: Message<'a, S>,
}

impl<'a, S: Source> Job<'a, S> {
    /// A batch of which nothing is done.
    pub fn new(plan: &'a Plan, width: usize, sources: &'a [S], order: Vec<usize>) -> Self {
        let (next, limit) = (AtomicUsize::new(0), AtomicUsize::new(sources.len()));
        Self { plan, width, sources, order, next, limit }
    }

    /// Makes all threads end soon.
    pub fn cancel(&self) {
        self.limit.store(0, Ordering::Relaxed);
    }

    /// Works until no sequence is left, and calls `poll` now and then.
    pub fn work(&self, mut poll: impl FnMut()) -> Outcome<S::Error> {
        let mut outcome = Outcome { digests: Vec::new(), fault: None };
        let mut lanes: Vec<Lane<'a, S>> = Vec::with_capacity(self.width);
        let mut states = States::new();
        let mut buffer = [const { Run::new() }; LANES];
        let mut unpolled = 0;
        loop {
            while lanes.len() < self.width
                && let Some(lane) = self.begin()
            {
                states.reset(lanes.len());
                lanes.push(lane);
            }
            // All lanes advance by the same number of blocks: at most to the end of the shortest.
            let Some(left) = lanes.iter().map(|lane| lane.message.left()).min() else {
                return outcome;
            };
            let count = left.min(RUN);
            self.fill(&mut lanes, &mut states, &mut buffer, count, &mut outcome);
            let runs = buffer.each_ref().map(|run| &run.0[..count]);
            self.plan.compress(&mut states, &runs[..lanes.len()]);

            unpolled += count * lanes.len();
            for at in (0..lanes.len()).rev() {
                if lanes[at].message.left() == 0 {
                    outcome.digests.push((lanes[at].index, states.digest(at)));
                    remove(&mut lanes, &mut states, at);
                }
            }
            if unpolled >= POLL_BLOCKS {
                unpolled = 0;
                poll();
            }
        }
    }

    /// Reads the next `count` blocks of every lane; takes out the lanes that are faulty or no longer wanted.
    fn fill(
        &self,
        lanes: &mut Vec<Lane<'a, S>>,
        states: &mut States,
        buffer: &mut [Run; LANES],
        count: usize,
        outcome: &mut Outcome<S::Error>,
    ) {
        let mut at = 0;
        while let Some(lane) = lanes.get_mut(at) {
            let filled = self.wants(lane.index).then(|| {
                let run = &mut buffer[at].0[..count];
                with_vectors(
                    #[inline(always)]
                    || lane.message.fill(run),
                )
            });
            match filled {
                Some(Ok(_)) => at += 1,
                // The lane that moves here is filled next.
                None => drop(remove(lanes, states, at)),
                Some(Err(error)) => {
                    let Lane { index, .. } = remove(lanes, states, at);
                    // It was below the limit, so it is below this thread's earlier faults.
                    self.limit.fetch_min(index, Ordering::Relaxed);
                    outcome.fault = Some((index, error));
                }
            }
        }
    }

    /// The next sequence of the queue that is still wanted.
    fn begin(&self) -> Option<Lane<'a, S>> {
        loop {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let &index = self.order.get(next)?;
            if self.wants(index) {
                let message = Message::new(&self.sources[index]);
                return Some(Lane { index, message });
            }
        }
    }

    /// Whether the digest of a sequence still matters.
    fn wants(&self, index: usize) -> bool {
        index < self.limit.load(Ordering::Relaxed)
    }
}

/// Takes a lane out and moves the last one to its place.
fn remove<'a, S>(lanes: &mut Vec<Lane<'a, S>>, states: &mut States, at: usize) -> Lane<'a, S> {
    let lane = lanes.swap_remove(at);
    if at < lanes.len() {
        states.set(at, states.get(lanes.len()));
    }
    lane
}
