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
//! | `rms24.build.share_of_aes_ceiling` | AES blocks per second of building a query with the document's hints (`aes-packed`, complement, pairs) on the widest instructions, over those of encrypting and nothing else with the same instructions, in turns |
//! | `rms24.build.share_of_aes_ceiling.P` | the same on the path P; of `halves` with that encoding |
//! | `rms24.build.us.pairs`, `.halves` | microseconds per query of the same |
//! | `rms24.2p24.online_ms` | 2^24 entries of 32 bytes: a whole query, client and server in one thread, from an index to a verified-equal entry and a renewed hint; mean of each round's queries |
//! | `rms24.2p24.online_loopback_ms` | the same with the server in a process of its own, over the loopback device |
//! | `rms24.2p24.online_pairs_ms` | one thread again, with two questions in the document's form |
//! | `rms24.batching.nodelay.gain` | the document's program with Nagle's algorithm off: time per query one question at a time over 16 at a time |
//! | `rms24.batching.delayed_ack.gain` | the same with the document's sockets, in a setting where every exchange stalls; it is not the document's gain, whose clients thought for 650 ms: see the study's run-document.yaml |
//! | `rms24.batching.packed.gain` | one at a time over 16 at a time with `aes-packed`, Nagle's algorithm off |
//! | `rms24.stalls.two_writes` | share of exchanges that stalled with the document's sockets, one question at a time |
//! | `rms24.stalls.nodelay`, `rms24.stalls.single_write` | the same with one thing repaired |
//! | `rms24.stalls.two_writes_ms` | milliseconds of an exchange with the document's sockets |

use std::path::Path;
use std::time::Instant;

use assay_harness::figures::{self, Estimate, Printer, Times, WARMUP_ROUNDS};
use assay_harness::{Failure, FlagError, Flags, Phases, Stopwatch, machine};

use crate::ceilings;
use crate::client::{Broken, Client, Link, STALL};
use crate::geometry::Geometry;
use crate::offline;
use crate::prf::{AesPath, AnyPrf};
use crate::query::{Builder, Built};
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
    share_of_ceiling(settings, out)?;
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
    let setups: Vec<Setup> = arms.iter().map(|p| Setup::new(p, 0)).collect::<Result<_, _>>()?;
    let mut benches: Vec<_> = arms
        .iter()
        .zip(&setups)
        .map(|(p, setup)| (setup.builder(p), offline::prepare(&setup.prf, &setup.secret, p.geometry, &indices), None))
        .collect();
    let mut turn = 0;
    let times = figures::time_turns(rounds, arms.len(), |arm| {
        let index = indices[turn / arms.len() % INDICES];
        turn += 1;
        let (builder, hints, first) = &mut benches[arm];
        let built = std::hint::black_box(builder.build(&setups[arm].prf, hints, index));
        keep_first(builder, first, built.ok_or(Broken::NoHint { index })?);
        Ok::<_, Failure>(())
    })?;
    for ((p, setup), (_, _, first)) in arms.iter().zip(&setups).zip(&benches) {
        check_by_definition(p, setup, first.as_ref())?;
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

/// Keeps an arm's first query to be checked, and gives the memory of the others back as a client does that has sent them.
fn keep_first(builder: &mut Builder, first: &mut Option<Built>, built: Built) {
    if first.is_none() {
        *first = Some(built);
    } else {
        built.questions.into_iter().for_each(|question| builder.recycle(question));
    }
}

/// What the server would answer, and what the hint's sum would be, give the wanted entry.
fn check_by_definition(p: &Parameters, setup: &Setup, built: Option<&Built>) -> Result<(), Failure> {
    let built = built.expect("every arm has built a query");
    let expected: Vec<u64> = (0..p.geometry.entry_words()).map(|word| p.entries().word(built.index, word)).collect();
    if reference::answer(&setup.prf, p.entries(), built) == expected { Ok(()) } else { Err(wrong(built.index)) }
}

/// How near building a query with `aes-packed` is to encrypting and nothing else.
fn share_of_ceiling(settings: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    /// Queries of a turn, each for another entry.
    const QUERIES: usize = 10;
    let rounds = settings.rounds;
    let asked = (WARMUP_ROUNDS + rounds) * QUERIES;
    let paths: Vec<&str> = AesPath::available().into_iter().skip(1).map(AesPath::name).collect();
    let Some(best) = paths.last() else {
        out.progress("this CPU has no AES instructions that a ceiling could be measured with");
        return Ok(());
    };
    let names: Vec<(&str, &str)> = paths.iter().map(|path| (*path, "pairs")).chain([(*best, "halves")]).collect();
    let arms: Vec<Parameters> = names
        .iter()
        .map(|(path, encoding)| {
            let entries = settings.build_entries;
            arm(&flags(&format!(
                "--scope=build-query --entries={entries} --queries={asked} --warmup-queries=0 --strategy=aes-packed --path={path} \
                 --dummy=complement --encoding={encoding} --indices=uniform"
            )))
        })
        .collect();
    machine::check_memory(arms.iter().map(Parameters::memory_bytes).sum(), SIZES)?;
    out.progress(format_args!("building queries beside encrypting: {rounds} rounds of {QUERIES}"));
    let indices = arms[0].indices_of(0);
    let setups: Vec<Setup> = arms.iter().map(|p| Setup::new(p, 0)).collect::<Result<_, _>>()?;
    let last = &setups[setups.len() - 1];
    let hints = offline::prepare(&last.prf, &last.secret, arms[0].geometry, &indices);
    let mut benches: Vec<_> =
        arms.iter().zip(&setups).map(|(p, setup)| (setup.builder(p), hints.clone(), None, 0)).collect();
    let mut seconds = vec![Vec::new(); arms.len()];
    let shares = figures::take_turns(rounds, arms.len(), |arm| {
        let AnyPrf::Aes(prf) = &setups[arm].prf else { panic!("aes-packed has hints of AES") };
        let (builder, hints, first, next) = &mut benches[arm];
        let examined = builder.examined();
        let watch = Stopwatch::start();
        for index in &indices[*next..*next + QUERIES] {
            let built = std::hint::black_box(builder.build(&setups[arm].prf, hints, *index));
            keep_first(builder, first, built.ok_or(Broken::NoHint { index: *index })?);
        }
        let taken = watch.seconds();
        *next += QUERIES;
        seconds[arm].push(taken / QUERIES as f64);
        let calls = run::aes_calls(&arms[arm], prf, builder.examined() - examined, QUERIES);
        let limit = ceilings::aes_rate(setups[arm].path).expect("a path of the CPU's own has a rate");
        Ok::<_, Failure>(calls / taken / limit.value)
    })?;
    for ((p, setup), (_, _, first, _)) in arms.iter().zip(&setups).zip(&benches) {
        check_by_definition(p, setup, first.as_ref())?;
    }
    let (pairs, halves) = (paths.len() - 1, paths.len());
    out.print("rms24.build.share_of_aes_ceiling", "1", shares.median(pairs, 1.0))?;
    out.print("rms24.build.share_of_aes_ceiling.halves", "1", shares.median(halves, 1.0))?;
    for (arm, path) in paths.iter().enumerate() {
        let figure = format!("rms24.build.share_of_aes_ceiling.{}", path.replace('-', "_"));
        out.print(figure, "1", shares.median(arm, 1.0))?;
    }
    for (arm, encoding) in [(pairs, "pairs"), (halves, "halves")] {
        let microseconds = seconds[arm][WARMUP_ROUNDS..].iter().map(|seconds| seconds * 1e6).collect();
        out.print(format_args!("rms24.build.us.{encoding}"), "us", Estimate::median(microseconds))?;
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
    let setup = Setup::new(&arms[0], 0)?;
    let indices = arms[0].indices_of(0);
    let (state, _) = setup.state(&arms[0], &indices);
    out.progress(format_args!("whole queries: {rounds} rounds of {QUERIES}"));
    let serving = arms.iter().map(|p| Serving::start(p, program)).collect::<Result<Vec<_>, _>>()?;
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
    let setup = Setup::new(&arms[0], 0)?;
    let indices = arms[0].indices_of(0);
    let (state, _) = setup.state(&arms[0], &indices);
    let serving = Serving::start(&arms[0], program)?;
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
