//! Variant A of the document: a cache of the bytes of the values seen last.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::value::Value;

/// Bytes by value, behind a lock, the least recently used thrown out first.
#[derive(Debug)]
pub struct ByteCache {
    entries: Mutex<LruCache<Value, Vec<u8>>>,
    hits: AtomicU64,
}

impl ByteCache {
    /// An empty cache.
    #[must_use]
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self { entries: Mutex::new(LruCache::new(capacity)), hits: 0.into() }
    }

    /// A copy of the bytes of a value.
    #[must_use]
    pub fn get(&self, value: &Value) -> Option<Vec<u8>> {
        let found = self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(value).cloned();
        if found.is_some() {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Keeps a copy of value and bytes.
    pub fn put(&self, value: &Value, bytes: &[u8]) {
        let (value, bytes) = (value.clone(), bytes.to_vec());
        let replaced = self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(value, bytes);
        drop(replaced);
    }

    /// How many look-ups found something.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_hits_are_counted() {
        let cache = ByteCache::new(NonZeroUsize::new(2).unwrap());
        let [a, b, c] = [1, 2, 3].map(Value::Long);
        cache.put(&a, b"a");
        cache.put(&b, b"b");
        assert_eq!(cache.get(&a).as_deref(), Some(&b"a"[..]));
        cache.put(&c, b"c");
        assert_eq!(cache.get(&b), None);
        assert!(cache.get(&a).is_some() && cache.get(&c).is_some());
        assert_eq!(cache.hits(), 3);
    }
}
