//! The SHA-256 compression function over lanes, on what the machine offers.

use super::portable;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::digest::Hash;
use crate::words::Block;

/// The most lanes that any back end advances at once.
pub const LANES: usize = 16;

/// The most blocks of a lane that are read before they are compressed: enough
/// to make the cost of a call small, few enough that the buffers of all lanes
/// stay in the L1 cache.
pub const RUN: usize = 16;

/// The next blocks of a lane, each in one cache line: a load that is split over two takes the time of two.
#[repr(align(64))]
pub struct Run(pub [Block; RUN]);

impl Run {
    /// Blocks to be overwritten.
    pub const fn new() -> Self {
        Self([[0; 8]; RUN])
    }
}

/// The hash value before the first block.
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The hash values of all lanes: word `w` of lane `l` is `.0[w][l]`, so that
/// one word of all lanes is one vector.
#[derive(Clone, Copy)]
pub struct States(pub [[u32; LANES]; 8]);

impl States {
    /// Every lane before its first block.
    pub fn new() -> Self {
        Self(INITIAL.map(|word| [word; LANES]))
    }

    /// The eight words of one lane.
    pub fn get(&self, lane: usize) -> [u32; 8] {
        self.0.map(|words| words[lane])
    }

    /// Replaces the eight words of one lane.
    pub fn set(&mut self, lane: usize, state: [u32; 8]) {
        for (words, word) in self.0.iter_mut().zip(state) {
            words[lane] = word;
        }
    }

    /// Puts one lane before its first block.
    pub fn reset(&mut self, lane: usize) {
        self.set(lane, INITIAL);
    }

    /// The digest of one lane after its last block.
    pub fn digest(&self, lane: usize) -> Hash {
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(self.get(lane)) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

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
    /// The fastest back end of this machine. The build flag
    /// `--cfg tokenrecords_backend="scalar"` forces the portable one.
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
    ///
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

    /// Calls `f`, compiled for the vector instructions of the back end so far
    /// as it is inlined.
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
