//! `batch-rms24 run`: one trial, one result.

mod parameters;
mod report;
mod setup;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use assay_harness::{Digest, Failure, Phases, Report, Stopwatch, machine};

use crate::child::ServerProcess;
use crate::client::{Broken, Client, Memory, Tally, Tcp};
use crate::database::Pages;
use crate::offline::{self, State};
use crate::reference;
use crate::server::Server;
use crate::wire::{Hello, Ready};

pub(crate) use parameters::{BATCH, ENTRIES, address, entry_size, pages};
pub use parameters::{Complete, Contents, Parameters, Scope, Way};
pub(crate) use setup::Setup;

/// A run that takes longer has gone wrong.
const LIMIT: Duration = Duration::from_secs(100);

/// The flags that decide how much memory a trial takes.
pub(crate) const SIZES: &str = "--entries, --entry-size";

/// Adds the answer to a query to the digest, if it is the database's entry.
fn verify(p: &Parameters, index: u32, answer: &[u64], digest: &mut Digest) -> Result<(), Failure> {
    let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_le_bytes()).collect();
    if bytes != p.entries().bytes(index) {
        return Err(Failure::error(format_args!("the answer to the query for entry {index} is not that entry")));
    }
    digest.add(&bytes);
    Ok(())
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
    let setups = (0..p.clients).map(|client| Setup::new(p, client)).collect::<Result<Vec<_>, _>>()?;
    machine::check_memory(p.memory_bytes(), SIZES)?;
    match p.scope {
        Scope::Protocol => protocol(p, &setups, program),
        Scope::BuildQuery => build_query(p, &setups[0]),
    }
}

/// Connects a client and returns it with the server's reply.
pub(crate) fn connect<'a>(
    p: &Parameters,
    setup: &'a Setup,
    state: State,
    server: &'a Serving,
) -> Result<(Client<'a>, Ready), Failure> {
    let hello = Hello {
        entries: p.geometry.entries(),
        entry_size: p.geometry.entry_size() as u32,
        seed: p.seed,
        batch_limit: p.batch_size as u32,
        wishes: p.wishes,
    };
    let (link, ready) = match server {
        Serving::Here(server) => Memory::connect(server, &hello)?,
        Serving::Child(child) => Tcp::connect(child.address(), &hello, p.end)?,
        Serving::There(address) => Tcp::connect(*address, &hello, p.end)?,
    };
    let batch = p.batch_size.min(ready.batch_limit as usize).max(1);
    let client = Client::new(&setup.prf, state, setup.builder(p), link, batch, p.flush);
    Ok((client.with_think_time(p.think_time), ready))
}

/// Where the server is.
#[derive(Debug)]
pub(crate) enum Serving {
    /// In this process.
    Here(Box<Server>),
    /// A child process started for this trial.
    Child(ServerProcess),
    /// Where the platform or the user started it.
    There(SocketAddr),
}

impl Serving {
    pub(crate) fn start(p: &Parameters, program: &Path) -> Result<Self, Failure> {
        match (p.transport, p.server) {
            (Way::Memory, _) => {
                let server = Server::new(p.contents.database(p.entries(), p.pages), p.server_batch_limit);
                Ok(Self::Here(Box::new(server)))
            }
            (Way::Tcp, Some(address)) => Ok(Self::There(address)),
            (Way::Tcp, None) => {
                let flags = [
                    format!("--entries={}", p.geometry.entries()),
                    format!("--entry-size={}", p.geometry.entry_size()),
                    format!("--seed={}", p.seed),
                    format!("--batch-limit={}", p.server_batch_limit),
                    format!("--database={}", p.contents.name()),
                    format!("--huge-pages={}", p.pages == Pages::Huge),
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

fn protocol(p: &Parameters, setups: &[Setup], program: &Path) -> Result<Report, Failure> {
    let indices: Vec<Vec<u32>> = (0..p.clients).map(|client| p.indices_of(client)).collect();
    let offline = Stopwatch::start();
    let states: Vec<_> = setups.iter().zip(&indices).map(|(setup, indices)| setup.state(p, indices)).collect();
    let offline = offline.seconds();
    let serving = Serving::start(p, program)?;
    let source = states[0].1.clone();
    let mut clients = Vec::new();
    for (setup, (state, _)) in setups.iter().zip(states) {
        clients.push(connect(p, setup, state, &serving)?);
    }
    let ready = clients[0].1;
    let mut sessions = Vec::new();
    for ((mut client, _), indices) in clients.into_iter().zip(&indices) {
        let (warmup, measured) = indices.split_at(p.warmup_queries);
        run_queries(&mut client, warmup, Instant::now(), &mut Phases::new())?;
        let Tally { used, .. } = std::mem::take(&mut client.tally);
        check_used_once(&used)?;
        let examined = client.builder().examined();
        sessions.push(Session { client, measured, phases: Phases::new(), used, examined });
    }

    let seconds = all_at_once(&mut sessions)?;

    // Verification, after the clock has stopped.
    let (mut tally, mut phases, mut digest, mut examined) = (Tally::default(), Phases::new(), Digest::new(), 0);
    for session in &mut sessions {
        let mut own = std::mem::take(&mut session.client.tally);
        for (index, answer) in session.measured.iter().zip(own.answers.chunks_exact(p.geometry.entry_words())) {
            verify(p, *index, answer, &mut digest)?;
        }
        own.used.extend(&session.used);
        check_used_once(&own.used)?;
        tally.extend(own);
        phases.extend(&session.phases);
        examined += session.client.builder().examined() - session.examined;
    }
    let outcome = report::Outcome { tally: &tally, phases: &phases, seconds, examined, digest: &digest };
    let first = &sessions[0].client;
    let link = report::Link {
        ready,
        client_nodelay: first.link().nodelay(),
        server: serving.name(),
        source: &source,
        offline_seconds: offline,
        backups_left: first.state().backups.left(),
    };
    Ok(report::protocol(p, &setups[0], &outcome, &link))
}

/// A client, its indices, and its work before the measurement.
struct Session<'a> {
    client: Client<'a>,
    measured: &'a [u32],
    phases: Phases,
    /// The hints that the warm-up used.
    used: Vec<u32>,
    /// How many hints its searches looked at.
    examined: u64,
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        run_queries(&mut self.client, self.measured, Instant::now(), &mut self.phases)
    }
}

/// Runs all clients concurrently, each on a separate thread unless there is only one. Returns the seconds from the
/// first query's start to the last one's end.
fn all_at_once(sessions: &mut [Session<'_>]) -> Result<f64, Failure> {
    if let [only] = sessions {
        let whole = Stopwatch::start();
        only.run()?;
        return Ok(whole.seconds());
    }
    let barrier = Barrier::new(sessions.len());
    let spans = thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .map(|session| {
                scope.spawn(|| {
                    barrier.wait();
                    let start = Instant::now();
                    session.run().map(|()| (start, Instant::now()))
                })
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("a client does not panic");
        threads.into_iter().map(join).collect::<Result<Vec<_>, Failure>>()
    })?;
    let start = spans.iter().map(|(start, _)| *start).min().expect("there is a client");
    let end = spans.iter().map(|(_, end)| *end).max().expect("there is a client");
    Ok((end - start).as_secs_f64())
}

/// Asks for all entries, and waits until all answers are there.
pub(crate) fn run_queries(
    client: &mut Client<'_>,
    indices: &[u32],
    start: Instant,
    phases: &mut Phases,
) -> Result<(), Failure> {
    for (done, index) in indices.iter().enumerate() {
        if start.elapsed() > LIMIT {
            return Err(late(done));
        }
        client.query(*index, phases)?;
        // The remainder of the last batch is attributed to the last query.
        if done + 1 == indices.len() {
            client.finish(phases)?;
        }
        phases.end_iteration();
    }
    Ok(())
}

/// A hint that is used twice tells the server which two queries have to do with each other.
fn check_used_once(used: &[u32]) -> Result<(), Failure> {
    let mut used = used.to_vec();
    used.sort_unstable();
    match used.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::error(format_args!("hint {} was used twice", pair[0]))),
        None => Ok(()),
    }
}

fn build_query(p: &Parameters, setup: &Setup) -> Result<Report, Failure> {
    let indices = p.indices_of(0);
    let (warmup, measured) = indices.split_at(p.warmup_queries);
    let offline = Stopwatch::start();
    let mut hints = offline::prepare(&setup.prf, &setup.secret, p.geometry, &indices);
    let offline = offline.seconds();
    let mut builder = setup.builder(p);
    let start = Instant::now();
    let (mut tally, mut phases, mut digest, mut examined) = (Tally::default(), Phases::new(), Digest::new(), 0);
    for (done, index) in warmup.iter().chain(measured).enumerate() {
        if start.elapsed() > LIMIT {
            return Err(late(done));
        }
        if done == warmup.len() {
            examined = builder.examined();
        }
        let watch = Stopwatch::start();
        let built = builder.build(&setup.prf, &mut hints, *index);
        let seconds = watch.seconds();
        let built = built.ok_or(Broken::NoHint { index: *index })?;
        tally.used.push(built.hint.id);
        if done >= warmup.len() {
            tally.builds.push(seconds);
            phases.add("buildQuery", seconds);
            phases.end_iteration();
            // Verification outside of the timed region: computes the server's answer and the hint's sum from the
            // contents of the entries.
            verify(p, built.index, &reference::answer(&setup.prf, p.entries(), &built), &mut digest)?;
        }
        built.questions.into_iter().for_each(|question| builder.recycle(question));
    }
    // Time between two queries is that of this loop, and no part of the work.
    let seconds = tally.builds.iter().sum();
    tally.latencies.clone_from(&tally.builds);
    check_used_once(&tally.used)?;
    let examined = builder.examined() - examined;
    let outcome = report::Outcome { tally: &tally, phases: &phases, seconds, examined, digest: &digest };
    Ok(report::build_query(p, setup, &outcome, offline))
}
