//! One bit per key and row: which rows go into which answer.

/// The bits of several keys for all rows.
///
/// Bit `row % 64` of word `row / 64` of a key belongs to `row`. Every key's words start one cache line further along than a power of
/// two would have them, or the words of all keys for one row would compete for the same set of the cache. And each key's words begin
/// with a cache line, so that eight of them are one line to ask for.
#[derive(Debug)]
pub struct Selection {
    room: Vec<u64>,
    /// Where the first key's words begin in it, and how far those of one key are from those of the next.
    start: usize,
    stride: usize,
    keys: usize,
    rows: usize,
}

/// Words in a cache line.
const LINE: usize = 8;

impl Selection {
    /// All bits zero.
    #[must_use]
    pub fn new(keys: usize, rows: usize) -> Self {
        let stride = Self::stride(rows);
        let room = vec![0; stride * keys + LINE - 1];
        let start = room.as_ptr().align_offset(LINE * size_of::<u64>()).min(LINE - 1);
        Self { room, start, stride, keys, rows }
    }

    /// Bytes that a selection takes.
    #[must_use]
    pub fn bytes(keys: usize, rows: usize) -> usize {
        (Self::stride(rows) * keys + LINE - 1) * size_of::<u64>()
    }

    const fn stride(rows: usize) -> usize {
        (rows.div_ceil(64).div_ceil(LINE) + 1) * LINE
    }

    /// How many keys there are.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The words of one key.
    #[must_use]
    pub fn key(&self, key: usize) -> &[u64] {
        &self.words().0[key * self.stride..][..self.rows.div_ceil(64)]
    }

    /// All words, and how far the words of one key are from those of the next.
    pub(crate) fn words(&self) -> (&[u64], usize) {
        (&self.room[self.start..][..self.stride * self.keys], self.stride)
    }

    /// The words of every key for writing. Bits beyond the last row must be zero.
    pub fn keys_mut(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let words = self.rows.div_ceil(64);
        self.room[self.start..].chunks_exact_mut(self.stride).take(self.keys).map(move |key| &mut key[..words])
    }

    /// The bit of `key` for `row`.
    #[must_use]
    #[inline]
    pub fn bit(&self, key: usize, row: usize) -> bool {
        self.words().0[key * self.stride + row / 64] >> (row % 64) & 1 == 1
    }

    /// The share of bits that are one.
    #[must_use]
    pub fn density(&self) -> f64 {
        let ones: u64 = (0..self.keys).flat_map(|key| self.key(key)).map(|word| u64::from(word.count_ones())).sum();
        ones as f64 / (self.keys * self.rows) as f64
    }
}

/// Clears the bits beyond the last of `rows` in a key's last word.
pub(crate) fn clear_beyond(words: &mut [u64], rows: usize) {
    if let (Some(last), used @ 1..) = (words.last_mut(), rows % 64) {
        *last &= (1 << used) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_where_they_were_put() {
        let mut selection = Selection::new(3, 130);
        for (key, words) in selection.keys_mut().enumerate() {
            words[key] = 1 << key;
            clear_beyond(words, 130);
        }
        let ones: Vec<_> =
            (0..3).flat_map(|k| (0..130).map(move |r| (k, r))).filter(|&(k, r)| selection.bit(k, r)).collect();
        assert!((0..3).all(|key| selection.key(key).as_ptr().addr().is_multiple_of(64)));
        // Key 2 would have had row 130, which is not there.
        assert_eq!(ones, [(0, 0), (1, 65)]);
    }
}
