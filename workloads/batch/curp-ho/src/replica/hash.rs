//! A hash for keys that are numbers already: the finaliser of `SplitMix64`, and nothing else.

use std::hash::{BuildHasherDefault, Hasher};

use crate::command::mix;

/// Hashes one number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

/// A map from numbers.
pub(super) type NumberMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<NumberHasher>>;
