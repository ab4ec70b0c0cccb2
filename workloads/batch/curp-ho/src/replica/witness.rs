//! Recorded commands that are not executed, by key. They determine conflicts of strong commands and the visibility of a
//! session's own writes to its weak reads.
//!
//! A strong command that is answered before it is final must survive the loss of the leader and must keep its result.
//! It therefore conflicts with strong commands that it does not commute with: a write with every other, a read with
//! writes. A read that would return a non-final weak write names it, and all replicas must name the same one. With
//! several such writes on the key, replicas could name the same one and order them differently, which is a conflict
//! too.

use serde::{Deserialize, Serialize};

use super::hash::NumberMap;
use super::pool::Pool;
use crate::command::{Class, ClientId, CommandId, Op, Seq};

/// The pool. An entry is removed when its command is executed, so that the size is the number of commands in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct Witness {
    conflicts: Conflicts,
    keys: NumberMap<u64, Pending>,
    values: Pool,
    /// Lists of keys that have nothing pending.
    lists: Vec<Vec<Write>>,
}

/// Which strong commands on a key conflict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conflicts {
    /// Those that do not commute: two of which one writes.
    #[default]
    Writes,
    /// Any two, reads too, as in the document's program.
    Any,
}

assay_harness::choices!(Conflicts { "writes" => Writes, "any" => Any });

#[derive(Debug, Clone, Default)]
struct Pending {
    strong: u32,
    strong_writes: u32,
    writes: Vec<Write>,
}

#[derive(Debug, Clone)]
struct Write {
    id: CommandId,
    class: Class,
    value: Vec<u8>,
}

impl Witness {
    /// An empty pool.
    #[must_use]
    pub(super) fn new(conflicts: Conflicts) -> Self {
        Self { conflicts, ..Self::default() }
    }

    /// Records a command.
    pub(super) fn add(&mut self, id: CommandId, class: Class, op: Op<'_>) {
        if class == Class::Weak && op.put.is_none() {
            return;
        }
        let lists = &mut self.lists;
        let empty = || Pending { writes: lists.pop().unwrap_or_default(), ..Pending::default() };
        let pending = self.keys.entry(op.key).or_insert_with(empty);
        pending.strong += u32::from(class == Class::Strong);
        pending.strong_writes += u32::from(class == Class::Strong && op.put.is_some());
        if let Some(value) = op.put {
            pending.writes.push(Write { id, class, value: self.values.copy(value) });
        }
    }

    /// Forgets a command that was recorded.
    pub(super) fn remove(&mut self, id: CommandId, class: Class, key: u64, put: bool) {
        if class == Class::Weak && !put {
            return;
        }
        let Some(pending) = self.keys.get_mut(&key) else { return };
        pending.strong -= u32::from(class == Class::Strong);
        pending.strong_writes -= u32::from(class == Class::Strong && put);
        if let Some(at) = pending.writes.iter().position(|write| write.id == id) {
            self.values.take_back(pending.writes.remove(at).value);
        }
        if pending.strong == 0 && pending.writes.is_empty() {
            self.lists.extend(self.keys.remove(&key).map(|pending| pending.writes));
        }
    }

    /// Whether a strong command, a write if `put`, conflicts with pending commands on `key`.
    #[must_use]
    pub(super) fn conflicts(&self, key: u64, put: bool) -> bool {
        let Some(pending) = self.keys.get(&key) else { return false };
        let others = if put || self.conflicts == Conflicts::Any { pending.strong } else { pending.strong_writes };
        others > 0 || (!put && pending.writes.len() > 1)
    }

    /// The value of a pending write.
    #[must_use]
    pub(super) fn value(&self, key: u64, id: CommandId) -> Option<&[u8]> {
        self.keys.get(&key)?.writes.iter().find(|write| write.id == id).map(|write| &*write.value)
    }

    /// The newest pending write of `key`: its command, class and value.
    #[must_use]
    pub(super) fn newest(&self, key: u64) -> Option<(CommandId, Class, &[u8])> {
        self.keys.get(&key)?.writes.last().map(|write| (write.id, write.class, &*write.value))
    }

    /// The newest pending weak write of `key`.
    #[must_use]
    pub(super) fn newest_weak(&self, key: u64) -> CommandId {
        let weak =
            |pending: &Pending| pending.writes.iter().rev().find(|write| write.class == Class::Weak).map(|w| w.id);
        self.keys.get(&key).and_then(weak).unwrap_or_default()
    }

    /// The newest pending write of `key` by `client` itself, up to and including its command `up_to`.
    #[must_use]
    pub(super) fn own(&self, key: u64, client: ClientId, up_to: Seq) -> Option<&[u8]> {
        let own = |write: &&Write| write.id.client == client && write.id.seq <= up_to;
        self.keys.get(&key)?.writes.iter().rev().find(own).map(|write| &*write.value)
    }

    /// How many keys have something pending.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A1: CommandId = CommandId { client: 1, seq: 1 };
    const B1: CommandId = CommandId { client: 2, seq: 1 };

    const C1: CommandId = CommandId { client: 3, seq: 1 };
    const PUT: Op<'_> = Op { key: 5, put: Some(b"w") };
    const GET: Op<'_> = Op { key: 5, put: None };

    /// A pending command.
    type Command<'a> = (CommandId, Class, Op<'a>);

    #[test]
    fn strong_command_conflicts_with_non_commuting_ones() {
        use Class::{Strong, Weak};
        // Pending commands; whether a read conflicts, whether a write does, and whether a read does in the document's
        // program.
        let cases: [(&str, &[Command<'_>], [bool; 3]); 8] = [
            ("nothing", &[], [false, false, false]),
            ("a weak read", &[(A1, Weak, GET)], [false, false, false]),
            ("a weak write", &[(A1, Weak, PUT)], [false, false, false]),
            ("two weak writes", &[(A1, Weak, PUT), (B1, Weak, PUT)], [true, false, true]),
            ("a strong read", &[(A1, Strong, GET)], [false, true, true]),
            ("a strong write", &[(A1, Strong, PUT)], [true, true, true]),
            ("a strong read and a weak write", &[(A1, Strong, GET), (B1, Weak, PUT)], [false, true, true]),
            ("two strong reads", &[(A1, Strong, GET), (B1, Strong, GET)], [false, true, true]),
        ];
        for (name, pending, expected) in cases {
            let mut pools = [Witness::default(), Witness::new(Conflicts::Any)];
            for pool in &mut pools {
                pending.iter().for_each(|(id, class, op)| pool.add(*id, *class, *op));
            }
            let [ours, documents] = &pools;
            let found = [ours.conflicts(5, false), ours.conflicts(5, true), documents.conflicts(5, false)];
            assert_eq!(found, expected, "{name}");
            assert!(!ours.conflicts(6, true), "{name}: another key");
            for pool in &mut pools {
                pending.iter().for_each(|(id, class, op)| pool.remove(*id, *class, op.key, op.put.is_some()));
                assert!(pool.len() == 0 && !pool.conflicts(5, true), "{name}");
            }
        }
    }

    #[test]
    fn a_pending_write_keeps_its_value_by_name() {
        let mut pool = Witness::default();
        pool.add(A1, Class::Weak, Op { key: 5, put: Some(b"a") });
        pool.add(C1, Class::Strong, Op { key: 5, put: Some(b"c") });
        assert_eq!((pool.value(5, A1), pool.value(5, C1), pool.value(5, B1)), (Some(&b"a"[..]), Some(&b"c"[..]), None));
        assert_eq!(pool.value(6, A1), None);
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
