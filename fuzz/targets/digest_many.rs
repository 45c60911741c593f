//! Digests of many sequences in the lanes of this machine, by several threads, against SHA-256 of another maker.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use tokenrecords::digest::{Stopped, digest_many};
use tokenrecords::source::Source;

/// Ids, of which one may be refused.
struct Ids(Vec<u64>, Option<usize>);

impl Source for Ids {
    type Error = usize;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), usize> {
        match self.1 {
            Some(fault) if (at..at + out.len()).contains(&fault) => Err(fault),
            _ => {
                out.copy_from_slice(&self.0[at..at + out.len()]);
                Ok(())
            }
        }
    }
}

fn expected(ids: &[u64]) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update(b"nemo-gym-tokens");
    if !ids.is_empty() {
        hash.update([1]);
        hash.update((ids.len() as u64).to_be_bytes());
        ids.iter().for_each(|id| hash.update(id.to_be_bytes()));
    }
    hash.finalize().into()
}

// Of each sequence its length, its first id, and where it has a fault, if that is a place in it.
fuzz_target!(|input: (u8, Vec<(u16, u64, u16)>)| {
    let (threads, sequences) = input;
    let sources: Vec<_> = sequences
        .into_iter()
        .take(64)
        .map(|(len, first, fault)| {
            let len = usize::from(len) % 1500;
            let ids = (0..len as u64).map(|index| first.wrapping_add(index.wrapping_mul(0x9e37_79b9)));
            Ids(ids.collect(), (usize::from(fault) < len).then_some(usize::from(fault)))
        })
        .collect();
    let first = sources.iter().position(|ids| ids.1.is_some());
    match (digest_many(&sources, usize::from(threads % 4) + 1, &|| true), first) {
        (Ok(found), None) => assert_eq!(found, sources.iter().map(|ids| expected(&ids.0)).collect::<Vec<_>>()),
        (Err(Stopped::Fault { index, error }), Some(first)) => {
            assert_eq!((index, Some(error)), (first, sources[first].1));
        }
        _ => panic!("a fault is told where there is one, and nowhere else"),
    }
});
