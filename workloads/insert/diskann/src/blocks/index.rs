//! The document's index, open in a database.

use assay_harness::Phases;
use rusqlite::{Connection, MAIN_DB, OptionalExtension};

use super::deferred::Deferred;
use super::insert::{Insert, Walker, insert};
use super::layout::{Block, Layout};
use super::store::{Sqlite, Store};
use super::{COLUMN, METADATA, TABLE};
use crate::crash::{Crash, Moment};
use crate::distance::{Distance, Meter};
use crate::error::{Error, Result};
use crate::index::{BackEdges, Index, Stored, Work, phase};
use crate::options::Options;
use crate::sqlite;
use crate::start::{self, Draws, Start};

/// Value of the metadata's `format`.
const FORMAT: i64 = 1;

/// The document's index.
#[derive(Debug)]
pub struct Blocks<'c> {
    store: Sqlite<'c>,
    options: Options,
    crash: Crash,
    walker: Walker,
    deferred: Option<Deferred>,
    meter: Meter,
    work: Work,
    draws: Draws,
    len: u64,
    medoid: Option<u64>,
    /// Inserts that are not committed.
    uncommitted: u64,
}

impl<'c> Blocks<'c> {
    /// Makes the tables of an empty index.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    pub fn create(connection: &Connection, layout: Layout) -> Result<()> {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE;
             CREATE TABLE {TABLE}(id INTEGER PRIMARY KEY, {COLUMN} BLOB NOT NULL);
             CREATE TABLE {METADATA}(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
             INSERT INTO {METADATA} VALUES('format', {FORMAT}), ('dims', {}), ('block', {});
             COMMIT;",
            layout.dims(),
            layout.bytes(),
        ))?;
        Ok(())
    }

    /// The sizes that the metadata of `connection` names.
    ///
    /// # Errors
    ///
    /// When it is no such index.
    pub fn layout(connection: &Connection) -> Result<Layout> {
        let number = |key: &str| metadata(connection, key)?.ok_or_else(|| Error::Damaged(format!("it has no {key}")));
        if number("format")? != FORMAT {
            return Err(Error::Damaged(format!("its format is {} and not {FORMAT}", number("format")?)));
        }
        let (dims, bytes) = (number("dims")?, number("block")?);
        let layout = Layout::new(usize::try_from(dims).unwrap_or(0), usize::try_from(bytes).unwrap_or(0));
        layout.ok_or_else(|| Error::Damaged(format!("blocks of {bytes} bytes hold no edge of {dims} dimensions")))
    }

    /// Opens the index of `connection`.
    ///
    /// # Errors
    ///
    /// When it is no such index.
    pub fn open(connection: &'c Connection, options: &Options, distance: Distance, crash: Crash) -> Result<Self> {
        let layout = Self::layout(connection)?;
        Ok(Self {
            store: Sqlite::new(connection, layout, options.factors.node_cache),
            options: *options,
            crash,
            walker: Walker::new(options.insert_list),
            deferred: (options.factors.back_edges == BackEdges::Deferred).then(Deferred::default),
            meter: Meter::new(distance),
            work: Work::default(),
            draws: Draws::new(options.seed),
            len: count(connection)?,
            medoid: metadata(connection, "medoid")?.map(i64::cast_unsigned),
            uncommitted: 0,
        })
    }

    /// Where the next walk begins.
    fn start(&mut self) -> Result<Option<u64>> {
        let (connection, draw) = (self.store.connection(), self.draws.draw());
        match self.options.factors.start {
            Start::Count => start::by_count(connection, TABLE, draw),
            Start::Seek => start::by_seek(connection, TABLE, draw),
            Start::Medoid => Ok(self.medoid.or((self.len > 0).then_some(1))),
        }
    }

    fn savepoint(&self) -> Result<()> {
        let connection = self.store.connection();
        if self.options.transaction_size > 1 && self.uncommitted == 0 {
            connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        Ok(connection.execute_batch("SAVEPOINT diskann_insert")?)
    }

    fn try_insert(&mut self, vector: &[f32], phases: &mut Phases) -> Result<()> {
        let id = self.len + 1;
        let start = phases.time(phase::RANDOM_START, || self.start())?;
        phases.time(phase::SAVEPOINT, || self.savepoint())?;
        let parameters = Insert { id, vector, start, crash: self.crash };
        let (store, deferred) = (&mut self.store, self.deferred.as_mut());
        insert(&parameters, store, &mut self.walker, deferred, &mut self.meter, &mut self.work, phases)?;
        self.len = id;
        self.uncommitted += 1;
        let last = self.uncommitted >= self.options.transaction_size;
        if last {
            self.flush(phases)?;
        }
        phases.time(phase::CLEANUP, || -> Result<()> {
            if self.options.factors.start == Start::Medoid && id.is_power_of_two() {
                self.find_medoid()?;
            }
            self.store.connection().execute_batch("RELEASE diskann_insert")?;
            if last { self.end() } else { Ok(()) }
        })?;
        self.crash.here(id, Moment::Commit);
        Ok(())
    }

    /// Adds the collected edges.
    fn flush(&mut self, phases: &mut Phases) -> Result<()> {
        let Some(deferred) = &mut self.deferred else { return Ok(()) };
        phases.time(phase::PHASE2, || deferred.flush(&mut self.store, &mut self.meter, &mut self.work))
    }

    /// Ends the transaction.
    fn end(&mut self) -> Result<()> {
        let connection = self.store.connection();
        if !connection.is_autocommit() {
            connection.execute_batch("COMMIT")?;
        }
        self.uncommitted = 0;
        self.work.commits += 1;
        Ok(())
    }

    fn find_medoid(&mut self) -> Result<()> {
        let dims = self.store.layout().dims();
        self.medoid = start::medoid(dims, |each| self.each_stored(&mut |stored| each(stored.id, &stored.vector)))?;
        if let Some(medoid) = self.medoid {
            set_medoid(self.store.connection(), medoid)?;
        }
        Ok(())
    }

    /// Rolls back to the committed state.
    fn roll_back(&mut self) {
        sqlite::roll_back(self.store.connection());
        self.store.forget();
        if let Some(deferred) = &mut self.deferred {
            deferred.clear();
        }
        self.len = count(self.store.connection()).unwrap_or(self.len - self.uncommitted);
        self.medoid = metadata(self.store.connection(), "medoid").ok().flatten().map(i64::cast_unsigned);
        self.uncommitted = 0;
    }
}

impl Index for Blocks<'_> {
    fn insert(&mut self, vector: &[f32], phases: &mut Phases) -> Result<u64> {
        let dims = self.store.layout().dims();
        if vector.len() != dims {
            return Err(Error::Damaged(format!("a vector of {} dimensions does not fit {dims}", vector.len())));
        }
        self.try_insert(vector, phases).inspect_err(|_| self.roll_back())?;
        Ok(self.len)
    }

    fn commit(&mut self, phases: &mut Phases) -> Result<()> {
        if self.uncommitted == 0 {
            return Ok(());
        }
        let ended = self.flush(phases).and_then(|()| phases.time(phase::CLEANUP, || self.end()));
        ended.inspect_err(|_| self.roll_back())
    }

    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>> {
        let Some(start) = self.start()? else { return Ok(Vec::new()) };
        let mut walker = Walker::new(list);
        let visited = walker.walk(&mut self.store, start, query, false, &mut self.meter)?;
        visited.into_iter().for_each(|node| self.store.close(node));
        Ok(walker.found().take(k).collect())
    }

    fn each_stored(&mut self, each: &mut dyn FnMut(Stored)) -> Result<()> {
        let layout = self.store.layout();
        let connection = self.store.connection();
        let mut ids = connection.prepare(&format!("SELECT id FROM {TABLE} ORDER BY id"))?;
        let mut rows = ids.query([])?;
        // The vector lies at the front of its blob: one page, and not the whole chain.
        let front = layout.front();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let blob = connection.blob_open(MAIN_DB, TABLE, COLUMN, id, true)?;
            let mut block = Block::zeroed(layout);
            blob.read_at_exact(&mut block.bytes_mut()[..front], 0)?;
            each(Stored { id: id.cast_unsigned(), vector: block.vector().to_vec() });
        }
        Ok(())
    }

    fn last_id(&self) -> u64 {
        self.len
    }

    fn work(&self) -> Work {
        let (node_reads, cache_hits) = self.store.reads_and_hits();
        Work { node_reads, cache_hits, ..self.work }
    }

    fn meter(&self) -> Meter {
        self.meter
    }

    fn finish(&mut self) -> Result<()> {
        self.commit(&mut Phases::new())
    }

    fn memory_bytes(&self) -> u64 {
        self.store.memory_bytes() + self.deferred.as_ref().map_or(0, Deferred::memory_bytes)
    }
}

/// A number of the metadata.
pub(super) fn metadata(connection: &Connection, key: &str) -> Result<Option<i64>> {
    let sql = format!("SELECT value FROM {METADATA} WHERE key = ?1");
    Ok(connection.query_row(&sql, [key], |row| row.get(0)).optional()?)
}

pub(super) fn set_medoid(connection: &Connection, medoid: u64) -> Result<()> {
    let sql = format!("INSERT OR REPLACE INTO {METADATA} VALUES('medoid', ?1)");
    connection.execute(&sql, [medoid.cast_signed()])?;
    Ok(())
}

/// How many vectors there are: ids have no gaps, so the largest says it.
fn count(connection: &Connection) -> Result<u64> {
    let sql = format!("SELECT COALESCE(MAX(id), 0) FROM {TABLE}");
    Ok(connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
}
