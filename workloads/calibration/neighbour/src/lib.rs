//! Attacks of a hostile workload on the runner, and ways to be killed, for tests of the runner.

pub mod attacks;
pub mod killed;
