//! What the compression function works on: blocks in, a state for each lane.

use super::constants::INITIAL;

/// A SHA-256 value.
pub type Hash = [u8; 32];

/// One SHA-256 block: eight 64-bit words, native here, big-endian in the message.
pub type Block = [u64; 8];

/// The most lanes that any kernel advances at once.
pub const LANES: usize = 16;

/// The most blocks of a lane that are read before they are compressed: enough to make the cost of a call small, few
/// enough that the buffers of all lanes, 16 KiB, stay in the L1 cache.
///
/// Measured on a Zen 5 server core with `cargo bench --no-default-features --bench lanes`, in ns an id of one sequence
/// and of many: 4.97 and 1.90 with runs of 1 block, 3.91 and 1.42 with 4, 3.69 and 1.36 with 16, 3.73 and 1.39 with 64.
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

/// The hash values of all lanes: word `w` of lane `l` is `.0[w][l]`, so that one word of all lanes is one vector.
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
