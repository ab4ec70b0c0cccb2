//! A limit, and how it was measured.

use crate::{Quantity, Unit};

/// What the machine can do, on average over the passes of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: Unit,
    /// The instruction set that the probe used, where that matters.
    pub instructions: Option<&'static str>,
    /// How many threads worked at the same time, where that matters.
    pub threads: Option<usize>,
}

impl Limit {
    /// A limit that `threads` threads reached together with the instructions of a set.
    #[must_use]
    pub fn new(quantity: Quantity, instructions: &'static str, threads: usize) -> Self {
        Self { instructions: Some(instructions), threads: Some(threads), ..quantity.into() }
    }
}

impl From<Quantity> for Limit {
    fn from(quantity: Quantity) -> Self {
        Self { value: quantity.value, unit: quantity.unit, instructions: None, threads: None }
    }
}
