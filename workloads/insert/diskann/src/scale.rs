//! `insert-diskann scale`: an index of a million vectors (`--size`) within a share of its own size.
//!
//! Two arms have a copy of one index each, and take turns: one keeps all of it in memory, one has a memory budget of a quarter of the
//! file (`--budget-percent`), SQLite's page cache included. In each round both insert the same next 128 vectors, each in a transaction of
//! its own with `synchronous=normal`. Afterwards both indexes are checked, and asked for the ten true neighbours of each query with one
//! list.
//!
//! SIZE is `1m`, `100k` and so on:
//!
//! | figure | what |
//! |---|---|
//! | `diskann.insertSIZE.us`, `.whole.us` | time of an insert within the budget, and without one |
//! | `diskann.insertSIZE.over_whole` | their ratio, in the same rounds |
//! | `diskann.insertSIZE.recall10`, `.whole.recall10` | share of the ten true neighbours that are found |
//! | `diskann.insertSIZE.search_us`, `.whole.search_us` | time of a query |
//! | `diskann.insertSIZE.memory_bytes`, `.whole.memory_bytes` | the most that an index held after a round, SQLite's page cache included |
//! | `diskann.insertSIZE.file_bytes` | the file |

use assay_harness::figures::{self, Estimate, Printer, Times};
use assay_harness::{Failure, FlagError, Flags, Phases, Stopwatch, machine};

use crate::crash::Crash;
use crate::dataset::{Data, Kind};
use crate::estimate::mean;
use crate::exact::K;
use crate::options::Options;
use crate::prepare::Cache;
use crate::run::{SIZES, check_disk, judge_index, lost};
use crate::turns::Turns;
use crate::{sqlite, verify};

/// The flags of `scale`.
#[derive(Debug, Clone)]
pub struct Settings {
    turns: Turns,
    search_list: usize,
    budget: f64,
    options: Options,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let turns = Turns::take(&mut flags, (1_000_000, 1000..=1_000_000))?;
        let dataset = flags.choice("dataset", Kind::Clustered, &Kind::CHOICES)?;
        let mut ours = Flags::parse([
            "--strategy=ours".to_owned(),
            format!("--fold-every={}", turns.round_inserts),
            format!("--dataset={}", dataset.name()),
        ])?;
        let settings = Self {
            turns,
            search_list: flags.integer("search-list", 128, K as u64..=2000)? as usize,
            budget: flags.integer("budget-percent", 25, 1..=100)? as f64 / 100.0,
            options: Options::take(&mut ours)?,
        };
        flags.finish()?;
        Ok(settings)
    }

    fn vectors(&self) -> usize {
        self.turns.vectors(WARMUP_ROUNDS)
    }
}

/// Rounds that are run and forgotten: they also fill the caches.
const WARMUP_ROUNDS: usize = 2;

/// Measures all figures and prints each as one line of JSON.
///
/// # Errors
///
/// When memory or disk are short, an index turns out wrong or takes more memory than it may, or standard output is gone.
pub fn bench(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let cache = Cache::open(s.turns.cache.clone())?;
    let vectors = s.vectors() as u64;
    // The data and what is checked of it, an index in memory, and one that is made or checked.
    let vector = 4 * s.options.dims as u64 + 32;
    machine::check_memory(vectors * (2 * vector + 2 * (vector + 220)) + (256 << 20), SIZES)?;
    check_disk(3 * vectors * s.options.node_bytes() + (256 << 20), &cache)?;
    let dataset = s.options.dataset;
    let data = Data::generate(
        dataset,
        s.options.dims,
        s.options.seed,
        s.turns.size,
        s.vectors() - s.turns.size,
        s.turns.queries,
    );
    out.progress(format_args!("{} vectors, {}: preparing", s.turns.size, dataset.name()));
    let (prepared, origin) = cache.prepare(&s.options, s.turns.size, &data.vectors, || Ok::<(), Failure>(()))?;
    out.progress(format_args!("index: {origin}"));

    // Within the budget first: then what comes after it cannot have warmed anything for it.
    let copies = [cache.copy(&prepared)?, cache.copy(&prepared)?];
    let mut options = [s.options; 2];
    let mut connections = Vec::new();
    for (copy, options) in copies.iter().zip(&options) {
        connections.push(sqlite::open(&copy.index(), &options.tuning, false)?);
    }
    let file = sqlite::file_bytes(&connections[0])?;
    options[0].memory_budget_kib = (s.budget * file as f64) as u64 >> 10;
    let mut indexes = Vec::new();
    for (connection, options) in connections.iter().zip(&options) {
        if options.memory_budget_kib > 0 && options.memory_budget_kib <= u64::from(options.tuning.cache_kib) {
            return Err(Failure::usage(format_args!(
                "--budget-percent: {} KiB are not more than SQLite's cache of {}; a larger --size or share is allowed",
                options.memory_budget_kib, options.tuning.cache_kib
            )));
        }
        indexes.push(options.open(connection, options.distance()?, Crash::default())?);
    }

    out.progress(format_args!("{} rounds of {} inserts", s.turns.rounds, s.turns.round_inserts));
    let mut times = Times(vec![Vec::new(); indexes.len()]);
    let mut memory = [0_u64; 2];
    for round in 0..WARMUP_ROUNDS + s.turns.rounds {
        let first = s.turns.size + round * s.turns.round_inserts;
        for arm in figures::in_turn(round, indexes.len()) {
            let watch = Stopwatch::start();
            for at in first..first + s.turns.round_inserts {
                indexes[arm].insert(data.vector(at), &mut Phases::new())?;
            }
            let seconds = watch.seconds();
            if round >= WARMUP_ROUNDS {
                times.0[arm].push(seconds);
            }
            memory[arm] = memory[arm].max(indexes[arm].memory_bytes() + sqlite::cache_bytes(&connections[arm])?);
        }
    }

    let name = format!("diskann.insert{}", s.turns.name());
    let once = |value: u64| Estimate { value: value as f64, low: value as f64, high: value as f64, samples: 1 };
    out.print(format_args!("{name}.over_whole"), "x", times.ratio(0, 1))?;
    out.print(format_args!("{name}.file_bytes"), "By", once(file))?;
    for (arm, of) in ["", ".whole"].into_iter().enumerate() {
        out.progress(format_args!("checking an index, {} queries", s.turns.queries));
        let summary = verify::check(&connections[arm])?;
        if summary.nodes != data.len() as u64 {
            return Err(lost(data.len() as u64, summary.nodes));
        }
        let allowed = options[arm].memory_budget_kib << 10;
        // SQLite may exceed its cache by the pages that a statement holds.
        if allowed > 0 && memory[arm] > allowed + (64 << 10) {
            return Err(Failure::error(format_args!(
                "the index held {} bytes, and {allowed} are its budget",
                memory[arm]
            )));
        }
        let judged = judge_index(indexes[arm].as_mut(), &data, 0, s.search_list)?;
        out.print(format_args!("{name}{of}.us"), "us", times.median(arm, 1e6 / s.turns.round_inserts as f64))?;
        out.print(format_args!("{name}{of}.memory_bytes"), "By", once(memory[arm]))?;
        out.print(format_args!("{name}{of}.recall10"), "1", mean(&judged.recalls))?;
        let search = judged.latencies.iter().map(|seconds| seconds * 1e6).collect();
        out.print(format_args!("{name}{of}.search_us"), "us", Estimate::median(search))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arms_have_their_figures_and_one_keeps_to_its_budget() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-scale-{}", std::process::id()));
        let flags = ["--size=12000", "--rounds=6", "--round-inserts=4", "--queries=10", "--budget-percent=40"];
        let flags = flags.into_iter().map(str::to_owned).chain([format!("--cache={}", folder.display())]);
        let mut out = Vec::new();
        bench(&Settings::parse(flags).unwrap(), &mut Printer::new("insert-diskann", &mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let figure = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.contains(&format!("\"{name}\""))).expect(name);
            let figure: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| figure[name].as_f64().unwrap();
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{line}");
            number("value")
        };
        assert!(figure("diskann.insert12k.memory_bytes") < 0.42 * figure("diskann.insert12k.file_bytes"));
        assert!(figure("diskann.insert12k.whole.memory_bytes") > figure("diskann.insert12k.memory_bytes"));
        assert!(figure("diskann.insert12k.recall10") > 0.8 && figure("diskann.insert12k.whole.recall10") > 0.8);
        for name in ["over_whole", "us", "whole.us", "search_us", "whole.search_us"] {
            assert!(figure(&format!("diskann.insert12k.{name}")) > 0.0);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
