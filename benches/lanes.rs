//! One digest and batches of digests against SHA-256 over ready bytes, and the rate of each kernel.
//!
//! cargo bench --no-default-features --bench lanes

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::hint::black_box;
use tokenrecords::digest::{Kernel, digest, digest_many, kernels};
use tokenrecords::source::Source;

/// Ids that nobody else writes to.
struct Ids(Vec<i32>);

impl Source for Ids {
    type Error = Infallible;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Infallible> {
        for (id, &from) in out.iter_mut().zip(&self.0[at..]) {
            *id = i64::from(from).cast_unsigned();
        }
        Ok(())
    }
}

impl Ids {
    fn new(len: usize) -> Self {
        Self((0..151_936).cycle().take(len).collect())
    }

    /// The bytes that are hashed for these ids.
    fn ready(&self) -> Vec<u8> {
        let mut bytes = b"nemo-gym-tokens\x01".to_vec();
        bytes.extend((self.0.len() as u64).to_be_bytes());
        bytes.extend(self.0.iter().flat_map(|&id| u64::from(id.cast_unsigned()).to_be_bytes()));
        bytes
    }
}

fn one(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one sequence");
    for len in [16, 1_024, 32_768] {
        let ids = Ids::new(len);
        let ready = ids.ready();
        assert_eq!(digest(&ids), Ok(Sha256::digest(&ready).into()));
        group.throughput(Throughput::Elements(len as u64));
        group.bench_function(BenchmarkId::new("digest", len), |bench| bench.iter(|| digest(black_box(&ids))));
        group.bench_function(BenchmarkId::new("sha2 over ready bytes", len), |bench| {
            bench.iter(|| Sha256::digest(black_box(&ready)));
        });
    }
}

fn many(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("many sequences");
    let ragged = (0..64).map(|i| 3 + i * 2_654_435_761 % 39_998).collect();
    for (name, lens) in
        [("64x512", vec![512; 64]), ("256x4096", vec![4_096; 256]), ("32x32768", vec![32_768; 32]), ("ragged", ragged)]
    {
        let batch: Vec<Ids> = lens.into_iter().map(Ids::new).collect();
        let ready: Vec<Vec<u8>> = batch.iter().map(Ids::ready).collect();
        let total: usize = batch.iter().map(Source::len).sum();
        group.throughput(Throughput::Elements(total as u64));
        for threads in [1, 2] {
            group.bench_function(BenchmarkId::new(format!("digest_many, {threads} threads"), name), |bench| {
                bench.iter(|| digest_many(black_box(&batch), threads, &|| true));
            });
        }
        group.bench_function(BenchmarkId::new("sha2 over ready bytes", name), |bench| {
            bench.iter(|| ready.iter().map(|bytes| Sha256::digest(black_box(bytes))[0]).max());
        });
    }
}

/// The rate of each kernel by itself, and which of them are chosen.
fn rates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernels");
    for kernel in Kernel::all() {
        group.throughput(Throughput::BytesDecimal(kernel.lap() as u64));
        group.bench_function(kernel.name(), |bench| bench.iter(|| kernel.lap()));
    }
    let [one, batch] = kernels();
    println!("chosen: {} for one digest, {} for a batch", one.name(), batch.name());
}

criterion_group!(benches, rates, one, many);
criterion_main!(benches);
