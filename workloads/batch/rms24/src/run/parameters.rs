//! Parameters of a trial, their bounds, and the memory that they need.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use assay_harness::{FlagError, Flags};

use crate::ceilings;
use crate::client::{End, Flush};
use crate::database::{Database, Entries, Layout, Pages};
use crate::geometry::Geometry;
use crate::hints::Hints;
use crate::prf::{PrfKind, Wish};
use crate::query::{Dummy, Encoding, Plan};
use crate::search::Strategy;
use crate::server::tcp::MAX_CONNECTIONS;
use crate::wire::framing::Framing;
use crate::wire::{Answering, Wishes};
use crate::workload::Indices;

/// The measured part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything: building, sending, answering, decoding, renewing hints.
    Protocol,
    /// Query building alone, with hints without sums and no database.
    BuildQuery,
}

/// How the client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A socket.
    Tcp,
    /// A call, in the same thread.
    Memory,
}

assay_harness::choices!(Scope { "protocol" => Protocol, "build-query" => BuildQuery });

assay_harness::choices!(Way { "tcp" => Tcp, "memory" => Memory });

/// Where the server takes entries from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Its memory.
    Memory,
    /// Each is computed when it is asked for: databases of any size.
    Computed,
}

assay_harness::choices!(Contents { "memory" => Memory, "computed" => Computed });

impl Contents {
    /// The database.
    #[must_use]
    pub fn database(self, entries: Entries, pages: Pages) -> Database {
        match self {
            Self::Memory => Database::Memory(Layout::new(entries, pages)),
            Self::Computed => Database::Computed(entries),
        }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(self, geometry: Geometry) -> u64 {
        if self == Self::Memory { Database::bytes(geometry) } else { 0 }
    }
}

/// Which hints are computed before the first query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complete {
    /// All.
    All,
    /// Those that a search for the wanted entries can find.
    Wanted,
}

assay_harness::choices!(Complete { "all" => All, "wanted" => Wanted });

/// How the document's program uses both ends of its connection.
const DOCUMENT: End = End { nodelay: false, framing: Framing::TwoWrites };

/// The parameters of a trial.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// Shape of the database.
    pub geometry: Geometry,
    /// The measured part.
    pub scope: Scope,
    /// How queries are built.
    pub plan: Plan,
    /// How AES is computed.
    pub path: Wish,
    /// Queries that count, of all clients together.
    pub queries: usize,
    /// Queries of each client before those.
    pub warmup_queries: usize,
    /// Which entries are asked for.
    pub indices: Indices,
    /// Questions per exchange.
    pub batch_size: usize,
    /// The most questions per exchange that the server allows.
    pub server_batch_limit: u32,
    /// When batches are sent.
    pub flush: Flush,
    /// How the client's end of the connection is used.
    pub end: End,
    /// How the server shall use its end.
    pub wishes: Wishes,
    /// How long a client thinks before it builds a query.
    pub think_time: Duration,
    /// Clients at a time, each with its own hints and connection.
    pub clients: u32,
    /// How the server is reached.
    pub transport: Way,
    /// A server that is there already.
    pub server: Option<SocketAddr>,
    /// Where the server takes entries from.
    pub contents: Contents,
    /// Which pages the database lies on.
    pub pages: Pages,
    /// Which hints are computed before the first query.
    pub complete: Complete,
    /// Backup hints.
    pub backup_hints: u32,
    /// Threads of the offline phase.
    pub setup_threads: usize,
    /// Folder for the offline phase's outcome.
    pub state: Option<PathBuf>,
    /// Seed of the contents, of the client's secret and of the uniform indices.
    pub seed: u64,
    /// Whether to measure the machine's limits too.
    pub ceilings: bool,
}

pub(crate) const ENTRIES: RangeInclusive<u64> = 256..=Geometry::MAX_ENTRIES;
pub(crate) const BATCH: RangeInclusive<u64> = 1..=1024;
/// Memory of the program itself.
const OVERHEAD: u64 = 16 << 20;

/// Huge pages or small ones.
pub(crate) fn pages(flags: &mut Flags) -> Result<Pages, FlagError> {
    Ok(if flags.boolean("huge-pages", true)? { Pages::Huge } else { Pages::Small })
}

/// A whole number of words.
pub(crate) fn entry_size(flags: &mut Flags) -> Result<usize, FlagError> {
    let size = flags.integer("entry-size", 40, 8..=256)? as usize;
    if size.is_multiple_of(8) {
        Ok(size)
    } else {
        Err(FlagError::new("entry-size", size, "an entry is a multiple of 8 bytes"))
    }
}

/// An address with a port, as in the example.
pub(crate) fn address(flag: &'static str, text: &str, example: &str) -> Result<SocketAddr, FlagError> {
    text.parse().map_err(|_| {
        let allowed = format!("an address and a port are needed, e.g. {example}");
        FlagError::new(flag, format_args!("{text:?}"), allowed)
    })
}

impl Parameters {
    /// Reads the parameters; those that are not given have the values of the document's program, on a smaller database. `role` is the
    /// address of a server that the platform has started.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds, or two do not go together.
    pub fn parse(arguments: impl IntoIterator<Item = String>, role: Option<String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let f = &mut flags;
        let server = f.optional("server").or(role.filter(|role| !role.is_empty()));
        let entries = f.integer("entries", 1 << 16, ENTRIES)?;
        let entry_size = entry_size(f)?;
        let lambda = f.integer("lambda", 80, 1..=256)? as u32;
        let end = End {
            nodelay: f.boolean("nodelay", DOCUMENT.nodelay)?,
            framing: f.choice("framing", DOCUMENT.framing, &Framing::CHOICES)?,
        };
        // The ends of the connection to which these settings apply; the other end is configured as in the document.
        let ends = [("both", (end, end)), ("client", (end, DOCUMENT)), ("server", (DOCUMENT, end))];
        let (client, server_end) = f.choice("ends", (end, end), &ends)?;
        let mut parameters = Self {
            geometry: Geometry::new(entries, entry_size, lambda),
            scope: f.choice("scope", Scope::Protocol, &Scope::CHOICES)?,
            plan: Plan {
                strategy: f.choice("strategy", Strategy::ChaChaDouble, &Strategy::CHOICES)?,
                dummy: f.choice("dummy", Dummy::Hint, &Dummy::CHOICES)?,
                encoding: f.choice("encoding", Encoding::Pairs, &Encoding::CHOICES)?,
            },
            path: f.choice("path", Wish::Auto, &Wish::CHOICES)?,
            queries: f.integer("queries", 10, 1..=100_000)? as usize,
            warmup_queries: f.integer("warmup-queries", 1, 0..=10_000)? as usize,
            indices: f.choice("indices", Indices::Sequential, &Indices::CHOICES)?,
            batch_size: f.integer("batch-size", 1, BATCH)? as usize,
            server_batch_limit: f.integer("server-batch-limit", 16, BATCH)? as u32,
            flush: f.choice("flush", Flush::OnePerQuery, &Flush::CHOICES)?,
            end: client,
            wishes: Wishes {
                nodelay: server_end.nodelay,
                framing: server_end.framing,
                answering: f.choice("answering", Answering::Copy, &Answering::CHOICES)?,
            },
            think_time: Duration::from_millis(f.integer("think-time", 0, 0..=10_000)?),
            clients: f.integer("clients", 1, 1..=MAX_CONNECTIONS as u64)? as u32,
            transport: f.choice("transport", Way::Tcp, &Way::CHOICES)?,
            server: None,
            contents: f.choice("database", Contents::Memory, &Contents::CHOICES)?,
            pages: pages(f)?,
            complete: f.choice("hints", Complete::All, &Complete::CHOICES)?,
            backup_hints: f.integer("backup-hints", 1024, 0..=1 << 24)? as u32,
            setup_threads: f.integer("setup-threads", 1, 1..=64)? as usize,
            state: f.optional("state").map(PathBuf::from),
            seed: f.integer("seed", 1, 0..=u64::MAX)?,
            ceilings: f.boolean("ceilings", true)?,
        };
        flags.finish()?;
        parameters.server = server.map(|text| address("server", &text, "127.0.0.1:4000")).transpose()?;
        parameters.consistent()
    }

    fn consistent(self) -> Result<Self, FlagError> {
        if !self.queries.is_multiple_of(self.clients as usize) {
            let need =
                format_args!("{} clients ask as many each: a multiple of {0} is needed", self.clients).to_string();
            return Err(FlagError::new("queries", self.queries, need));
        }
        let asked = self.queries_each() + self.warmup_queries;
        if self.scope == Scope::Protocol && (self.backup_hints as usize) < asked {
            let need = format_args!("{asked} queries use up as many hints: at least {asked} are needed").to_string();
            return Err(FlagError::new("backup-hints", self.backup_hints, need));
        }
        if self.plan.encoding == Encoding::Halves && self.plan.dummy == Dummy::Hint {
            return Err(FlagError::new(
                "encoding",
                "halves",
                "both halves share their blocks: --dummy=complement is needed",
            ));
        }
        if self.scope == Scope::BuildQuery && self.clients > 1 {
            return Err(FlagError::new("clients", self.clients, "--scope=build-query has one client"));
        }
        if self.complete == Complete::Wanted && self.state.is_some() {
            return Err(FlagError::new("hints", "wanted", "--state keeps all hints: it needs --hints=all"));
        }
        Ok(self)
    }

    /// The contents of the database.
    #[must_use]
    pub fn entries(&self) -> Entries {
        Entries::new(self.seed, self.geometry)
    }

    /// The seed of a client's secret and indices.
    #[must_use]
    pub fn seed_of(&self, client: u32) -> u64 {
        self.seed.wrapping_add(u64::from(client))
    }

    /// The measured queries of a client.
    #[must_use]
    pub fn queries_each(&self) -> usize {
        self.queries / self.clients as usize
    }

    /// The entries that a client asks for, those of the warm-up first.
    #[must_use]
    pub fn indices_of(&self, client: u32) -> Vec<u32> {
        self.indices.take(self.warmup_queries + self.queries_each(), self.geometry.entries(), self.seed_of(client))
    }

    /// Bytes the trial will take, its server's among them.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let size = self.geometry.entry_size() as u64;
        let (hints, backups) = (u64::from(self.geometry.hints()), u64::from(self.backup_hints));
        // Number, cutoff, extra entry, flip and map of a hint; the subsets of a query.
        let seen = Hints::bytes_of_extras_seen(hints);
        let searched = hints * 14 + seen + u64::from(self.geometry.blocks()) * 64 + OVERHEAD;
        if self.scope == Scope::BuildQuery {
            return searched + hints * 4;
        }
        let kept = (hints + 2 * backups) * size;
        let (client, offline) = match self.complete {
            Complete::Wanted => (searched + hints * 4 + kept, 0),
            // Two sums of every hint while they are computed, then one of each and two of each backup.
            Complete::All => {
                let computing = (hints + backups) * (2 * size + 4);
                let hint_by_hint = self.plan.strategy.prf() == PrfKind::ChaCha;
                (searched + kept, computing + if hint_by_hint { Database::bytes(self.geometry) } else { 0 })
            }
        };
        let own_server = self.transport == Way::Memory || self.server.is_none();
        let server = if own_server { self.contents.bytes(self.geometry) + OVERHEAD } else { 0 };
        let probe = if self.ceilings { ceilings::probe_bytes(self.geometry) } else { 0 };
        // Clients compute their hints one after the other.
        u64::from(self.clients) * client + offline.max(probe) + server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Parameters, FlagError> {
        Parameters::parse(arguments.iter().map(|&argument| argument.to_owned()), None)
    }

    #[test]
    fn defaults_match_the_documents_program() {
        let p = parse(&[]).unwrap();
        assert_eq!(
            (p.plan.strategy, p.plan.dummy, p.plan.encoding),
            (Strategy::ChaChaDouble, Dummy::Hint, Encoding::Pairs)
        );
        assert_eq!((p.flush, p.indices, p.batch_size), (Flush::OnePerQuery, Indices::Sequential, 1));
        let wishes = Wishes { nodelay: false, framing: Framing::TwoWrites, answering: Answering::Copy };
        assert_eq!((p.wishes, p.end), (wishes, DOCUMENT));
        assert_eq!((p.think_time, p.clients), (Duration::ZERO, 1));
    }

    #[test]
    fn every_invalid_parameter_is_reported() {
        for (bad, message) in [
            (&["--entries=255"][..], "--entries=255: allowed are integers from 256 to 2147483648"),
            (&["--entry-size=41"], "--entry-size=41: an entry is a multiple of 8 bytes"),
            (&["--entry-size=264"], "--entry-size=264: allowed are integers from 8 to 256"),
            (&["--lambda=0"], "--lambda=0: allowed are integers from 1 to 256"),
            (&["--batch-size=1025"], "--batch-size=1025: allowed are integers from 1 to 1024"),
            (
                &["--strategy=magic"],
                "--strategy=magic: allowed are chacha-double, chacha-offset-first, chacha-early-exit, aes-uniform, aes-packed",
            ),
            (&["--nodelay=yes"], "--nodelay=yes: allowed are true, false"),
            (&["--queries=1025"], "--backup-hints=1024: 1026 queries use up as many hints: at least 1026 are needed"),
            (&["--encoding=halves"], "--encoding=halves: both halves share their blocks: --dummy=complement is needed"),
            (&["--server=nowhere"], "--server=\"nowhere\": an address and a port are needed, e.g. 127.0.0.1:4000"),
            (&["--state=a", "--state=b"], "--state is repeated"),
            (&["--ends=neither"], "--ends=neither: allowed are both, client, server"),
            (&["--think-time=10001"], "--think-time=10001: allowed are integers from 0 to 10000"),
            (&["--clients=65"], "--clients=65: allowed are integers from 1 to 64"),
            (&["--clients=2", "--scope=build-query"], "--clients=2: --scope=build-query has one client"),
            (&["--hints=wanted", "--state=a"], "--hints=wanted: --state keeps all hints: it needs --hints=all"),
        ] {
            assert_eq!(parse(bad).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_repair_at_one_end_leaves_the_other_as_in_the_document() {
        let repaired = End { nodelay: true, framing: Framing::SingleWrite };
        for (ends, client, server) in
            [("both", repaired, repaired), ("client", repaired, DOCUMENT), ("server", DOCUMENT, repaired)]
        {
            let p = parse(&["--nodelay=true", "--framing=single-write", &format!("--ends={ends}")]).unwrap();
            assert_eq!(p.end, client, "{ends}");
            assert_eq!((p.wishes.nodelay, p.wishes.framing), (server.nodelay, server.framing), "{ends}");
        }
    }

    #[test]
    fn a_server_is_taken_from_the_flag_then_from_the_role() {
        let parse = |flag: &[&str], role: &str| {
            let flags = flag.iter().map(|&flag| flag.to_owned());
            Parameters::parse(flags, Some(role.to_owned())).unwrap().server
        };
        assert_eq!(parse(&[], ""), None);
        assert_eq!(parse(&[], "10.0.0.1:7").unwrap().to_string(), "10.0.0.1:7");
        assert_eq!(parse(&["--server=10.0.0.2:7"], "10.0.0.1:7").unwrap().to_string(), "10.0.0.2:7");
    }

    #[test]
    fn memory_counts_the_servers_database_unless_it_is_elsewhere() {
        let own = parse(&["--entries=16777216", "--strategy=aes-packed"]).unwrap().memory_bytes();
        let other = parse(&["--entries=16777216", "--strategy=aes-packed", "--server=127.0.0.1:1"]).unwrap();
        assert!(own > 640 << 20 && own - other.memory_bytes() >= 640 << 20);
        let build = parse(&["--entries=1834095877", "--scope=build-query"]).unwrap().memory_bytes();
        assert!((40 << 20..200 << 20).contains(&build), "{build}");
        // The document's 73 GB, computed where they are asked for.
        let computed =
            ["--entries=1834095877", "--database=computed", "--hints=wanted", "--backup-hints=16", "--queries=8"];
        let whole = parse(&computed).unwrap().memory_bytes();
        assert!((137 << 20..400 << 20).contains(&whole), "{whole}");
        let four = parse(&[&computed[..], &["--clients=4"]].concat()).unwrap().memory_bytes();
        assert!(four > 3 * whole - (100 << 20), "{four}");
    }
}
