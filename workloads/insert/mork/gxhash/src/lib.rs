//! The subset of `gxhash` that the crate `pathmap` uses, for any CPU.
//!
//! `gxhash` uses AES instructions and does not compile unless they are enabled for the whole program. The images of
//! this project must run on any x86-64, so that the workspace replaces it by this crate (`[patch.crates-io]` in
//! `Cargo.toml`). `pathmap` hashes when it merkleizes, serialises or folds a trie with a memo, but not on insert, join
//! and iteration, which are the only operations used here. The replacement therefore changes no measured figure.
//!
//! Merkleization treats two subtries with equal 128-bit hashes as equal. The hash is therefore a good one, XXH3.

#![forbid(unsafe_code)]

use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::Xxh3;

/// A hash map with [`GxHasher`].
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<GxHasher>>;

/// The constructor that the standard library has only for its own hasher.
pub trait HashMapExt {
    /// An empty map.
    fn new() -> Self;
}

impl<K, V> HashMapExt for HashMap<K, V> {
    fn new() -> Self {
        Self::default()
    }
}

/// A streaming hash of 128 bits.
#[derive(Clone, Default)]
pub struct GxHasher(Xxh3);

impl GxHasher {
    /// A hash of nothing yet; different seeds give unrelated hashes.
    #[must_use]
    pub fn with_seed(seed: i64) -> Self {
        Self(Xxh3::with_seed(seed.cast_unsigned()))
    }

    /// All 128 bits of the hash so far.
    #[must_use]
    pub fn finish_u128(&self) -> u128 {
        self.0.digest128()
    }
}

impl Hasher for GxHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use super::{GxHasher, HashMap, HashMapExt};

    #[test]
    fn a_hash_depends_on_seed_and_content_and_not_on_how_it_was_cut() {
        let hash = |seed, parts: &[&[u8]]| {
            let mut hasher = GxHasher::with_seed(seed);
            parts.iter().for_each(|part| hasher.write(part));
            hasher.finish_u128()
        };
        assert_eq!(hash(0, &[b"abc", b"def"]), hash(0, &[b"abcdef"]));
        assert_ne!(hash(0, &[b"abcdef"]), hash(1, &[b"abcdef"]));
        assert_ne!(hash(0, &[b"abcdef"]), hash(0, &[b"abcdeg"]));
        // `pathmap` relies on it.
        assert_ne!(hash(0, &[]), 0);
    }

    #[test]
    fn a_map_finds_what_was_put_in() {
        let mut map = HashMap::new();
        map.insert(7_u128, "seven");
        assert_eq!(map.get(&7), Some(&"seven"));
    }
}
