//! Looks for a number in a sorted list, in two ways.

/// Looks at every number.
pub fn linear(sorted: &[u64], wanted: u64) -> bool {
    sorted.contains(&wanted)
}

/// Halves the remaining range.
pub fn binary(sorted: &[u64], wanted: u64) -> bool {
    sorted.binary_search(&wanted).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_ways_find_the_same() {
        let sorted = [2, 3, 5, 7, 11];
        for wanted in 0..13 {
            assert_eq!(
                super::linear(&sorted, wanted),
                super::binary(&sorted, wanted),
                "{wanted}"
            );
        }
    }
}
