//! A measured limit with its conditions.

use crate::{Quantity, Unit};

/// A limit of the machine, averaged over the passes of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Instruction set of the probe, if relevant.
    pub instructions: Option<&'static str>,
    /// Number of concurrent threads, if relevant.
    pub threads: Option<usize>,
}

impl Limit {
    /// A limit that `threads` threads reached together with an instruction set.
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
