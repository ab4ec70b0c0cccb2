//! `batch-rms24 run`: one trial, one result.

mod parameters;
mod report;
mod setup;

use std::path::Path;
use std::time::{Duration, Instant};

use assay_harness::{Digest, Failure, Phases, Report, Stopwatch, machine};

use crate::child::ServerProcess;
use crate::client::{Broken, Client, Link, Memory, Tally, Tcp, Transport};
use crate::database::Database;
use crate::offline::{self, State};
use crate::query::Builder;
use crate::reference;
use crate::server::Server;
use crate::wire::{Hello, Ready};

pub(crate) use parameters::{BATCH, ENTRIES, entry_size};
pub use parameters::{Parameters, Scope, Way};
pub(crate) use setup::Setup;

/// A run that takes longer has gone wrong.
const LIMIT: Duration = Duration::from_secs(100);

/// The flags that decide how much memory a trial takes.
pub(crate) const SIZES: &str = "--entries, --entry-size";

/// A query whose answer is not the database's entry.
pub(crate) fn wrong(index: u32) -> Failure {
    Failure::error(format_args!("the answer to the query for entry {index} is not that entry"))
}

/// A run that took too long.
fn late(queries: usize) -> Failure {
    Failure::error(format_args!("the run was given up after {} s and {queries} queries", LIMIT.as_secs()))
}

/// Runs one trial. `program` is the one to start as a server.
///
/// # Errors
///
/// When the parameters do not fit the machine, the server does not do its part, or an answer is wrong.
pub fn run(p: &Parameters, program: &Path) -> Result<Report, Failure> {
    let setup = Setup::new(p)?;
    machine::check_memory(p.memory_bytes(), SIZES)?;
    match p.scope {
        Scope::Protocol => protocol(p, &setup, program),
        Scope::BuildQuery => build_query(p, &setup),
    }
}

/// A client, and what the server said.
pub(crate) fn connect<'a>(
    p: &Parameters,
    setup: &'a Setup,
    state: State,
    server: &'a Serving,
) -> Result<(Client<'a, Link<'a>>, Ready), Failure> {
    let hello = Hello {
        entries: p.geometry.entries(),
        entry_size: p.geometry.entry_size() as u32,
        seed: p.seed,
        batch_limit: p.batch_size as u32,
        wishes: p.wishes,
    };
    let (link, ready) = match server {
        Serving::Here(server) => {
            Memory::connect(server, &hello).map(|(memory, ready)| (Link::Memory(memory), ready))?
        }
        Serving::Child(child) => Tcp::connect(child.address(), &hello).map(|(tcp, ready)| (Link::Tcp(tcp), ready))?,
        Serving::There(address) => Tcp::connect(*address, &hello).map(|(tcp, ready)| (Link::Tcp(tcp), ready))?,
    };
    let batch = p.batch_size.min(ready.batch_limit as usize).max(1);
    Ok((Client::new(&setup.prf, state, setup.builder(p), link, batch, p.flush), ready))
}

/// Where the server is.
#[derive(Debug)]
pub(crate) enum Serving {
    /// In this process.
    Here(Box<Server>),
    /// In a process of its own, started for this trial.
    Child(ServerProcess),
    /// Where the platform or the user started it.
    There(std::net::SocketAddr),
}

impl Serving {
    pub(crate) fn start(p: &Parameters, program: &Path) -> Result<Self, Failure> {
        match (p.transport, p.server) {
            (Way::Memory, _) => {
                let server = Server::new(Database::new(p.entries()), p.server_batch_limit);
                Ok(Self::Here(Box::new(server)))
            }
            (Way::Tcp, Some(address)) => Ok(Self::There(address)),
            (Way::Tcp, None) => {
                let flags = [
                    format!("--entries={}", p.geometry.entries()),
                    format!("--entry-size={}", p.geometry.entry_size()),
                    format!("--seed={}", p.seed),
                    format!("--batch-limit={}", p.server_batch_limit),
                ];
                Ok(Self::Child(ServerProcess::start(program, &flags)?))
            }
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Here(_) => "same process",
            Self::Child(_) => "child process",
            Self::There(_) => "given",
        }
    }
}

fn protocol(p: &Parameters, setup: &Setup, program: &Path) -> Result<Report, Failure> {
    let offline = Stopwatch::start();
    let (state, source) = setup.state(p);
    let offline = offline.seconds();
    let serving = Serving::start(p, program)?;
    let (mut client, ready) = connect(p, setup, state, &serving)?;
    let indices = p.indices.take(p.warmup_queries + p.queries, p.geometry.entries(), p.seed);
    let (warmup, measured) = indices.split_at(p.warmup_queries);

    let start = Instant::now();
    let mut phases = Phases::new();
    run_queries(&mut client, warmup, start, &mut phases)?;
    check_used_once(client.tally())?;
    let (used_before, examined_before) = (client.tally().used.clone(), client.builder().examined());
    client.clear();
    phases.clear();

    let whole = Stopwatch::start();
    run_queries(&mut client, measured, start, &mut phases)?;
    let seconds = whole.seconds();

    // Verification, after the clock has stopped.
    let mut tally = client.tally().clone();
    let words = p.geometry.entry_words();
    let mut digest = Digest::new();
    for (index, answer) in measured.iter().zip(tally.answers.chunks_exact(words)) {
        let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_le_bytes()).collect();
        if bytes != p.entries().bytes(*index) {
            return Err(wrong(*index));
        }
        digest.add(&bytes);
    }
    tally.used.extend(used_before);
    check_used_once(&tally)?;
    let outcome = report::Outcome {
        tally: &tally,
        phases: &phases,
        seconds,
        examined: client.builder().examined() - examined_before,
        digest: &digest,
    };
    let link = report::Link {
        ready,
        client_nodelay: client.transport().nodelay(),
        server: serving.name(),
        source: &source,
        offline_seconds: offline,
        backups_left: client.state().backups.left(),
    };
    Ok(report::protocol(p, setup, &outcome, &link))
}

/// Asks for all entries, and waits until all answers are there.
pub(crate) fn run_queries<T: Transport>(
    client: &mut Client<'_, T>,
    indices: &[u32],
    start: Instant,
    phases: &mut Phases,
) -> Result<(), Failure> {
    for (done, index) in indices.iter().enumerate() {
        if start.elapsed() > LIMIT {
            return Err(late(done));
        }
        client.query(*index, phases)?;
        // What is left in the last batch belongs to the last query.
        if done + 1 == indices.len() {
            client.finish(phases)?;
        }
        phases.end_iteration();
    }
    Ok(())
}

/// A hint that is used twice tells the server which two queries have to do with each other.
fn check_used_once(tally: &Tally) -> Result<(), Failure> {
    let mut used = tally.used.clone();
    used.sort_unstable();
    match used.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::error(format_args!("hint {} was used twice", pair[0]))),
        None => Ok(()),
    }
}

fn build_query(p: &Parameters, setup: &Setup) -> Result<Report, Failure> {
    let indices = p.indices.take(p.warmup_queries + p.queries, p.geometry.entries(), p.seed);
    let (warmup, measured) = indices.split_at(p.warmup_queries);
    let offline = Stopwatch::start();
    let mut hints = offline::prepare(&setup.prf, &setup.secret, p.geometry, &indices);
    let offline = offline.seconds();
    let mut builder = setup.builder(p);
    let mut build = |builder: &mut Builder, index: u32| {
        let watch = Stopwatch::start();
        let built = builder.build(&setup.prf, &mut hints, index);
        let seconds = watch.seconds();
        built.map(|built| (built, seconds)).ok_or(Broken::NoHint { index })
    };
    let start = Instant::now();
    let mut used = Vec::new();
    for index in warmup {
        used.push(build(&mut builder, *index)?.0.hint.id);
    }
    let examined_before = builder.examined();

    let (mut tally, mut phases, mut all) = (Tally::default(), Phases::new(), Vec::new());
    for (done, index) in measured.iter().enumerate() {
        if start.elapsed() > LIMIT {
            return Err(late(done));
        }
        let (built, seconds) = build(&mut builder, *index)?;
        tally.builds.push(seconds);
        phases.add("buildQuery", seconds);
        phases.end_iteration();
        tally.used.push(built.hint.id);
        all.push(built);
    }
    // Time between two queries is that of this loop, and no part of the work.
    let seconds = tally.builds.iter().sum();
    tally.latencies.clone_from(&tally.builds);

    // Verification: what the server would answer, and what the hint's sum would be, from the contents of the entries.
    let mut digest = Digest::new();
    for built in &all {
        let answer = reference::answer(&setup.prf, p.entries(), built);
        let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_le_bytes()).collect();
        if bytes != p.entries().bytes(built.index) {
            return Err(wrong(built.index));
        }
        digest.add(&bytes);
    }
    tally.used.extend(used);
    check_used_once(&tally)?;
    let outcome = report::Outcome {
        tally: &tally,
        phases: &phases,
        seconds,
        examined: builder.examined() - examined_before,
        digest: &digest,
    };
    Ok(report::build_query(p, setup, &outcome, offline))
}
