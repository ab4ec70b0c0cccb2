//! Retention of executed commands: none, or a descriptor of each, as in the document's program.

use std::collections::HashMap;
use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::log::Entry;
use crate::command::{CommandId, Slot};

/// Treatment of descriptors of executed commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heap {
    /// They are freed.
    #[default]
    Bounded,
    /// They stay, in a map by the command's name.
    Growing,
    /// They are retained, and all are visited whenever their number has doubled, with the program stopped. This is the
    /// work of a mark phase at a collector's default setting.
    Collected,
}

assay_harness::choices!(Heap { "bounded" => Bounded, "growing" => Growing, "collected" => Collected });

/// No collection below this number of descriptors.
const FEW: usize = 1024;

/// The descriptors.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    heap: Heap,
    kept: HashMap<CommandId, Box<(Slot, Entry)>>,
    visited_at: usize,
    /// How often all of them were visited.
    pub(super) collections: u64,
}

impl Descriptors {
    pub(super) fn new(heap: Heap) -> Self {
        Self { heap, visited_at: FEW / 2, ..Self::default() }
    }

    /// A command is done.
    pub(super) fn done(&mut self, slot: Slot, entry: &Entry) {
        if self.heap == Heap::Bounded {
            return;
        }
        self.kept.insert(entry.id, Box::new((slot, entry.clone())));
        if self.heap == Heap::Collected && self.kept.len() >= 2 * self.visited_at {
            self.visited_at = self.kept.len();
            self.collections += 1;
            for descriptor in self.kept.values() {
                // The descriptor, and its value.
                black_box((descriptor.0, descriptor.1.put.as_ref().map(|value| value[0])));
            }
        }
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Class;

    #[test]
    fn descriptors_are_retained_and_visited_after_doubling() {
        for (heap, kept, collections) in [(Heap::Bounded, 0, 0), (Heap::Growing, 5000, 0), (Heap::Collected, 5000, 3)] {
            let mut descriptors = Descriptors::new(heap);
            for seq in 1..=5000 {
                let id = CommandId { client: 1, seq };
                let entry = Entry { id, class: Class::Weak, key: 1, put: Some(vec![1; 16]), sync: false };
                descriptors.done(u64::from(seq), &entry);
            }
            // At 1024, 2048 and 4096.
            assert_eq!((descriptors.len(), descriptors.collections), (kept, collections), "{heap:?}");
        }
    }
}
