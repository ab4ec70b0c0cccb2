//! Values that are gone leave their memory to those that come: a replica in its stride allocates nothing for a command, however long the
//! run.

/// The memory of values that are gone. There is as much as there were values in flight at most.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool(Vec<Vec<u8>>);

impl Pool {
    /// A copy of `value`.
    pub(super) fn copy(&mut self, value: &[u8]) -> Vec<u8> {
        if value.is_empty() {
            return Vec::new();
        }
        let mut copy = self.0.pop().unwrap_or_default();
        copy.extend_from_slice(value);
        copy
    }

    /// A value is gone.
    pub(super) fn take_back(&mut self, mut value: Vec<u8>) {
        if value.capacity() > 0 {
            value.clear();
            self.0.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_value_and_nothing_of_the_one_that_was_there_before() {
        let mut pool = Pool::default();
        let long = pool.copy(b"a long value");
        let memory = long.as_ptr();
        pool.take_back(long);
        pool.take_back(Vec::new());
        assert_eq!(pool.copy(b""), b"");
        let short = pool.copy(b"short");
        assert_eq!((&*short, short.as_ptr()), (&b"short"[..], memory));
        assert_eq!(pool.copy(b"another"), b"another");
    }
}
