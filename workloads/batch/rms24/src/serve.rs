//! `batch-rms24 serve`: the server role.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use assay_harness::{Failure, FlagError, Flags, machine};

use crate::child::Announcement;
use crate::database::{Entries, Pages};
use crate::geometry::Geometry;
use crate::run::{BATCH, Contents, ENTRIES, SIZES, address, entry_size, pages};
use crate::server::{Server, tcp};

/// The flags of the server.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    listen: SocketAddr,
    entries: Entries,
    contents: Contents,
    pages: Pages,
    batch_limit: u32,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let listen = flags.optional("listen").unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let listen = address("listen", &listen, "127.0.0.1:0")?;
        let entries = flags.integer("entries", 1 << 16, ENTRIES)?;
        let geometry = Geometry::new(entries, entry_size(&mut flags)?, 1);
        let seed = flags.integer("seed", 1, 0..=u64::MAX)?;
        let contents = flags.choice("database", Contents::Memory, &Contents::CHOICES)?;
        let pages = pages(&mut flags)?;
        let batch_limit = flags.integer("batch-limit", 16, BATCH)? as u32;
        flags.finish()?;
        Ok(Self { listen, entries: Entries::new(seed, geometry), contents, pages, batch_limit })
    }
}

/// Lays out the database, says where it listens, and serves until it is ended.
///
/// # Errors
///
/// When memory is short or the address cannot be listened on.
pub fn serve(settings: &Settings) -> Result<(), Failure> {
    let geometry = settings.entries.geometry();
    machine::check_memory(settings.contents.bytes(geometry) + (8 << 20), SIZES)?;
    let server =
        Arc::new(Server::new(settings.contents.database(settings.entries, settings.pages), settings.batch_limit));
    let listener = TcpListener::bind(settings.listen)?;
    let announcement = Announcement {
        address: listener.local_addr()?,
        entries: geometry.entries(),
        entry_size: geometry.entry_size(),
        batch_limit: settings.batch_limit,
    };
    let line = serde_json::to_string(&announcement).map_err(Failure::error)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())?;
    drop(out);
    Ok(tcp::serve(&server, &listener)?)
}
