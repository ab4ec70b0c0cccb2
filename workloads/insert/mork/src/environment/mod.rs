//! Environments, to which facts and rules are added.

mod copying;
mod dump;
mod in_place;
mod rule_book;

pub use copying::{Copying, Route};
pub use dump::Dump;
pub use in_place::{InPlace, Paths, SharedMap};
pub(crate) use rule_book::RuleBook;

use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_harness::Failure;
use pathmap::PathMap;
use pathmap::zipper::{Zipper, ZipperIteration, ZipperMoving};

use crate::encoding::{Unencodable, encode, encode_rule};
use crate::laps::Laps;
use crate::value::Value;

/// A rule that rewrites its left side to its right side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The pattern.
    pub left: Value,
    /// The replacement.
    pub right: Value,
}

impl Rule {
    /// The expression `(= left right)`, as which the rule is kept among the facts.
    #[must_use]
    pub fn expression(&self) -> Value {
        Value::expression([Value::atom("="), self.left.clone(), self.right.clone()])
    }
}

/// Facts or rules.
#[derive(Debug, Clone)]
pub enum Items {
    /// Facts.
    Facts(Vec<Value>),
    /// Rules.
    Rules(Vec<Rule>),
}

impl Items {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Facts(facts) => facts.len(),
            Self::Rules(rules) => rules.len(),
        }
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often each counts: rules are counted, of a fact it is only known whether it is there.
    #[must_use]
    pub fn times(&self) -> u32 {
        match self {
            Self::Facts(_) => 0,
            Self::Rules(_) => 1,
        }
    }

    /// Appends the bytes of one of them.
    ///
    /// # Errors
    ///
    /// When it has none.
    pub fn encode(&self, item: usize, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        match self {
            Self::Facts(facts) => encode(&facts[item], out),
            Self::Rules(rules) => encode_rule(&rules[item].left, &rules[item].right, out),
        }
    }

    /// The expression of each.
    pub fn expressions(&self) -> impl Iterator<Item = std::borrow::Cow<'_, Value>> {
        use std::borrow::Cow;
        (0..self.len()).map(move |i| match self {
            Self::Facts(facts) => Cow::Borrowed(&facts[i]),
            Self::Rules(rules) => Cow::Owned(rules[i].expression()),
        })
    }
}

/// One item per call, or all in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// A call for each.
    Individual,
    /// One call for all.
    Bulk,
}

assay_harness::choices!(Insertion { "individual" => Individual, "bulk" => Bulk });

/// An environment: accepts items and finally dumps its contents.
pub trait Environment {
    /// Adds items. After an error some may be in.
    ///
    /// # Errors
    ///
    /// When an item has no byte form, or there is no room.
    fn add(&mut self, items: &Items, insertion: Insertion, laps: &mut impl Laps) -> Result<(), Failure>;

    /// Adds paths: the last step of adding, alone. Each counts `times` times where paths are counted.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn add_paths(
        &mut self,
        paths: &[Vec<u8>],
        times: u32,
        insertion: Insertion,
        laps: &mut impl Laps,
    ) -> Result<(), Failure>;

    /// Calls `visit` with the path, as the store has it, of every expression that is like the pattern; see
    /// [`crate::query`].
    ///
    /// # Errors
    ///
    /// When the pattern has no byte form.
    fn answer(&self, pattern: &Value, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unencodable>;

    /// A path that the store has, with its symbols as they are.
    fn spell(&self, path: &[u8]) -> Vec<u8> {
        path.to_vec()
    }

    /// How many different paths there are.
    fn distinct(&self) -> usize;

    /// All of its content in one comparable form.
    fn dump(&self) -> Dump;

    /// Bytes of the store, where it is known.
    fn heap_bytes(&self) -> Option<usize> {
        None
    }

    /// How many look-ups in a cache of bytes found something, where there is one.
    fn cache_hits(&self) -> Option<u64> {
        None
    }

    /// Words that a look-up reads on its way, where the store knows them.
    fn mean_depth(&self) -> Option<f64> {
        None
    }
}

/// Locks a mutex, ignoring poisoning.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of a question, mostly.
const QUESTION: usize = 64;

/// Calls `visit` with each path of a map that begins with `prefix`, in order.
fn visit_map(map: &PathMap<()>, prefix: &[u8], visit: &mut dyn FnMut(&[u8])) {
    let mut zipper = map.read_zipper_at_path(prefix);
    let mut path = prefix.to_vec();
    let mut here = zipper.is_val();
    while here || zipper.to_next_val() {
        here = false;
        path.truncate(prefix.len());
        path.extend_from_slice(zipper.path());
        visit(&path);
    }
}
