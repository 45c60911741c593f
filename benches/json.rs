//! Ids as JSON text, read and written.
//!
//! cargo bench --no-default-features --bench json

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tokenrecords::json::{push_ints, scan_record};

const IDS: i32 = 32_768;

fn ids(criterion: &mut Criterion) {
    // Nearly all of one length, and of all lengths in turn.
    let even: Vec<i32> = (0..IDS).map(|i| i * 7_919 % 151_936).collect();
    let mixed: Vec<i32> = even.iter().zip(0..).map(|(id, i)| id >> (i * 31 % 17)).collect();
    for (name, ids) in [("even lengths", even), ("mixed lengths", mixed)] {
        let mut line = b"{\"prompt_token_ids\":".to_vec();
        push_ints(&mut line, &ids);
        line.push(b'}');
        let mut group = criterion.benchmark_group("ids as text");
        group.throughput(Throughput::Elements(ids.len() as u64));
        group.bench_function(BenchmarkId::new("read", name), |bench| {
            bench.iter(|| scan_record::<f64>(black_box(&line)));
        });
        group.bench_function(BenchmarkId::new("write", name), |bench| {
            bench.iter(|| {
                let mut out = Vec::with_capacity(line.len());
                push_ints(&mut out, black_box(&ids));
                out
            });
        });
    }
}

criterion_group!(benches, ids);
criterion_main!(benches);
