//! The server around the scan: epochs, pending updates, and the batch handler.
//!
//! The matrix changes in epochs. Between two of them updates are pending: differences that are added to the answers after the scan, so
//! that a client sees them at once. A merge makes the next epoch's matrix of the last one and its pending updates.
//!
//! # The parity rule
//!
//! Both servers must answer for the same state, and one answer must not mix two. The matrix and the updates are read by
//!
//! 1. loading the current snapshot,
//! 2. reading the pending updates and the epoch they belong to under one lock,
//! 3. loading the current snapshot again.
//!
//! If all three epochs agree the batch is answered from that state. Otherwise a merge is under way, and every query is answered by
//! itself, trying again until it gets a consistent state; if the epochs of the batch's queries then differ the batch is refused, and the
//! client asks again.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use assay_harness::{Failure, Phases};

use crate::keys::{BadKey, KeyKind, Keys};
use crate::matrix::{Matrix, Update};
use crate::scan::{self, Answers, Bits, Expanded, KEYS_PER_QUERY, Plan, RowBits, xor_into};
use crate::selection::Selection;

/// Most queries in a batch.
pub const MAX_BATCH: usize = 32;
/// How often a single query tries to get a consistent state.
pub const MAX_RETRIES: usize = 1000;

/// Phase: pending updates are added to the answers.
pub const DELTA: &str = "delta";

/// The keys of one query, as they come over the wire.
pub type Query = [Vec<u8>; KEYS_PER_QUERY];

/// The matrix of one epoch.
#[derive(Debug)]
pub struct Snapshot {
    /// The epoch's number.
    pub epoch: u64,
    /// Its matrix.
    pub matrix: Matrix,
}

/// Pending updates and their epoch. One lock protects both, so that readers see consistent pairs.
#[derive(Debug, Clone)]
struct Pending {
    epoch: u64,
    updates: Vec<Update>,
}

/// One of the two servers.
#[derive(Debug)]
pub struct Server {
    current: RwLock<Arc<Snapshot>>,
    pending: RwLock<Pending>,
    /// Serializes merges. Two concurrent merges would make two matrices of the same epoch, each without the other's
    /// updates.
    merging: Mutex<()>,
    kind: KeyKind,
    plan: Plan,
}

/// Why a batch got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A batch has 1 to [`MAX_BATCH`] queries.
    BatchSize(usize),
    /// A key cannot be read.
    Key(BadKey),
    /// No consistent state within [`MAX_RETRIES`].
    Busy,
    /// The epoch changed within the batch. The client should ask again (503).
    EpochChanged,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BatchSize(found) => write!(f, "a batch has 1 to {MAX_BATCH} queries, not {found}"),
            Self::Key(bad) => bad.fmt(f),
            Self::Busy => write!(f, "no consistent state in {MAX_RETRIES} tries"),
            Self::EpochChanged => write!(f, "the epoch changed within the batch"),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::error(refused)
    }
}

impl Server {
    /// A server in epoch 1, without pending updates, that answers as `plan` says.
    #[must_use]
    pub fn new(matrix: Matrix, kind: KeyKind, plan: Plan) -> Self {
        let snapshot = Snapshot { epoch: 1, matrix };
        let pending = Pending { epoch: 1, updates: Vec::new() };
        Self {
            current: RwLock::new(Arc::new(snapshot)),
            pending: RwLock::new(pending),
            merging: Mutex::new(()),
            kind,
            plan,
        }
    }

    /// The current epoch's matrix.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a pending update.
    ///
    /// # Panics
    ///
    /// When there is no such row or the difference is not as long as a row.
    pub fn update(&self, update: Update) {
        let snapshot = self.snapshot();
        assert!(update.row < snapshot.matrix.rows(), "there is no row {}", update.row);
        assert_eq!(update.difference.len(), snapshot.matrix.row_size(), "a difference is as long as a row");
        self.pending.write().unwrap_or_else(PoisonError::into_inner).updates.push(update);
    }

    /// Makes the pending updates part of the matrix: the next epoch.
    ///
    /// # Errors
    ///
    /// When there is no memory for the changed chunks. Then the updates are pending as before, ahead of those that came in since.
    pub fn merge(&self) -> io::Result<()> {
        let _alone = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let last = self.snapshot();
        let updates = self.begin_merge();
        match last.matrix.with_updates(&updates) {
            Ok(matrix) => {
                self.publish(Snapshot { epoch: last.epoch + 1, matrix });
                Ok(())
            }
            Err(error) => {
                let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
                pending.epoch = last.epoch;
                pending.updates.splice(0..0, updates);
                Err(error)
            }
        }
    }

    /// Takes the pending updates; those that come in from now on belong to the next epoch.
    fn begin_merge(&self) -> Vec<Update> {
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.epoch += 1;
        std::mem::take(&mut pending.updates)
    }

    fn publish(&self, snapshot: Snapshot) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// The matrix and the updates of one and the same epoch, or nothing while a merge is under way.
    fn consistent(&self) -> Option<(Arc<Snapshot>, Vec<Update>)> {
        let before = self.snapshot();
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner).clone();
        let after = self.snapshot();
        (before.epoch == after.epoch && before.epoch == pending.epoch).then_some((before, pending.updates))
    }

    /// Answers a batch: one answer per key, and the epoch they are for.
    ///
    /// # Errors
    ///
    /// See [`Refused`].
    pub fn answer(&self, batch: &[Query], phases: &mut Phases) -> Result<(Answers, u64), Refused> {
        if batch.is_empty() || batch.len() > MAX_BATCH {
            return Err(Refused::BatchSize(batch.len()));
        }
        let keys = self.parse(batch)?;
        match self.consistent() {
            Some((snapshot, updates)) => {
                let answers = answer(&snapshot.matrix, &updates, Bits::Keys(&keys), self.plan, phases);
                Ok((answers, snapshot.epoch))
            }
            None => self.answer_one_by_one(batch, phases),
        }
    }

    /// Answers with bits that are given: the scan and the updates only.
    ///
    /// # Errors
    ///
    /// [`Refused::Busy`] while a merge is under way.
    pub fn answer_given(&self, selection: &Selection, phases: &mut Phases) -> Result<(Answers, u64), Refused> {
        let (snapshot, updates) = self.consistent().ok_or(Refused::Busy)?;
        Ok((answer(&snapshot.matrix, &updates, Bits::Given(selection), self.plan, phases), snapshot.epoch))
    }

    fn parse(&self, batch: &[Query]) -> Result<Keys, Refused> {
        let bytes = batch.iter().flatten().map(Vec::as_slice);
        Keys::parse(self.kind, self.snapshot().matrix.rows(), bytes).map_err(Refused::Key)
    }

    fn answer_one_by_one(&self, batch: &[Query], phases: &mut Phases) -> Result<(Answers, u64), Refused> {
        let plan = self.plan.by_loop();
        let row_size = self.snapshot().matrix.row_size();
        let mut all = Answers::new(batch.len() * KEYS_PER_QUERY, row_size);
        let mut epochs = Vec::with_capacity(batch.len());
        for (query, room) in batch.iter().zip(all.bytes_mut().chunks_exact_mut(KEYS_PER_QUERY * row_size)) {
            let keys = self.parse(std::slice::from_ref(query))?;
            let (snapshot, updates) = self.retry()?;
            room.copy_from_slice(answer(&snapshot.matrix, &updates, Bits::Keys(&keys), plan, phases).bytes());
            epochs.push(snapshot.epoch);
        }
        if epochs.iter().any(|epoch| *epoch != epochs[0]) {
            return Err(Refused::EpochChanged);
        }
        Ok((all, epochs[0]))
    }

    fn retry(&self) -> Result<(Arc<Snapshot>, Vec<Update>), Refused> {
        for attempt in 0..MAX_RETRIES {
            if let Some(state) = self.consistent() {
                return Ok(state);
            }
            match attempt {
                0..10 => std::hint::spin_loop(),
                10..50 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Err(Refused::Busy)
    }
}

/// The scan, then the pending updates: for each of them every key is asked for the row's bit.
fn answer(matrix: &Matrix, updates: &[Update], bits: Bits<'_>, plan: Plan, phases: &mut Phases) -> Answers {
    let scanned = scan::scan(matrix, bits, plan, phases);
    let mut answers = scanned.answers;
    if !updates.is_empty() {
        phases.time(DELTA, || match (bits, &scanned.selection) {
            (Bits::Given(selection), _) | (_, Some(selection)) => {
                let keys: Vec<_> = (0..selection.keys()).map(|key| Expanded::of(selection, key)).collect();
                add_updates(updates, &keys, &mut answers);
            }
            (Bits::Keys(Keys::Toy(keys)), None) => add_updates(updates, keys, &mut answers),
            (Bits::Keys(Keys::Dpf(keys)), None) => add_updates(updates, keys, &mut answers),
        });
    }
    answers
}

fn add_updates<B: RowBits>(updates: &[Update], keys: &[B], answers: &mut Answers) {
    for update in updates {
        for (key, answer) in keys.iter().zip(answers.iter_mut()) {
            if key.bit(update.row) {
                xor_into(answer, &update.difference);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Pages;
    use crate::scan::Strategy;
    use crate::workload;
    use assay_harness::simd::{Isa, Path};

    const ROWS: usize = 700;
    const ROW_SIZE: usize = 64;

    fn server(strategy: Strategy) -> Server {
        server_with(Plan::new(strategy, Isa::select(Path::Auto).unwrap(), 1).unwrap())
    }

    fn server_with(plan: Plan) -> Server {
        Server::new(Matrix::generate(Pages::Huge, ROWS, ROW_SIZE, 3).unwrap(), KeyKind::Toy, plan)
    }

    fn update(row: usize, byte: u8) -> Update {
        Update { row, difference: vec![byte; ROW_SIZE] }
    }

    fn batch() -> Vec<Query> {
        workload::queries(KeyKind::Toy, ROWS, 5, 3)
    }

    #[test]
    fn a_merge_does_not_change_answers() {
        let isa = Isa::select(Path::Auto).unwrap();
        for plan in Strategy::CHOICES.into_iter().filter_map(|(_, strategy)| Plan::new(strategy, isa, 1).ok()) {
            let server = server_with(plan);
            for (row, byte) in [(0, 1), (350, 2), (350, 4), (699, 8)] {
                server.update(update(row, byte));
            }
            let (pending, epoch) = server.answer(&batch(), &mut Phases::new()).unwrap();
            server.merge().unwrap();
            let (merged, next) = server.answer(&batch(), &mut Phases::new()).unwrap();
            assert_eq!(pending, merged, "{}", plan.strategy().name());
            assert_eq!((epoch, next), (1, 2));
        }
    }

    #[test]
    fn a_batch_during_a_merge_falls_back_to_one_query_at_a_time() {
        let server = server(Strategy::FusedM4r);
        server.update(update(5, 0xff));
        let (before, _) = server.answer(&batch(), &mut Phases::new()).unwrap();
        let last = server.snapshot();
        let updates = server.begin_merge();
        assert!(server.consistent().is_none());
        std::thread::scope(|scope| {
            let answering = scope.spawn(|| server.answer(&batch(), &mut Phases::new()));
            std::thread::sleep(Duration::from_millis(20));
            let matrix = last.matrix.with_updates(&updates).unwrap();
            server.publish(Snapshot { epoch: 2, matrix });
            assert_eq!(answering.join().unwrap(), Ok((before, 2)));
        });
    }

    #[test]
    fn batch_without_a_consistent_state_is_rejected() {
        let server = server(Strategy::Loop);
        server.begin_merge();
        assert_eq!(server.answer(&batch()[..1], &mut Phases::new()), Err(Refused::Busy));
    }

    #[test]
    fn batches_of_other_sizes_and_keys_of_other_lengths_are_refused() {
        let server = server(Strategy::Loop);
        assert_eq!(server.answer(&[], &mut Phases::new()), Err(Refused::BatchSize(0)));
        let many = vec![batch()[0].clone(); MAX_BATCH + 1];
        assert_eq!(server.answer(&many, &mut Phases::new()), Err(Refused::BatchSize(33)));
        let bad = [[vec![0; 25], vec![0; 24], vec![0; 25]]];
        let expected = BadKey { expected: 25, found: 24 };
        assert_eq!(server.answer(&bad, &mut Phases::new()), Err(Refused::Key(expected)));
    }
}
