//! The five tables: every row of vectors, edges, log and deleted vectors with a checksum that covers its id, its table and its bytes.

use rusqlite::{CachedStatement, Connection, OptionalExtension};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::SETTING;
use crate::error::{Error, Result};

/// Value of the setting `format`.
const FORMAT: i64 = 4;

/// A table whose rows have a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Vector,
    Edge,
    Log,
    Deleted,
}

impl Table {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Edge => "edge",
            Self::Log => "log",
            Self::Deleted => "deleted",
        }
    }

    /// The checksum of a row: XXH3 of its bytes, seeded with the XXH3 of its table's name and id. It detects damage, not tampering, so a
    /// cryptographic hash, which took a tenth of an insert, is not needed.
    pub(super) fn checksum(self, id: i64, bytes: &[u8]) -> i64 {
        let place = xxh3_64_with_seed(self.name().as_bytes(), id.cast_unsigned());
        xxh3_64_with_seed(bytes, place).cast_signed()
    }

    /// Adds a row, or writes it anew.
    pub(super) fn write(self, connection: &Connection, id: i64, bytes: &[u8]) -> Result<()> {
        let mut statement = self.writer(connection)?;
        statement.execute((id, bytes, self.checksum(id, bytes)))?;
        Ok(())
    }

    /// The statement behind [`write`](Self::write), for many rows.
    pub(super) fn writer(self, connection: &Connection) -> Result<CachedStatement<'_>> {
        Ok(connection.prepare_cached(match self {
            Self::Vector => "INSERT INTO vector(id, data, sum) VALUES(?1, ?2, ?3)",
            Self::Edge => "INSERT OR REPLACE INTO edge(id, data, sum) VALUES(?1, ?2, ?3)",
            Self::Log => "INSERT INTO log(id, data, sum) VALUES(?1, ?2, ?3)",
            Self::Deleted => "INSERT INTO deleted(id, data, sum) VALUES(?1, ?2, ?3)",
        })?)
    }

    /// Reads one row, if it is there.
    pub(super) fn read(self, connection: &Connection, id: i64) -> Result<Option<Vec<u8>>> {
        let mut statement = connection.prepare_cached(match self {
            Self::Vector => "SELECT data, sum FROM vector WHERE id = ?1",
            Self::Edge => "SELECT data, sum FROM edge WHERE id = ?1",
            Self::Log => "SELECT data, sum FROM log WHERE id = ?1",
            Self::Deleted => "SELECT data, sum FROM deleted WHERE id = ?1",
        })?;
        let row = statement.query_row([id], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))).optional()?;
        let Some((bytes, sum)) = row else { return Ok(None) };
        if sum != self.checksum(id, &bytes) {
            return Err(self.bad(id));
        }
        Ok(Some(bytes))
    }

    /// Calls `each` for every row in the order of their ids.
    pub(super) fn scan(self, connection: &Connection, mut each: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()> {
        let mut statement = connection.prepare(&format!("SELECT id, data, sum FROM {} ORDER BY id", self.name()))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, sum) = (row.get::<_, i64>(0)?, row.get::<_, i64>(2)?);
            let bytes = row.get_ref(1)?.as_blob().map_err(|_| self.bad(id))?;
            if sum != self.checksum(id, bytes) {
                return Err(self.bad(id));
            }
            each(id, bytes)?;
        }
        Ok(())
    }

    /// Removes rows.
    pub(super) fn remove(self, connection: &Connection, ids: impl Iterator<Item = i64>) -> Result<()> {
        let mut statement = connection.prepare_cached(&format!("DELETE FROM {} WHERE id = ?1", self.name()))?;
        for id in ids {
            statement.execute([id])?;
        }
        Ok(())
    }

    /// The largest id, zero without rows.
    pub(super) fn last(self, connection: &Connection) -> Result<i64> {
        let sql = format!("SELECT COALESCE(MAX(id), 0) FROM {}", self.name());
        Ok(connection.query_row(&sql, [], |row| row.get(0))?)
    }

    fn bad(self, id: i64) -> Error {
        Error::Damaged(format!("row {id} of table {} does not have its checksum", self.name()))
    }
}

/// Makes the tables of an empty index.
///
/// # Errors
///
/// When SQLite refuses.
pub fn create(connection: &Connection, dims: usize) -> Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         CREATE TABLE vector(id INTEGER PRIMARY KEY, data BLOB NOT NULL, sum INTEGER NOT NULL);
         CREATE TABLE edge(id INTEGER PRIMARY KEY, data BLOB NOT NULL, sum INTEGER NOT NULL);
         CREATE TABLE log(id INTEGER PRIMARY KEY, data BLOB NOT NULL, sum INTEGER NOT NULL);
         CREATE TABLE deleted(id INTEGER PRIMARY KEY, data BLOB NOT NULL, sum INTEGER NOT NULL);
         CREATE TABLE {SETTING}(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
         INSERT INTO {SETTING} VALUES('format', {FORMAT}), ('dims', {dims});
         COMMIT;"
    ))?;
    Ok(())
}

/// A setting, if it is there.
pub(super) fn setting(connection: &Connection, name: &str) -> Result<Option<i64>> {
    let sql = format!("SELECT value FROM {SETTING} WHERE name = ?1");
    Ok(connection.query_row(&sql, [name], |row| row.get(0)).optional()?)
}

/// The id of the medoid, if there is one.
pub(super) fn set_medoid(connection: &Connection, medoid: Option<u32>) -> Result<()> {
    match medoid {
        Some(id) => connection.execute(&format!("INSERT OR REPLACE INTO {SETTING} VALUES('medoid', ?1)"), [id])?,
        None => connection.execute(&format!("DELETE FROM {SETTING} WHERE name = 'medoid'"), [])?,
    };
    Ok(())
}

/// The largest id that was ever given out.
pub(super) fn last_id(connection: &Connection) -> Result<i64> {
    Ok(Table::Vector.last(connection)?.max(Table::Deleted.last(connection)?))
}

/// The dimensions that the settings name.
pub(super) fn dims(connection: &Connection) -> Result<usize> {
    match (setting(connection, "format")?, setting(connection, "dims")?) {
        (Some(FORMAT), Some(dims)) if (1..=1 << 16).contains(&dims) => Ok(dims as usize),
        (format, dims) => Err(Error::Damaged(format!("its settings say format {format:?} and dimensions {dims:?}"))),
    }
}
