//! Our environment: values are encoded into one buffer and inserted in place.
//!
//! A rule is only stored as its path with a count. Rules for a head and a number of arguments are found by a prefix
//! query.
//!
//! With several threads each encodes its share of the items. One by one they contend for the lock on each insertion; in
//! bulk mode each also sorts its share, and one thread inserts all of them.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

use assay_harness::Failure;
use pathmap::PathMap;

use super::{Dump, Environment, Insertion, Items, QUESTION, Rule, lock, visit_map};
use crate::encoding::{Unencodable, encode, encode_rule};
use crate::laps::{Laps, Phase};
use crate::query::{Bound, Pattern};
use crate::store::{Full, Reference, Span, Trie};
use crate::symbols::SymbolTable;
use crate::value::Value;

/// A store of paths with counts.
pub trait Paths: Default + Send {
    /// Puts a path in and adds `times` to its count.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn insert(&mut self, path: &[u8], times: u32) -> Result<(), Full>;

    /// Puts all paths of a buffer in; `spans` are where they lie, in any order, and may be put in another.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn insert_all(&mut self, buffer: &[u8], spans: &mut [(u32, u32)], times: u32) -> Result<(), Full> {
        spans.iter().try_for_each(|span| self.insert(&buffer[span.0 as usize..span.1 as usize], times))
    }

    /// Puts the spans of a buffer into the order in which they are best inserted.
    fn arrange(_: &[u8], _: &mut [Span]) {}

    /// How many different paths there are.
    fn distinct(&self) -> usize;

    /// Calls `visit` with each path that begins with `prefix`, in order, and its count.
    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], u64));

    /// Bytes of the store, if it is known.
    fn heap_bytes(&self) -> Option<usize> {
        None
    }

    /// Words that a look-up reads on its way, if the store knows them.
    fn mean_depth(&self) -> Option<f64> {
        None
    }
}

impl Paths for Trie {
    fn insert(&mut self, path: &[u8], times: u32) -> Result<(), Full> {
        Self::insert(self, path, times).map(|_| ())
    }

    fn insert_all(&mut self, buffer: &[u8], spans: &mut [Span], times: u32) -> Result<(), Full> {
        Self::insert_all(self, buffer, spans, times)
    }

    fn arrange(buffer: &[u8], spans: &mut [Span]) {
        Self::arrange(buffer, spans);
    }

    fn distinct(&self) -> usize {
        self.len()
    }

    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], u64)) {
        self.with_prefix(prefix).for_each(|(path, count)| visit(path, count));
    }

    fn heap_bytes(&self) -> Option<usize> {
        Some(Self::heap_bytes(self))
    }

    fn mean_depth(&self) -> Option<f64> {
        Self::mean_depth(self)
    }
}

impl Paths for Reference {
    fn insert(&mut self, path: &[u8], times: u32) -> Result<(), Full> {
        *self.entry(path.to_vec()).or_insert(0) += u64::from(times);
        Ok(())
    }

    fn distinct(&self) -> usize {
        self.len()
    }

    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], u64)) {
        self.iter().filter(|(path, _)| path.starts_with(prefix)).for_each(|(path, count)| visit(path, *count));
    }
}

/// The original's trie, changed in place, with the counts of rules beside it.
#[derive(Default)]
pub struct SharedMap {
    map: PathMap<()>,
    counts: HashMap<Vec<u8>, u64>,
}

impl Paths for SharedMap {
    fn insert(&mut self, path: &[u8], times: u32) -> Result<(), Full> {
        self.map.set_val_at(path, ());
        if times > 0 {
            *self.counts.entry(path.to_vec()).or_insert(0) += u64::from(times);
        }
        Ok(())
    }

    fn distinct(&self) -> usize {
        self.map.val_count()
    }

    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], u64)) {
        visit_map(&self.map, prefix, &mut |path| visit(path, self.counts.get(path).copied().unwrap_or(0)));
    }
}

/// Facts in a store behind a lock, and one buffer to write them into.
#[derive(Debug)]
pub struct InPlace<S> {
    store: Mutex<S>,
    /// The symbols' numbers, where paths have those.
    symbols: Option<SymbolTable>,
    threads: NonZeroUsize,
    written: Written,
    /// A path before its symbols become numbers.
    spelled: Vec<u8>,
}

/// Paths that are written and not inserted yet: all in one buffer, and where each lies.
#[derive(Debug, Default)]
struct Written {
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl Written {
    /// Appends one path.
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unencodable>) -> Result<(), Failure> {
        let start = position(&self.buffer)?;
        write(&mut self.buffer)?;
        self.spans.push((start, position(&self.buffer)?));
        Ok(())
    }

    /// Appends all of another.
    fn append(&mut self, other: &Self) -> Result<(), Failure> {
        let start = position(&self.buffer)?;
        self.buffer.extend_from_slice(&other.buffer);
        position(&self.buffer)?;
        self.spans.extend(other.spans.iter().map(|span| (span.0 + start, span.1 + start)));
        Ok(())
    }
}

/// An empty environment, for one thread, with symbols as they are.
impl<S: Paths> Default for InPlace<S> {
    fn default() -> Self {
        Self {
            store: Mutex::default(),
            symbols: None,
            threads: NonZeroUsize::MIN,
            written: Written::default(),
            spelled: Vec::new(),
        }
    }
}

impl<S: Paths> InPlace<S> {
    /// The default, with numbers in place of symbols.
    #[must_use]
    pub fn interning() -> Self {
        Self { symbols: Some(SymbolTable::default()), ..Self::default() }
    }

    /// The default, filled by `threads` threads.
    #[must_use]
    pub fn by_threads(threads: NonZeroUsize) -> Self {
        Self { threads, ..Self::default() }
    }

    /// A path as the store has it; none where the store has none of one of its symbols.
    fn stored(&self, path: Vec<u8>) -> Option<Vec<u8>> {
        let Some(table) = &self.symbols else { return Some(path) };
        let mut numbered = Vec::with_capacity(path.len());
        table.find(&path, &mut numbered).then_some(numbered)
    }

    /// Writes one path and inserts it.
    fn insert_one(
        &mut self,
        times: u32,
        laps: &mut impl Laps,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unencodable>,
    ) -> Result<(), Failure> {
        let buffer = &mut self.written.buffer;
        buffer.clear();
        spell_or_number(&mut self.symbols, &mut self.spelled, buffer, write)?;
        laps.lap(Phase::Serialise);
        lock(&self.store).insert(buffer, times)?;
        laps.lap(Phase::Insert);
        Ok(())
    }

    /// Writes all paths, one after the other.
    fn write_all<T>(
        &mut self,
        items: &[T],
        write: impl Fn(&T, &mut Vec<u8>) -> Result<(), Unencodable>,
    ) -> Result<(), Failure> {
        self.written.buffer.clear();
        self.written.spans.clear();
        self.written.spans.reserve(items.len());
        for item in items {
            let (symbols, spelled) = (&mut self.symbols, &mut self.spelled);
            self.written.push(|out| spell_or_number(symbols, spelled, out, |out| write(item, out)))?;
        }
        Ok(())
    }

    fn insert_written(&mut self, times: u32) -> Result<(), Full> {
        // Buffers of a bulk insertion are not retained permanently.
        let Written { buffer, mut spans } = std::mem::take(&mut self.written);
        lock(&self.store).insert_all(&buffer, &mut spans, times)
    }

    /// Adds items by several threads.
    fn add_by_threads(&mut self, items: &Items, insertion: Insertion) -> Result<(), Failure> {
        let share = items.len().div_ceil(self.threads.get()).max(1);
        let shares = (0..items.len()).step_by(share).map(|start| start..items.len().min(start + share));
        let store = &self.store;
        let parts: Vec<Result<Written, Failure>> = thread::scope(|scope| {
            let workers = shares.map(|share| {
                scope.spawn(move || match insertion {
                    Insertion::Individual => insert_share(store, items, share).map(|()| Written::default()),
                    Insertion::Bulk => write_share::<S>(items, share),
                })
            });
            let workers: Vec<_> = workers.collect();
            workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).collect()
        });
        self.written = Written::default();
        for part in parts {
            self.written.append(&part?)?;
        }
        self.insert_written(items.times())?;
        Ok(())
    }
}

/// Inserts a share of items one by one.
fn insert_share<S: Paths>(store: &Mutex<S>, items: &Items, share: Range<usize>) -> Result<(), Failure> {
    let mut buffer = Vec::new();
    for item in share {
        buffer.clear();
        items.encode(item, &mut buffer)?;
        lock(store).insert(&buffer, items.times())?;
    }
    Ok(())
}

/// Writes a share of items and puts their paths in order.
fn write_share<S: Paths>(items: &Items, share: Range<usize>) -> Result<Written, Failure> {
    let mut written = Written::default();
    written.spans.reserve(share.len());
    for item in share {
        written.push(|out| items.encode(item, out))?;
    }
    S::arrange(&written.buffer, &mut written.spans);
    Ok(written)
}

/// Writes a path, with numbers in place of its symbols where there is a table of those.
#[inline]
fn spell_or_number(
    symbols: &mut Option<SymbolTable>,
    spelled: &mut Vec<u8>,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unencodable>,
) -> Result<(), Unencodable> {
    let Some(table) = symbols else { return write(out) };
    spelled.clear();
    write(spelled)?;
    table.intern(spelled, out)
}

fn position(buffer: &[u8]) -> Result<u32, Full> {
    u32::try_from(buffer.len()).map_err(|_| Full)
}

impl<S: Paths> Environment for InPlace<S> {
    fn add(&mut self, items: &Items, insertion: Insertion, laps: &mut impl Laps) -> Result<(), Failure> {
        let times = items.times();
        if self.threads > NonZeroUsize::MIN {
            self.add_by_threads(items, insertion)?;
            laps.lap(Phase::Insert);
            return Ok(());
        }
        let rule = |rule: &Rule, out: &mut Vec<u8>| encode_rule(&rule.left, &rule.right, out);
        match (items, insertion) {
            (Items::Facts(facts), Insertion::Individual) => {
                return facts.iter().try_for_each(|fact| self.insert_one(times, laps, |out| encode(fact, out)));
            }
            (Items::Rules(rules), Insertion::Individual) => {
                return rules.iter().try_for_each(|each| self.insert_one(times, laps, |out| rule(each, out)));
            }
            (Items::Facts(facts), Insertion::Bulk) => self.write_all(facts, encode)?,
            (Items::Rules(rules), Insertion::Bulk) => self.write_all(rules, rule)?,
        }
        laps.lap(Phase::Serialise);
        self.insert_written(times)?;
        laps.lap(Phase::Insert);
        Ok(())
    }

    fn add_paths(
        &mut self,
        paths: &[Vec<u8>],
        times: u32,
        insertion: Insertion,
        laps: &mut impl Laps,
    ) -> Result<(), Failure> {
        match insertion {
            Insertion::Individual => paths.iter().try_for_each(|path| lock(&self.store).insert(path, times))?,
            Insertion::Bulk => {
                self.write_all(paths, |path, out| {
                    out.extend_from_slice(path);
                    Ok(())
                })?;
                self.insert_written(times)?;
            }
        }
        laps.lap(Phase::Insert);
        Ok(())
    }

    fn answer(&self, pattern: &Value, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unencodable> {
        let mut path = Vec::with_capacity(QUESTION);
        encode(pattern, &mut path)?;
        if let Some(path) = self.stored(path) {
            let (pattern, mut bound) = (Pattern::new(path), Bound::default());
            lock(&self.store).visit(pattern.prefix(), &mut |path, _| {
                if pattern.matches(path, &mut bound) {
                    visit(path);
                }
            });
        }
        Ok(())
    }

    fn spell(&self, path: &[u8]) -> Vec<u8> {
        self.symbols.as_ref().map_or_else(|| path.to_vec(), |table| table.expand(path))
    }

    fn distinct(&self) -> usize {
        lock(&self.store).distinct()
    }

    fn dump(&self) -> Dump {
        let mut all = Vec::new();
        lock(&self.store).visit(&[], &mut |path, count| all.push((self.spell(path), count)));
        all.sort_unstable();
        Dump::of_counted(all.iter().map(|(path, count)| (path.as_slice(), *count)))
    }

    fn heap_bytes(&self) -> Option<usize> {
        let symbols = self.symbols.as_ref().map_or(0, SymbolTable::heap_bytes);
        lock(&self.store).heap_bytes().map(|bytes| bytes + symbols)
    }

    fn mean_depth(&self) -> Option<f64> {
        lock(&self.store).mean_depth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::decode;
    use crate::laps::Untimed;
    use crate::text::to_text;

    fn rules_are_found<S: Paths>(mut environment: InPlace<S>) {
        let [f, x, y] = ["f", "$x", "$y"].map(Value::atom);
        let left = |items: &[Value]| Value::expression([std::slice::from_ref(&f), items].concat());
        let rule = |left, right| Rule { left, right };
        let one = rule(left(std::slice::from_ref(&x)), x.clone());
        let rules = vec![
            one.clone(),
            rule(left(&[x.clone(), y.clone()]), y.clone()),
            rule(left(std::slice::from_ref(&y)), y.clone()),
            rule(f.clone(), Value::Long(1)),
            rule(left(&[]), Value::Long(2)),
            rule(x, Value::Nil),
            rule(Value::atom("ff"), Value::Nil),
        ];
        environment.add(&Items::Rules(rules), Insertion::Individual, &mut Untimed).unwrap();
        // A fact in the form of a rule is not a rule.
        let fact = rule(left(&[Value::Long(7)]), Value::Nil).expression();
        environment.add(&Items::Facts(vec![fact.clone()]), Insertion::Bulk, &mut Untimed).unwrap();

        let [a, b, c] = ["$a", "$b", "$c"].map(Value::atom);
        let found = |left: Value| {
            let mut found = Vec::new();
            let question = rule(left, Value::atom("_")).expression();
            environment.answer(&question, &mut |path| found.push(decode(&environment.spell(path)).unwrap())).unwrap();
            found.sort_by_key(to_text);
            found
        };
        let one = left(std::slice::from_ref(&a));
        assert_eq!(found(one.clone()), [rule(one, a.clone()).expression(), fact]);
        assert_eq!(found(left(&[])), [rule(left(&[]), Value::Long(2)).expression()]);
        assert_eq!(found(f.clone()), [rule(f.clone(), Value::Long(1)).expression()]);
        assert_eq!(found(left(&[a, b, c])), []);
        let dump = environment.dump();
        assert_eq!((dump.paths.len(), dump.wildcards), (7, 1));
        assert_eq!(dump.index[&("f".to_owned(), 1)], 2);
    }

    #[test]
    fn rules_are_found_by_how_their_paths_begin() {
        rules_are_found(InPlace::<Trie>::default());
        rules_are_found(InPlace::<SharedMap>::default());
        rules_are_found(InPlace::<Reference>::default());
        rules_are_found(InPlace::<Trie>::interning());
    }
}
