//! Limits of this kernel: every insertion has to write the fact's bytes once.

use std::hint::black_box;

use assay_harness::{Quantity, Stopwatch, Unit};

use crate::encoding::Unencodable;
use crate::environment::Items;

/// Passes that count; one before them fetches the buffer's memory.
const PASSES: usize = 8;
/// Items of a pass, at most: enough to be measured well.
const ITEMS: usize = 100_000;

/// Items per second whose bytes can be copied sequentially into one buffer. It uses no code of this kernel, so that the
/// limit is the memory's.
///
/// # Errors
///
/// If an item has no byte form.
pub fn copy_rate(items: &Items) -> Result<Quantity, Unencodable> {
    let paths = paths(items)?;
    let mut buffer = Vec::with_capacity(paths.iter().map(Vec::len).sum());
    let seconds: f64 = (0..=PASSES)
        .map(|_| {
            buffer.clear();
            let watch = Stopwatch::start();
            for path in &paths {
                buffer.extend_from_slice(path);
            }
            black_box(&buffer);
            watch.seconds()
        })
        .skip(1)
        .sum();
    Ok(Quantity::new((PASSES * paths.len()) as f64 / seconds, Unit::new("items/s")))
}

/// The bytes of the first items, each on its own.
fn paths(items: &Items) -> Result<Vec<Vec<u8>>, Unencodable> {
    let path = |item| {
        let mut path = Vec::new();
        items.encode(item, &mut path).map(|()| path)
    };
    (0..items.len().min(ITEMS)).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use crate::workload::{Shape, fact, rule};

    #[test]
    fn facts_and_rules_are_copied_faster_than_they_are_written() {
        for items in [
            Items::Facts((0..1000).map(|n| fact(Shape::Flat, n)).collect()),
            Items::Rules((0..1000).map(|n| rule(Shape::Flat, n)).collect()),
        ] {
            let watch = Stopwatch::start();
            let written = paths(&items).unwrap();
            let encoded = written.len() as f64 / watch.seconds();
            let rate = copy_rate(&items).unwrap();
            assert!(rate.value > encoded && rate.value.is_finite(), "{rate:?}, and {encoded} with the encoding");
        }
        assert!(copy_rate(&Items::Facts(vec![Value::atom("")])).is_err());
    }
}
