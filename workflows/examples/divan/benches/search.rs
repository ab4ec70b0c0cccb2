use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// Looks for 64 numbers among 4,096.
fn look(bencher: Bencher, find: fn(&[u64], u64) -> bool) {
    let sorted: Vec<u64> = (0..4096).map(|i| i * 3).collect();
    let wanted: Vec<u64> = (0..64).map(|i| (i * 2_654_435_761) % 12_288).collect();
    bencher
        .counter(ItemsCount::new(wanted.len()))
        .bench_local(|| {
            wanted
                .iter()
                .filter(|&&wanted| find(black_box(&sorted), wanted))
                .count()
        });
}

#[divan::bench]
fn linear(bencher: Bencher) {
    look(bencher, search::linear);
}

#[divan::bench]
fn binary(bencher: Bencher) {
    look(bencher, search::binary);
}
