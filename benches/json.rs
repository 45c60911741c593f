//! Ids as JSON text, read and written, and served bodies.
//!
//! cargo bench --no-default-features --bench json

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tokenrecords::json::{push_ints, scan_body, scan_record};

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

/// The body of a chat, of so many prompt and generated ids.
fn chat(prompt: u16, generated: u16) -> String {
    let id = |i: u16| u32::from(i) * 7_919 % 151_936;
    let ids = |n| (0..n).map(|i| id(i).to_string()).collect::<Vec<_>>().join(",");
    let entry = |i: u16| {
        let log_prob = -f64::from(f32::from(i.wrapping_mul(31)) / 7_919.0);
        format!(r#"{{"token":"token_id:{}","logprob":{log_prob},"bytes":[49,53],"top_logprobs":[]}}"#, id(i))
    };
    let entries = (0..generated).map(entry).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"id":"c","prompt_token_ids":[{}],"choices":[{{"token_ids":[{}],"logprobs":{{"content":[{entries}]}}}}]}}"#,
        ids(prompt),
        ids(generated)
    )
}

fn bodies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bodies");
    for (prompt, generated) in [(64, 16), (4_096, 512), (2_000, 4_000), (32_768, 1_024)] {
        let body = chat(prompt, generated);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::new("scan", format!("{prompt} + {generated}")), |bench| {
            bench.iter(|| scan_body(black_box(body.as_bytes()), 16));
        });
    }
}

criterion_group!(benches, ids, bodies);
criterion_main!(benches);
