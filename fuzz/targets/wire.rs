//! The encoding of ids, whole and in parts, and their digest, against the definition.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use tokenrecords::digest::digest;
use tokenrecords::source::Parts;
use tokenrecords::wire;

fuzz_target!(|parts: Vec<Vec<u64>>| {
    let ids = parts.concat();
    let mut want = vec![1];
    want.extend((ids.len() as u64).to_be_bytes());
    want.extend(ids.iter().flat_map(|id| id.to_be_bytes()));

    let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
    let mut out = vec![0; wire::encoded_len(ids.len()).expect("few ids")];
    wire::encode(ids.as_slice(), &mut out).expect("ids");
    assert_eq!(out, want);
    out.fill(0);
    wire::encode(&Parts(&parts), &mut out).expect("ids");
    assert_eq!(out, want);

    let hashed = if ids.is_empty() { &[] } else { want.as_slice() };
    let want: [u8; 32] = Sha256::new().chain_update(b"nemo-gym-tokens").chain_update(hashed).finalize().into();
    assert_eq!(digest(ids.as_slice()), Ok(want));
    assert_eq!(digest(&Parts(&parts)).ok(), Some(want));
});
