//! Paths by half bytes.

/// A half byte of a path, the high one of each byte first.
#[inline]
pub(super) fn half(path: &[u8], at: usize) -> u8 {
    let byte = path[at / 2];
    if at.is_multiple_of(2) { byte >> 4 } else { byte & 0x0f }
}

/// The first half byte at which two paths differ; `None` if they are equal.
///
/// # Panics
///
/// When one is the beginning of the other.
#[inline]
pub(super) fn differ(a: &[u8], b: &[u8]) -> Option<usize> {
    let at = common(a, b);
    if at == a.len() && at == b.len() {
        return None;
    }
    assert!(at < a.len() && at < b.len(), "paths are prefix-free");
    Some(2 * at + usize::from((a[at] ^ b[at]) < 0x10))
}

/// How many bytes two paths begin with in common; eight at a time while both have them.
#[inline]
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    let shorter = a.len().min(b.len());
    let mut at = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let [x, y] = [x, y].map(|word| u64::from_le_bytes(word.try_into().expect("a chunk has eight bytes")));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < shorter && a[at] == b[at] {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told_by_half_bytes() {
        assert_eq!(differ(b"\x12\x34", b"\x12\x34"), None);
        assert_eq!(differ(b"\x12\x34", b"\x12\x44"), Some(2));
        assert_eq!(differ(b"\x12\x34", b"\x12\x35"), Some(3));
        for at in 0..20 {
            let (a, mut b) = ([7; 20], [7; 20]);
            b[at] = 6;
            assert_eq!(common(&a, &b), at);
        }
    }
}
