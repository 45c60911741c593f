//! Which kernel takes how many lanes: one choice, made once for the process.
//!
//! No table of processors says it, for none is complete: sixteen lanes of AVX-512 beat the SHA instructions on Intel's
//! cores and on Zen 5, and lose to them on Zen 4, which has both. So the kernels race, for less than a tenth of a
//! millisecond, when the first batch needs to know. Every kernel gives the same digests, so a wrong guess costs time
//! alone.

use std::env;
use std::sync::OnceLock;
use std::time::Instant;

use super::kernel::Kernel;
use super::state::{Block, LANES, States};

/// The environment variable that forces a kernel, by its name.
const VARIABLE: &str = "TOKENRECORDS_KERNEL";

/// How often each kernel runs in the race. Its best time counts, so one run that nothing disturbs is enough.
const ROUNDS: usize = 5;

/// A kernel for each number of lanes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// For `i` lanes, at `i`: the kernel that takes the first of them.
    kernels: [Kernel; LANES + 1],
    /// The number of lanes at which the kernels are at their best.
    width: usize,
}

impl Plan {
    /// The plan of this process.
    pub fn chosen() -> &'static Self {
        static CHOSEN: OnceLock<Plan> = OnceLock::new();
        // Made outside the cell: a process that is forked meanwhile inherits no cell that another thread has begun.
        CHOSEN.get().unwrap_or_else(|| {
            let plan = forced().map_or_else(|| Self::of_costs(&race()), Self::of_one);
            CHOSEN.get_or_init(|| plan)
        })
    }

    /// One kernel for all.
    pub fn of_one(kernel: Kernel) -> Self {
        Self { kernels: [kernel; LANES + 1], width: kernel.lanes() }
    }

    /// The kernels that take the least time, where a call of each takes the time beside it.
    fn of_costs(costs: &[(Kernel, u32)]) -> Self {
        let calls: Vec<_> = costs.iter().map(|&(kernel, cost)| (kernel.lanes(), cost)).collect();
        let (places, width) = cheapest(&calls);
        Self { kernels: places.map(|place| costs[place].0), width }
    }

    /// Each kernel of this machine by itself, the plan of this process, and one that mixes kernels.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        let kernels = Kernel::all();
        let cost = |kernel: Kernel| 1 + 10 * u32::try_from(kernel.lanes()).expect("at most sixteen");
        let mixed: Vec<_> = kernels.iter().map(|&kernel| (kernel, cost(kernel))).collect();
        kernels.into_iter().map(Self::of_one).chain([*Self::chosen(), Self::of_costs(&mixed)]).collect()
    }

    /// The kernel of a full call.
    pub fn kernel(&self) -> Kernel {
        self.kernels[self.width]
    }

    /// The number of lanes at which the kernels are at their best.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Compresses the blocks of each run, all of one length, into the lane of the same position.
    ///
    /// # Panics
    /// There are more than [`LANES`] runs, or they differ in length.
    pub fn compress(&self, states: &mut States, runs: &[&[Block]]) {
        let mut first = 0;
        while first < runs.len() {
            let left = &runs[first..];
            let kernel = self.kernels[left.len()];
            let part = &left[..left.len().min(kernel.lanes())];
            kernel.compress(states, first, part);
            first += part.len();
        }
    }
}

/// For each number of lanes the call that takes the first of them, where all take the least time together, and the number
/// of lanes of least time a lane. A call is the number of its lanes and its time, which is not zero.
fn cheapest(calls: &[(usize, u32)]) -> ([usize; LANES + 1], usize) {
    let (mut places, mut least) = ([0; LANES + 1], [0; LANES + 1]);
    for lanes in 1..=LANES {
        least[lanes] = u64::MAX;
        for (place, &(taken, cost)) in calls.iter().enumerate() {
            let all = u64::from(cost) + least[lanes.saturating_sub(taken)];
            if all < least[lanes] {
                (places[lanes], least[lanes]) = (place, all);
            }
        }
    }
    // Products in place of quotients; of equals the fewest lanes.
    let faster = |a: usize, b: usize| least[a] * (b as u64) < least[b] * (a as u64);
    let width = (2..=LANES).fold(1, |best, lanes| if faster(lanes, best) { lanes } else { best });
    (places, width)
}

/// The kernel for one lane: the one that is forced, or the SHA instructions where there are some.
pub fn lone() -> Kernel {
    forced().unwrap_or_else(Kernel::narrow)
}

/// The kernels that this process uses for one digest and, at its number of lanes, for a batch.
#[must_use]
pub fn kernels() -> [Kernel; 2] {
    [lone(), Plan::chosen().kernel()]
}

/// The kernel that is forced: by the build flag `--cfg tokenrecords_backend="scalar"` the portable one, or what
/// [`VARIABLE`] names.
fn forced() -> Option<Kernel> {
    if cfg!(tokenrecords_backend = "scalar") {
        return Some(Kernel::Portable);
    }
    asked().as_ref().map_or(None, |kernel| *kernel)
}

/// Why the kernel that the environment variable `TOKENRECORDS_KERNEL` names can't be had: then it forces nothing.
#[must_use]
pub fn unusable() -> Option<&'static str> {
    asked().as_ref().err().map(String::as_str)
}

/// What [`VARIABLE`] asks for, or why it can't be had. The variable is read once.
fn asked() -> &'static Result<Option<Kernel>, String> {
    static ASKED: OnceLock<Result<Option<Kernel>, String>> = OnceLock::new();
    ASKED.get_or_init(|| env::var_os(VARIABLE).map_or(Ok(None), |name| named(&name.to_string_lossy())))
}

/// The kernel of a name, none for no name, or what is wrong with it.
fn named(name: &str) -> Result<Option<Kernel>, String> {
    let all = Kernel::all();
    match all.iter().find(|kernel| kernel.name() == name) {
        None if !name.is_empty() => {
            let names = all.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ");
            Err(format!("{VARIABLE} is '{}': one of {names} is needed on this machine", name.escape_debug()))
        }
        found => Ok(found.copied()),
    }
}

/// Every kernel with the nanoseconds of one call for the same number of blocks a lane.
fn race() -> Vec<(Kernel, u32)> {
    let mut costs: Vec<_> = Kernel::all().into_iter().map(|kernel| (kernel, u32::MAX)).collect();
    for _ in 0..ROUNDS {
        for (kernel, cost) in &mut costs {
            let start = Instant::now();
            _ = kernel.lap();
            let elapsed = u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX);
            *cost = (*cost).min(elapsed.max(1));
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of lanes of the calls that `lanes` lanes are divided into.
    fn parts(calls: &[(usize, u32)], mut lanes: usize) -> Vec<usize> {
        let (places, _) = cheapest(calls);
        let mut parts = Vec::new();
        while lanes > 0 {
            let taken = calls[places[lanes]].0.min(lanes);
            parts.push(taken);
            lanes -= taken;
        }
        parts
    }

    #[test]
    fn the_cheapest_calls_for_each_number_of_lanes() {
        // Nanoseconds of a call for 16 blocks a lane on a Zen 5 server core, from `cargo bench`.
        let measured = [(1, 540), (1, 511), (2, 682), (3, 1_031), (4, 1_205), (8, 2_220), (16, 2_729)];
        assert_eq!(cheapest(&measured).1, 16);
        assert_eq!(parts(&measured, 1), [1]);
        assert_eq!(cheapest(&measured).0[1], 1, "of two kernels of one lane the faster");
        assert_eq!(parts(&measured, 3), [3]);
        assert_eq!(parts(&measured, 5), [2, 3]);
        assert_eq!(parts(&measured, 8), [8]);
        for lanes in 10..=16 {
            assert_eq!(parts(&measured, lanes), [lanes], "one call of sixteen lanes");
        }
        // Where sixteen lanes take the time of twenty, eight are best, and twice eight for sixteen.
        let slow = [&measured[..6], &[(16, 5_550)]].concat();
        assert_eq!(cheapest(&slow).1, 8);
        assert_eq!(parts(&slow, 16), [8, 8]);
        assert_eq!(cheapest(&[(1, 2_000), (16, 2_729)]).0, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn of_equals_the_fewest_lanes() {
        assert_eq!(cheapest(&[(1, 5)]).1, 1);
        assert_eq!(cheapest(&[(1, 5), (4, 10)]).1, 4);
        assert_eq!(cheapest(&[(1, u32::MAX)]).1, 1, "however long a call takes");
    }

    #[test]
    fn the_race_times_every_kernel() {
        let start = Instant::now();
        let costs = race();
        assert!(start.elapsed().as_nanos() >= costs.iter().map(|&(_, cost)| u128::from(cost)).sum());
        assert_eq!(costs.iter().map(|&(kernel, _)| kernel).collect::<Vec<_>>(), Kernel::all());
        assert!(costs.iter().all(|&(_, cost)| (1..u32::MAX).contains(&cost)));
    }

    #[test]
    fn kernels_by_their_names() {
        assert_eq!(named(""), Ok(None));
        assert_eq!(named("portable"), Ok(Some(Kernel::Portable)));
        for kernel in Kernel::all() {
            assert_eq!(named(&kernel.name()), Ok(Some(kernel)));
        }
        let names = Kernel::all().iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ");
        let wanted = format!("TOKENRECORDS_KERNEL is 'sha-ni': one of {names} is needed on this machine");
        assert_eq!(named("sha-ni"), Err(wanted));
    }
}
