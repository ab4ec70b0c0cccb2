//! One suite over every strategy, key, path and number of threads: all give the answers of the slow reference.

use assay_harness::Phases;
use assay_harness::prefetch::InOrder;
use assay_harness::simd::Isa;
use proptest::prelude::*;
use scan_pir::keys::{DpfKey, KeyKind, Keys, Prg, ToyKey};
use scan_pir::matrix::{Matrix, Pages};
use scan_pir::scan::{self, Bits, KEYS_PER_QUERY, Method, Plan, Strategy as Scan, reference};
use scan_pir::server::{Query, Server};
use scan_pir::workload;

/// A key's bit, by its own slow definition.
fn bit(kind: KeyKind, key: &[u8], row: usize, rows: usize) -> bool {
    match kind {
        KeyKind::Toy => ToyKey::from_bytes(key).unwrap().bit(row),
        KeyKind::Dpf => DpfKey::from_bytes(key, rows).unwrap().bit(row),
    }
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The answers to a batch by the reference, pending updates included.
fn expected(matrix: &Matrix, kind: KeyKind, batch: &[Query], updates: usize) -> Vec<Vec<u8>> {
    let keys: Vec<&Vec<u8>> = batch.iter().flatten().collect();
    let rows = matrix.rows();
    let bits: Vec<Vec<bool>> =
        keys.iter().map(|key| (0..rows).map(|row| bit(kind, key, row, rows)).collect()).collect();
    let mut answers = reference::scan(matrix, keys.len(), |key, row| bits[key][row]);
    for update in workload::updates(updates, rows, matrix.row_size()) {
        for (answer, bits) in answers.iter_mut().zip(&bits) {
            if bits[update.row] {
                *answer = xor(answer, &update.difference);
            }
        }
    }
    answers
}

fn plans(threads: usize) -> impl Iterator<Item = Plan> {
    let strategies = Scan::CHOICES.into_iter().map(|(_, strategy)| strategy);
    // Not every strategy can be carried out on every path; `command.rs` checks that asking for such a pair is refused.
    strategies.flat_map(move |strategy| {
        Isa::available().into_iter().filter_map(move |isa| Plan::new(strategy, isa, threads).ok())
    })
}

fn describe(plan: Plan) -> String {
    format!("{} on {} with {}", plan.strategy().name(), plan.isa().name(), plan.generator().name())
}

fn check(kind: KeyKind, rows: usize, row_size: usize, queries: usize, threads: usize, updates: usize, seed: u64) {
    let matrix = Matrix::generate(Pages::Huge, rows, row_size, seed).unwrap();
    let batch = workload::queries(kind, rows, queries, seed);
    let expected = expected(&matrix, kind, &batch, updates);
    let generators = Prg::available();
    for (i, plan) in plans(threads).enumerate() {
        // Generators take turns: every one of them has met every strategy and path after some cases.
        let plan = plan.with_generator(generators[(i + seed as usize) % generators.len()]);
        let prefetch = if (i as u64 + seed).is_multiple_of(2) { InOrder::Software } else { InOrder::Hardware };
        let plan = plan.with_prefetch(prefetch);
        let server = Server::new(matrix.clone(), kind, plan);
        workload::updates(updates, rows, row_size).into_iter().for_each(|update| server.update(update));
        let (answers, _) = server.answer(&batch, &mut Phases::new()).unwrap();
        assert!(answers.iter().eq(&expected), "{}, from keys", describe(plan));

        let bytes = batch.iter().flatten().map(Vec::as_slice);
        let keys = Keys::parse(kind, rows, bytes).unwrap();
        let selection = scan::expand(&keys, rows, plan);
        let (answers, _) = server.answer_given(&selection, &mut Phases::new()).unwrap();
        assert!(answers.iter().eq(&expected), "{}, bits given", describe(plan));
    }
}

fn kinds() -> impl Strategy<Value = KeyKind> {
    prop_oneof![Just(KeyKind::Toy), Just(KeyKind::Dpf)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_strategy_agrees_with_the_reference(
        kind in kinds(),
        rows in prop_oneof![1_usize..70, 250_usize..260, 500_usize..1100],
        blocks in prop_oneof![1_usize..9, Just(16), Just(32)],
        queries in 1_usize..=32,
        threads in 1_usize..=3,
        updates in prop_oneof![Just(0_usize), Just(1), 2_usize..40],
        seed: u64,
    ) {
        check(kind, rows, 64 * blocks, queries, threads, updates, seed);
    }

    #[test]
    fn the_xor_of_the_two_servers_answers_is_the_rows(
        kind in kinds(), rows in 1_usize..900, blocks in 1_usize..5, queries in 1_usize..=9, seed: u64,
    ) {
        let row_size = 64 * blocks;
        let matrix = Matrix::generate(Pages::Huge, rows, row_size, seed).unwrap();
        let pairs = workload::pairs(kind, rows, queries, seed);
        for plan in plans(1) {
            let answers = [0, 1].map(|party| {
                let batch: Vec<Query> = pairs.iter().map(|pair| pair[party].clone()).collect();
                let server = Server::new(matrix.clone(), kind, plan);
                server.answer(&batch, &mut Phases::new()).unwrap().0
            });
            let targets = (0..queries).flat_map(|query| workload::targets(query, rows));
            for ((a, b), row) in answers[0].iter().zip(answers[1].iter()).zip(targets) {
                prop_assert_eq!(xor(a, b), matrix.row(row), "row {}, {}", row, describe(plan));
            }
        }
    }
}

/// One query, for which every path has a special case, at all row widths and around all row boundaries.
#[test]
fn three_keys_on_every_path() {
    let methods: Vec<_> = plans(1).map(|plan| plan.method(KEYS_PER_QUERY, 256)).collect();
    assert!(methods.contains(&Method::MaskedXor) && methods.contains(&Method::ByPattern), "{methods:?}");
    for (seed, row_size) in [64, 128, 192, 256, 320, 512, 1024, 1088, 2048, 4096].into_iter().enumerate() {
        for rows in [1, 63, 64, 65, 300] {
            for kind in [KeyKind::Toy, KeyKind::Dpf] {
                check(kind, rows, row_size, 1, 1 + seed % 2, 1, (rows + seed) as u64);
            }
        }
    }
}

/// Small enough for Miri (`make miri`): every strategy and path over the end of a word of selection bits.
#[test]
fn a_few_rows_on_every_path() {
    for kind in [KeyKind::Toy, KeyKind::Dpf] {
        check(kind, 66, 64, 1, 1, 1, 3);
    }
}

/// Fewer keys than a group has, and more than fit into one: a selection may have any number of them.
#[test]
fn any_number_of_keys() {
    let (rows, row_size) = (777, 192);
    let matrix = Matrix::generate(Pages::Huge, rows, row_size, 5).unwrap();
    let batch = workload::queries(KeyKind::Dpf, rows, 7, 5);
    let bytes: Vec<&[u8]> = batch.iter().flatten().map(Vec::as_slice).collect();
    for count in 1..=bytes.len() {
        let keys = Keys::parse(KeyKind::Dpf, rows, bytes[..count].iter().copied()).unwrap();
        for plan in plans(1).filter(|plan| !plan.strategy().evaluates_in_scan()) {
            let selection = scan::expand(&keys, rows, plan);
            let expected = reference::scan(&matrix, count, |key, row| selection.bit(key, row));
            let scanned = scan::scan(&matrix, Bits::Given(&selection), plan, &mut Phases::new());
            assert!(scanned.answers.iter().eq(&expected), "{count} keys, {}", describe(plan));
        }
    }
}

/// The measured parts of the loop: all rows without bits, and selected row numbers without rows.
#[test]
fn the_loop_in_parts() {
    let (rows, row_size) = (700, 64);
    let matrix = Matrix::generate(Pages::Huge, rows, row_size, 9).unwrap();
    let batch = workload::queries(KeyKind::Toy, rows, 2, 9);
    let keys: Vec<_> = batch.iter().flatten().map(|key| ToyKey::from_bytes(key).unwrap()).collect();
    let all = reference::scan(&matrix, 6, |_, _| true);
    for threads in [1, 2, 3] {
        let plan = Plan::new(Scan::Loop, Isa::available()[0], threads).unwrap();
        assert!(scan::sums_alone(&matrix, 6, plan, &mut Phases::new()).iter().eq(&all));
        let bits = scan::bits_alone(&matrix, &keys, plan, &mut Phases::new());
        for (key, answer) in keys.iter().zip(bits.iter()) {
            let numbers = (0..rows).filter(|row| key.bit(*row)).fold(0, |sum, row| sum ^ row as u64);
            assert_eq!((&answer[..8], &answer[8..]), (&numbers.to_le_bytes()[..], &[0; 56][..]));
        }
    }
}

/// Arbitrary bytes are rejected or parsed to a key that can be evaluated.
#[test]
fn bytes_that_are_no_keys() {
    proptest!(|(kind in kinds(), rows in 1_usize..5000, mut key: Vec<u8>, fits: bool)| {
        let length = match kind { KeyKind::Toy => ToyKey::BYTES, KeyKind::Dpf => DpfKey::bytes(rows) };
        if fits {
            key.resize(length, 0xa7);
        }
        let keys = Keys::parse(kind, rows, [key.as_slice()].into_iter());
        prop_assert_eq!(keys.is_ok(), key.len() == length);
        if let Ok(keys) = keys {
            for plan in plans(1) {
                prop_assert!(scan::expand(&keys, rows, plan).density() <= 1.0);
            }
        }
    });
}

/// Row counts around every boundary there is: words of bits, blocks of tables, groups, tiles, chunks.
#[test]
fn boundaries() {
    for rows in [1, 3, 4, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 513, 2047, 2049] {
        check(KeyKind::Dpf, rows, 128, 4, 1, 1, rows as u64);
        check(KeyKind::Toy, rows, 192, 5, 2, 1, rows as u64);
    }
}

/// More rows than one chunk holds, and threads that share a chunk.
#[test]
fn several_chunks() {
    check(KeyKind::Toy, 5000, 2048, 4, 1, 3, 1);
    check(KeyKind::Dpf, 5000, 2048, 5, 3, 3, 2);
}
