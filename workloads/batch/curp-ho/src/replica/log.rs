//! The log: commands in slots, who has accepted each, and which slot is executed next.

use std::collections::VecDeque;

use crate::command::{Class, ClientId, CommandId, MAJORITY, Op, Seq, Slot};

/// A command in its slot. Values of writes are kept here until they are executed.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The command's name.
    pub id: CommandId,
    /// Strong or weak.
    pub class: Class,
    /// The key.
    pub key: u64,
    /// The value of a PUT.
    pub put: Option<Vec<u8>>,
    /// Whether the client waits for the final answer (the leader's own business).
    pub sync: bool,
}

impl Entry {
    /// What to do.
    #[must_use]
    pub(super) fn op(&self) -> Op<'_> {
        Op { key: self.key, put: self.put.as_deref() }
    }
}

/// The unexecuted part of the log. Executed slots are removed, so that it does not grow with the length of a run.
#[derive(Debug, Clone)]
pub(super) struct Log {
    /// The slot of the first entry.
    first: Slot,
    entries: VecDeque<(Entry, u8)>,
}

impl Default for Log {
    fn default() -> Self {
        Self { first: 1, entries: VecDeque::new() }
    }
}

impl Log {
    /// An empty log after the slot `executed`.
    #[must_use]
    pub(super) fn after(executed: Slot) -> Self {
        Self { first: executed + 1, entries: VecDeque::new() }
    }

    /// The entries that are not executed, with their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        (self.first..).zip(self.entries.iter().map(|(entry, _)| entry))
    }

    /// A new ballot begins: only the replicas of the set `by` have accepted the entries in it.
    pub(super) fn reaccept(&mut self, by: u8) {
        self.entries.iter_mut().for_each(|(_, accepted_by)| *accepted_by = by);
    }

    /// The slot that the next command gets.
    #[must_use]
    pub(super) fn next(&self) -> Slot {
        self.first + self.entries.len() as Slot
    }

    /// The newest executed slot.
    #[must_use]
    pub(super) fn executed(&self) -> Slot {
        self.first - 1
    }

    /// Puts a command into the next slot; the replicas of the set `accepted_by` have it.
    pub(super) fn append(&mut self, entry: Entry, accepted_by: u8) -> Slot {
        self.entries.push_back((entry, accepted_by));
        self.next() - 1
    }

    /// A replica has accepted a slot. Returns `false` if the slot was never filled; executed slots need no further
    /// acknowledgements.
    pub(super) fn accepted(&mut self, slot: Slot, replica: u8) -> bool {
        if slot >= self.next() || slot == 0 {
            return false;
        }
        if let Some((_, accepted_by)) = slot.checked_sub(self.first).and_then(|at| self.entries.get_mut(at as usize)) {
            *accepted_by |= 1 << replica;
        }
        true
    }

    /// The entry of a command that is not executed yet.
    pub(super) fn find(&mut self, id: CommandId) -> Option<&mut Entry> {
        self.entries.iter_mut().map(|(entry, _)| entry).find(|entry| entry.id == id)
    }

    /// The slot of a command that is not executed yet. The newest are looked at first.
    #[must_use]
    pub(super) fn slot_of(&self, id: CommandId) -> Option<Slot> {
        self.entries.iter().rposition(|(entry, _)| entry.id == id).map(|at| self.first + at as Slot)
    }

    /// The newest command of a session that is not executed yet.
    #[must_use]
    pub(super) fn newest_of(&self, client: ClientId) -> Option<Seq> {
        self.entries.iter().rev().find(|(entry, _)| entry.id.client == client).map(|(entry, _)| entry.id.seq)
    }

    /// Takes out the next entry to execute: the oldest, once a majority has accepted it.
    pub(super) fn take_executable(&mut self) -> Option<(Slot, Entry)> {
        let (_, accepted_by) = self.entries.front()?;
        if (accepted_by.count_ones() as usize) < MAJORITY {
            return None;
        }
        let (entry, _) = self.entries.pop_front()?;
        self.first += 1;
        Some((self.first - 1, entry))
    }

    /// How many entries are not executed yet.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u32) -> Entry {
        Entry { id: CommandId { client: 1, seq }, class: Class::Strong, key: 0, put: None, sync: false }
    }

    #[test]
    fn slots_are_executed_in_order_and_only_with_a_majority() {
        let mut log = Log::default();
        assert_eq!([log.append(entry(1), 1), log.append(entry(2), 1)], [1, 2]);
        assert!(log.accepted(2, 1));
        assert!(log.take_executable().is_none(), "slot 1 is not accepted yet");
        assert!(log.accepted(1, 0) && log.take_executable().is_none(), "the leader again is no majority");
        assert!(log.accepted(1, 2));
        let slots: Vec<_> =
            std::iter::from_fn(|| log.take_executable()).map(|(slot, entry)| (slot, entry.id.seq)).collect();
        assert_eq!(slots, [(1, 1), (2, 2)]);
        assert_eq!((log.executed(), log.next(), log.len()), (2, 3, 0));
        assert!(log.accepted(1, 1), "a late acknowledgement is ignored");
        assert!(!log.accepted(3, 1) && !log.accepted(0, 1), "a slot that was never filled");
    }

    #[test]
    fn majority_of_an_older_ballot_does_not_count() {
        let mut log = Log::after(7);
        assert_eq!((log.executed(), log.append(entry(1), 0b11)), (7, 8));
        log.reaccept(0b10);
        assert!(log.take_executable().is_none());
        assert_eq!(log.iter().map(|(slot, entry)| (slot, entry.id.seq)).collect::<Vec<_>>(), [(8, 1)]);
        assert!(log.accepted(8, 0) && log.take_executable().is_some());
    }
}
