//! SHA-256 compression by the `sha2` crate, for machines without our kernels.

use sha2::block_api::compress256;

use super::state::{Block, RUN, States};

/// Compresses the blocks of each run, lane by lane from `first` on.
pub fn compress(states: &mut States, first: usize, runs: &[&[Block]]) {
    for (lane, run) in (first..).zip(runs) {
        let mut state = states.get(lane);
        for blocks in run.chunks(RUN) {
            let mut bytes = [[0; 64]; RUN];
            for (bytes, block) in bytes.iter_mut().zip(blocks) {
                for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(block) {
                    *bytes = word.to_be_bytes();
                }
            }
            compress256(&mut state, &bytes[..blocks.len()]);
        }
        states.set(lane, state);
    }
}
