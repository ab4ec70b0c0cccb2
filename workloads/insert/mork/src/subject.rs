//! The subject of a trial: a variant with its settings, and one part of it or all.

use std::hint::black_box;
use std::num::NonZeroUsize;

use assay_harness::{Failure, Phases, Quantity, Report, Stopwatch, Unit};
use pathmap::PathMap;

use crate::encoding::{Parser, Unencodable, decode, encode, encode_rule};
use crate::environment::{Copying, Dump, Environment, InPlace, Insertion, Items, Paths, Route, RuleBook, SharedMap};
use crate::laps::{Laps, Phase, Timed, Untimed};
use crate::query;
use crate::scratch::{Scratch, Supply};
use crate::store::{Reference, Trie};
use crate::text::to_text;
use crate::value::Value;

/// The document's baseline and proposals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Text, parser, a scratch buffer for each call, a copy of the trie for each call.
    Baseline,
    /// A: the same with a cache of the bytes of the values seen last.
    Cache,
    /// B: no text; the value's bytes are written into the scratch buffer.
    NoText,
    /// C: the value's bytes straight into a store that is changed in place.
    Direct,
}

assay_harness::choices!(Variant { "baseline" => Baseline, "cache" => Cache, "no-text" => NoText, "direct" => Direct });

impl Variant {
    /// The scratch buffer it has if nothing else is said.
    #[must_use]
    pub fn own_scratch(self) -> Scratch {
        match self {
            Self::Baseline | Self::Cache => Scratch::Huge,
            Self::NoText | Self::Direct => Scratch::Reused,
        }
    }

    /// The store it has if nothing else is said.
    #[must_use]
    pub fn own_store(self) -> StoreKind {
        match self {
            Self::Baseline | Self::Cache | Self::NoText => StoreKind::PathMap,
            Self::Direct => StoreKind::Trie,
        }
    }

    /// The parts that can be measured alone, and the whole.
    #[must_use]
    pub fn parts(self) -> &'static [Part] {
        match self {
            Self::Baseline | Self::Cache => {
                &[Part::All, Part::Serialise, Part::Parse, Part::Scratch, Part::Insert, Part::Query]
            }
            Self::NoText => &[Part::All, Part::Serialise, Part::Scratch, Part::Insert, Part::Query],
            Self::Direct => &[Part::All, Part::Serialise, Part::Insert, Part::Query],
        }
    }

    fn has_text(self) -> bool {
        matches!(self, Self::Baseline | Self::Cache)
    }
}

/// Where paths go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The original's trie.
    PathMap,
    /// Ours.
    Trie,
    /// The slow reference.
    Btree,
}

assay_harness::choices!(StoreKind { "pathmap" => PathMap, "trie" => Trie, "btree" => Btree });

/// A part of adding items, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From items to a filled environment.
    All,
    /// From items to texts, or to bytes where a variant has no texts.
    Serialise,
    /// From texts to bytes.
    Parse,
    /// Getting, touching and giving back a scratch buffer for each item.
    Scratch,
    /// From bytes to a filled environment.
    Insert,
    /// From a question for each item to its answers, of a filled environment.
    Query,
}

assay_harness::choices!(Part {
    "all" => All,
    "serialise" => Serialise,
    "parse" => Parse,
    "scratch" => Scratch,
    "insert" => Insert,
    "query" => Query,
});

/// How symbols stand in paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// As they are.
    Inline,
    /// As numbers of a table.
    Interned,
}

assay_harness::choices!(Symbols { "inline" => Inline, "interned" => Interned });

/// A variant with all its choices.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Which variant.
    pub variant: Variant,
    /// Where scratch buffers come from.
    pub scratch: Scratch,
    /// Where paths go.
    pub store: StoreKind,
    /// One item per call or all in one.
    pub insertion: Insertion,
    /// How many values the cache of the variant `cache` holds.
    pub cache_capacity: NonZeroUsize,
    /// How symbols stand in paths; as they are unless the variant is `direct`.
    pub symbols: Symbols,
    /// How many threads add items; one unless the variant is `direct` and its symbols are as they are.
    pub threads: NonZeroUsize,
}

impl Subject {
    fn copying(&self) -> Copying {
        let route = match self.variant {
            Variant::Cache => Route::CachedText(self.cache_capacity),
            Variant::NoText => Route::Encoder,
            Variant::Baseline | Variant::Direct => Route::Text,
        };
        Copying::new(route, self.scratch)
    }

    fn in_place<S: Paths>(&self) -> InPlace<S> {
        match self.symbols {
            Symbols::Inline => InPlace::by_threads(self.threads),
            Symbols::Interned => InPlace::interning(),
        }
    }
}

/// Time and result of one iteration.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Its time.
    pub seconds: f64,
    /// A number that is the same for every iteration: paths, bytes or answers.
    pub outcome: usize,
}

/// Result of the verification.
#[derive(Debug)]
pub struct Checked {
    /// Contents of an environment with these items.
    pub dump: Dump,
    /// Bytes of the store, where it is known.
    pub heap_bytes: Option<usize>,
    /// Look-ups in the cache that found something, in one iteration.
    pub cache_hits: Option<u64>,
    /// Words that a look-up reads, where the store knows them.
    pub mean_depth: Option<f64>,
}

/// A subject with everything that is prepared outside the measured time.
#[derive(Debug)]
pub struct Measured<'a> {
    subject: Subject,
    part: Part,
    construction: bool,
    items: &'a Items,
    /// For the part that parses.
    texts: Vec<String>,
    /// For the part that inserts.
    paths: Vec<Vec<u8>>,
    /// For the part that asks.
    patterns: Vec<Value>,
}

impl<'a> Measured<'a> {
    /// Prepares a part of a subject.
    ///
    /// # Errors
    ///
    /// When an item has no byte form.
    pub fn new(subject: Subject, part: Part, construction: bool, items: &'a Items) -> Result<Self, Failure> {
        let texts = if part == Part::Parse { texts(items) } else { Vec::new() };
        let paths = if part == Part::Insert { paths(items)? } else { Vec::new() };
        let patterns = if part == Part::Query { patterns(items) } else { Vec::new() };
        Ok(Self { subject, part, construction, items, texts, paths, patterns })
    }

    /// Does the work once. `timed` adds its phases to `phases`.
    ///
    /// # Errors
    ///
    /// When an item cannot be added.
    pub fn iterate(&self, timed: bool, phases: &mut Phases) -> Result<Done, Failure> {
        match (self.part, self.subject.store) {
            (Part::Serialise, _) => self.serialise(),
            (Part::Parse, _) => self.parse(),
            (Part::Scratch, _) => Ok(self.scratch()),
            _ if self.subject.variant != Variant::Direct => self.fill(|| self.subject.copying(), timed, phases),
            (_, StoreKind::Trie) => self.fill(|| self.subject.in_place::<Trie>(), timed, phases),
            (_, StoreKind::PathMap) => self.fill(|| self.subject.in_place::<SharedMap>(), timed, phases),
            (_, StoreKind::Btree) => self.fill(|| self.subject.in_place::<Reference>(), timed, phases),
        }
    }

    /// Verifies, outside of the timed part, that the subject agrees with the slow reference: each item has the same
    /// bytes directly and via its text, they decode to the item, the filled environment equals one with the reference
    /// store, and queries return the results of a comparison of values.
    ///
    /// # Errors
    ///
    /// If there is a difference.
    pub fn verify(&self) -> Result<Checked, Failure> {
        check_bytes(self.items)?;
        let mut reference = InPlace::<Reference>::default();
        reference.add(self.items, Insertion::Individual, &mut Untimed)?;
        let dump = reference.dump();
        drop(reference);
        let s = &self.subject;
        let found = match s.store {
            _ if s.variant != Variant::Direct => self.content(s.copying())?,
            StoreKind::Trie => self.content(s.in_place::<Trie>())?,
            StoreKind::PathMap => self.content(s.in_place::<SharedMap>())?,
            StoreKind::Btree => self.content(s.in_place::<Reference>())?,
        };
        let same = match self.part {
            // Paths alone say nothing about rules where those are kept beside them.
            Part::Insert => found.dump.paths == dump.paths,
            _ => found.dump == dump,
        };
        if !same {
            return Err(differs("the content of the environment"));
        }
        Ok(Checked { dump, ..found })
    }

    fn content<E: Environment>(&self, mut environment: E) -> Result<Checked, Failure> {
        self.add(&mut environment, &mut Untimed)?;
        let dump = environment.dump();
        self.check_answers(&environment, &dump.paths)?;
        Ok(Checked {
            dump,
            heap_bytes: environment.heap_bytes(),
            cache_hits: environment.cache_hits(),
            mean_depth: environment.mean_depth(),
        })
    }

    /// Compares the results of as many queries as time permits with a comparison of values.
    fn check_answers(&self, environment: &impl Environment, paths: &[Vec<u8>]) -> Result<(), Failure> {
        /// Comparisons of a pattern with a value, at most, about.
        const COMPARISONS: usize = 1_000_000;
        if self.patterns.is_empty() {
            return Ok(());
        }
        let values: Vec<Value> = paths.iter().map(|path| decode(path).expect("a dump has only expressions")).collect();
        let step = (self.patterns.len() * values.len()).div_ceil(COMPARISONS).max(1);
        for pattern in self.patterns.iter().step_by(step) {
            let mut answers = Vec::new();
            environment.answer(pattern, &mut |path| answers.push(environment.spell(path)))?;
            answers.sort_unstable();
            let pattern = pattern.canonical();
            let alike = values.iter().zip(paths).filter(|(value, _)| query::is_like(&pattern, value));
            if !alike.map(|(_, path)| path).eq(&answers) {
                return Err(differs("an answer"));
            }
        }
        Ok(())
    }

    fn add<E: Environment>(&self, environment: &mut E, laps: &mut impl Laps) -> Result<(), Failure> {
        if self.part == Part::Insert {
            environment.add_paths(&self.paths, self.items.times(), self.subject.insertion, laps)
        } else {
            environment.add(self.items, self.subject.insertion, laps)
        }
    }

    fn fill<E: Environment>(&self, make: impl Fn() -> E, timed: bool, phases: &mut Phases) -> Result<Done, Failure> {
        if self.part == Part::Query {
            return self.ask(make());
        }
        if !timed {
            return self.fill_with(make, &mut Untimed);
        }
        let mut laps = Timed::start();
        let done = self.fill_with(make, &mut laps)?;
        laps.report(phases);
        Ok(done)
    }

    fn fill_with<E: Environment>(&self, make: impl Fn() -> E, laps: &mut impl Laps) -> Result<Done, Failure> {
        let mut environment;
        let watch;
        if self.construction {
            laps.skip();
            watch = Stopwatch::start();
            environment = make();
            laps.lap(Phase::Construct);
        } else {
            environment = make();
            laps.skip();
            watch = Stopwatch::start();
        }
        self.add(&mut environment, laps)?;
        let mut seconds = watch.seconds();
        // Counting is no part of the work, dropping is.
        let outcome = environment.distinct();
        if self.construction {
            laps.skip();
            let watch = Stopwatch::start();
            drop(environment);
            seconds += watch.seconds();
            laps.lap(Phase::Construct);
        }
        Ok(Done { seconds, outcome })
    }

    /// Asks all questions of an environment that is filled before.
    fn ask<E: Environment>(&self, mut environment: E) -> Result<Done, Failure> {
        self.add(&mut environment, &mut Untimed)?;
        let watch = Stopwatch::start();
        let mut outcome = 0;
        for pattern in &self.patterns {
            environment.answer(pattern, &mut |path| {
                black_box(path);
                outcome += 1;
            })?;
        }
        Ok(Done { seconds: watch.seconds(), outcome })
    }

    fn serialise(&self) -> Result<Done, Failure> {
        let watch = Stopwatch::start();
        let mut outcome = 0;
        if self.subject.variant.has_text() {
            match self.items {
                Items::Facts(facts) => facts.iter().for_each(|fact| outcome += black_box(to_text(fact)).len()),
                Items::Rules(rules) => {
                    rules.iter().for_each(|rule| outcome += black_box(to_text(&rule.expression())).len());
                }
            }
        } else {
            each_path(self.items, |bytes| outcome += black_box(bytes).len())?;
        }
        Ok(Done { seconds: watch.seconds(), outcome })
    }

    fn parse(&self) -> Result<Done, Failure> {
        let watch = Stopwatch::start();
        let mut outcome = 0;
        let mut buffer = Vec::new();
        for text in &self.texts {
            buffer.clear();
            Parser::new(text).next_expression(&mut buffer)?;
            outcome += black_box(&buffer).len();
        }
        Ok(Done { seconds: watch.seconds(), outcome })
    }

    fn scratch(&self) -> Done {
        let mut supply = Supply::new(self.subject.scratch);
        let watch = Stopwatch::start();
        for _ in 0..self.items.len() {
            let buffer = supply.take();
            supply.give_back(black_box(buffer));
        }
        Done { seconds: watch.seconds(), outcome: self.items.len() }
    }
}

fn texts(items: &Items) -> Vec<String> {
    items.expressions().map(|expression| to_text(&expression)).collect()
}

/// Calls `visit` with the bytes of each item.
fn each_path(items: &Items, mut visit: impl FnMut(&[u8])) -> Result<(), Unencodable> {
    let mut buffer = Vec::new();
    match items {
        Items::Facts(facts) => facts.iter().try_for_each(|fact| {
            buffer.clear();
            encode(fact, &mut buffer)?;
            visit(&buffer);
            Ok(())
        }),
        Items::Rules(rules) => rules.iter().try_for_each(|rule| {
            buffer.clear();
            encode_rule(&rule.left, &rule.right, &mut buffer)?;
            visit(&buffer);
            Ok(())
        }),
    }
}

fn paths(items: &Items) -> Result<Vec<Vec<u8>>, Unencodable> {
    let mut paths = Vec::with_capacity(items.len());
    each_path(items, |bytes| paths.push(bytes.to_vec()))?;
    Ok(paths)
}

/// A query for each item's last element.
fn patterns(items: &Items) -> Vec<Value> {
    items.expressions().map(|expression| query::for_last_item(expression.into_owned())).collect()
}

fn differs(part: &str) -> Failure {
    Failure::error(format_args!("{part} differs from the slow reference"))
}

/// Checks the two ways to bytes against each other, and that the bytes read back.
fn check_bytes(items: &Items) -> Result<(), Failure> {
    let mut expressions = items.expressions();
    let (mut parsed, mut wrong) = (Vec::new(), None);
    each_path(items, |bytes| {
        let expression = expressions.next().expect("each item has one expression");
        parsed.clear();
        if Parser::new(&to_text(&expression)).next_expression(&mut parsed) != Ok(true) || parsed != bytes {
            wrong = Some("the bytes of a parsed text");
        } else if decode(bytes).as_ref() != Ok(&expression.canonical()) {
            wrong = Some("the decoded value of an item");
        }
    })?;
    wrong.map_or(Ok(()), |what| Err(differs(what)))
}

/// The components of the document's table, each run alone.
///
/// The document has a profile and a total, attributes the unexplained part to serialisation, and arrives at 98.9 %.
/// Here the same four rows are measured: each component does its work for all items, and nothing else.
#[derive(Debug)]
pub struct Document {
    phases: Phases,
    serialisation: f64,
    others: f64,
}

impl Document {
    /// Runs each component alone, as often as there are measured iterations.
    ///
    /// # Errors
    ///
    /// When an item cannot be added.
    pub fn measure(items: &Items, iterations: usize) -> Result<Self, Failure> {
        let paths = paths(items)?;
        let mut filled = Copying::new(Route::Text, Scratch::Reused);
        filled.add(items, Insertion::Individual, &mut Untimed)?;
        let mut this = Self { phases: Phases::new(), serialisation: 0.0, others: 0.0 };
        for _ in 0..iterations {
            this.serialisation += this.alone("serialisation", || match items {
                Items::Facts(facts) => facts.iter().for_each(|fact| drop(black_box(to_text(fact)))),
                // Once as the key by which a rule is counted, once as a fact.
                Items::Rules(rules) => rules.iter().for_each(|rule| {
                    let expression = rule.expression();
                    drop(black_box([to_text(&expression), to_text(&expression)]));
                }),
            });
            this.others += this.alone("lock", || {
                for _ in 0..items.len() {
                    filled.store(black_box(filled.snapshot()));
                }
            });
            let mut map = PathMap::new();
            this.others += this.alone("pathMapInsertion", || {
                for path in &paths {
                    black_box(map.set_val_at(path, ()));
                }
            });
            drop(map);
            // A rule's text is its key; it was made under another name.
            let mut keys = match items {
                Items::Facts(_) => Vec::new(),
                Items::Rules(_) => texts(items),
            };
            let mut book = RuleBook::default();
            this.others += this.alone("indexUpdates", || match items {
                Items::Facts(facts) => facts.iter().for_each(|_| black_box(&filled).types_changed()),
                Items::Rules(rules) => rules.iter().zip(keys.drain(..)).for_each(|(rule, key)| {
                    book.add(rule, key);
                    black_box(&filled).types_changed();
                }),
            });
            this.phases.end_iteration();
        }
        Ok(this)
    }

    fn alone(&mut self, name: &'static str, work: impl FnOnce()) -> f64 {
        let watch = Stopwatch::start();
        work();
        let seconds = watch.seconds();
        self.phases.add(name, seconds);
        seconds
    }

    /// Adds the phases, and serialisation's share of `total` seconds, both as measured alone and as the remainder after
    /// the others.
    pub fn report(&self, report: &mut Report, total: f64) {
        report
            .phases(&self.phases)
            .counter("serialisationShareAlone", Quantity::new(self.serialisation / total, Unit::ONE))
            .counter("serialisationShareByResidue", Quantity::new(1.0 - self.others / total, Unit::ONE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Kind, Order, Shape, Workload};

    fn items(kind: Kind) -> Items {
        let order = Order::Sequential;
        Workload { kind, shape: Shape::Flat, items: 50, repeated_share: 30, order, seed: 1 }.generate()
    }

    #[test]
    fn the_documents_rows_are_measured_once_per_iteration() {
        for kind in [Kind::Facts, Kind::Rules] {
            let document = Document::measure(&items(kind), 3).unwrap();
            let names: Vec<_> = document.phases.iter().map(|(name, samples)| (name, samples.len())).collect();
            assert_eq!(names, [("serialisation", 3), ("lock", 3), ("pathMapInsertion", 3), ("indexUpdates", 3)]);
            let sum: f64 = document.phases.iter().flat_map(|(_, samples)| samples).sum();
            assert!((sum - document.serialisation - document.others).abs() < 1e-9);
        }
    }

    #[test]
    fn the_phases_of_an_iteration_add_up_to_its_time() {
        let items = items(Kind::Rules);
        for variant in Variant::CHOICES.map(|(_, variant)| variant) {
            for insertion in [Insertion::Individual, Insertion::Bulk] {
                let subject = Subject {
                    variant,
                    scratch: Scratch::Reused,
                    store: variant.own_store(),
                    insertion,
                    cache_capacity: NonZeroUsize::MIN,
                    symbols: Symbols::Inline,
                    threads: NonZeroUsize::MIN,
                };
                for construction in [true, false] {
                    let measured = Measured::new(subject, Part::All, construction, &items).unwrap();
                    let (mut phases, mut whole) = (Phases::new(), Vec::new());
                    for _ in 0..21 {
                        whole.push(measured.iterate(true, &mut phases).unwrap().seconds);
                        phases.end_iteration();
                    }
                    // Who is interrupted while one of the two is measured has the other too small: most iterations count.
                    let mut shares: Vec<f64> = (0..whole.len())
                        .map(|i| phases.iter().map(|(_, samples)| samples[i]).sum::<f64>() / whole[i])
                        .collect();
                    shares.sort_by(f64::total_cmp);
                    assert!((0.5..1.1).contains(&shares[10]), "{variant:?}, {insertion:?}: {shares:?}");
                    let constructs = phases.iter().any(|(name, _)| name == "construct");
                    assert_eq!(constructs, construction);
                }
            }
        }
    }
}
