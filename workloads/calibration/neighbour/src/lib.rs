//! Attacks of a hostile workload on the runner, for tests of its isolation.

pub mod attacks;
