//! The limits of this kernel: whatever inserts a fact has to write its bytes once.

use std::hint::black_box;

use assay_harness::{Quantity, Stopwatch, Unit};

use crate::encoding::{Encoder, Unencodable};
use crate::environment::Items;

const PASSES: usize = 5;
/// Items of a pass, at most: enough to be measured well.
const ITEMS: usize = 100_000;

/// Items per second that can be written as bytes into one buffer, one after the other, and no more than that: the
/// fastest of some passes.
///
/// # Errors
///
/// When an item has no byte form.
pub fn encode_rate(items: &Items) -> Result<Quantity, Unencodable> {
    let mut buffer = Vec::new();
    let mut pass = || -> Result<f64, Unencodable> {
        buffer.clear();
        let watch = Stopwatch::start();
        let encoded = match items {
            Items::Facts(facts) => {
                let facts = &facts[..facts.len().min(ITEMS)];
                facts.iter().try_for_each(|fact| Encoder.encode(fact, &mut buffer))?;
                facts.len()
            }
            Items::Rules(rules) => {
                let rules = &rules[..rules.len().min(ITEMS)];
                rules.iter().try_for_each(|rule| Encoder.encode_rule(&rule.left, &rule.right, &mut buffer))?;
                rules.len()
            }
        };
        black_box(&buffer);
        Ok(encoded as f64 / watch.seconds())
    };
    let mut best = 0.0_f64;
    for _ in 0..PASSES {
        best = best.max(pass()?);
    }
    Ok(Quantity::new(best, Unit::new("items/s")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use crate::workload::{Shape, fact, rule};

    #[test]
    fn facts_and_rules_are_written_at_some_speed() {
        for items in [
            Items::Facts((0..100).map(|n| fact(Shape::Flat, n)).collect()),
            Items::Rules((0..100).map(|n| rule(Shape::Flat, n)).collect()),
        ] {
            let rate = encode_rate(&items).unwrap();
            assert!(rate.value > 1e4 && rate.value.is_finite(), "{rate:?}");
        }
        assert!(encode_rate(&Items::Facts(vec![Value::atom("")])).is_err());
    }
}
