//! Our environment: values are written as bytes into one buffer, and inserted in place.
//!
//! Nothing is kept about rules but the count at the end of a path. Which rules there are for a head and a number of
//! arguments is a question about how paths begin, and [`InPlace::rules`] asks the store just that.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pathmap::PathMap;
use pathmap::zipper::{Zipper, ZipperIteration, ZipperMoving};

use super::{Dump, Environment, Insertion, Items, Rejected, Rule};
use crate::encoding::{Encoder, Unencodable, decode};
use crate::laps::{Laps, Phase};
use crate::store::{Full, Reference, Span, Trie};
use crate::value::Value;

/// A store of paths with counts.
pub trait Paths: Default {
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

    /// How many different paths there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

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

    fn len(&self) -> usize {
        Self::len(self)
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
        Self::insert(self, path, times);
        Ok(())
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], u64)) {
        self.iter().filter(|(path, _)| path.starts_with(prefix)).for_each(|(path, count)| visit(path, count));
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

    fn len(&self) -> usize {
        self.map.val_count()
    }

    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], u64)) {
        let mut zipper = self.map.read_zipper_at_path(prefix);
        let mut path = prefix.to_vec();
        let mut here = zipper.is_val();
        while here || zipper.to_next_val() {
            here = false;
            path.truncate(prefix.len());
            path.extend_from_slice(zipper.path());
            visit(&path, self.counts.get(&path).copied().unwrap_or(0));
        }
    }
}

/// Facts in a store behind a lock, and one buffer to write them into.
#[derive(Debug, Default)]
pub struct InPlace<S> {
    store: Mutex<S>,
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl<S: Paths> InPlace<S> {
    /// An empty environment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The rules whose left side has this head and so many arguments, each with how often it was added. Variables are
    /// named anew.
    ///
    /// # Errors
    ///
    /// When the head is no atom that a rule can have.
    pub fn rules(&self, head: &str, arguments: usize) -> Result<Vec<(Rule, u64)>, Unencodable> {
        let mut prefixes = Vec::new();
        let mut prefix = |expression: bool| {
            // The beginning of `(= (head …` or of `(= head …`.
            let mut path = Vec::new();
            Encoder.encode(&Value::expression([Value::atom("="), Value::Nil, Value::Nil]), &mut path)?;
            path.truncate(path.len() - 2);
            if expression {
                path.push(u8::try_from(arguments + 1).map_err(|_| Unencodable::TooManyItems(arguments + 1))?);
            }
            Encoder.encode(&Value::atom(head), &mut path)?;
            prefixes.push(path);
            Ok(())
        };
        prefix(true)?;
        if arguments == 0 {
            prefix(false)?;
        }
        let mut rules = BTreeMap::new();
        for prefix in prefixes {
            lock(&self.store).visit(&prefix, &mut |path, count| {
                if count > 0 {
                    rules.insert(path.to_vec(), count);
                }
            });
        }
        let rules = rules.into_iter().map(|(path, count)| {
            let Ok(Value::SExpr(items)) = decode(&path) else { unreachable!("a counted path is a rule") };
            let [_, left, right] = <[Value; 3]>::try_from(items).expect("a rule has three items");
            (Rule { left, right }, count)
        });
        Ok(rules.collect())
    }

    fn insert_buffer(&mut self, times: u32) -> Result<(), Full> {
        lock(&self.store).insert(&self.buffer, times)
    }

    /// Writes all values, one after the other, and notes where each lies.
    fn encode_all<T>(
        &mut self,
        items: &[T],
        encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Unencodable>,
    ) -> Result<(), Rejected> {
        self.buffer.clear();
        self.spans.clear();
        self.spans.reserve(items.len());
        for item in items {
            let start = position(&self.buffer)?;
            encode(item, &mut self.buffer)?;
            self.spans.push((start, position(&self.buffer)?));
        }
        Ok(())
    }

    fn insert_spans(&mut self, times: u32) -> Result<(), Full> {
        let outcome = lock(&self.store).insert_all(&self.buffer, &mut self.spans, times);
        // What one bulk needed is not kept for ever.
        (self.buffer, self.spans) = (Vec::new(), Vec::new());
        outcome
    }
}

fn position(buffer: &[u8]) -> Result<u32, Full> {
    u32::try_from(buffer.len()).map_err(|_| Full)
}

impl<S: Paths> Environment for InPlace<S> {
    fn add(&mut self, items: &Items, insertion: Insertion, laps: &mut impl Laps) -> Result<(), Rejected> {
        let times = items.times();
        match (items, insertion) {
            (Items::Facts(facts), Insertion::Individual) => {
                for fact in facts {
                    self.buffer.clear();
                    Encoder.encode(fact, &mut self.buffer)?;
                    laps.lap(Phase::Serialise);
                    self.insert_buffer(times)?;
                    laps.lap(Phase::Insert);
                }
                return Ok(());
            }
            (Items::Rules(rules), Insertion::Individual) => {
                for rule in rules {
                    self.buffer.clear();
                    Encoder.encode_rule(&rule.left, &rule.right, &mut self.buffer)?;
                    laps.lap(Phase::Serialise);
                    self.insert_buffer(times)?;
                    laps.lap(Phase::Insert);
                }
                return Ok(());
            }
            (Items::Facts(facts), Insertion::Bulk) => self.encode_all(facts, |fact, out| Encoder.encode(fact, out))?,
            (Items::Rules(rules), Insertion::Bulk) => {
                self.encode_all(rules, |rule, out| Encoder.encode_rule(&rule.left, &rule.right, out))?;
            }
        }
        laps.lap(Phase::Serialise);
        self.insert_spans(times)?;
        laps.lap(Phase::Insert);
        Ok(())
    }

    fn add_paths(
        &mut self,
        paths: &[Vec<u8>],
        times: u32,
        insertion: Insertion,
        laps: &mut impl Laps,
    ) -> Result<(), Rejected> {
        match insertion {
            Insertion::Individual => paths.iter().try_for_each(|path| lock(&self.store).insert(path, times))?,
            Insertion::Bulk => {
                self.encode_all(paths, |path, out| {
                    out.extend_from_slice(path);
                    Ok(())
                })?;
                self.insert_spans(times)?;
            }
        }
        laps.lap(Phase::Insert);
        Ok(())
    }

    fn len(&self) -> usize {
        lock(&self.store).len()
    }

    fn dump(&self) -> Dump {
        let mut all = Vec::new();
        lock(&self.store).visit(&[], &mut |path, count| all.push((path.to_vec(), count)));
        all.sort_unstable();
        Dump::of_counted(all.iter().map(|(path, count)| (path.as_slice(), *count)))
    }

    fn heap_bytes(&self) -> Option<usize> {
        lock(&self.store).heap_bytes()
    }

    fn cache_hits(&self) -> Option<u64> {
        None
    }

    fn mean_depth(&self) -> Option<f64> {
        lock(&self.store).mean_depth()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laps::Untimed;

    fn rules_are_found<S: Paths>() {
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
        let mut environment = InPlace::<S>::new();
        environment.add(&Items::Rules(rules), Insertion::Individual, &mut Untimed).unwrap();
        // A fact that looks like a rule is none.
        let fact = rule(left(&[Value::Long(7)]), Value::Nil).expression();
        environment.add(&Items::Facts(vec![fact]), Insertion::Bulk, &mut Untimed).unwrap();

        let a = Value::atom("$a");
        assert_eq!(environment.rules("f", 1).unwrap(), [(rule(left(std::slice::from_ref(&a)), a), 2)]);
        let none: Vec<Value> = environment.rules("f", 0).unwrap().into_iter().map(|(rule, _)| rule.right).collect();
        assert_eq!(none, [Value::Long(2), Value::Long(1)]);
        assert_eq!(environment.rules("f", 3).unwrap(), []);
        assert!(environment.rules("f", 300).is_err());
        let dump = environment.dump();
        assert_eq!((dump.paths.len(), dump.wildcards), (7, 1));
        assert_eq!(dump.index[&("f".to_owned(), 1)], 2);
    }

    #[test]
    fn rules_are_found_by_how_their_paths_begin() {
        rules_are_found::<Trie>();
        rules_are_found::<SharedMap>();
        rules_are_found::<Reference>();
    }
}
