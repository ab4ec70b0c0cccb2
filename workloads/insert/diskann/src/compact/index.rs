//! Our index, open in a database.

use assay_harness::Phases;
use rusqlite::Connection;

use super::PRUNED_EDGES;
use super::bounded::Bounded;
use super::deleted::Deleted;
use super::entries::entries;
use super::nodes::{Nodes, Question, bypass, connect_back, replay, search, walk};
use super::prune::{Candidate, select};
use super::record::{Record, ids_to_bytes};
use super::replica::{Journal, Replicated};
use super::table::{self, Table};
use super::whole::Whole;
use crate::beam::Beam;
use crate::crash::{Crash, Moment};
use crate::distance::{Distance, Meter};
use crate::error::{Error, Result};
use crate::index::{BackEdges, Editable, Index, Searcher, Stored, Work, phase};
use crate::options::Options;
use crate::sqlite;
use crate::start::{self, Draws, Start};

/// Deleted vectors wait until there are more of them than this, however few are there.
const LEAST_WAITING: u64 = 64;

/// Our index, with its nodes in memory as `N` has them.
#[derive(Debug)]
struct Compact<'c, N> {
    connection: &'c Connection,
    options: Options,
    crash: Crash,
    nodes: N,
    beam: Beam<u32>,
    meter: Meter,
    work: Work,
    draws: Draws,
    medoid: Option<u32>,
    deleted: Deleted,
    log_records: u64,
    /// Inserts and deletes that are not committed.
    uncommitted: u64,
    /// Changes to publish to searching threads.
    journal: Option<Journal>,
}

/// Opens the index of `connection`.
///
/// # Errors
///
/// When it is no such index, or damaged, or its codes do not fit into the budget.
pub fn open<'c>(
    connection: &'c Connection,
    options: &Options,
    distance: Distance,
    crash: Crash,
) -> Result<Box<dyn Index + 'c>> {
    let dims = table::dims(connection)?;
    Ok(match options.nodes_budget() {
        None => {
            let nodes = Whole::new(dims, options.factors.node_cache);
            Box::new(Compact::open(connection, options, distance, crash, nodes)?)
        }
        Some(budget) => Box::new(Compact::open(connection, options, distance, crash, Bounded::new(dims, budget))?),
    })
}

impl<'c, N: Nodes + Replicated> Compact<'c, N> {
    fn open(connection: &'c Connection, options: &Options, distance: Distance, crash: Crash, nodes: N) -> Result<Self> {
        let mut index = Self {
            connection,
            options: *options,
            crash,
            nodes,
            beam: Beam::new(options.insert_list),
            meter: Meter::new(distance),
            work: Work::default(),
            draws: Draws::new(options.seed),
            medoid: None,
            deleted: Deleted::default(),
            log_records: 0,
            uncommitted: 0,
            journal: None,
        };
        index.load()?;
        Ok(index)
    }

    /// Loads the state of the file.
    fn load(&mut self) -> Result<()> {
        let len = table::last_id(self.connection)?;
        let len = u32::try_from(len).map_err(|_| Error::Damaged(format!("invalid id {len}")))?;
        self.deleted = Deleted::load(self.connection)?;
        self.nodes.load(len as usize, &self.deleted, self.connection)?;
        self.log_records = 0;
        Table::Log.scan(self.connection, |id, bytes| {
            self.log_records += 1;
            replay(&mut self.nodes, id, bytes, self.connection)
        })?;
        let medoid = table::setting(self.connection, "medoid")?;
        self.medoid = medoid.and_then(|id| u32::try_from(id - 1).ok()).filter(|slot| *slot < len);
        Ok(())
    }

    /// The slots where the next walk begins: none in an empty index.
    fn starts(&mut self) -> Result<Vec<u32>> {
        let draw = self.draws.draw();
        let id = match self.options.factors.start {
            Start::Count => start::by_count(self.connection, Table::Vector.name(), draw)?,
            Start::Seek => start::by_seek(self.connection, Table::Vector.name(), draw)?,
            Start::Medoid => return Ok(entries(self.medoid, self.nodes.len(), &self.deleted)),
        };
        Ok(id.map(|id| (id - 1) as u32).into_iter().collect())
    }

    fn savepoint(&mut self) -> Result<()> {
        self.nodes.begin();
        if self.connection.is_autocommit() {
            self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        }
        Ok(())
    }

    /// Walks towards `vector`; returns the expanded nodes.
    fn walk_towards(&mut self, vector: &[f32], starts: &[u32]) -> Result<Vec<Candidate>> {
        let target = self.nodes.target(vector);
        let mut seen = std::mem::take(self.nodes.seen());
        let (nodes, beam) = (&mut self.nodes, &mut self.beam);
        let expanded = walk(nodes, starts, &target, beam, &mut seen, self.connection, &mut self.meter);
        *self.nodes.seen() = seen;
        expanded
    }

    fn try_insert(&mut self, vector: &[f32], phases: &mut Phases) -> Result<u64> {
        let crash = self.crash;
        let starts = phases.time(phase::RANDOM_START, || self.starts())?;
        phases.time(phase::SAVEPOINT, || self.savepoint())?;

        let id = self.last_id() + 1;
        let mut pool = phases.time(phase::SEARCH, || self.walk_towards(vector, &starts))?;
        self.work.visited += pool.len() as u64;
        crash.here(id, Moment::Search);

        phases.time(phase::SHADOW_ROW, || {
            Table::Vector.write(self.connection, id.cast_signed(), bytemuck::cast_slice(vector))
        })?;
        crash.here(id, Moment::ShadowRow);

        let new = self.nodes.push(vector)?;
        let forward = phases.time(phase::PHASE1, || {
            pool.sort_by(|a, b| a.distance.total_cmp(&b.distance));
            let (nodes, meter) = (&self.nodes, &mut self.meter);
            let forward = select(&pool, PRUNED_EDGES, |a, b| nodes.squared_between(a, b, meter));
            self.nodes.set_edges(new, &forward);
            forward
        });
        crash.here(id, Moment::Phase1);

        let changes = phases.time(phase::PHASE2, || -> Result<Vec<_>> {
            let back = |&node| connect_back(&mut self.nodes, node, new, self.connection, &mut self.meter);
            forward.iter().map(back).collect()
        })?;
        self.work.back_edges_proposed += forward.len() as u64;
        self.work.back_edges_accepted += forward.len() as u64;
        if let Some(journal) = &mut self.journal {
            journal.changed.push(new);
            journal.changed.extend(&forward);
        }
        crash.here(id, Moment::Phase2);

        phases.time(phase::FLUSH_NEW, || match self.options.factors.back_edges {
            BackEdges::Eager => self.fold(),
            BackEdges::Deferred => {
                let record = Record { forward: forward.iter().map(|slot| slot + 1).collect(), changes };
                self.log_records += 1;
                Table::Log.write(self.connection, id.cast_signed(), &record.to_bytes())
            }
        })?;
        crash.here(id, Moment::FlushNew);

        phases.time(phase::CLEANUP, || -> Result<()> {
            let is_due = self.log_records >= self.options.fold_every || self.nodes.is_crowded();
            if self.options.factors.back_edges == BackEdges::Deferred && is_due {
                self.fold()?;
                self.work.folds += 1;
            }
            if id.is_power_of_two() {
                self.nodes.doubled(&self.deleted, self.connection)?;
                if self.options.factors.start == Start::Medoid {
                    self.find_medoid()?;
                }
            }
            self.uncommitted += 1;
            if self.uncommitted >= self.options.transaction_size { self.end() } else { Ok(()) }
        })?;
        self.work.inserts += 1;
        crash.here(id, Moment::Commit);
        Ok(id)
    }

    /// Writes all edges that are not in their table, and empties the log.
    fn fold(&mut self) -> Result<()> {
        let mut writer = Table::Edge.writer(self.connection)?;
        let dirty = self.nodes.dirty();
        let mut ids = Vec::new();
        for slot in &dirty {
            self.nodes.copy_edges(*slot, &mut ids, self.connection)?;
            ids.iter_mut().for_each(|slot| *slot += 1);
            let (id, bytes) = (i64::from(*slot) + 1, ids_to_bytes(&ids));
            writer.execute((id, &bytes, Table::Edge.checksum(id, &bytes)))?;
        }
        if self.log_records > 0 {
            self.connection.prepare_cached("DELETE FROM log")?.execute([])?;
        }
        self.work.node_writes += dirty.len() as u64;
        self.nodes.set_clean();
        self.log_records = 0;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.uncommitted = 0;
        self.work.commits += 1;
        if let (Some(journal), Some(nodes)) = (&mut self.journal, self.nodes.whole()) {
            journal.publish(nodes, self.medoid, self.work.commits);
        }
        Ok(())
    }

    fn find_medoid(&mut self) -> Result<()> {
        let dims = self.nodes.dims();
        let medoid = start::medoid(dims, |each| self.each_stored(&mut |stored| each(stored.id, &stored.vector)))?;
        let id = medoid.map(|id| id as u32);
        self.medoid = id.map(|id| id - 1);
        table::set_medoid(self.connection, id)
    }

    /// The slot of a vector that is there.
    fn slot(&self, id: u64) -> Option<u32> {
        let slot = u32::try_from(id.checked_sub(1)?).ok().filter(|slot| (*slot as usize) < self.nodes.len())?;
        (!self.deleted.contains(slot)).then_some(slot)
    }

    /// Marks `slot` as deleted, and takes the deleted vectors out where they are many; the caller commits.
    fn mark(&mut self, slot: u32, phases: &mut Phases) -> Result<()> {
        phases.time(phase::MARK, || {
            self.savepoint()?;
            Table::Deleted.write(self.connection, i64::from(slot) + 1, &[])
        })?;
        self.crash.here(u64::from(slot) + 1, Moment::Mark);
        self.deleted.insert(slot);
        self.work.deletes += 1;
        if let Some(journal) = &mut self.journal {
            journal.deleted.push(slot);
        }
        let many = LEAST_WAITING.max(self.live() * self.options.consolidate_percent / 100);
        if self.deleted.waiting().len() as u64 > many {
            phases.time(phase::CONSOLIDATE, || self.take_out())?;
        }
        Ok(())
    }

    fn try_delete(&mut self, slot: u32, phases: &mut Phases) -> Result<()> {
        self.mark(slot, phases)?;
        self.uncommitted += 1;
        if self.uncommitted < self.options.transaction_size {
            return Ok(());
        }
        phases.time(phase::CLEANUP, || self.end())
    }

    /// Takes the deleted vectors out of graph and tables; the caller commits.
    fn take_out(&mut self) -> Result<u64> {
        if self.medoid.is_none_or(|medoid| self.deleted.contains(medoid)) {
            self.find_medoid()?;
        }
        for slot in 0..self.nodes.len() as u32 {
            if self.deleted.contains(slot) {
                continue;
            }
            let (deleted, start) = (&self.deleted, self.medoid);
            let changed = bypass(&mut self.nodes, slot, deleted, start, self.connection, &mut self.meter)?;
            if let Some(journal) = &mut self.journal {
                journal.changed.extend(changed);
            }
            if self.nodes.is_crowded() {
                self.fold()?;
            }
        }
        // The log as well: it knows edges to those that go.
        self.fold()?;
        let waiting = self.deleted.waiting();
        if let Some(last) = waiting.last() {
            self.crash.here(u64::from(*last) + 1, Moment::Bypass);
        }
        let ids = || waiting.iter().map(|slot| i64::from(*slot) + 1);
        Table::Vector.remove(self.connection, ids())?;
        Table::Edge.remove(self.connection, ids())?;
        let gone = self.deleted.set_gone();
        for slot in &gone {
            self.nodes.remove(*slot);
        }
        if let Some(journal) = &mut self.journal {
            journal.gone.extend(&gone);
        }
        self.work.consolidations += 1;
        Ok(gone.len() as u64)
    }

    /// Rolls back to the committed state.
    fn roll_back(&mut self) -> Result<()> {
        sqlite::roll_back(self.connection);
        self.uncommitted = 0;
        if let Some(journal) = &mut self.journal {
            journal.forget();
        }
        self.load()
    }
}

impl<N: Nodes + Replicated> Index for Compact<'_, N> {
    fn insert(&mut self, vector: &[f32], phases: &mut Phases) -> Result<u64> {
        let dims = self.nodes.dims();
        if vector.len() != dims {
            return Err(Error::Damaged(format!("a vector of {} dimensions does not fit {dims}", vector.len())));
        }
        self.try_insert(vector, phases).or_else(|error| self.roll_back().and(Err(error)))
    }

    fn commit(&mut self, phases: &mut Phases) -> Result<()> {
        if self.uncommitted == 0 {
            return Ok(());
        }
        phases.time(phase::CLEANUP, || self.end()).or_else(|error| self.roll_back().and(Err(error)))
    }

    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>> {
        let starts = self.starts()?;
        self.nodes.begin();
        let question = Question { query, starts: &starts, list };
        let mut seen = std::mem::take(self.nodes.seen());
        let (nodes, meter) = (&mut self.nodes, &mut self.meter);
        let beam = search(nodes, question, &self.deleted, &mut seen, self.connection, meter);
        *self.nodes.seen() = seen;
        self.nodes.closest(query, &beam?, k, &self.deleted, self.connection, &mut self.meter)
    }

    fn each_stored(&mut self, each: &mut dyn FnMut(Stored)) -> Result<()> {
        Table::Vector.scan(self.connection, |id, bytes| {
            if self.deleted.contains((id - 1) as u32) {
                return Ok(());
            }
            let vector = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
            each(Stored { id: id.cast_unsigned(), vector });
            Ok(())
        })
    }

    fn last_id(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn live(&self) -> u64 {
        self.last_id() - self.deleted.count()
    }

    fn editable(&mut self) -> Option<&mut (dyn Editable + '_)> {
        Some(self)
    }

    fn work(&self) -> Work {
        let (node_reads, cache_hits) = self.nodes.reads_and_hits();
        Work { node_reads, cache_hits, ..self.work }
    }

    fn meter(&self) -> Meter {
        self.meter
    }

    fn finish(&mut self) -> Result<()> {
        if self.uncommitted == 0 {
            self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        }
        self.fold().and_then(|()| self.end()).or_else(|error| self.roll_back().and(Err(error)))
    }

    fn memory_bytes(&self) -> u64 {
        let replica = self.journal.as_ref().map_or(0, Journal::memory_bytes);
        self.nodes.memory_bytes() + self.deleted.memory_bytes() + replica
    }
}

impl<N: Nodes + Replicated> Editable for Compact<'_, N> {
    fn delete(&mut self, id: u64, phases: &mut Phases) -> Result<bool> {
        let Some(slot) = self.slot(id) else { return Ok(false) };
        self.try_delete(slot, phases).or_else(|error| self.roll_back().and(Err(error)))?;
        Ok(true)
    }

    fn update(&mut self, id: u64, vector: &[f32], phases: &mut Phases) -> Result<Option<u64>> {
        let Some(slot) = self.slot(id).filter(|_| vector.len() == self.nodes.dims()) else { return Ok(None) };
        self.mark(slot, phases).or_else(|error| self.roll_back().and(Err(error)))?;
        // The insert goes on with the transaction, and ends it if it is full; one that fails takes the mark back.
        self.insert(vector, phases).map(Some)
    }

    fn consolidate(&mut self) -> Result<u64> {
        let consolidated = self.savepoint().and_then(|()| self.take_out()).and_then(|out| self.end().map(|()| out));
        consolidated.or_else(|error| self.roll_back().and(Err(error)))
    }

    fn searcher(&mut self) -> Result<Option<Box<dyn Searcher>>> {
        self.commit(&mut Phases::new())?;
        if self.journal.is_none() {
            let Some(nodes) = self.nodes.whole() else { return Ok(None) };
            self.journal = Some(Journal::new(nodes.clone(), self.deleted.clone(), self.medoid, self.work.commits));
        }
        let distance = self.meter.distance();
        Ok(self.journal.as_ref().map(|journal| Box::new(journal.searcher(distance)) as Box<dyn Searcher>))
    }
}
