//! `insert-diskann live`: an index that is searched, updated and deleted from while it is in use.
//!
//! All arms begin with the same 10,000 vectors (`--size`), clustered, each on a copy of its own, WAL and `synchronous=normal`, every
//! operation a transaction. [`figures`] says how arms take turns.
//!
//! First one index: in each round it takes the next 128 vectors (`--round-inserts`) by itself, is then searched by itself by as many
//! threads as `--searchers` says, and then takes the 128 after them while the same threads search it; every other round the other way
//! round. Then three: in each round one takes 128 new vectors, one gets them in place of its 128 oldest, one loses its 128 oldest.
//! Whenever a tenth of the vectors of the second wait to be taken out of its graph they are, between two rounds and by the clock.
//!
//! SIZE is `10k` and so on:
//!
//! | figure | what |
//! |---|---|
//! | `diskann.live.insert_us`, `.insert_us.alone` | time of an insert while the index is searched, and while it is not |
//! | `diskann.live.insert_over_alone` | their ratio, in the same rounds |
//! | `diskann.live.search_qps`, `.search_qps.alone` | searches per second, of all threads, while vectors are inserted, and while not |
//! | `diskann.live.search_over_alone` | their ratio, in the same rounds |
//! | `diskann.live.recall10` | share of the ten true neighbours that those threads find afterwards |
//! | `diskann.updateSIZE.us`, `diskann.deleteSIZE.us` | time of an update, and of a delete, without taking anything out |
//! | `diskann.updateSIZE.over_insert` | time of an update over that of an insert, in the same rounds |
//! | `diskann.consolidateSIZE.us` | time of taking deleted vectors out of the graph, per vector |
//! | `diskann.updateSIZE.recall10`, `.recall10.fresh` | recall after all updates, and of an index that was made anew of what is left |
//! | `diskann.updateSIZE.recall10.gain` | the first less the second, query by query |

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use assay_harness::figures::{self, Estimate, Printer, Times};
use assay_harness::{Failure, FlagError, Flags, Phases, Stopwatch, machine};
use rusqlite::Connection;

use crate::crash::Crash;
use crate::dataset::{Data, Kind};
use crate::estimate::mean;
use crate::exact::{K, nearest, recall};
use crate::index::{Index, Searcher};
use crate::options::Options;
use crate::prepare::{Cache, WorkFolder};
use crate::run::{SIZES, check_disk, editable, judge_index, lost};
use crate::turns::{self, Turns};
use crate::{sqlite, verify};

/// The flags of `live`.
#[derive(Debug, Clone)]
pub struct Settings {
    turns: Turns,
    searchers: usize,
    search_list: usize,
    options: Options,
}

/// Rounds that are run and forgotten.
const WARMUP_ROUNDS: usize = 1;
/// Deleted vectors are taken out when they are more than one in so many of those that are there.
const WAITING: usize = 10;

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let turns = Turns::take(&mut flags, turns::SIZES)?;
        let dataset = flags.choice("dataset", Kind::Clustered, &Kind::CHOICES)?;
        // Taken out by the clock, and not on the way.
        let mut ours = Flags::parse([
            "--strategy=ours".to_owned(),
            "--consolidate-percent=100".to_owned(),
            format!("--fold-every={}", turns.round_inserts),
            format!("--dataset={}", dataset.name()),
        ])?;
        let settings = Self {
            searchers: flags.integer("searchers", 1, 1..=64)? as usize,
            search_list: flags.integer("search-list", 64, K as u64..=2000)? as usize,
            options: Options::take(&mut ours)?,
            turns,
        };
        flags.finish()?;
        let deleted = settings.turns.vectors(WARMUP_ROUNDS) - settings.turns.size;
        if settings.turns.size < 2 * deleted + K {
            let allowed = format!("{} or more is allowed, for {deleted} of them are deleted", 2 * deleted + K);
            return Err(FlagError::new("size", settings.turns.size, allowed));
        }
        Ok(settings)
    }
}

/// Measures all figures and prints each as one line of JSON.
///
/// # Errors
///
/// When memory or disk are short, an index turns out wrong, or standard output is gone.
pub fn bench(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let cache = Cache::open(s.turns.cache.clone())?;
    // The rounds of the first part insert twice.
    let inserted = 2 * (s.turns.vectors(WARMUP_ROUNDS) - s.turns.size);
    let most = (s.turns.size + inserted) as u64;
    // The data and what is checked of it, and three indexes, or one with the copy that is searched.
    let vector = 4 * s.options.dims as u64 + 32;
    machine::check_memory(most * (2 * vector + 4 * (vector + 220)) + (256 << 20), SIZES)?;
    check_disk(5 * most * s.options.node_bytes() + (256 << 20), &cache)?;
    let dataset = s.options.dataset;
    let data = Data::generate(dataset, s.options.dims, s.options.seed, s.turns.size, inserted, s.turns.queries);
    out.progress(format_args!("{} vectors, {}: preparing", s.turns.size, dataset.name()));
    let (prepared, origin) = cache.prepare(&s.options, s.turns.size, &data.vectors, || Ok::<(), Failure>(()))?;
    out.progress(format_args!("index: {origin}"));
    let copy = || -> Result<(WorkFolder, Connection), Failure> {
        let copy = cache.copy(&prepared)?;
        let connection = sqlite::open(&copy.index(), &s.options.tuning, false)?;
        Ok((copy, connection))
    };

    let (_folder, connection) = copy()?;
    searches_beside_inserts(s, &connection, &data, out)?;
    drop(connection);

    let copies = [copy()?, copy()?, copy()?];
    let left = updates_and_deletes(s, &copies.each_ref().map(|(_, connection)| connection), &data, out)?;
    fresh(s, &copies[0].0, &data, &left, out)
}

fn opened<'c>(s: &Settings, connection: &'c Connection) -> Result<Box<dyn Index + 'c>, Failure> {
    Ok(s.options.open(connection, s.options.distance()?, Crash::default())?)
}

/// A wrong index yields no figure.
fn check(connection: &Connection, expected: usize) -> Result<(), Failure> {
    let found = verify::check(connection)?.nodes;
    if found == expected as u64 { Ok(()) } else { Err(lost(expected as u64, found)) }
}

/// Asks one query after the other from `first` on, at least one and until it is `enough`. Returns answers per second.
fn ask(
    searcher: &mut dyn Searcher,
    data: &Data,
    list: usize,
    first: usize,
    enough: impl Fn(usize) -> bool,
) -> Result<f64, Failure> {
    let watch = Stopwatch::start();
    let mut answered = 0;
    for query in data.queries().cycle().skip(first) {
        searcher.search(query, K, list)?;
        answered += 1;
        if enough(answered) {
            break;
        }
    }
    Ok(answered as f64 / watch.seconds())
}

/// Lets all searchers ask while `work` is done here, and until they have asked `at_least` queries each. Returns the seconds that `work`
/// took, and the answers per second of all searchers.
fn beside(
    searchers: &mut [Box<dyn Searcher>],
    data: &Data,
    list: usize,
    at_least: usize,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(f64, f64), Failure> {
    let (done, ready) = (AtomicBool::new(false), Barrier::new(searchers.len() + 1));
    thread::scope(|scope| {
        let (done, ready) = (&done, &ready);
        let threads: Vec<_> = searchers
            .iter_mut()
            .enumerate()
            .map(|(number, searcher)| {
                scope.spawn(move || {
                    ready.wait();
                    // Not all the same query at once.
                    let enough = |answered| answered >= at_least && done.load(Ordering::Relaxed);
                    ask(searcher.as_mut(), data, list, 17 * number, enough)
                })
            })
            .collect();
        ready.wait();
        let watch = Stopwatch::start();
        let worked = work();
        let seconds = watch.seconds();
        done.store(true, Ordering::Relaxed);
        let mut rate = 0.0;
        for thread in threads {
            rate += thread.join().map_err(|_| Failure::error("a thread that searched panicked"))??;
        }
        worked.map(|()| (seconds, rate))
    })
}

fn insert_all(index: &mut dyn Index, data: &Data, vectors: std::ops::Range<usize>) -> Result<(), Failure> {
    for at in vectors {
        index.insert(data.vector(at), &mut Phases::new())?;
    }
    Ok(())
}

fn searches_beside_inserts(
    s: &Settings,
    connection: &Connection,
    data: &Data,
    out: &mut Printer<'_>,
) -> Result<(), Failure> {
    let mut index = opened(s, connection)?;
    let mut searchers = Vec::with_capacity(s.searchers);
    for _ in 0..s.searchers {
        let searcher = editable(index.as_mut())?.searcher()?;
        searchers.push(searcher.ok_or_else(|| Failure::error("the index cannot be searched meanwhile"))?);
    }
    out.progress(format_args!(
        "{} rounds of {} inserts, {} threads that search",
        s.turns.rounds, s.turns.round_inserts, s.searchers
    ));
    const ALONE: usize = 0;
    const SEARCHED: usize = 1;
    const BOTH: usize = 2;
    // Seconds of the inserts of a round, and seconds per search.
    let (mut inserts, mut searches) = (Times(vec![Vec::new(); 3]), Times(vec![Vec::new(); 3]));
    let mut next = s.turns.size;
    for round in 0..WARMUP_ROUNDS + s.turns.rounds {
        for arm in figures::in_turn(round, 3) {
            let vectors = next..if arm == SEARCHED { next } else { next + s.turns.round_inserts };
            next = vectors.end;
            let asked = if arm == SEARCHED { s.turns.queries } else { 1 };
            let active = if arm == ALONE { &mut [][..] } else { &mut searchers[..] };
            let work = || insert_all(index.as_mut(), data, vectors);
            let (seconds, rate) = beside(active, data, s.search_list, asked, work)?;
            if round >= WARMUP_ROUNDS {
                inserts.0[arm].push(seconds);
                searches.0[arm].push(1.0 / rate);
            }
        }
    }
    check(connection, data.len())?;
    let mut recalls = Vec::with_capacity(s.turns.queries);
    for query in data.queries() {
        let found = searchers[0].search(query, K, s.search_list)?;
        if found != index.search(query, K, s.search_list)? {
            return Err(Failure::error("the copy that is searched finds other vectors than the index itself"));
        }
        let truth = nearest(query, (1..).zip(data.vectors.chunks_exact(data.dims)), K);
        recalls.push(recall(&[truth], &[found]).unwrap_or(0.0));
    }
    let us = |arm| inserts.median(arm, 1e6 / s.turns.round_inserts as f64);
    let rate = |arm: usize| Estimate::median(searches.0[arm].iter().map(|seconds| 1.0 / seconds).collect());
    out.print("diskann.live.insert_us", "us", us(BOTH))?;
    out.print("diskann.live.insert_us.alone", "us", us(ALONE))?;
    out.print("diskann.live.insert_over_alone", "x", inserts.ratio(BOTH, ALONE))?;
    out.print("diskann.live.search_qps", "searches/s", rate(BOTH))?;
    out.print("diskann.live.search_qps.alone", "searches/s", rate(SEARCHED))?;
    out.print("diskann.live.search_over_alone", "x", searches.ratio(SEARCHED, BOTH))?;
    out.print("diskann.live.recall10", "1", mean(&recalls))
}

/// Returns the recall of every query after the updates.
fn updates_and_deletes(
    s: &Settings,
    connections: &[&Connection; 3],
    data: &Data,
    out: &mut Printer<'_>,
) -> Result<Vec<f64>, Failure> {
    const INSERT: usize = 0;
    const UPDATE: usize = 1;
    const DELETE: usize = 2;
    let (size, count) = (s.turns.size, s.turns.round_inserts);
    let mut indexes = Vec::new();
    for connection in connections {
        indexes.push(opened(s, connection)?);
    }
    out.progress(format_args!("{} rounds of {count} updates and deletes", s.turns.rounds));
    let mut times = Times(vec![Vec::new(); indexes.len()]);
    let (mut waiting, mut consolidations) = (0, Vec::new());
    for round in 0..WARMUP_ROUNDS + s.turns.rounds {
        let done = round * count;
        for arm in figures::in_turn(round, indexes.len()) {
            let index = editable(indexes[arm].as_mut())?;
            let mut phases = Phases::new();
            let watch = Stopwatch::start();
            for at in done..done + count {
                let (oldest, vector) = (at as u64 + 1, data.vector(size + at));
                let was_there = match arm {
                    INSERT => index.insert(vector, &mut phases).map(|_| true)?,
                    UPDATE => index.update(oldest, vector, &mut phases)?.is_some(),
                    _ => index.delete(oldest, &mut phases)?,
                };
                if !was_there {
                    return Err(Failure::error(format_args!("vector {oldest} was not there")));
                }
            }
            if round >= WARMUP_ROUNDS {
                times.0[arm].push(watch.seconds());
            }
        }
        waiting += count;
        if waiting * WAITING > size || round + 1 == WARMUP_ROUNDS + s.turns.rounds {
            let watch = Stopwatch::start();
            let gone = editable(indexes[UPDATE].as_mut())?.consolidate()?;
            consolidations.push(1e6 * watch.seconds() / gone as f64);
            waiting = 0;
        }
    }
    let changed = (WARMUP_ROUNDS + s.turns.rounds) * count;
    for (connection, expected) in connections.iter().zip([size + changed, size, size - changed]) {
        check(connection, expected)?;
    }
    let held = part(data, 0, size + changed);
    let left = judge_index(indexes[UPDATE].as_mut(), &held, changed, s.search_list)?.recalls;

    let (us, name) = (|arm| times.median(arm, 1e6 / count as f64), s.turns.name());
    out.print(format_args!("diskann.update{name}.us"), "us", us(UPDATE))?;
    out.print(format_args!("diskann.update{name}.over_insert"), "x", times.ratio(UPDATE, INSERT))?;
    out.print(format_args!("diskann.delete{name}.us"), "us", us(DELETE))?;
    out.print(format_args!("diskann.consolidate{name}.us"), "us", Estimate::median(consolidations))?;
    Ok(left)
}

/// `len` of the vectors from `first` on, with all queries.
fn part(data: &Data, first: usize, len: usize) -> Data {
    let vectors = data.vectors[first * data.dims..][..len * data.dims].to_vec();
    Data { dims: data.dims, vectors, queries: data.queries.clone() }
}

/// The recall of an index that is made of what the updates left, beside `updated`, which the updated one has.
fn fresh(
    s: &Settings,
    folder: &WorkFolder,
    data: &Data,
    updated: &[f64],
    out: &mut Printer<'_>,
) -> Result<(), Failure> {
    out.progress("making an index of what is left");
    let changed = (WARMUP_ROUNDS + s.turns.rounds) * s.turns.round_inserts;
    let data = part(data, changed, s.turns.size);
    let file = folder.index().with_file_name("fresh.db");
    s.options.make(&file, &data.vectors)?;
    let connection = sqlite::open(&file, &s.options.tuning, false)?;
    let mut index = opened(s, &connection)?;
    let recalls = judge_index(index.as_mut(), &data, 0, s.search_list)?.recalls;
    let gains: Vec<f64> = updated.iter().zip(&recalls).map(|(updated, fresh)| updated - fresh).collect();
    let name = format!("diskann.update{}.recall10", s.turns.name());
    out.print(&name, "1", mean(updated))?;
    out.print(format_args!("{name}.fresh"), "1", mean(&recalls))?;
    out.print(format_args!("{name}.gain"), "1", mean(&gains))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_one_line_with_an_interval_around_its_value() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-live-{}", std::process::id()));
        let flags =
            ["--size=700", "--rounds=6", "--round-inserts=20", "--queries=20", "--searchers=2"].map(str::to_owned);
        let flags = flags.into_iter().chain([format!("--cache={}", folder.display())]);
        let mut out = Vec::new();
        bench(&Settings::parse(flags).unwrap(), &mut Printer::new("insert-diskann", &mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let figures: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let value = |name: &str| -> f64 {
            let figure = figures.iter().find(|figure| figure["figure"] == name).unwrap_or_else(|| panic!("no {name}"));
            let number = |name: &str| figure[name].as_f64().unwrap();
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{figure}");
            number("value")
        };
        for name in
            ["insert_us", "insert_us.alone", "insert_over_alone", "search_qps", "search_qps.alone", "search_over_alone"]
        {
            assert!(value(&format!("diskann.live.{name}")) > 0.0, "{name}");
        }
        for name in ["update700.us", "update700.over_insert", "delete700.us", "consolidate700.us"] {
            assert!(value(&format!("diskann.{name}")) > 0.0, "{name}");
        }
        for name in ["live.recall10", "update700.recall10", "update700.recall10.fresh"] {
            assert!(value(&format!("diskann.{name}")) > 0.8, "{name}");
        }
        assert!(value("diskann.update700.recall10.gain").abs() < 0.2);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_index_that_would_be_empty_is_refused() {
        let error = Settings::parse(["--size=1000".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "--size=1000: 5386 or more is allowed, for 2688 of them are deleted");
    }
}
