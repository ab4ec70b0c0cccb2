//! `insert-diskann verify`: whether an index file is consistent.

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::strategy::LayoutKind;
use crate::{blocks, compact};

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Which index it is.
    pub layout: &'static str,
    /// Vectors.
    pub nodes: u64,
    /// Edges, each direction for itself.
    pub edges: u64,
    /// Edges that a node may have.
    pub most_edges: u64,
    /// Inserts whose edges are in the log only.
    pub log_records: u64,
}

/// What is wrong with an index.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    first: Vec<String>,
    count: u64,
}

impl Findings {
    /// So many are told; the rest is counted.
    const TOLD: usize = 10;

    /// Adds one.
    pub fn add(&mut self, finding: String) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push(finding);
        }
    }

    /// Adds one unless `sound`.
    pub fn check(&mut self, sound: bool, finding: impl FnOnce() -> String) {
        if !sound {
            self.add(finding());
        }
    }

    /// Nothing, or an error that tells the first of them.
    ///
    /// # Errors
    ///
    /// When there are any.
    pub fn into_result(self) -> Result<()> {
        match self.count {
            0 => Ok(()),
            count => {
                let told = self.first.join("; ");
                let rest = count - self.first.len() as u64;
                Err(Error::Damaged(if rest == 0 { told } else { format!("{told}; and {rest} more") }))
            }
        }
    }
}

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
            format!("{} is no file", path.display()),
        )));
    }
    // In the mode in which the file was left: a write-ahead log of a killed process is read as a matter of course.
    let connection = Connection::open(path)?;
    check(&connection)
}
