//! `batch-rms24 bench`: the figures that the project claims for this workload, measured in one run.
//!
//! All arms of a comparison share a machine, a process and the contents of the database; [`figures`] says how they take turns. Every answer
//! is compared with the database: a wrong one yields no number.
//!
//! | figure | what over what |
//! |---|---|
//! | `rms24.build_query.speedup` | building a query with the document's 3.43 million hints: `chacha-double` with the document's dummies over `aes-packed` with the complement, both from an index to two questions |
//! | `rms24.build_query.speedup_uniform` | the same over `aes-uniform`: all hints are looked at, as the document's program does |
//! | `rms24.build_query.speedup.S` | the same over the other strategies |
//! | `rms24.build_query.ms.S` | milliseconds per query |
//! | `rms24.2p24.online_ms` | 2^24 entries of 32 bytes: a whole query, client and server in one thread, from an index to a verified-equal entry and a renewed hint; mean of each round's queries |
//! | `rms24.2p24.online_loopback_ms` | the same with the server in a process of its own, over the loopback device |
//! | `rms24.2p24.online_pairs_ms` | one thread again, with two questions in the document's form |
//! | `rms24.batching.nodelay.gain` | the document's program with Nagle's algorithm off: time per query one question at a time over 16 at a time |
//! | `rms24.batching.delayed_ack.gain` | the same with the document's sockets |
//! | `rms24.batching.packed.gain` | one at a time over 16 at a time with `aes-packed`, Nagle's algorithm off |
//! | `rms24.stalls.two_writes` | share of exchanges that stalled with the document's sockets, one question at a time |
//! | `rms24.stalls.nodelay`, `rms24.stalls.single_write` | the same with one thing repaired |
//! | `rms24.stalls.two_writes_ms` | milliseconds of an exchange with the document's sockets |

use std::path::Path;
use std::time::Instant;

use assay_harness::figures::{self, Estimate, Printer, Times, WARMUP_ROUNDS};
use assay_harness::{Failure, FlagError, Flags, Phases, machine};

use crate::client::{Broken, Client, Link, STALL};
use crate::geometry::Geometry;
use crate::offline;
use crate::reference;
use crate::run::{self, Parameters, SIZES, Serving, Setup, wrong};
use crate::search::Strategy;

/// The flags of `bench`.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Entries of the database whose hints are searched; it does not exist.
    build_entries: u64,
    /// Entries of the database that is asked whole queries.
    online_entries: u64,
    /// Entries of the database for batching and stalls.
    batch_entries: u64,
    rounds: usize,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let settings = Self {
            build_entries: flags.integer("build-entries", 1_834_095_877, 256..=Geometry::MAX_ENTRIES)?,
            online_entries: flags.integer("online-entries", 1 << 24, 256..=1 << 26)?,
            batch_entries: flags.integer("batch-entries", 1 << 18, 256..=1 << 22)?,
            rounds: flags.integer("rounds", 12, 6..=1000)? as usize,
        };
        flags.finish()?;
        Ok(settings)
    }
}

/// Measures all figures and prints each as one line of JSON. `program` is the one to start as a server.
///
/// # Errors
///
/// When memory is short, standard output is gone, or an answer is wrong.
pub fn bench(settings: &Settings, program: &Path, out: &mut Printer<'_>) -> Result<(), Failure> {
    build_query(settings, out)?;
    online(settings, program, out)?;
    batching(settings, program, out)?;
    stalls(settings, program, out)
}

/// The parameters of an arm, as they would be on a command line.
fn arm(flags: &[String]) -> Parameters {
    Parameters::parse(flags.iter().cloned(), None).expect("the arms of a figure are written in this file")
}

fn flags(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn build_query(settings: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    /// Entries that take turns, so that none runs out of hints: about `lambda / 2` contain each.
    const INDICES: usize = 4;
    let rounds = settings.rounds;
    let arms: Vec<Parameters> = Strategy::CHOICES
        .iter()
        .map(|(name, _)| {
            let dummy = if name.starts_with("chacha") { "hint" } else { "complement" };
            let entries = settings.build_entries;
            arm(&flags(&format!("--scope=build-query --entries={entries} --strategy={name} --dummy={dummy}")))
        })
        .collect();
    machine::check_memory(arms.iter().map(Parameters::memory_bytes).sum(), SIZES)?;
    out.progress(format_args!("building queries with {} hints: {rounds} rounds", arms[0].geometry.hints()));
    let indices: Vec<u32> = (0..INDICES as u32).collect();
    let setups: Vec<Setup> = arms.iter().map(Setup::new).collect::<Result<_, _>>()?;
    let mut benches: Vec<_> = arms
        .iter()
        .zip(&setups)
        .map(|(p, setup)| {
            (setup.builder(p), offline::prepare(&setup.prf, &setup.secret, p.geometry, &indices), Vec::new())
        })
        .collect();
    let mut turn = 0;
    let times = figures::time_turns(rounds, arms.len(), |arm| {
        let index = indices[turn / arms.len() % INDICES];
        turn += 1;
        let (builder, hints, built) = &mut benches[arm];
        let query = std::hint::black_box(builder.build(&setups[arm].prf, hints, index));
        built.push(query.ok_or(Broken::NoHint { index })?);
        Ok::<_, Failure>(())
    })?;
    // One query of every arm, checked by definition.
    for ((p, setup), (_, _, built)) in arms.iter().zip(&setups).zip(&benches) {
        for query in built.iter().take(1) {
            let expected: Vec<u64> =
                (0..p.geometry.entry_words()).map(|word| p.entries().word(query.index, word)).collect();
            if reference::answer(&setup.prf, p.entries(), query) != expected {
                return Err(wrong(query.index));
            }
        }
    }
    let [double, offset_first, early_exit, uniform, packed] = [0, 1, 2, 3, 4];
    out.print("rms24.build_query.speedup", "x", times.ratio(double, packed))?;
    out.print("rms24.build_query.speedup_uniform", "x", times.ratio(double, uniform))?;
    out.print("rms24.build_query.speedup.offset_first", "x", times.ratio(double, offset_first))?;
    out.print("rms24.build_query.speedup.early_exit", "x", times.ratio(double, early_exit))?;
    for (arm, (name, _)) in Strategy::CHOICES.iter().enumerate() {
        let name = format!("rms24.build_query.ms.{}", name.replace('-', "_"));
        out.print(&name, "ms", times.median(arm, 1e3))?;
    }
    Ok(())
}

/// What every arm of the repaired program has in common.
const REPAIRED: &str =
    "--dummy=complement --framing=single-write --nodelay=true --flush=full --answering=prefetch --indices=uniform";

fn online(settings: &Settings, program: &Path, out: &mut Printer<'_>) -> Result<(), Failure> {
    /// Queries of a round.
    const QUERIES: usize = 100;
    let rounds = settings.rounds;
    let asked = (WARMUP_ROUNDS + rounds) * QUERIES;
    let arm = |rest: &str| {
        let entries = settings.online_entries;
        let sizes =
            format!("--entries={entries} --entry-size=32 --backup-hints={asked} --queries={asked} --warmup-queries=0");
        arm(&flags(&format!("{sizes} --strategy=aes-packed {REPAIRED} {rest}")))
    };
    let arms = [
        arm("--encoding=halves --transport=memory"),
        arm("--encoding=halves --transport=tcp"),
        arm("--encoding=pairs --transport=memory"),
    ];
    // Three databases, and the hints once more for each arm.
    machine::check_memory(arms.iter().map(Parameters::memory_bytes).sum(), SIZES)?;
    out.progress(format_args!("hints for {} entries", settings.online_entries));
    let setup = Setup::new(&arms[0])?;
    let (state, _) = setup.state(&arms[0]);
    out.progress(format_args!("whole queries: {rounds} rounds of {QUERIES}"));
    let serving = arms.iter().map(|p| Serving::start(p, program)).collect::<Result<Vec<_>, _>>()?;
    let indices = arms[0].indices.take(asked, arms[0].geometry.entries(), arms[0].seed);
    let mut clients = Vec::new();
    for (p, serving) in arms.iter().zip(&serving) {
        clients.push(run::connect(p, &setup, state.clone(), serving)?.0);
    }
    let times = run_rounds(&mut clients, rounds, QUERIES, &indices)?;
    verify(&arms[0], &clients, &indices)?;
    for (arm, name) in ["online_ms", "online_loopback_ms", "online_pairs_ms"].iter().enumerate() {
        out.print(format_args!("rms24.2p24.{name}"), "ms", times.median(arm, 1e3 / QUERIES as f64))?;
    }
    Ok(())
}

fn batching(settings: &Settings, program: &Path, out: &mut Printer<'_>) -> Result<(), Failure> {
    /// Queries of a round: one full batch of 16 questions.
    const QUERIES: usize = 8;
    let rounds = settings.rounds;
    let asked = (WARMUP_ROUNDS + rounds) * QUERIES;
    let entries = settings.batch_entries;
    let common = format!("--entries={entries} --backup-hints={asked} --queries={asked} --warmup-queries=0");
    for (name, flags_of_both) in [
        ("nodelay", "--strategy=chacha-double --nodelay=true".to_owned()),
        ("delayed_ack", "--strategy=chacha-double --nodelay=false".to_owned()),
        ("packed", format!("--strategy=aes-packed --encoding=pairs {REPAIRED}")),
    ] {
        out.progress(format_args!("batches of 1 and 16, {name}: {rounds} rounds"));
        let arms = [1, 16].map(|batch| arm(&flags(&format!("{common} {flags_of_both} --batch-size={batch}"))));
        let times = over_loopback(&arms, rounds, QUERIES, program)?.0;
        out.print(format_args!("rms24.batching.{name}.gain"), "x", times.ratio(0, 1))?;
    }
    Ok(())
}

fn stalls(settings: &Settings, program: &Path, out: &mut Printer<'_>) -> Result<(), Failure> {
    /// Queries of a round, two exchanges each.
    const QUERIES: usize = 4;
    let rounds = settings.rounds;
    let asked = (WARMUP_ROUNDS + rounds) * QUERIES;
    let entries = settings.batch_entries;
    let common = format!(
        "--entries={entries} --backup-hints={asked} --queries={asked} --warmup-queries=0 --strategy=aes-packed --dummy=complement \
         --flush=full"
    );
    out.progress(format_args!("stalls: {rounds} rounds of {QUERIES} queries"));
    let arms = ["--framing=two-writes", "--framing=two-writes --nodelay=true", "--framing=single-write"]
        .map(|rest| arm(&flags(&format!("{common} {rest}"))));
    let exchanges = over_loopback(&arms, rounds, QUERIES, program)?.1;
    for (arm, name) in ["two_writes", "nodelay", "single_write"].iter().enumerate() {
        let shares = exchanges[arm].chunks(2 * QUERIES).map(|round| {
            let stalled = round.iter().filter(|seconds| **seconds > STALL.as_secs_f64()).count();
            stalled as f64 / round.len() as f64
        });
        out.print(format_args!("rms24.stalls.{name}"), "1", Estimate::median(shares.collect()))?;
    }
    let milliseconds = exchanges[0].iter().map(|seconds| seconds * 1e3).collect();
    out.print("rms24.stalls.two_writes_ms", "ms", Estimate::median(milliseconds))
}

/// Arms that share the hints and a server process. Returns the times of all rounds, and of all exchanges of every arm.
fn over_loopback(
    arms: &[Parameters],
    rounds: usize,
    queries: usize,
    program: &Path,
) -> Result<(Times, Vec<Vec<f64>>), Failure> {
    machine::check_memory(arms.iter().map(Parameters::memory_bytes).sum(), SIZES)?;
    let setup = Setup::new(&arms[0])?;
    let (state, _) = setup.state(&arms[0]);
    let serving = Serving::start(&arms[0], program)?;
    let indices = arms[0].indices.take((WARMUP_ROUNDS + rounds) * queries, arms[0].geometry.entries(), arms[0].seed);
    let mut clients = Vec::new();
    for p in arms {
        clients.push(run::connect(p, &setup, state.clone(), &serving)?.0);
    }
    let times = run_rounds(&mut clients, rounds, queries, &indices)?;
    verify(&arms[0], &clients, &indices)?;
    let of_rounds = |client: &Client<'_, Link<'_>>| {
        let all = &client.tally().exchanges;
        all[all.len() * WARMUP_ROUNDS / (WARMUP_ROUNDS + rounds)..].to_vec()
    };
    Ok((times, clients.iter().map(of_rounds).collect()))
}

/// Every arm asks for the same entries in the same rounds.
fn run_rounds(
    clients: &mut [Client<'_, Link<'_>>],
    rounds: usize,
    queries: usize,
    indices: &[u32],
) -> Result<Times, Failure> {
    let mut next = vec![0; clients.len()];
    figures::time_turns(rounds, clients.len(), |arm| {
        let due = &indices[next[arm]..next[arm] + queries];
        next[arm] += queries;
        run::run_queries(&mut clients[arm], due, Instant::now(), &mut Phases::new())
    })
}

/// Every answer of every arm is the entry that was asked for.
fn verify(p: &Parameters, clients: &[Client<'_, Link<'_>>], indices: &[u32]) -> Result<(), Failure> {
    let words = p.geometry.entry_words();
    for client in clients {
        let answers = client.tally().answers.chunks_exact(words);
        assert_eq!(answers.len(), indices.len(), "every query has an answer");
        for (index, answer) in indices.iter().zip(answers) {
            if (0..words).any(|word| answer[word] != p.entries().word(*index, word)) {
                return Err(wrong(*index));
            }
        }
    }
    Ok(())
}
