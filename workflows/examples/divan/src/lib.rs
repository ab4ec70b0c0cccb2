//! Two ways to find a number among sorted ones.

/// Looks at every number.
pub fn linear(sorted: &[u64], wanted: u64) -> bool {
    sorted.iter().any(|&number| number == wanted)
}

/// Halves the remaining range.
pub fn binary(sorted: &[u64], wanted: u64) -> bool {
    sorted.binary_search(&wanted).is_ok()
}
