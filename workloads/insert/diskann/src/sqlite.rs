//! Opening of database files, and the effective settings of SQLite.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, ffi};

use crate::error::Result;

/// How much a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Not at all.
    Off,
    /// In WAL mode only at a checkpoint: a commit survives the process, the last ones may not survive a power cut.
    Normal,
    /// Every commit waits until the disk has it.
    Full,
}

assay_harness::choices!(Synchronous { "off" => Off, "normal" => Normal, "full" => Full });

/// How a transaction is kept apart from the file until it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// New pages go to a log.
    Wal,
    /// Old pages go to a rollback journal, which the commit deletes.
    Delete,
}

assay_harness::choices!(Journal { "wal" => Wal, "delete" => Delete });

/// Who else may use the file while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// Other processes, between transactions: every commit takes locks on the file and gives them back.
    Normal,
    /// No other process: the locks are taken once and held.
    Exclusive,
}

assay_harness::choices!(Locking { "normal" => Normal, "exclusive" => Exclusive });

/// SQLite's knobs.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// Bytes of a page; fixed when a file is made.
    pub page_size: u32,
    /// Bytes of the file that are mapped into memory.
    pub mmap_bytes: u64,
    /// Kibibytes of SQLite's own page cache.
    pub cache_kib: u32,
    /// How much a commit waits for the disk.
    pub synchronous: Synchronous,
    /// How a transaction is kept apart.
    pub journal: Journal,
    /// Who else may use the file.
    pub locking: Locking,
}

impl Tuning {
    /// Settings for building a file that is discarded on failure: no syncs, and no journal files.
    #[must_use]
    pub fn making(page_size: u32) -> Self {
        let (synchronous, journal) = (Synchronous::Off, Journal::Delete);
        Self { page_size, mmap_bytes: 0, cache_kib: 65_536, synchronous, journal, locking: Locking::Normal }
    }
}

/// Effective settings of SQLite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Bytes of a page.
    pub page_size: u64,
    /// Bytes of the file that are mapped into memory.
    pub mmap_bytes: u64,
    /// Kibibytes of SQLite's own page cache.
    pub cache_kib: u64,
    /// How much a commit waits for the disk.
    pub synchronous: &'static str,
    /// How a transaction is kept apart.
    pub journal: String,
    /// Who else may use the file.
    pub locking: String,
    /// Pages of the log after which they are copied into the file.
    pub checkpoint_pages: u64,
}

/// Opens the database at `path`, and makes it if that is allowed.
///
/// # Errors
///
/// When SQLite refuses.
pub fn open(path: &Path, tuning: &Tuning, make: bool) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, make);
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "page_size", tuning.page_size)?;
    // Before the log is opened, so that its index lies in memory of the process.
    connection.pragma_update_and_check(None, "locking_mode", tuning.locking.name(), |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_mode", tuning.journal.name(), |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", tuning.synchronous.name())?;
    connection.pragma_update(None, "cache_size", -i64::from(tuning.cache_kib))?;
    connection.pragma_update_and_check(None, "mmap_size", tuning.mmap_bytes.cast_signed(), |_| Ok(()))?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Reads SQLite's knobs back.
///
/// # Errors
///
/// When SQLite refuses.
pub fn effective(connection: &Connection) -> Result<Effective> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let synchronous = match number("synchronous")? {
        0 => "off",
        1 => "normal",
        2 => "full",
        _ => "extra",
    };
    // A build without mapping answers the pragma with no row.
    let mapped = number("mmap_size").unwrap_or(0);
    Ok(Effective {
        page_size: number("page_size")?.unsigned_abs(),
        mmap_bytes: mapped.unsigned_abs(),
        // Negative: kibibytes and not pages.
        cache_kib: number("cache_size")?.unsigned_abs(),
        synchronous,
        journal: connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?,
        locking: connection.pragma_query_value(None, "locking_mode", |row| row.get(0))?,
        checkpoint_pages: number("wal_autocheckpoint")?.unsigned_abs(),
    })
}

/// Bytes of memory that SQLite's page cache takes now.
///
/// # Errors
///
/// When SQLite refuses.
pub fn cache_bytes(connection: &Connection) -> Result<u64> {
    let (mut now, mut most) = (0, 0);
    let status = ffi::SQLITE_DBSTATUS_CACHE_USED;
    // SAFETY: the handle belongs to an open connection that is not shared, and both locations are writable.
    let code = unsafe { ffi::sqlite3_db_status(connection.handle(), status, &mut now, &mut most, 0) };
    match code {
        ffi::SQLITE_OK => Ok(u64::try_from(now).unwrap_or(0)),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()),
    }
}

/// Bytes of the database file, its log not counted.
///
/// # Errors
///
/// When SQLite refuses.
pub fn file_bytes(connection: &Connection) -> Result<u64> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((number("page_count")? * number("page_size")?).unsigned_abs())
}

/// Rolls back a failed insert. Its own error is ignored in favour of the original one.
pub fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_back() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-sqlite-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, synchronous) in Synchronous::CHOICES {
            for ((mode, journal), (lock, locking)) in
                Journal::CHOICES.into_iter().flat_map(|mode| Locking::CHOICES.map(|lock| (mode, lock)))
            {
                let path = folder.join(format!("{name}-{mode}-{lock}.db"));
                let (page_size, mmap_bytes, cache_kib) = (8192, 1 << 20, 3000);
                let tuning = Tuning { page_size, mmap_bytes, cache_kib, synchronous, journal, locking };
                let connection = open(&path, &tuning, true).unwrap();
                let effective = effective(&connection).unwrap();
                assert_eq!((effective.page_size, effective.mmap_bytes, effective.cache_kib), (8192, 1 << 20, 3000));
                assert_eq!((effective.synchronous, effective.journal.as_str()), (name, mode));
                assert_eq!((effective.locking.as_str(), effective.checkpoint_pages), (lock, 1000));
                connection.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(50000))").unwrap();
                assert!(file_bytes(&connection).unwrap() > 50_000);
                assert!((50_000..3000 << 10).contains(&cache_bytes(&connection).unwrap()));
                // Whether another connection can read between two transactions.
                let other = Connection::open(&path).unwrap();
                other.busy_timeout(std::time::Duration::ZERO).unwrap();
                let read = other.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
                assert_eq!(read.is_ok(), locking == Locking::Normal, "{name} {mode} {lock}: {read:?}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
