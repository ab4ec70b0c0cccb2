//! `insert-mork run`: one trial, one result.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use assay_harness::report::Fact;
use assay_harness::{Failure, FlagError, Flags, Phases, Quantity, Report, Unit, ceiling, machine};

use crate::ceiling::copy_rate;
use crate::counting::{self, Allocations};
use crate::environment::{Insertion, Items};
use crate::laps;
use crate::scratch::{self, Scratch};
use crate::subject::{Document, Measured, Part, StoreKind, Subject, Symbols, Variant};
use crate::usage::{self, Usage};
use crate::workload::{self, Kind, Order, Shape, Workload};

/// Where the phases of a result come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution {
    /// `Inside` where reading the clock is cheap beside a phase, `None` where it is not.
    Auto,
    /// The clock is read between phases, within the measured time.
    Inside,
    /// The four components of the document's table, each run alone after the measured iterations.
    Document,
    /// No phases.
    None,
}

assay_harness::choices!(Attribution { "auto" => Auto, "inside" => Inside, "document" => Document, "none" => None });

/// The parameters of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// The workload.
    pub workload: Workload,
    /// The measured variant and part.
    pub subject: Subject,
    /// Which part of it.
    pub part: Part,
    /// Where the phases come from; never `Auto`.
    pub attribution: Attribution,
    /// Whether making and dropping the environment is part of an iteration.
    pub construction: bool,
    /// Measured iterations.
    pub iterations: usize,
    /// Iterations before measuring starts.
    pub warmup_iterations: usize,
    /// Whether to measure the machine's limits too.
    pub ceilings: bool,
}

impl Parameters {
    /// Reads the parameters; those that are not given have the document's values.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form, out of bounds or does not go with the others.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let workload = Workload {
            kind: flags.choice("kind", Kind::Facts, &Kind::CHOICES)?,
            shape: flags.choice("shape", Shape::Flat, &Shape::CHOICES)?,
            items: flags.integer("items", 1000, 1..=1_000_000)? as usize,
            repeated_share: flags.integer("repeated-share", 0, 0..=99)?,
            order: flags.choice("order", Order::Sequential, &Order::CHOICES)?,
            seed: flags.integer("seed", workload::SEED, 0..=u64::MAX)?,
        };
        let variant = flags.choice("variant", Variant::Baseline, &Variant::CHOICES)?;
        let scratch = flags.choice_or("scratch", "auto", variant.own_scratch(), &Scratch::CHOICES)?;
        let store = flags.choice_or("store", "auto", variant.own_store(), &StoreKind::CHOICES)?;
        let insertion = flags.choice("insertion", Insertion::Individual, &Insertion::CHOICES)?;
        let capacity = flags.integer("cache-capacity", 1000, 1..=1_000_000)?;
        let symbols = flags.choice("symbols", Symbols::Inline, &Symbols::CHOICES)?;
        let threads = flags.integer("threads", 1, 1..=64)? as usize;
        let part = flags.choice("scope", Part::All, &Part::CHOICES)?;
        let attribution = flags.choice("phases", Attribution::Auto, &Attribution::CHOICES)?;
        let construction = flags.choice("construction", true, &[("included", true), ("excluded", false)])?;
        let iterations = flags.integer("iterations", 50, 1..=100_000)? as usize;
        let warmup_iterations = flags.integer("warmup-iterations", 3, 0..=10_000)? as usize;
        let ceilings = flags.boolean("ceilings", true)?;
        flags.finish()?;

        let subject = Subject {
            variant,
            scratch,
            store,
            insertion,
            cache_capacity: NonZeroUsize::new(capacity as usize).expect("the smallest capacity allowed is one"),
            symbols,
            threads: NonZeroUsize::new(threads).expect("one thread at least is allowed"),
        };
        let in_place = variant == Variant::Direct && matches!(part, Part::All | Part::Query);
        if symbols == Symbols::Interned && !in_place {
            let allowed = "numbers take the place of symbols in --variant=direct with --scope=all or query only; inline is allowed";
            return Err(FlagError::new("symbols", symbols.name(), allowed));
        }
        if threads > 1 && (!in_place || symbols == Symbols::Interned || attribution == Attribution::Inside) {
            let allowed = "several threads fill --variant=direct --symbols=inline with --scope=all or query and without phases \
                           inside only; 1 is allowed";
            return Err(FlagError::new("threads", threads, allowed));
        }
        if variant == Variant::Direct && subject.scratch != Scratch::Reused {
            let allowed = "the variant direct writes into a buffer that it keeps; auto or reused is allowed";
            return Err(FlagError::new("scratch", subject.scratch.name(), allowed));
        }
        if variant != Variant::Direct && subject.store != StoreKind::PathMap {
            let allowed = format!("the variant {} is about pathmap; auto or pathmap is allowed", variant.name());
            return Err(FlagError::new("store", subject.store.name(), allowed));
        }
        if !variant.parts().contains(&part) {
            let names: Vec<_> = variant.parts().iter().map(|part| part.name()).collect();
            let allowed = format!("the variant {} has {}", variant.name(), names.join(", "));
            return Err(FlagError::new("scope", part.name(), allowed));
        }
        let documented = variant == Variant::Baseline && insertion == Insertion::Individual && part == Part::All;
        if attribution == Attribution::Document && !documented {
            let allowed = "the document's table is about --variant=baseline --insertion=individual --scope=all";
            return Err(FlagError::new("phases", attribution.name(), allowed));
        }
        let attribution = match attribution {
            Attribution::Auto if threads > 1 => Attribution::None,
            // A part is one phase by itself. A fast insertion takes about as long as three readings of the clock.
            Attribution::Auto if part != Part::All => Attribution::None,
            Attribution::Auto if variant == Variant::Direct && insertion == Insertion::Individual => Attribution::None,
            Attribution::Auto => Attribution::Inside,
            Attribution::Inside if part != Part::All => {
                return Err(FlagError::new("phases", "inside", "a part alone has no phases; auto or none is allowed"));
            }
            given => given,
        };
        Ok(Self { workload, subject, part, attribution, construction, iterations, warmup_iterations, ceilings })
    }

    /// Bytes the trial will take, about: the items, their texts and paths, the store (twice where one is compared with
    /// another), the cache.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        /// Memory of the original's trie per path, with a sorted list of paths.
        const STORE: usize = 640;
        /// Memory of the symbol table per item.
        const SYMBOLS: usize = 160;
        let largest = Workload { items: 1, ..self.workload };
        let item = match largest.generate() {
            Items::Facts(facts) => size_of_val(&facts[0]) + facts[0].heap_bytes(),
            Items::Rules(rules) => size_of_val(&rules[0]) + rules[0].left.heap_bytes() + rules[0].right.heap_bytes(),
        };
        // Later items have longer numbers, and the allocator rounds up.
        let item = item * 5 / 4 + 64;
        // A path is shorter than its text, which is shorter than the value; there may be one of each, and the rule
        // book's data.
        let copies = match self.workload.kind {
            Kind::Facts => 2,
            Kind::Rules => 4,
        };
        let cached = if self.subject.variant == Variant::Cache { self.subject.cache_capacity.get() } else { 0 };
        let store = if self.subject.symbols == Symbols::Interned { STORE + SYMBOLS } else { STORE };
        let items = self.workload.items * (copies * item + store) + cached.min(self.workload.items) * 2 * item;
        /// The program itself and the ceilings' buffers.
        const OVERHEAD: u64 = 48 << 20;
        items as u64 + OVERHEAD
    }
}

/// Rejects an oversized trial.
fn check_room(needed: u64, scratch: Scratch) -> Result<(), Failure> {
    machine::check_memory(needed, "--items")?;
    scratch::check(scratch)
}

/// Runs one trial.
///
/// # Errors
///
/// If memory is insufficient, an item cannot be added, or a result differs from an earlier iteration or from the slow
/// reference.
pub fn run(parameters: &Parameters) -> Result<Report, Failure> {
    let p = parameters;
    check_room(p.memory_bytes(), p.subject.scratch)?;
    let items = p.workload.generate();
    let measured = Measured::new(p.subject, p.part, p.construction, &items)?;

    let mut phases = Phases::new();
    let mut first = None;
    for _ in 0..p.warmup_iterations {
        first = Some(measured.iterate(p.attribution == Attribution::Inside, &mut phases)?.outcome);
    }
    phases.clear();

    // Measurement. Results of an iteration are compared outside of its time.
    let mut latencies = Vec::with_capacity(p.iterations);
    let before = Usage::now();
    for iteration in 0..p.iterations {
        let done = measured.iterate(p.attribution == Attribution::Inside, &mut phases)?;
        latencies.push(done.seconds);
        phases.end_iteration();
        if *first.get_or_insert(done.outcome) != done.outcome {
            return Err(Failure::error(format_args!(
                "iteration {iteration} gave another number of paths than the first"
            )));
        }
    }
    let after = Usage::now();
    let document =
        (p.attribution == Attribution::Document).then(|| Document::measure(&items, p.iterations)).transpose()?;

    // Verification: once more, not timed, allocations counted, and everything compared with the reference.
    let (verified, allocations) = counting::count(|| measured.iterate(false, &mut Phases::new()));
    verified?;
    let checked = measured.verify()?;

    let mut report = report(p, &items, &latencies, &checked, before, after, allocations);
    match &document {
        Some(document) => document.report(&mut report, latencies.iter().sum()),
        None => drop(report.phases(&phases)),
    }
    report.parity(&checked.dump.digest());
    if p.ceilings {
        limits(p, &items, &latencies, &checked, &mut report)?;
    }
    Ok(report)
}

fn report(
    p: &Parameters,
    items: &Items,
    latencies: &[f64],
    checked: &crate::subject::Checked,
    before: Usage,
    after: Usage,
    allocations: Option<Allocations>,
) -> Report {
    let seconds: f64 = latencies.iter().sum();
    let added = (p.iterations * items.len()) as f64;
    let per_item = |count: f64| Quantity::new(count / items.len() as f64, Unit::ONE);
    let faults = (after.minor_faults - before.minor_faults) as f64;

    let mut report = Report::new("insert-mork", assay_harness::VERSION);
    let s = p.subject;
    report
        .built()
        .effective("variant", s.variant.name())
        .effective("store", s.store.name())
        .effective("insertion", s.insertion.name())
        .effective("scope", p.part.name())
        .effective("scratch", s.scratch.name())
        .effective("symbols", s.symbols.name())
        .effective("threads", s.threads.get() as u64)
        .effective("construction", if p.construction { "included" } else { "excluded" })
        .effective("phases", p.attribution.name())
        .effective("allocator", if cfg!(target_env = "musl") { "musl" } else { "glibc" })
        .effective("distinctPaths", checked.dump.paths.len() as u64)
        .effective("code", "portable")
        .effective("clockReadingSeconds", Fact::try_from(laps::clock_seconds()).expect("a time is a number"));
    let bytes: usize = checked.dump.paths.iter().map(Vec::len).sum();
    let mean = bytes as f64 / checked.dump.paths.len() as f64;
    report.effective("meanPathBytes", Fact::try_from(mean).expect("there is at least one path"));
    if let Some(setting) = usage::transparent_huge_pages() {
        report.effective("transparentHugePages", setting);
    }
    if let Some(mode) = scratch::Limits::read().overcommit {
        report.effective("overcommitMemory", mode);
    }
    if let Some(depth) = checked.mean_depth {
        report.effective("meanDepth", Fact::try_from(depth).expect("a mean is a number"));
    }
    if let Some(hits) = checked.cache_hits {
        let share = hits as f64 / items.len() as f64;
        report.effective("cacheHitShare", Fact::try_from(share).expect("there is at least one item"));
    }
    if let Some(bytes) = machine::last_level_cache_bytes() {
        report.effective("llcBytes", bytes);
    }

    report
        .samples("latency", Unit::SECONDS, latencies)
        .value("timePerItem", Quantity::new(seconds / added, Unit::SECONDS))
        .value("throughput", Quantity::new(added / seconds, Unit::new("items/s")))
        .value("pageFaultsPerItem", Quantity::new(faults / added, Unit::ONE))
        .counter("items", Quantity::count(p.iterations as u64 * items.len() as u64))
        .counter("pageFaults", Quantity::new(faults, Unit::ONE))
        .counter("maxResident", Quantity::bytes(after.max_resident_bytes));
    if let Some(allocations) = allocations {
        report
            .counter("allocationsPerItem", per_item(allocations.calls as f64))
            .counter("allocatedBytesPerItem", Quantity { unit: Unit::BYTES, ..per_item(allocations.bytes as f64) });
    }
    if let Some(bytes) = checked.heap_bytes {
        report.counter("storeBytes", Quantity::bytes(bytes as u64));
    }
    report
}

/// Smallest and largest buffer of the pointer probe.
const PROBED: RangeInclusive<usize> = 64 << 10..=32 << 20;

fn limits(
    p: &Parameters,
    items: &Items,
    latencies: &[f64],
    checked: &crate::subject::Checked,
    report: &mut Report,
) -> Result<(), Failure> {
    let copies = copy_rate(items)?;
    let rate = (p.iterations * items.len()) as f64 / latencies.iter().sum::<f64>();
    // The limit applies only to parts that write an item's bytes, which a cached form does not.
    let writes = matches!(p.part, Part::All | Part::Serialise) && p.subject.variant != Variant::Cache;
    report.ceiling("itemCopies", copies, writes.then_some(rate));
    // A limit to compare the depth with; reads of neighbours hit the cache, so no achieved rate is claimed.
    let paths: usize = checked.dump.paths.iter().map(Vec::len).sum();
    let working_set = checked.heap_bytes.unwrap_or(paths).clamp(*PROBED.start(), *PROBED.end());
    report.effective("randomReadWorkingSetBytes", working_set as u64);
    report.ceiling("randomRead", ceiling::random_read(working_set), None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Parameters, FlagError> {
        Parameters::parse(arguments.iter().map(|&a| a.to_owned()))
    }

    #[test]
    fn every_invalid_parameter_is_reported() {
        for (bad, message) in [
            (&["--items=0"][..], "--items=0: allowed are integers from 1 to 1000000"),
            (&["--items=1000001"], "--items=1000001: allowed are integers from 1 to 1000000"),
            (&["--repeated-share=100"], "--repeated-share=100: allowed are integers from 0 to 99"),
            (&["--variant=magic"], "--variant=magic: allowed are baseline, cache, no-text, direct"),
            (&["--scratch=8gib"], "--scratch=8gib: allowed are auto, 4gib, 4kib, reused"),
            (
                &["--variant=direct", "--scratch=4gib"],
                "--scratch=4gib: the variant direct writes into a buffer that it keeps; auto or reused is allowed",
            ),
            (&["--store=trie"], "--store=trie: the variant baseline is about pathmap; auto or pathmap is allowed"),
            (
                &["--variant=direct", "--scope=parse"],
                "--scope=parse: the variant direct has all, serialise, insert, query",
            ),
            (
                &["--variant=cache", "--phases=document"],
                "--phases=document: the document's table is about --variant=baseline --insertion=individual --scope=all",
            ),
            (
                &["--scope=insert", "--phases=inside"],
                "--phases=inside: a part alone has no phases; auto or none is allowed",
            ),
            (
                &["--symbols=interned"],
                "--symbols=interned: numbers take the place of symbols in --variant=direct with --scope=all or query only; inline \
                 is allowed",
            ),
            (
                &["--variant=direct", "--threads=2", "--symbols=interned"],
                "--threads=2: several threads fill --variant=direct --symbols=inline with --scope=all or query and without phases \
                 inside only; 1 is allowed",
            ),
            (&["--threads=65"], "--threads=65: allowed are integers from 1 to 64"),
            (&["--cache-capacity=0"], "--cache-capacity=0: allowed are integers from 1 to 1000000"),
            (&["--construction=maybe"], "--construction=maybe: allowed are included, excluded"),
        ] {
            assert_eq!(parse(bad).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn variants_use_their_scratch_and_store() {
        for (variant, scratch, store) in [
            ("baseline", Scratch::Huge, StoreKind::PathMap),
            ("cache", Scratch::Huge, StoreKind::PathMap),
            ("no-text", Scratch::Reused, StoreKind::PathMap),
            ("direct", Scratch::Reused, StoreKind::Trie),
        ] {
            let subject = parse(&[&format!("--variant={variant}")]).unwrap().subject;
            assert_eq!((subject.scratch, subject.store), (scratch, store), "{variant}");
        }
    }

    #[test]
    fn a_trial_is_computed_to_take_more_memory_with_more_and_larger_items() {
        let bytes = |arguments: &[&str]| parse(arguments).unwrap().memory_bytes();
        let small = bytes(&["--items=1000"]);
        assert!(bytes(&["--items=1000000"]) > small + 900 * 1_000_000);
        assert!(bytes(&["--items=1000000"]) < 4 << 30);
        for larger in ["--shape=nested", "--shape=prefix", "--kind=rules"] {
            assert!(bytes(&["--items=1000", larger]) > small, "{larger}");
        }
    }

    #[test]
    fn oversized_trial_is_rejected() {
        let refused = check_room(u64::MAX, Scratch::Reused).unwrap_err();
        assert!(refused.is_usage() && refused.to_string().starts_with("--items: the trial needs"), "{refused}");
        assert!(check_room(1, Scratch::Reused).is_ok());
    }
}
