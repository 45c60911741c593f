//! Digests of many sequences: any mix of kinds, a window of them at a time.

use super::array::ArrayView;
use super::errors::{self, Name, no_stop};
use super::items;
use super::json::words;
use super::signals::Signals;
use super::tokens::{Tokens, is_set};
use crate::digest::{Hash, Stopped, digest_many};
use crate::dtype::Negative;
use crate::source::Source;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, available_parallelism};
use std::time::Duration;

/// The weight of a window: it bounds the memory for ids copied from lists, 4 Mi of them in 16 or 32 MiB, and for arrays
/// that an iterator makes, and is large enough to keep lanes and threads busy.
const WINDOW: usize = 1 << 26;

/// The weight of an id copied from a list, where one of an array, which is not copied, weighs 1.
const COPIED: usize = 16;

/// From this weight on, and this number of sequences, which fills the lanes, a window of copied ids is hashed by
/// another thread while the next ids are copied.
///
/// Measured on two Zen 5 server cores with `compute_digests(lists, threads=2)`, in ns an id, against windows that wait
/// to be full: 3.6 instead of 5.0 for 2,000 lists of 512 ids, 2.5 instead of 2.9 for 512 of 4,096, 4.1 instead of 4.6
/// for 128 of 32,768. `benches/bench.py batches` measures such lists.
const BEHIND: (usize, usize) = (COPIED << 18, 64);

/// The time between two looks for Ctrl-C while the other thread is waited for.
const POLL: Duration = Duration::from_millis(5);

/// One sequence of a window, readable without the GIL.
pub enum Item {
    View(ArrayView),
    /// Copied from a list.
    Small(Vec<i32>),
    /// Copied from a list or tuple that holds other things than small ints.
    Ids(Vec<u64>),
}

impl Source for Item {
    type Error = Negative;

    fn len(&self) -> usize {
        match self {
            Self::View(view) => view.len(),
            Self::Small(ids) => ids.len(),
            Self::Ids(ids) => ids.len(),
        }
    }

    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Negative> {
        match self {
            Self::View(view) => view.read(at, out),
            Self::Small(ids) => {
                for (id, &small) in out.iter_mut().zip(&ids[at..]) {
                    *id = u64::from(small.cast_unsigned());
                }
                Ok(())
            }
            Self::Ids(ids) => {
                out.copy_from_slice(&ids[at..at + out.len()]);
                Ok(())
            }
        }
    }
}

/// The digests of the sequences that an iterable gives.
pub fn of_iterable(sequences: &Bound<'_, PyAny>, threads: usize) -> PyResult<Vec<Hash>> {
    let py = sequences.py();
    let mut batch = Batch::new(py, threads);
    if is_set(sequences)? {
        return Err(PyTypeError::new_err("sequences is a set: it is unordered, and so would be the digests"));
    }
    let iterator = sequences.try_iter().map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            let (value, kind) = (errors::shown(sequences), errors::type_name(sequences));
            let message = format!("sequences is {value}: an iterable of token sequences is needed, got {kind}");
            return errors::because(py, PyTypeError::new_err(message), error);
        }
        no_stop(py, error, "sequences")
    })?;
    for (place, object) in iterator.enumerate() {
        let added = object.and_then(|object| batch.add(Tokens::new(Name::Sequence(place), &object)?));
        if let Err(error) = added {
            return Err(batch.fault(error));
        }
    }
    batch.finish()
}

/// The digests of the pieces of one flat sequence: piece i is `offsets[i]..offsets[i + 1]`.
pub fn of_pieces(flat: &Bound<'_, PyAny>, offsets: &Bound<'_, PyAny>, threads: usize) -> PyResult<Vec<Hash>> {
    let py = flat.py();
    let flat = Tokens::new(Name::Argument("sequences"), flat)?;
    let bounds = bounds(&Tokens::new(Name::Argument("offsets"), offsets)?, flat.len())?;
    let mut batch = Batch::new(py, threads);
    for (place, ends) in bounds.windows(2).enumerate() {
        if let Err(error) = batch.add(flat.piece(py, ends[0], ends[1]).named(Name::Sequence(place))) {
            return Err(batch.fault(error));
        }
    }
    batch.finish()
}

fn bounds(offsets: &Tokens<'_, '_>, ids: usize) -> PyResult<Vec<usize>> {
    let mut bounds = words(offsets.len())?;
    offsets.read(0, &mut bounds)?;
    if bounds.is_empty() {
        return Err(PyValueError::new_err("offsets is empty: n sequences need n + 1 offsets"));
    }
    for (index, pair) in bounds.windows(2).enumerate() {
        if pair[1] < pair[0] {
            let message =
                format!("offsets[{}] is {}: offsets must not decrease, got {} before", index + 1, pair[1], pair[0]);
            return Err(PyValueError::new_err(message));
        }
    }
    let last = bounds[bounds.len() - 1];
    if last > ids as u64 {
        let index = bounds.len() - 1;
        let message = format!("offsets[{index}] is {last}: it lies beyond the {ids} ids of sequences");
        return Err(PyValueError::new_err(message));
    }
    #[expect(clippy::expect_used, reason = "none is above the last, and that is at most the number of ids, a usize")]
    let narrow = |bound| usize::try_from(bound).expect("at most the number of ids");
    Ok(bounds.into_iter().map(narrow).collect())
}

/// The number of threads to use at most: as many as `threads` says, or the CPUs that this process may use.
pub fn thread_count(threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    // Affinity and cgroup quota are taken into account.
    Ok(most_threads(threads)?.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)))
}

/// The number of threads that an argument gives.
pub fn most_threads(threads: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(threads) = threads else { return Ok(None) };
    match threads.extract::<isize>() {
        Ok(count @ 1..) => Ok(Some(count.unsigned_abs())),
        Ok(count) => Err(PyValueError::new_err(format!("threads is {count}: it must be at least 1"))),
        Err(_) => Err(PyTypeError::new_err(format!(
            "threads is {}: it must be an int or None, got {}",
            errors::shown(threads),
            errors::type_name(threads)
        ))),
    }
}

/// A sequence that can be read without the GIL.
pub fn item(tokens: Tokens<'_, '_>) -> PyResult<Item> {
    match tokens.into_view() {
        Ok(view) => Ok(Item::View(view)),
        Err(tokens) => copied(&tokens),
    }
}

fn copied(tokens: &Tokens<'_, '_>) -> PyResult<Item> {
    if let Some(small) = tokens.list().and_then(|list| items::small_ints(list))
        && small.iter().all(|&id| id >= 0)
    {
        return Ok(Item::Small(small));
    }
    let mut ids = words(tokens.len())?;
    tokens.read(0, &mut ids)?;
    Ok(Item::Ids(ids))
}

struct Batch<'py> {
    py: Python<'py>,
    threads: usize,
    window: Vec<Item>,
    /// True if the window holds copied ids alone.
    copied: bool,
    weight: usize,
    hashes: Vec<Hash>,
    /// The window before this one, while another thread hashes it.
    behind: Option<Behind>,
}

/// A window in the hands of another thread. It holds copied ids alone, so that nobody need wait for that thread.
struct Behind {
    hashes: Receiver<Vec<Hash>>,
    abandoned: Arc<AtomicBool>,
}

impl Behind {
    /// Hands the window over, or back where no thread can be started.
    fn new(window: Vec<Item>, threads: usize) -> Result<Self, Vec<Item>> {
        let abandoned = Arc::new(AtomicBool::new(false));
        let (sender, hashes) = mpsc::channel();
        let window = Arc::new(window);
        let (theirs, flag) = (Arc::clone(&window), Arc::clone(&abandoned));
        let work = move || {
            if let Ok(new) = digest_many(&theirs, threads, &|| !flag.load(Ordering::Relaxed)) {
                // Nobody may be there to receive it any more.
                _ = sender.send(new);
            }
        };
        match Builder::new().spawn(work) {
            Ok(_) => Ok(Self { hashes, abandoned }),
            #[expect(clippy::expect_used, reason = "the work that was not begun is gone, and its share of the window")]
            Err(_) => Err(Arc::into_inner(window).expect("the only share of the window")),
        }
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

impl<'py> Batch<'py> {
    fn new(py: Python<'py>, threads: usize) -> Self {
        Self { py, threads, window: Vec::new(), copied: true, weight: 0, hashes: Vec::new(), behind: None }
    }

    fn add(&mut self, tokens: Tokens<'py, '_>) -> PyResult<()> {
        // An empty sequence weighs something too: an endless iterator of them must not fill the memory.
        match tokens.into_view() {
            Ok(view) => {
                self.weight += view.len() + COPIED;
                self.window.push(Item::View(view));
                self.copied = false;
            }
            Err(tokens) => {
                self.window.push(copied(&tokens)?);
                self.weight += COPIED * (tokens.len() + 1);
            }
        }
        if self.weight >= WINDOW {
            self.flush()?;
        } else if self.threads > 1 && self.copied && self.weight >= BEHIND.0 && self.window.len() >= BEHIND.1 {
            self.collect()?;
            match Behind::new(std::mem::take(&mut self.window), self.threads - 1) {
                Ok(behind) => (self.behind, self.weight) = (Some(behind), 0),
                Err(window) => self.window = window,
            }
        }
        Ok(())
    }

    /// Wait for the window that another thread hashes.
    fn collect(&mut self) -> PyResult<()> {
        let Some(mut behind) = self.behind.take() else { return Ok(()) };
        loop {
            let received;
            (received, behind) = self.py.detach(move || (behind.hashes.recv_timeout(POLL), behind));
            match received {
                Ok(new) => {
                    self.hashes.extend(new);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => self.py.check_signals()?,
                #[expect(clippy::unreachable, reason = "copied ids are sound, and nobody abandoned them")]
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread that hashed a window is gone"),
            }
        }
    }

    /// Hash the window. Whatever comes of it, it is not hashed again.
    fn flush(&mut self) -> PyResult<()> {
        self.collect()?;
        let signals = Signals::new();
        let (window, threads) = (std::mem::take(&mut self.window), self.threads);
        match self.py.detach(|| digest_many(&window, threads, &|| signals.are_quiet())) {
            Ok(new) => self.hashes.extend(new),
            Err(Stopped::Fault { index, error }) => {
                let name = Name::Sequence(self.hashes.len() + index);
                return Err(errors::negative(name, error.index, error.value));
            }
            Err(Stopped::Cancelled) => return Err(signals.into_error()),
        }
        (self.weight, self.copied) = (0, true);
        Ok(())
    }

    /// The error of the batch after one at its end: of several faults the first in order is reported, so those before
    /// this one are looked for; not after an interrupt, which ends the work.
    fn fault(mut self, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyException>(self.py) {
            return error;
        }
        self.flush().err().unwrap_or(error)
    }

    fn finish(mut self) -> PyResult<Vec<Hash>> {
        self.flush()?;
        Ok(self.hashes)
    }
}
