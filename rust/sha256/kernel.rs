//! The kernels: what advances one lane or several by the blocks that are given for each.

use std::hint::black_box;

use super::portable;
use super::state::{Block, LANES, RUN, Run, States};
#[cfg(target_arch = "x86_64")]
use super::x86::{
    avx2::{self, Avx2},
    avx512::{self, Avx512},
    sha_ni::{self, ShaNi},
};

/// A way to compress, at the number of lanes that it advances in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The `sha2` crate, one lane.
    Portable,
    /// The SHA instructions of x86-64, with as many lanes interleaved.
    #[cfg(target_arch = "x86_64")]
    ShaNi(ShaNi, usize),
    /// AVX2, one lane in each 32-bit element.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512, one lane in each 32-bit element.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Kernel {
    /// Every kernel that this machine has, the portable one first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        #[cfg(not(target_arch = "x86_64"))]
        return vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let sha = ShaNi::detect().into_iter().flat_map(|sha| sha_ni::WIDTHS.map(|lanes| Self::ShaNi(sha, lanes)));
            let (avx2, avx512) = (Avx2::detect().map(Self::Avx2), Avx512::detect().map(Self::Avx512));
            [Self::Portable].into_iter().chain(sha).chain(avx2).chain(avx512).collect()
        }
    }

    /// The best kernel of one lane.
    pub(super) fn narrow() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(sha) = ShaNi::detect() {
            return Self::ShaNi(sha, 1);
        }
        Self::Portable
    }

    /// The number of lanes of one call.
    pub(super) const fn lanes(self) -> usize {
        match self {
            Self::Portable => 1,
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi(_, lanes) => lanes,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => avx2::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => LANES,
        }
    }

    /// The name by which it is forced, and shown.
    #[must_use]
    pub fn name(self) -> String {
        let instructions = match self {
            Self::Portable => return "portable".to_owned(),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi(..) => "sha-ni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
        };
        format!("{instructions}-x{}", self.lanes())
    }

    /// One call on blocks of token ids, for its time; gives the number of bytes that it compressed.
    #[must_use]
    pub fn lap(self) -> usize {
        static IDS: Run = Run([[150_000; 8]; RUN]);
        let runs = [IDS.0.as_slice(); LANES];
        let mut states = States::new();
        self.compress(&mut states, 0, black_box(&runs[..self.lanes()]));
        black_box(&states);
        self.lanes() * size_of::<Run>()
    }

    /// Compresses the blocks of each run, all of one length, into the lanes from `first` on.
    ///
    /// # Panics
    /// There are more runs than lanes, or they differ in length. A kernel of all lanes starts at another than the first.
    pub(crate) fn compress(self, states: &mut States, first: usize, runs: &[&[Block]]) {
        let equal = runs.iter().all(|run| run.len() == runs[0].len());
        assert!(equal && runs.len() <= self.lanes() && first + runs.len() <= LANES, "unequal runs or too many");
        match self {
            Self::Portable => portable::compress(states, first, runs),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi(sha, _) => sha_ni::compress(sha, states, first, runs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2::compress(avx2, states, first, runs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(wide) => {
                assert_eq!(first, 0, "the kernel takes all lanes");
                avx512::compress(wide, states, runs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sha2::block_api::compress256;

    use super::*;

    /// Blocks of words above and below 2^32 that differ between lanes.
    fn blocks(lane: u64) -> [Block; 3] {
        [1, 1 << 40, 3].map(|step| std::array::from_fn(|word| (lane * 1_000 + word as u64) * step))
    }

    /// The state after these blocks, by the crate that is the other opinion.
    fn wanted(mut state: [u32; 8], blocks: &[Block]) -> [u32; 8] {
        let bytes = |block: &Block| block.map(u64::to_be_bytes).as_flattened().try_into().expect("64 bytes");
        compress256(&mut state, &blocks.iter().map(bytes).collect::<Vec<[u8; 64]>>());
        state
    }

    #[test]
    fn any_number_of_runs_in_any_lanes() {
        let given = (0..).map(blocks).take(LANES).collect::<Vec<_>>();
        let mut before = States::new();
        for (lane, blocks) in given.iter().enumerate() {
            before.set(lane, wanted(before.get(lane), &blocks[..=lane % 3]));
        }
        for kernel in Kernel::all() {
            // A kernel of all lanes starts at the first.
            for first in 0..if kernel.lanes() == LANES { 1 } else { LANES } {
                for count in 0..=kernel.lanes().min(LANES - first) {
                    let mut states = before;
                    let runs: Vec<_> = given[..count].iter().map(<[Block; 3]>::as_slice).collect();
                    kernel.compress(&mut states, first, &runs);
                    for lane in 0..LANES {
                        let old = before.get(lane);
                        if (first..first + count).contains(&lane) {
                            assert_eq!(
                                states.get(lane),
                                wanted(old, &given[lane - first]),
                                "{kernel:?} {first} {count}"
                            );
                        } else if kernel.lanes() < LANES || count == 0 {
                            assert_eq!(states.get(lane), old, "{kernel:?} {first} {count}: lane {lane} is not its own");
                        }
                    }
                }
            }
        }
    }
}
