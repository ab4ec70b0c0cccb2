//! The facts and rules that are added.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::environment::{Items, Rule};
use crate::value::Value;

/// Seed of random choices: repeated items, and the order.
pub const SEED: u64 = 4;

/// Facts or rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Facts.
    Facts,
    /// Rules.
    Rules,
}

assay_harness::choices!(Kind { "facts" => Facts, "rules" => Rules });

/// The form of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The document's: `(fact 7 value-7)`, `(= (rule 7) result-7)`.
    Flat,
    /// Expressions within expressions, six deep.
    Nested,
    /// Variables, new ones and known ones.
    Variables,
    /// Two hundred bytes that all items begin with.
    Prefix,
}

assay_harness::choices!(Shape { "flat" => Flat, "nested" => Nested, "variables" => Variables, "prefix" => Prefix });

/// The order of the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By their numbers, as in the document.
    Sequential,
    /// Drawn.
    Shuffled,
}

assay_harness::choices!(Order { "sequential" => Sequential, "shuffled" => Shuffled });

/// What to add.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Facts or rules.
    pub kind: Kind,
    /// Their form.
    pub shape: Shape,
    /// How many.
    pub items: usize,
    /// How many of a hundred repeat an earlier one.
    pub repeated_share: u64,
    /// In which order.
    pub order: Order,
    /// Seed of random choices.
    pub seed: u64,
}

impl Workload {
    /// All items.
    #[must_use]
    pub fn generate(&self) -> Items {
        let numbers = self.numbers();
        match self.kind {
            Kind::Facts => Items::Facts(numbers.into_iter().map(|n| fact(self.shape, n)).collect()),
            Kind::Rules => Items::Rules(numbers.into_iter().map(|n| rule(self.shape, n)).collect()),
        }
    }

    /// The items' numbers. An item repeats an earlier one with a probability of `repeated_share` in a hundred, any of
    /// those with the same.
    fn numbers(&self) -> Vec<u64> {
        let mut rng = ChaCha12Rng::seed_from_u64(self.seed);
        let mut numbers = Vec::with_capacity(self.items);
        let mut distinct = 0;
        for _ in 0..self.items {
            if distinct > 0 && below(&mut rng, 100) < self.repeated_share {
                numbers.push(below(&mut rng, distinct));
            } else {
                numbers.push(distinct);
                distinct += 1;
            }
        }
        if self.order == Order::Shuffled {
            for last in (1..numbers.len()).rev() {
                numbers.swap(last, below(&mut rng, last as u64 + 1) as usize);
            }
        }
        numbers
    }
}

/// A number below `bound`, each as likely as the others but for less than one part in 2^32.
fn below(rng: &mut ChaCha12Rng, bound: u64) -> u64 {
    rng.next_u64() % bound
}

fn number(n: u64) -> Value {
    Value::Long(n.cast_signed())
}

fn named(name: &str, n: u64) -> Value {
    Value::Atom(format!("{name}-{n}"))
}

fn call(head: &str, arguments: impl IntoIterator<Item = Value>) -> Value {
    Value::SExpr(std::iter::once(Value::atom(head)).chain(arguments).collect())
}

/// Fact number `n`.
#[must_use]
pub fn fact(shape: Shape, n: u64) -> Value {
    match shape {
        Shape::Flat => call("fact", [number(n), named("value", n)]),
        Shape::Nested => call("fact", [nested(n), named("value", n)]),
        Shape::Variables => call("fact", variables(n).into_iter().chain([named("value", n)])),
        Shape::Prefix => call("fact", [prefix(), number(n), named("value", n)]),
    }
}

/// Rule number `n`.
#[must_use]
pub fn rule(shape: Shape, n: u64) -> Rule {
    let (left, right) = match shape {
        Shape::Flat => (call("rule", [number(n)]), named("result", n)),
        Shape::Nested => (call("rule", [nested(n)]), call("result", [nested(n)])),
        Shape::Variables => (call("rule", variables(n)), call("result", ["$y", "$x"].map(Value::atom))),
        Shape::Prefix => (call("rule", [prefix(), number(n)]), named("result", n)),
    };
    Rule { left, right }
}

/// Numbers in six expressions, the innermost first in the path.
fn nested(n: u64) -> Value {
    let innermost = call("cell", [number(n % 10)]);
    [("row", 10), ("page", 100), ("book", 1000), ("shelf", 10_000), ("room", 100_000)]
        .into_iter()
        .fold(innermost, |inner, (name, unit)| call(name, [inner, number(n / unit % 10), number(n / unit / 10)]))
}

/// A number and three arguments in which two variables occur twice each, and one that stands for anything.
fn variables(n: u64) -> Vec<Value> {
    let [x, y, any] = ["$x", "$y", "_"].map(Value::atom);
    vec![number(n), x.clone(), call("pair", [x, y.clone()]), call("seen", [y, any])]
}

/// An expression of four names of 48 bytes.
fn prefix() -> Value {
    let name = |part| {
        let mut name = format!("a-name-of-forty-eight-bytes-that-everybody-shares-{part}");
        name.drain(..name.len() - 48);
        Value::Atom(name)
    };
    Value::SExpr((0..4).map(name).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::text::to_text;

    fn workload(repeated_share: u64, order: Order) -> Workload {
        Workload { kind: Kind::Facts, shape: Shape::Flat, items: 10_000, repeated_share, order, seed: SEED }
    }

    #[test]
    fn the_documents_items_are_as_in_the_document() {
        assert_eq!(to_text(&fact(Shape::Flat, 7)), "(fact 7 value-7)");
        assert_eq!(to_text(&rule(Shape::Flat, 7).expression()), "(= (rule 7) result-7)");
    }

    #[test]
    fn shapes_match_their_names() {
        let nested = to_text(&fact(Shape::Nested, 123_456));
        assert_eq!(nested, "(fact (room (shelf (book (page (row (cell 6) 5 1234) 4 123) 3 12) 2 1) 1 0) value-123456)");
        assert_eq!(to_text(&fact(Shape::Variables, 7)), "(fact 7 $x (pair $x $y) (seen $y $) value-7)");
        assert_eq!(
            to_text(&rule(Shape::Variables, 7).expression()),
            "(= (rule 7 $x (pair $x $y) (seen $y $)) (result $y $x))"
        );
        let [a, b] = [1, 2].map(|n| to_text(&fact(Shape::Prefix, n)));
        let shared = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        assert_eq!(shared, "(fact (".len() + 4 * 48 + 3 + ") ".len());
    }

    #[test]
    fn share_of_repeats_matches_the_parameter() {
        for (share, distinct) in [(0, 10_000..=10_000), (50, 4_800..=5_200), (99, 70..=130)] {
            let numbers = workload(share, Order::Sequential).numbers();
            let different: HashSet<_> = numbers.iter().collect();
            assert!(distinct.contains(&different.len()), "{share}: {}", different.len());
        }
    }

    #[test]
    fn the_order_changes_nothing_but_the_order() {
        let [mut sequential, mut shuffled] =
            [Order::Sequential, Order::Shuffled].map(|order| workload(50, order).numbers());
        assert_ne!(sequential, shuffled);
        sequential.sort_unstable();
        shuffled.sort_unstable();
        assert_eq!(sequential, shuffled);
        assert!(workload(0, Order::Sequential).numbers().is_sorted());
    }

    #[test]
    fn items_are_different_where_their_numbers_are() {
        for (_, shape) in Shape::CHOICES {
            let facts: HashSet<Value> = (0..3000).map(|n| fact(shape, n * 37)).collect();
            let rules: HashSet<Value> = (0..3000).map(|n| rule(shape, n * 37).expression()).collect();
            assert_eq!((facts.len(), rules.len()), (3000, 3000), "{shape:?}");
        }
    }
}
