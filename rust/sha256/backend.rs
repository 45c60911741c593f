//! The choice of what compresses.

use super::portable;
use super::state::{Block, LANES, States};
#[cfg(target_arch = "x86_64")]
use super::x86;

/// How blocks are compressed.
#[derive(Clone, Copy, Debug)]
pub enum Backend {
    /// By the `sha2` crate, one lane after the other.
    Portable,
    /// By the vector and SHA instructions of x86-64.
    #[cfg(target_arch = "x86_64")]
    X86(x86::Features),
}

impl Backend {
    /// The fastest back end of this machine. The build flag `--cfg tokenrecords_backend="scalar"` forces the portable
    /// one.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if !cfg!(tokenrecords_backend = "scalar")
            && let Some(features) = x86::Features::detect()
        {
            return Self::X86(features);
        }
        Self::Portable
    }

    /// The number of lanes at which the back end is at its best.
    pub fn width(self) -> usize {
        match self {
            Self::Portable => 1,
            #[cfg(target_arch = "x86_64")]
            Self::X86(features) => features.width(),
        }
    }

    /// Compresses the blocks of each run into the lane of the same position.
    ///
    /// # Panics
    /// There are more than [`LANES`] runs, or they differ in length.
    pub fn compress(self, states: &mut States, runs: &[&[Block]]) {
        let equal = runs.iter().all(|run| run.len() == runs[0].len());
        assert!(equal && runs.len() <= LANES, "unequal runs or too many");
        match self {
            Self::Portable => portable::compress(states, runs),
            #[cfg(target_arch = "x86_64")]
            Self::X86(features) => features.compress(states, runs),
        }
    }

    /// Calls `f`, compiled for the vector instructions of the back end so far as it is inlined.
    #[inline]
    pub fn inside<T>(self, f: impl FnOnce() -> T) -> T {
        match self {
            Self::Portable => f(),
            #[cfg(target_arch = "x86_64")]
            Self::X86(features) => features.inside(f),
        }
    }

    /// Every back end that this machine has.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::Portable, Self::detect()];
        #[cfg(target_arch = "x86_64")]
        if let Some(features) = x86::Features::detect() {
            all.extend(features.fewer().into_iter().map(Self::X86));
        }
        all
    }
}
