//! What a hostile workload does to whatever measures it, for testing that it gets nowhere.

pub mod attacks;
