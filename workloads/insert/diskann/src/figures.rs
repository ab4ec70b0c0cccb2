//! `insert-diskann bench`: the figures that the project claims for this kernel, measured in one run.
//!
//! Each arm has its own index of 10,000 vectors (`--size`), prepared beforehand, and its own copy of it on the same file system.
//! [`figures`] says how arms take turns: in each round every arm inserts the same next 128 vectors (`--round-inserts`), each in a
//! transaction of its own. Timed is the wall time of those inserts from the call to the return of the last, commits included; our log is
//! folded every 128 inserts, so each round has one fold, and no arm leaves work to a later round. Recall is measured afterwards, on the
//! indexes that came out, with an interval by bootstrap over queries.
//!
//! The copies grow by as many vectors as are inserted, so with 20 rounds an insert meets 10,000 to 12,560 vectors.
//!
//! | figure | what |
//! |---|---|
//! | `diskann.insert10k.speedup` | `baseline` over `ours`, clustered vectors, WAL and `synchronous=normal` on both sides |
//! | `diskann.insert10k.speedup.seek` | `baseline` over `seek`, the document's proposal, in the same rounds |
//! | `diskann.insert10k.us` | time of an insert of `ours` in the same rounds; `.baseline`, `.seek` likewise |
//! | `diskann.random_start.us.baseline`, `.seek` | the one phase that the proposal changes |
//! | `diskann.recall10` | share of the ten true neighbours that `ours` finds with a list of 64; `.baseline` likewise |
//! | `diskann.recall10.gain` | recall of `ours` less that of `baseline`, query by query |
//! | `diskann.uniform.*` | the same on the document's own vectors and, as there, without any wait for a disk: `synchronous=off` on both sides |
//! | `diskann.full.insert10k.*` | clustered again, with `synchronous=full`: every commit waits for the disk |
//! | `diskann.full.sync_us` | one write of three pages and the wait for the disk, on that file system, in the same rounds |
//! | `diskann.peer.insert10k.us` | time of an insert into `hnsw_rs` in memory (16 neighbours, list of 128), in the rounds of the first figure: nothing is stored |
//! | `diskann.peer.recall10` | its recall with a list of 64 |

use assay_harness::figures::{self, Estimate, Printer, Times};
use assay_harness::{Failure, FlagError, Flags, Phases, Stopwatch, machine};

use crate::ceiling;
use crate::crash::Crash;
use crate::dataset::{Data, Kind};
use crate::distance::{Distance, Path};
use crate::estimate::mean;
use crate::index::{Index, phase};
use crate::options::Options;
use crate::prepare::{Cache, WorkFolder};
use crate::run::{SIZES, check_disk, judge_index, lost};
use crate::sqlite::{self, Synchronous};
use crate::strategy::Strategy;
use crate::turns::{self, Turns};
use crate::verify;

/// The flags of `bench`.
#[derive(Debug, Clone)]
pub struct Settings {
    turns: Turns,
    search_list: usize,
    path: Path,
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
            turns: Turns::take(&mut flags, turns::SIZES)?,
            search_list: flags.integer("search-list", 64, 10..=2000)? as usize,
            path: flags.choice("path", Path::Auto, &Path::CHOICES)?,
        };
        flags.finish()?;
        Ok(settings)
    }

    /// Vectors of one arm at the end.
    fn vectors(&self) -> usize {
        self.turns.vectors(WARMUP_ROUNDS)
    }

    /// The parameters of an arm; the path is the one that was asked for where the strategy leaves the choice open.
    fn options(&self, strategy: Strategy, dataset: Kind, synchronous: Synchronous) -> Result<Options, Failure> {
        let flags = [format!("--strategy={}", strategy.name()), format!("--dataset={}", dataset.name())];
        let parsed = Flags::parse(flags).and_then(|mut flags| Options::take(&mut flags));
        let mut options = parsed.map_err(std::io::Error::other)?;
        options.tuning.synchronous = synchronous;
        options.fold_every = self.turns.round_inserts as u64;
        if options.factors.path == Path::Auto {
            options.factors.path = self.path;
        }
        Ok(options)
    }
}

/// Rounds that are run and forgotten.
const WARMUP_ROUNDS: usize = 1;

/// Measures all figures and prints each as one line of JSON.
///
/// # Errors
///
/// When the path is not available, memory or disk are short, an index turns out wrong, or standard output is gone.
pub fn bench(settings: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let s = settings;
    Distance::select(s.path)?;
    let cache = Cache::open(s.turns.cache.clone())?;
    let baseline = s.options(Strategy::Baseline, Kind::Uniform, Synchronous::Normal)?;
    // Blocks of the largest arm while it is prepared; three copies of it on disk, and two prepared data sets.
    machine::check_memory(s.vectors() as u64 * (baseline.block_size as u64 + 4096) + (256 << 20), SIZES)?;
    check_disk(5 * s.vectors() as u64 * baseline.node_bytes() + (256 << 20), &cache)?;
    let all = [Strategy::Baseline, Strategy::Seek, Strategy::Ours];

    let outcome = compare(out, s, &cache, &all, Kind::Clustered, Synchronous::Normal, Beside::Peer)?;
    outcome.print_times("", &all, out)?;
    for (strategy, name) in [(0, "baseline"), (1, "seek")] {
        out.print(format_args!("diskann.random_start.us.{name}"), "us", outcome.us(&outcome.random_start, strategy))?;
    }
    outcome.print_recalls("", out)?;
    #[cfg(feature = "peer")]
    {
        out.print("diskann.peer.insert10k.us", "us", outcome.us(&outcome.times, outcome.beside()))?;
        out.print("diskann.peer.recall10", "1", mean(&outcome.recalls[outcome.beside()]))?;
    }

    let outcome = compare(out, s, &cache, &all, Kind::Uniform, Synchronous::Off, Beside::Nothing)?;
    outcome.print_times("uniform.", &all, out)?;
    outcome.print_recalls("uniform.", out)?;

    let two = [Strategy::Baseline, Strategy::Ours];
    let outcome = compare(out, s, &cache, &two, Kind::Clustered, Synchronous::Full, Beside::Syncs)?;
    outcome.print_times("full.", &two, out)?;
    out.print("diskann.full.sync_us", "us", Estimate::median(outcome.syncs))
}

/// What is measured beside the strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// The index in memory, as one more arm.
    Peer,
    /// The file system, after every round.
    Syncs,
}

/// What the rounds gave.
struct Outcome {
    round_inserts: usize,
    /// Seconds of every arm in every round.
    times: Times,
    /// Seconds that every arm spent looking for a start, in every round.
    random_start: Times,
    /// Recall of every query, for every arm.
    recalls: Vec<Vec<f64>>,
    /// Microseconds of a wait for the disk, in every round.
    syncs: Vec<f64>,
}

/// An arm that has its index open.
struct Arm<'c> {
    index: Box<dyn Index + 'c>,
    phases: Phases,
}

fn compare(
    out: &Printer<'_>,
    s: &Settings,
    cache: &Cache,
    strategies: &[Strategy],
    dataset: Kind,
    synchronous: Synchronous,
    beside: Beside,
) -> Result<Outcome, Failure> {
    out.progress(format_args!("{} vectors, {}: preparing", s.turns.size, dataset.name()));
    let options: Vec<Options> =
        strategies.iter().map(|strategy| s.options(*strategy, dataset, synchronous)).collect::<Result<_, _>>()?;
    let data = Data::generate(
        dataset,
        options[0].dims,
        options[0].seed,
        s.turns.size,
        s.vectors() - s.turns.size,
        s.turns.queries,
    );
    let mut copies: Vec<WorkFolder> = Vec::new();
    for options in &options {
        let (prepared, origin) = cache.prepare(options, s.turns.size, &data.vectors, || Ok::<(), Failure>(()))?;
        out.progress(format_args!("index of {}: {origin}", options.strategy.name()));
        copies.push(cache.copy(&prepared)?);
    }
    let connections =
        options.iter().zip(&copies).map(|(options, copy)| sqlite::open(&copy.index(), &options.tuning, false));
    let connections: Vec<_> = connections.collect::<Result<_, _>>()?;
    let mut arms: Vec<Arm<'_>> = Vec::new();
    for (options, connection) in options.iter().zip(&connections) {
        let distance = options.distance()?;
        let index = options.open(connection, distance, Crash::default())?;
        arms.push(Arm { index, phases: Phases::new() });
    }
    #[cfg(feature = "peer")]
    let mut peer = (beside == Beside::Peer).then(|| {
        let mut peer = crate::peers::hnsw::Peer::new(s.vectors(), options[0].insert_list);
        data.vectors.chunks_exact(data.dims).take(s.turns.size).for_each(|vector| peer.insert(vector));
        peer
    });
    #[cfg(feature = "peer")]
    let turns = arms.len() + usize::from(peer.is_some());
    #[cfg(not(feature = "peer"))]
    let turns = arms.len();

    out.progress(format_args!("{} rounds of {} inserts, {synchronous:?}", s.turns.rounds, s.turns.round_inserts));
    let mut outcome = Outcome {
        round_inserts: s.turns.round_inserts,
        times: Times(vec![Vec::new(); turns]),
        random_start: Times(vec![Vec::new(); arms.len()]),
        recalls: Vec::new(),
        syncs: Vec::new(),
    };
    for round in 0..WARMUP_ROUNDS + s.turns.rounds {
        let first = s.turns.size + round * s.turns.round_inserts;
        let vectors = first..first + s.turns.round_inserts;
        for arm in figures::in_turn(round, turns) {
            let watch = Stopwatch::start();
            if let Some(arm) = arms.get_mut(arm) {
                for vector in vectors.clone() {
                    arm.index.insert(data.vector(vector), &mut arm.phases)?;
                }
                arm.index.commit(&mut arm.phases)?;
            }
            #[cfg(feature = "peer")]
            if let Some(peer) = peer.as_mut().filter(|_| arm == strategies.len()) {
                vectors.clone().for_each(|vector| peer.insert(data.vector(vector)));
            }
            let seconds = watch.seconds();
            if round >= WARMUP_ROUNDS {
                outcome.times.0[arm].push(seconds);
            }
        }
        for (arm, starts) in arms.iter_mut().zip(&mut outcome.random_start.0) {
            arm.phases.end_iteration();
            let random_start = arm.phases.iter().find(|(name, _)| *name == phase::RANDOM_START);
            let seconds = random_start.and_then(|(_, seconds)| seconds.last().copied()).unwrap_or(0.0);
            if round >= WARMUP_ROUNDS {
                starts.push(seconds);
            }
        }
        if beside == Beside::Syncs && round >= WARMUP_ROUNDS {
            outcome.syncs.push(1e6 / ceiling::syncs(cache.folder())?.value);
        }
    }

    out.progress(format_args!("checking the indexes, {} queries", s.turns.queries));
    for (arm, connection) in arms.iter_mut().zip(&connections) {
        // A wrong index yields no figure.
        let summary = verify::check(connection)?;
        if summary.nodes != data.len() as u64 {
            return Err(lost(data.len() as u64, summary.nodes));
        }
        outcome.recalls.push(judge_index(arm.index.as_mut(), &data, 0, s.search_list)?.recalls);
    }
    #[cfg(feature = "peer")]
    if let Some(peer) = peer {
        outcome.recalls.push(peer_recalls(&peer, &data, s.search_list));
    }
    Ok(outcome)
}

#[cfg(feature = "peer")]
fn peer_recalls(peer: &crate::peers::hnsw::Peer, data: &Data, search_list: usize) -> Vec<f64> {
    use crate::exact::{K, nearest, recall};
    let vectors = || (1..).zip(data.vectors.chunks_exact(data.dims));
    let one = |query: &[f32]| {
        let (truth, found) = (nearest(query, vectors(), K), peer.search(query, K, search_list));
        recall(&[truth], &[found]).unwrap_or(0.0)
    };
    data.queries().map(one).collect()
}

impl Outcome {
    /// The arm beside the strategies.
    #[cfg(feature = "peer")]
    fn beside(&self) -> usize {
        self.times.0.len() - 1
    }

    /// The arm of ours, the last of the strategies.
    fn ours(&self) -> usize {
        self.random_start.0.len() - 1
    }

    /// Microseconds that an insert takes of an arm's `times`.
    fn us(&self, times: &Times, arm: usize) -> Estimate {
        times.median(arm, 1e6 / self.round_inserts as f64)
    }

    fn print_times(&self, prefix: &str, strategies: &[Strategy], out: &mut Printer<'_>) -> Result<(), Failure> {
        let insert = format!("diskann.{prefix}insert10k");
        for (arm, strategy) in strategies.iter().enumerate() {
            // Ours is what the figure without a name is about.
            let name = if arm == self.ours() { String::new() } else { format!(".{}", strategy.name()) };
            if *strategy != Strategy::Baseline {
                out.print(format_args!("{insert}.speedup{name}"), "x", self.times.ratio(0, arm))?;
            }
            out.print(format_args!("{insert}.us{name}"), "us", self.us(&self.times, arm))?;
        }
        Ok(())
    }

    fn print_recalls(&self, prefix: &str, out: &mut Printer<'_>) -> Result<(), Failure> {
        let (baseline, ours) = (&self.recalls[0], &self.recalls[self.ours()]);
        let recall = format!("diskann.{prefix}recall10");
        out.print(&recall, "1", mean(ours))?;
        out.print(format_args!("{recall}.baseline"), "1", mean(baseline))?;
        let gains: Vec<f64> = ours.iter().zip(baseline).map(|(ours, baseline)| ours - baseline).collect();
        out.print(format_args!("{recall}.gain"), "1", mean(&gains))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_one_line_with_an_interval_around_its_value() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-bench-{}", std::process::id()));
        let flags =
            ["--size=100", "--rounds=6", "--round-inserts=2", "--queries=10", "--search-list=20"].map(str::to_owned);
        let flags = flags.into_iter().chain([format!("--cache={}", folder.display())]);
        let settings = Settings::parse(flags).unwrap();
        let mut out = Vec::new();
        bench(&settings, &mut Printer::new("insert-diskann", &mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            let figure: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| figure[name].as_f64().unwrap();
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{line}");
        }
        for name in [
            "diskann.insert10k.speedup",
            "diskann.insert10k.speedup.seek",
            "diskann.insert10k.us",
            "diskann.insert10k.us.baseline",
            "diskann.random_start.us.seek",
            "diskann.recall10",
            "diskann.recall10.gain",
            "diskann.uniform.insert10k.speedup",
            "diskann.full.insert10k.speedup",
            "diskann.full.sync_us",
        ] {
            assert!(text.contains(&format!("\"{name}\"")), "{name} is missing");
        }
        assert_eq!(text.contains("diskann.peer.recall10"), cfg!(feature = "peer"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
