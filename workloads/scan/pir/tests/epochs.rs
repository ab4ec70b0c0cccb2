//! Concurrent updates, merges and answers. An answer reflects a consistent state: all updates up to some moment between
//! request and response, each exactly once, whether pending or merged.
//!
//! All updates modify one row. After `n` of them the row differs from the initial one by `n` and by a number derived
//! from it. The number of applied updates can therefore be read from an answer, and a missing or repeated update is
//! detected.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};

use assay_harness::Phases;
use assay_harness::simd::{Isa, Path};
use scan_pir::keys::{KeyKind, ToyKey};
use scan_pir::matrix::{Matrix, Pages, Update};
use scan_pir::scan::{Plan, Strategy};
use scan_pir::server::{Query, Refused, Server};
use scan_pir::workload;

const ROWS: usize = 600;
const ROW_SIZE: usize = 64;

/// A server, a batch, and a row that all keys of the batch select.
fn server() -> (Server, Vec<Query>, usize) {
    let plan = Plan::new(Strategy::FusedM4r, Isa::select(Path::Auto).unwrap(), 1).unwrap();
    let batch = workload::queries(KeyKind::Toy, ROWS, 2, 3);
    let keys: Vec<_> = batch.iter().flatten().map(|key| ToyKey::from_bytes(key).unwrap()).collect();
    let row = (0..ROWS).find(|row| keys.iter().all(|key| key.bit(*row))).expect("nearly every row is selected");
    (Server::new(Matrix::generate(Pages::Huge, ROWS, ROW_SIZE, 3).unwrap(), KeyKind::Toy, plan), batch, row)
}

/// XOR difference of the row after `n` updates.
fn state(n: usize) -> Vec<u8> {
    let n = n as u64;
    let words = [n, n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n >> 7];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes.resize(ROW_SIZE, 0);
    bytes
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The `n`-th update.
fn update(row: usize, n: usize) -> Update {
    Update { row, difference: xor(&state(n), &state(n - 1)) }
}

/// How many updates an answer has; nothing where it is not that of any number of updates.
fn updates_in(answer: &[u8], before_any: &[u8]) -> Option<usize> {
    let difference = xor(answer, before_any);
    let n = u64::from_le_bytes(*difference.first_chunk()?) as usize;
    (difference == state(n)).then_some(n)
}

#[test]
fn an_answer_is_of_one_state_between_its_question_and_its_return() {
    const UPDATES: usize = 3000;
    /// Number of pending updates per merge.
    const MERGED: usize = 4;
    let (server, batch, row) = server();
    let (first, _) = server.answer(&batch, &mut Phases::new()).unwrap();
    let (begun, done, merged) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (answered, finished) = (AtomicUsize::new(0), AtomicBool::new(false));
    let problem = OnceLock::new();
    let all = Barrier::new(5);

    let change = || {
        all.wait();
        for n in 1..=UPDATES {
            begun.store(n, Ordering::SeqCst);
            server.update(update(row, n));
            done.store(n, Ordering::SeqCst);
            // Waits until there was an answer and a merge since the last few updates, so that the operations overlap.
            let ahead = || {
                let merged = merged.load(Ordering::SeqCst);
                n / 16 > answered.load(Ordering::SeqCst) || n > merged + 16 * MERGED
            };
            while ahead() && !finished.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        finished.store(true, Ordering::SeqCst);
    };
    // Two of them see the same work and merge at the same time.
    let merge = || {
        all.wait();
        while !finished.load(Ordering::SeqCst) {
            let pending = done.load(Ordering::SeqCst);
            if pending >= merged.load(Ordering::SeqCst) + MERGED {
                server.merge().unwrap();
                merged.fetch_max(pending, Ordering::SeqCst);
            }
            std::thread::yield_now();
        }
    };
    let ask = || {
        all.wait();
        let mut last = 0;
        while !finished.load(Ordering::SeqCst) {
            let earliest = done.load(Ordering::SeqCst);
            let answer = server.answer(&batch, &mut Phases::new());
            let latest = begun.load(Ordering::SeqCst);
            answered.fetch_add(1, Ordering::SeqCst);
            // The first error ends the test; a panic here would leave the other threads waiting.
            let wrong = match answer {
                Ok((answers, epoch)) => {
                    let found: Vec<_> = answers.iter().zip(first.iter()).map(|(a, b)| updates_in(a, b)).collect();
                    let right = found.iter().all(|n| n.is_some_and(|n| (earliest..=latest).contains(&n)));
                    let text = format!("{found:?} updates in epoch {epoch} after {last}, of {earliest} to {latest}");
                    let wrong = (!right || epoch < last).then_some(text);
                    last = epoch;
                    wrong
                }
                Err(Refused::Busy | Refused::EpochChanged) => None,
                Err(refused) => Some(refused.to_string()),
            };
            if let Some(wrong) = wrong {
                let _ = problem.set(wrong);
                finished.store(true, Ordering::SeqCst);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(change);
        scope.spawn(merge);
        scope.spawn(merge);
        scope.spawn(ask);
        scope.spawn(ask);
    });

    assert_eq!(problem.get(), None);
    server.merge().unwrap();
    let (answers, epoch) = server.answer(&batch, &mut Phases::new()).unwrap();
    assert!(answers.iter().zip(first.iter()).all(|(answer, first)| updates_in(answer, first) == Some(UPDATES)));
    assert!(epoch as usize > UPDATES / (16 * MERGED), "there were only {epoch} epochs");
}

#[test]
fn merges_at_the_same_time_are_merges_one_after_the_other() {
    const ROUNDS: usize = 300;
    const MERGERS: usize = 3;
    let (server, batch, row) = server();
    let (first, _) = server.answer(&batch, &mut Phases::new()).unwrap();
    let all = Barrier::new(MERGERS);
    std::thread::scope(|scope| {
        for merger in 0..MERGERS {
            let (server, all) = (&server, &all);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    if merger == 0 {
                        server.update(update(row, round));
                    }
                    all.wait();
                    server.merge().unwrap();
                    all.wait();
                }
            });
        }
    });
    let (answers, epoch) = server.answer(&batch, &mut Phases::new()).expect("no merge is under way");
    assert!(answers.iter().zip(first.iter()).all(|(answer, first)| updates_in(answer, first) == Some(ROUNDS)));
    assert_eq!(epoch, 1 + (ROUNDS * MERGERS) as u64);
}
