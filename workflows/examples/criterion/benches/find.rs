use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn find(c: &mut Criterion) {
    let sorted: Vec<u64> = (0..4096).map(|i| i * 3).collect();
    let wanted: Vec<u64> = (0..64).map(|i| (i * 2_654_435_761) % 12_288).collect();
    let mut group = c.benchmark_group("find");
    group.throughput(Throughput::Elements(wanted.len() as u64));
    group.bench_function("linear", |b| {
        b.iter(|| {
            wanted
                .iter()
                .filter(|&&wanted| find::linear(black_box(&sorted), wanted))
                .count()
        });
    });
    group.bench_function("binary", |b| {
        b.iter(|| {
            wanted
                .iter()
                .filter(|&&wanted| find::binary(black_box(&sorted), wanted))
                .count()
        });
    });
    group.finish();
}

criterion_group!(benches, find);
criterion_main!(benches);
