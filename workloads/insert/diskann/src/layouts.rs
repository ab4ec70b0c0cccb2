//! Dispatch by layout: creating the tables, opening the index, and building its file.

use rusqlite::Connection;

use crate::blocks::{self, Blocks};
use crate::compact;
use crate::crash::Crash;
use crate::distance::{Distance, Path};
use crate::error::Result;
use crate::index::Index;
use crate::options::Options;
use crate::strategy::LayoutKind;

impl Options {
    /// Makes the tables of an empty index.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    pub fn create(&self, connection: &Connection) -> Result<()> {
        match self.strategy.layout() {
            LayoutKind::Blocks => Blocks::create(connection, self.block()),
            LayoutKind::Compact => compact::create(connection, self.dims),
        }
    }

    /// Opens the index of `connection`.
    ///
    /// # Errors
    ///
    /// When it is no such index, or damaged.
    pub fn open<'c>(
        &self,
        connection: &'c Connection,
        distance: Distance,
        crash: Crash,
    ) -> Result<Box<dyn Index + 'c>> {
        Ok(match self.strategy.layout() {
            LayoutKind::Blocks => Box::new(Blocks::open(connection, self, distance, crash)?),
            LayoutKind::Compact => compact::open(connection, self, distance, crash)?,
        })
    }

    /// Makes the file at `path` from `vectors` at once, with the distances of every path but `scalar`.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    pub fn make(&self, path: &std::path::Path, vectors: &[f32]) -> Result<()> {
        let distance = Distance::select(Path::Auto).unwrap_or(Distance::PORTABLE);
        match self.strategy.layout() {
            LayoutKind::Blocks => blocks::make(path, self, vectors, distance),
            LayoutKind::Compact => compact::make(path, self, vectors, distance),
        }
    }
}
