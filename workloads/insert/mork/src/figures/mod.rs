//! `insert-mork bench`: the figures that the project claims for this kernel, measured in one run.
//!
//! All arms of a comparison share the items and the thread; [`assay_harness::figures`] says how they take turns. A turn
//! of a fast arm is repeated until it takes some milliseconds. Before anything is timed, every arm's outcome is compared
//! with the slow reference.
//!
//! Times are for all items of a fresh environment, from the first to the last, over their number. As in the document
//! they include making and dropping the environment, except where a name ends with `.insertion_only`. N is the number
//! of items: 1,000, 100,000 or 1,000,000.
//!
//! | figure | what it is |
//! |---|---|
//! | `mork.c.ns_per_fact` | `direct`, one fact per call, 1,000 facts |
//! | `mork.c.ns_per_fact.nN` | the same for N facts; also `.insertion_only`, and `.shuffled` for facts in random order |
//! | `mork.c.ns_per_rule` | the same for 1,000 rules |
//! | `mork.c.speedup` | `baseline` over `direct`, both one fact per call, 1,000 facts; also `.n100000` |
//! | `mork.c.rule_speedup` | the same for rules |
//! | `mork.bulk_over_individual` | `direct` one by one over `direct` in bulk, 1,000 facts; also `.n100000`, and each `.shuffled` |
//! | `mork.baseline.ns_per_fact` | `baseline`, 1,000 facts; `.bulk_over_individual` as above |
//! | `mork.a.speedup.rP` | `baseline` over `cache`, P % of the facts repeated |
//! | `mork.b.speedup` | `baseline` over `no-text` |
//! | `mork.b.speedup.scratch_4gib` | `baseline` over `no-text` with the baseline's scratch buffer: only the text is gone |
//! | `mork.scratch_reused.speedup` | `baseline` over itself with one scratch buffer for all calls: only the allocation is gone |
//! | `mork.c.pathmap.speedup` | `baseline` over `direct` into `PathMap`: what the change of path gains |
//! | `mork.c.over_pathmap` | `direct` over `direct` into `PathMap`, in time: what the change of trie gains; also `.shuffled`, `.nN` |
//! | `mork.path.speedup` | `no-text` over `direct` into `PathMap`: the same trie, changed in place and not copied |
//! | `mork.c.ns_per_query` | `direct`: what the last item of a fact is, asked once for each of 1,000 facts; also `.n100000` |
//! | `mork.c.query_over_pathmap` | its time over that of the same questions to `PathMap`; also `.n100000` |
//! | `mork.c.interned_over_inline` | time with numbers in place of symbols over `direct`, 100,000 facts; also `.prefix`, for long names |
//! | `mork.c.threads2.speedup` | `direct` in bulk by one thread over two, 100,000 shuffled facts; also `.individual` |
//! | `mork.c.over_btree` | `direct` into a `BTreeMap` over `direct`; also `.n100000` |
//! | `mork.share.P` | time of the baseline's part P alone over that of the whole |
//! | `mork.c.share_of_encode_ceiling` | time of encoding alone over `direct` |

mod turns;

use std::fmt::Display;
use std::num::NonZeroUsize;

use assay_harness::figures::{Printer, Times};
use assay_harness::{Failure, FlagError, Flags, Phases};

use crate::environment::{Insertion, Items, Rejected};
use crate::run::check_room;
use crate::scratch::Scratch;
use crate::subject::{Measured, Part, StoreKind, Subject, Symbols, Variant};
use crate::workload::{Kind, Order, SEED, Shape, Workload};

/// Rounds, at least: fewer give no interval.
const ROUNDS: usize = 6;

/// The flags of `bench`.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    few: usize,
    many: usize,
    most: usize,
    rounds: usize,
    scratch: Scratch,
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
            few: flags.integer("items", 1000, 10..=10_000)? as usize,
            many: flags.integer("many-items", 100_000, 10..=1_000_000)? as usize,
            most: flags.integer("most-items", 1_000_000, 10..=1_000_000)? as usize,
            rounds: flags.integer("rounds", 20, ROUNDS as u64..=10_000)? as usize,
            scratch: Scratch::Huge,
        };
        flags.finish()?;
        Ok(settings)
    }
}

/// Measures all figures and prints each as one line of JSON.
///
/// # Errors
///
/// When memory is short, standard output is gone, or an arm does something else than the reference.
pub fn bench(settings: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let s = settings;
    // Values, paths, and two environments of the largest size at a time.
    check_room(s.many.max(s.most) as u64 * 2000 + (64 << 20), s.scratch)?;
    few(s, out)?;
    repeated(s, out)?;
    rules(s, out)?;
    beside(s, out)?;
    many(s, out)?;
    most(s, out)
}

/// One arm: what is measured, which part of it, and whether construction is included.
type Arm<'a> = (Subject, Part, bool, &'a Items);

fn baseline(s: &Settings) -> Subject {
    Subject {
        variant: Variant::Baseline,
        scratch: s.scratch,
        store: StoreKind::PathMap,
        insertion: Insertion::Individual,
        cache_capacity: NonZeroUsize::new(1000).expect("a thousand is not zero"),
        symbols: Symbols::Inline,
        threads: NonZeroUsize::MIN,
    }
}

fn direct(s: &Settings) -> Subject {
    Subject { variant: Variant::Direct, scratch: Scratch::Reused, store: StoreKind::Trie, ..baseline(s) }
}

fn bulk(subject: Subject) -> Subject {
    Subject { insertion: Insertion::Bulk, ..subject }
}

fn items(kind: Kind, items: usize, repeated_share: u64, order: Order) -> Items {
    Workload { kind, shape: Shape::Flat, items, repeated_share, order, seed: SEED }.generate()
}

/// All variants and the baseline's parts, with the document's number of facts.
fn few(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let facts = items(Kind::Facts, s.few, 0, Order::Sequential);
    let shuffled = items(Kind::Facts, s.few, 0, Order::Shuffled);
    let (baseline, direct) = (baseline(s), direct(s));
    let no_text = Subject { variant: Variant::NoText, scratch: Scratch::Reused, ..baseline };
    let whole = |subject| (subject, Part::All, true, &facts);
    let alone = |subject, part| (subject, part, true, &facts);
    let arms = [
        whole(baseline),
        whole(bulk(baseline)),
        whole(Subject { scratch: Scratch::Reused, ..baseline }),
        whole(no_text),
        whole(Subject { scratch: s.scratch, ..no_text }),
        whole(direct),
        whole(bulk(direct)),
        (direct, Part::All, false, &facts),
        (direct, Part::All, true, &shuffled),
        (bulk(direct), Part::All, true, &shuffled),
        whole(Subject { store: StoreKind::PathMap, ..direct }),
        (Subject { store: StoreKind::PathMap, ..direct }, Part::All, true, &shuffled),
        whole(Subject { store: StoreKind::Btree, ..direct }),
        alone(baseline, Part::Serialise),
        alone(baseline, Part::Parse),
        alone(baseline, Part::Scratch),
        alone(baseline, Part::Insert),
        alone(direct, Part::Serialise),
    ];
    let [
        base,
        base_bulk,
        reused,
        b,
        b_huge,
        c,
        c_bulk,
        c_only,
        c_shuffled,
        c_bulk_shuffled,
        c_pathmap,
        c_pathmap_shuffled,
        c_btree,
        rest @ ..,
    ] = std::array::from_fn::<usize, 18, _>(|arm| arm);
    let [serialise, parse, scratch, insert, encode] = rest;
    let times = take_turns(out, format_args!("{} facts", s.few), s.rounds, &arms)?;
    let n = s.few as f64;
    out.print("mork.c.ns_per_fact", "ns", times.median(c, 1e9 / (n)))?;
    out.print("mork.c.ns_per_fact.n1000", "ns", times.median(c, 1e9 / (n)))?;
    out.print("mork.c.ns_per_fact.n1000.insertion_only", "ns", times.median(c_only, 1e9 / (n)))?;
    out.print("mork.c.ns_per_fact.n1000.shuffled", "ns", times.median(c_shuffled, 1e9 / (n)))?;
    out.print("mork.c.speedup", "x", times.ratio(base, c))?;
    out.print("mork.bulk_over_individual", "x", times.ratio(c, c_bulk))?;
    out.print("mork.bulk_over_individual.shuffled", "x", times.ratio(c_shuffled, c_bulk_shuffled))?;
    out.print("mork.baseline.ns_per_fact", "ns", times.median(base, 1e9 / (n)))?;
    out.print("mork.baseline.bulk_over_individual", "x", times.ratio(base, base_bulk))?;
    out.print("mork.b.speedup", "x", times.ratio(base, b))?;
    out.print("mork.b.speedup.scratch_4gib", "x", times.ratio(base, b_huge))?;
    out.print("mork.scratch_reused.speedup", "x", times.ratio(base, reused))?;
    out.print("mork.c.pathmap.speedup", "x", times.ratio(base, c_pathmap))?;
    out.print("mork.c.over_pathmap", "1", times.ratio(c, c_pathmap))?;
    out.print("mork.c.over_pathmap.shuffled", "1", times.ratio(c_shuffled, c_pathmap_shuffled))?;
    out.print("mork.path.speedup", "x", times.ratio(b, c_pathmap))?;
    out.print("mork.c.over_btree", "x", times.ratio(c_btree, c))?;
    for (name, part) in [("serialise", serialise), ("parse", parse), ("scratch", scratch), ("insert", insert)] {
        out.print(format_args!("mork.share.{name}"), "1", times.ratio(part, base))?;
    }
    out.print("mork.c.share_of_encode_ceiling", "1", times.ratio(encode, c))
}

/// The cache, by how many of the facts it has seen before.
fn repeated(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let shares = [0, 50, 99];
    let facts = shares.map(|share| items(Kind::Facts, s.few, share, Order::Sequential));
    let cache = Subject { variant: Variant::Cache, ..baseline(s) };
    let arms: Vec<Arm<'_>> =
        facts.iter().flat_map(|facts| [baseline(s), cache].map(|subject| (subject, Part::All, true, facts))).collect();
    let times = take_turns(out, "repeated facts", s.rounds, &arms)?;
    for (i, share) in shares.iter().enumerate() {
        out.print(format_args!("mork.a.speedup.r{share}"), "x", times.ratio(2 * i, 2 * i + 1))?;
    }
    Ok(())
}

/// A hundred times as many facts as in the document.
fn many(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let facts = items(Kind::Facts, s.many, 0, Order::Sequential);
    let shuffled = items(Kind::Facts, s.many, 0, Order::Shuffled);
    let direct = direct(s);
    let arms = [
        (baseline(s), Part::All, true, &facts),
        (direct, Part::All, true, &facts),
        (bulk(direct), Part::All, true, &facts),
        (direct, Part::All, false, &facts),
        (direct, Part::All, true, &shuffled),
        (bulk(direct), Part::All, true, &shuffled),
        (Subject { store: StoreKind::PathMap, ..direct }, Part::All, true, &facts),
        (Subject { store: StoreKind::Btree, ..direct }, Part::All, true, &facts),
    ];
    let [base, c, c_bulk, c_only, c_shuffled, c_bulk_shuffled, pathmap, btree] =
        std::array::from_fn::<usize, 8, _>(|arm| arm);
    let times = take_turns(out, format_args!("{} facts", s.many), s.rounds, &arms)?;
    let n = s.many as f64;
    out.print("mork.c.ns_per_fact.n100000", "ns", times.median(c, 1e9 / (n)))?;
    out.print("mork.c.ns_per_fact.n100000.insertion_only", "ns", times.median(c_only, 1e9 / (n)))?;
    out.print("mork.c.ns_per_fact.n100000.shuffled", "ns", times.median(c_shuffled, 1e9 / (n)))?;
    out.print("mork.c.speedup.n100000", "x", times.ratio(base, c))?;
    out.print("mork.bulk_over_individual.n100000", "x", times.ratio(c, c_bulk))?;
    out.print("mork.bulk_over_individual.n100000.shuffled", "x", times.ratio(c_shuffled, c_bulk_shuffled))?;
    out.print("mork.c.over_pathmap.n100000", "1", times.ratio(c, pathmap))?;
    out.print("mork.c.over_btree.n100000", "x", times.ratio(btree, c))
}

/// Questions, symbols by number, and two threads.
fn beside(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let direct = direct(s);
    let pathmap = Subject { store: StoreKind::PathMap, ..direct };
    for (n, suffix) in [(s.few, ""), (s.many, ".n100000")] {
        let facts = items(Kind::Facts, n, 0, Order::Sequential);
        let arms = [direct, pathmap].map(|subject| (subject, Part::Query, true, &facts));
        let times = take_turns(out, format_args!("questions about {n} facts"), s.rounds, &arms)?;
        out.print(format_args!("mork.c.ns_per_query{suffix}"), "ns", times.median(0, 1e9 / n as f64))?;
        out.print(format_args!("mork.c.query_over_pathmap{suffix}"), "1", times.ratio(0, 1))?;
    }
    let interned = Subject { symbols: Symbols::Interned, ..direct };
    for (shape, suffix) in [(Shape::Flat, ""), (Shape::Prefix, ".prefix")] {
        let facts = Workload {
            kind: Kind::Facts,
            shape,
            items: s.many,
            repeated_share: 0,
            order: Order::Sequential,
            seed: SEED,
        };
        let facts = facts.generate();
        let arms = [direct, interned].map(|subject| (subject, Part::All, true, &facts));
        let times = take_turns(out, format_args!("symbols of {} facts", s.many), s.rounds, &arms)?;
        out.print(format_args!("mork.c.interned_over_inline{suffix}"), "1", times.ratio(1, 0))?;
    }
    let shuffled = items(Kind::Facts, s.many, 0, Order::Shuffled);
    let two = Subject { threads: NonZeroUsize::new(2).expect("two is not zero"), ..direct };
    let arms = [bulk(direct), bulk(two), direct, two].map(|subject| (subject, Part::All, true, &shuffled));
    let times = take_turns(out, format_args!("{} facts by two threads", s.many), s.rounds, &arms)?;
    out.print("mork.c.threads2.speedup", "x", times.ratio(0, 1))?;
    out.print("mork.c.threads2.speedup.individual", "x", times.ratio(2, 3))
}

/// As many facts as a trial may have, without the baseline: it would take a quarter of a minute a turn.
fn most(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let facts = items(Kind::Facts, s.most, 0, Order::Sequential);
    let shuffled = items(Kind::Facts, s.most, 0, Order::Shuffled);
    let direct = direct(s);
    let pathmap = Subject { store: StoreKind::PathMap, ..direct };
    let arms = [
        (direct, Part::All, true, &facts),
        (bulk(direct), Part::All, true, &facts),
        (direct, Part::All, true, &shuffled),
        (pathmap, Part::All, true, &facts),
        (pathmap, Part::All, true, &shuffled),
    ];
    let [c, c_bulk, c_shuffled, pathmap, pathmap_shuffled] = std::array::from_fn::<usize, 5, _>(|arm| arm);
    // A turn takes a second: fewer of them.
    let times = take_turns(out, format_args!("{} facts", s.most), s.rounds.div_ceil(3).max(ROUNDS), &arms)?;
    let n = s.most as f64;
    out.print("mork.c.ns_per_fact.n1000000", "ns", times.median(c, 1e9 / n))?;
    out.print("mork.c.ns_per_fact.n1000000.shuffled", "ns", times.median(c_shuffled, 1e9 / n))?;
    out.print("mork.bulk_over_individual.n1000000", "x", times.ratio(c, c_bulk))?;
    out.print("mork.c.over_pathmap.n1000000", "1", times.ratio(c, pathmap))?;
    out.print("mork.c.over_pathmap.n1000000.shuffled", "1", times.ratio(c_shuffled, pathmap_shuffled))
}

fn rules(s: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let rules = items(Kind::Rules, s.few, 0, Order::Sequential);
    let arms = [baseline(s), direct(s)].map(|subject| (subject, Part::All, true, &rules));
    let times = take_turns(out, format_args!("{} rules", s.few), s.rounds, &arms)?;
    out.print("mork.c.ns_per_rule", "ns", times.median(1, 1e9 / (s.few as f64)))?;
    out.print("mork.c.rule_speedup", "x", times.ratio(0, 1))
}

/// Checks every arm against the reference, then lets all take turns.
fn take_turns(out: &Printer<'_>, what: impl Display, rounds: usize, arms: &[Arm<'_>]) -> Result<Times, Failure> {
    out.progress(format_args!("{what}: {} arms, {rounds} rounds", arms.len()));
    let measured = arms.iter().map(|(subject, part, construction, items)| {
        let measured = Measured::new(*subject, *part, *construction, items)?;
        Ok(measured)
    });
    let measured: Vec<Measured<'_>> = measured.collect::<Result<_, Rejected>>()?;
    // A wrong answer yields no number.
    for arm in &measured {
        arm.verify()?;
    }
    turns::take_turns(rounds, arms.len(), |arm| {
        measured[arm].iterate(false, &mut Phases::new()).map(|done| done.seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_one_line_with_an_interval_around_its_value() {
        let settings = Settings { few: 20, many: 40, most: 60, rounds: ROUNDS, scratch: Scratch::Small };
        let mut out = Vec::new();
        bench(&settings, &mut Printer::new("insert-mork", &mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut names = Vec::new();
        for line in text.lines() {
            let figure: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| figure[name].as_f64().unwrap();
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{line}");
            assert!(number("value") > 0.0, "{line}");
            names.push(figure["figure"].as_str().unwrap().to_owned());
        }
        for name in [
            "mork.c.ns_per_fact",
            "mork.c.ns_per_fact.n1000000",
            "mork.c.over_pathmap",
            "mork.c.ns_per_query.n100000",
            "mork.c.interned_over_inline.prefix",
            "mork.c.threads2.speedup",
            "mork.c.speedup",
            "mork.bulk_over_individual",
            "mork.a.speedup.r99",
        ] {
            assert_eq!(names.iter().filter(|known| *known == name).count(), 1, "{name}");
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a figure is printed twice");
    }

    #[test]
    fn settings_have_bounds() {
        let parse = |argument: &str| Settings::parse([argument.to_owned()]).map(|_| ());
        assert_eq!(
            parse("--rounds=5").unwrap_err().to_string(),
            "--rounds=5: a whole number from 6 to 10000 is allowed"
        );
        assert!(parse("--scratch=4gib").is_err() && parse("--items=100").is_ok());
    }
}
