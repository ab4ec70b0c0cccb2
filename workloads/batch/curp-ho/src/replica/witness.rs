//! Commands that are recorded and not yet executed, by key: what makes a strong command conflict, and what a session's own weak reads see.

use super::hash::NumberMap;
use crate::command::{Class, ClientId, CommandId, Op, Seq};

/// The pool. An entry leaves it when its command is executed, so it is as large as what is in flight.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    keys: NumberMap<u64, Pending>,
}

#[derive(Debug, Clone, Default)]
struct Pending {
    strong: u32,
    writes: Vec<Write>,
}

#[derive(Debug, Clone)]
struct Write {
    id: CommandId,
    class: Class,
    value: Vec<u8>,
}

impl Witness {
    /// Records a command.
    pub fn add(&mut self, id: CommandId, class: Class, op: Op<'_>) {
        if class == Class::Weak && op.put.is_none() {
            return;
        }
        let pending = self.keys.entry(op.key).or_default();
        pending.strong += u32::from(class == Class::Strong);
        if let Some(value) = op.put {
            pending.writes.push(Write { id, class, value: value.to_vec() });
        }
    }

    /// Forgets a command that was recorded.
    pub fn remove(&mut self, id: CommandId, class: Class, key: u64, put: bool) {
        if class == Class::Weak && !put {
            return;
        }
        let Some(pending) = self.keys.get_mut(&key) else { return };
        pending.strong -= u32::from(class == Class::Strong);
        if put {
            pending.writes.retain(|write| write.id != id);
        }
        if pending.strong == 0 && pending.writes.is_empty() {
            self.keys.remove(&key);
        }
    }

    /// Whether a strong command on `key` is pending.
    #[must_use]
    pub fn conflicts(&self, key: u64) -> bool {
        self.keys.get(&key).is_some_and(|pending| pending.strong > 0)
    }

    /// The newest pending write of `key`: who wrote it, whether strongly, and what.
    #[must_use]
    pub fn newest(&self, key: u64) -> Option<(CommandId, Class, &[u8])> {
        self.keys.get(&key)?.writes.last().map(|write| (write.id, write.class, &*write.value))
    }

    /// The newest pending weak write of `key`.
    #[must_use]
    pub fn newest_weak(&self, key: u64) -> CommandId {
        let weak =
            |pending: &Pending| pending.writes.iter().rev().find(|write| write.class == Class::Weak).map(|w| w.id);
        self.keys.get(&key).and_then(weak).unwrap_or_default()
    }

    /// The newest pending write of `key` by `client` itself, up to and including its command `up_to`.
    #[must_use]
    pub fn own(&self, key: u64, client: ClientId, up_to: Seq) -> Option<&[u8]> {
        let own = |write: &&Write| write.id.client == client && write.id.seq <= up_to;
        self.keys.get(&key)?.writes.iter().rev().find(own).map(|write| &*write.value)
    }

    /// How many keys have something pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A1: CommandId = CommandId { client: 1, seq: 1 };
    const B1: CommandId = CommandId { client: 2, seq: 1 };

    #[test]
    fn strong_commands_conflict_and_weak_ones_do_not() {
        let mut pool = Witness::default();
        pool.add(A1, Class::Weak, Op { key: 5, put: Some(b"w") });
        assert!(!pool.conflicts(5));
        pool.add(B1, Class::Strong, Op { key: 5, put: None });
        assert!(pool.conflicts(5) && !pool.conflicts(6));
        pool.remove(B1, Class::Strong, 5, false);
        assert!(!pool.conflicts(5));
        pool.remove(A1, Class::Weak, 5, true);
        assert!(pool.is_empty());
    }

    #[test]
    fn a_session_sees_its_own_pending_writes_and_no_later_ones() {
        let mut pool = Witness::default();
        pool.add(A1, Class::Weak, Op { key: 5, put: Some(b"a") });
        pool.add(B1, Class::Weak, Op { key: 5, put: Some(b"b") });
        assert_eq!((pool.own(5, 1, 1), pool.own(5, 1, 0), pool.own(5, 2, 9)), (Some(&b"a"[..]), None, Some(&b"b"[..])));
        assert_eq!(pool.newest(5), Some((B1, Class::Weak, &b"b"[..])));
        assert_eq!((pool.newest_weak(5), pool.newest_weak(6)), (B1, CommandId::NONE));
    }
}
