//! `insert-diskann verify`: whether an index file is consistent.

use std::path::Path;

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::findings::{Findings, Summary};
use crate::strategy::LayoutKind;
use crate::{blocks, compact};

/// Which index the database of `connection` holds.
///
/// # Errors
///
/// When it holds none.
pub fn kind(connection: &Connection) -> Result<LayoutKind> {
    let has = |table: &str| -> Result<bool> {
        let sql = "SELECT EXISTS(SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
        Ok(connection.query_row(sql, [table], |row| row.get(0))?)
    };
    if has(blocks::METADATA)? {
        Ok(LayoutKind::Blocks)
    } else if has(compact::SETTING)? {
        Ok(LayoutKind::Compact)
    } else {
        Err(Error::Damaged("it has none of the tables of an index".to_owned()))
    }
}

/// Checks the index of `connection`: SQLite's own pages, then every node and edge.
///
/// # Errors
///
/// When it is damaged, with the first findings.
pub fn check(connection: &Connection) -> Result<Summary> {
    let mut findings = Findings::default();
    let pages: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    findings.check(pages == "ok", || format!("SQLite says: {pages}"));
    let summary = match kind(connection)? {
        LayoutKind::Blocks => blocks::verify::verify(connection, &mut findings)?,
        LayoutKind::Compact => compact::verify::verify(connection, &mut findings)?,
    };
    findings.into_result().map(|()| summary)
}

/// Checks the index file at `path`.
///
/// # Errors
///
/// When it is no index or damaged.
pub fn check_file(path: &Path) -> Result<Summary> {
    if !path.is_file() {
        return Err(Error::System(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            format!("{} is not a file", path.display()),
        )));
    }
    // In the mode in which the file was left: a write-ahead log of a killed process is read as a matter of course.
    let connection = Connection::open(path)?;
    check(&connection)
}
