//! The original's environment: a `PathMap` behind a lock. Each addition takes a copy, inserts into the copy, and puts
//! it back.
//!
//! Taking a copy is cheap, but inserting into it copies the nodes on the path, because they are shared with the old
//! root. In bulk mode each fact becomes a separate map that is joined to the sum; the lock is taken once.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use assay_harness::Failure;
use pathmap::PathMap;

use super::{Dump, Environment, Insertion, Items, QUESTION, RuleBook, lock, visit_map};
use crate::cache::ByteCache;
use crate::encoding::{Parser, Unencodable, encode};
use crate::laps::{Laps, Phase};
use crate::query::{Bound, Pattern};
use crate::scratch::{Scratch, Supply};
use crate::text::to_text;
use crate::value::Value;

/// How a value becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// By way of its text, which is parsed.
    Text,
    /// Like [`Text`](Self::Text), with a cache for the bytes of this number of values.
    CachedText(NonZeroUsize),
    /// Directly.
    Encoder,
}

/// The original's environment. Of all its parts it has those that an addition touches; the original's symbol table,
/// pattern cache and others, which make it slower still to construct, are not there.
#[derive(Debug)]
pub struct Copying {
    space: Mutex<PathMap<()>>,
    rules: Mutex<RuleBook>,
    /// Whether the index of types must be made anew.
    types_stale: AtomicBool,
    route: Route,
    cache: Option<ByteCache>,
    supply: Supply,
}

impl Copying {
    /// An empty environment.
    #[must_use]
    pub fn new(route: Route, scratch: Scratch) -> Self {
        let cache = match route {
            Route::CachedText(capacity) => Some(ByteCache::new(capacity)),
            Route::Text | Route::Encoder => None,
        };
        Self {
            space: Mutex::default(),
            rules: Mutex::default(),
            types_stale: AtomicBool::new(false),
            route,
            cache,
            supply: Supply::new(scratch),
        }
    }

    fn space(&self) -> MutexGuard<'_, PathMap<()>> {
        lock(&self.space)
    }

    /// A copy of all facts, as each addition takes one.
    #[must_use]
    pub fn snapshot(&self) -> PathMap<()> {
        self.space().clone()
    }

    /// Puts a changed copy back.
    pub fn store(&self, space: PathMap<()>) {
        *self.space() = space;
    }

    /// Marks that the index of types does not know the latest facts.
    pub fn types_changed(&self) {
        self.types_stale.store(true, Ordering::Release);
    }

    fn add_fact(&mut self, fact: &Value, laps: &mut impl Laps) -> Result<(), Failure> {
        if self.route == Route::Encoder {
            return self.with_bytes(fact, laps, |this, bytes, laps| {
                let mut copy = this.snapshot();
                copy.set_val_at(bytes, ());
                this.store(copy);
                laps.lap(Phase::Insert);
                this.types_changed();
                laps.lap(Phase::Index);
            });
        }
        if let Some(bytes) = self.cached(fact, laps) {
            let mut copy = self.snapshot();
            copy.set_val_at(bytes, ());
            self.store(copy);
        } else {
            let text = to_text(fact);
            laps.lap(Phase::Serialise);
            let mut copy = self.snapshot();
            laps.lap(Phase::Insert);
            self.load(fact, &text, &mut copy, laps)?;
            self.store(copy);
        }
        laps.lap(Phase::Insert);
        self.types_changed();
        laps.lap(Phase::Index);
        Ok(())
    }

    /// Joins a separate map for each fact to the sum.
    fn join_fact(&mut self, fact: &Value, sum: &mut PathMap<()>, laps: &mut impl Laps) -> Result<(), Failure> {
        let mut own = PathMap::new();
        if self.route == Route::Encoder {
            self.with_bytes(fact, laps, |_, bytes, _| {
                own.set_val_at(bytes, ());
            })?;
        } else if let Some(bytes) = self.cached(fact, laps) {
            own.set_val_at(bytes, ());
        } else {
            let text = to_text(fact);
            laps.lap(Phase::Serialise);
            self.load(fact, &text, &mut own, laps)?;
        }
        *sum = sum.join(&own);
        drop(own);
        laps.lap(Phase::Insert);
        Ok(())
    }

    fn join(&self, sum: &PathMap<()>, laps: &mut impl Laps) {
        let mut space = self.space();
        let joined = space.join(sum);
        *space = joined;
        drop(space);
        laps.lap(Phase::Insert);
        self.types_changed();
        laps.lap(Phase::Index);
    }

    fn cached(&self, value: &Value, laps: &mut impl Laps) -> Option<Vec<u8>> {
        let found = self.cache.as_ref()?.get(value);
        laps.lap(Phase::Cache);
        found
    }

    /// The loader: a scratch buffer, the parser, and an insertion for each expression of the text.
    fn load(&mut self, value: &Value, text: &str, map: &mut PathMap<()>, laps: &mut impl Laps) -> Result<(), Failure> {
        let mut scratch = self.supply.take();
        laps.lap(Phase::Scratch);
        let mut parser = Parser::new(text);
        let outcome = loop {
            scratch.clear();
            match parser.next_expression(&mut scratch) {
                Ok(true) => {
                    laps.lap(Phase::Parse);
                    map.set_val_at(&scratch, ());
                    laps.lap(Phase::Insert);
                    if let Some(cache) = &self.cache {
                        cache.put(value, &scratch);
                        laps.lap(Phase::Cache);
                    }
                }
                Ok(false) => break Ok(()),
                Err(why) => break Err(why.into()),
            }
        };
        laps.lap(Phase::Parse);
        self.supply.give_back(scratch);
        laps.lap(Phase::Scratch);
        outcome
    }

    /// No text: the value's bytes are written into a scratch buffer.
    fn with_bytes<L: Laps>(
        &mut self,
        value: &Value,
        laps: &mut L,
        insert: impl FnOnce(&Self, &[u8], &mut L),
    ) -> Result<(), Failure> {
        let mut scratch = self.supply.take();
        laps.lap(Phase::Scratch);
        let outcome = encode(value, &mut scratch);
        laps.lap(Phase::Serialise);
        if outcome.is_ok() {
            insert(self, &scratch, laps);
            laps.lap(Phase::Insert);
        }
        self.supply.give_back(scratch);
        laps.lap(Phase::Scratch);
        outcome.map_err(Into::into)
    }
}

impl Environment for Copying {
    fn add(&mut self, items: &Items, insertion: Insertion, laps: &mut impl Laps) -> Result<(), Failure> {
        match (items, insertion) {
            (Items::Facts(facts), Insertion::Individual) => facts.iter().try_for_each(|fact| self.add_fact(fact, laps)),
            (Items::Rules(rules), Insertion::Individual) => rules.iter().try_for_each(|rule| {
                let expression = rule.expression();
                let text = to_text(&expression);
                laps.lap(Phase::Serialise);
                // Text first: it is the key by which a rule is counted. The fact is serialised again when it is added.
                self.add_fact(&expression, laps)?;
                lock(&self.rules).add(rule, text);
                laps.lap(Phase::Index);
                Ok(())
            }),
            (Items::Facts(facts), Insertion::Bulk) => {
                let mut sum = PathMap::new();
                facts.iter().try_for_each(|fact| self.join_fact(fact, &mut sum, laps))?;
                self.join(&sum, laps);
                Ok(())
            }
            (Items::Rules(rules), Insertion::Bulk) => {
                let (mut sum, mut book) = (PathMap::new(), RuleBook::default());
                for rule in rules {
                    let expression = rule.expression();
                    let text = to_text(&expression);
                    laps.lap(Phase::Serialise);
                    self.join_fact(&expression, &mut sum, laps)?;
                    book.add(rule, text);
                    laps.lap(Phase::Index);
                }
                self.join(&sum, laps);
                lock(&self.rules).merge(book);
                laps.lap(Phase::Index);
                Ok(())
            }
        }
    }

    fn add_paths(
        &mut self,
        paths: &[Vec<u8>],
        _: u32,
        insertion: Insertion,
        laps: &mut impl Laps,
    ) -> Result<(), Failure> {
        match insertion {
            Insertion::Individual => {
                for path in paths {
                    let mut copy = self.snapshot();
                    copy.set_val_at(path, ());
                    self.store(copy);
                }
            }
            Insertion::Bulk => {
                let mut sum = PathMap::new();
                for path in paths {
                    let mut own = PathMap::new();
                    own.set_val_at(path, ());
                    sum = sum.join(&own);
                }
                self.join(&sum, laps);
            }
        }
        laps.lap(Phase::Insert);
        Ok(())
    }

    /// Answers from a copy, so that additions go on meanwhile.
    fn answer(&self, pattern: &Value, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unencodable> {
        let mut path = Vec::with_capacity(QUESTION);
        encode(pattern, &mut path)?;
        let (pattern, mut bound) = (Pattern::new(path), Bound::default());
        visit_map(&self.snapshot(), pattern.prefix(), &mut |path| {
            if pattern.matches(path, &mut bound) {
                visit(path);
            }
        });
        Ok(())
    }

    fn distinct(&self) -> usize {
        self.space().val_count()
    }

    fn dump(&self) -> Dump {
        let mut paths: Vec<Vec<u8>> = self.space().iter().map(|(path, ())| path).collect();
        paths.sort_unstable();
        lock(&self.rules).dump(paths)
    }

    fn cache_hits(&self) -> Option<u64> {
        self.cache.as_ref().map(ByteCache::hits)
    }
}
