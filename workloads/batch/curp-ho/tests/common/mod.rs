//! Shared parts of the test suites over replicas and sessions: outboxes, and the slow reference implementation for all
//! answers.

use std::collections::HashMap;

use batch_curp_ho::client::quorum::Path;
use batch_curp_ho::client::{self, Completed, Request};
use batch_curp_ho::command::{Class, ClientId, CommandId, writer_of};
use batch_curp_ho::replica::batcher::Flush;
use batch_curp_ho::replica::{self, Executed};
use batch_curp_ho::wire::{Message, split};
use proptest::prelude::*;

#[derive(Default)]
pub(crate) struct ToReplicas(pub(crate) Vec<(u8, Vec<u8>)>);

impl client::Outbox for ToReplicas {
    fn send(&mut self, replica: u8, message: &Message<'_>) {
        self.0.push((replica, bytes(message)));
    }
}

/// Messages of a replica to clients and to other replicas.
#[derive(Default)]
pub(crate) struct FromReplica {
    pub(crate) clients: Vec<(ClientId, Vec<u8>)>,
    pub(crate) peers: Vec<(u8, Vec<u8>)>,
}

impl replica::Outbox for FromReplica {
    fn send(&mut self, client: ClientId, message: &Message<'_>) {
        self.clients.push((client, bytes(message)));
    }

    fn send_peer(&mut self, replica: u8, message: &Message<'_>) {
        self.peers.push((replica, bytes(message)));
    }
}

pub(crate) fn bytes(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.append(&mut bytes);
    bytes
}

pub(crate) fn body(bytes: &[u8]) -> &[u8] {
    split(bytes).unwrap().unwrap().0
}

/// The frames in `bytes`, one by one.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((_, rest)) = split(bytes).unwrap() {
        frames.push(bytes[..bytes.len() - rest.len()].to_vec());
        bytes = rest;
    }
    frames
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    (any::<bool>(), any::<bool>(), 0..3_u64).prop_map(|(strong, put, key)| {
        let class = if strong { Class::Strong } else { Class::Weak };
        Request { class, put, key }
    })
}

pub(crate) fn rules() -> [Flush; 3] {
    [Flush::Immediate, Flush::Natural, Flush::timed(150)]
}

/// A client's answer.
pub(crate) struct Answer {
    pub(crate) client: ClientId,
    pub(crate) completed: Completed,
    /// Commands of the whole system that were completed before this one was sent.
    pub(crate) sent_after: usize,
}

impl Answer {
    pub(crate) fn id(&self) -> CommandId {
        CommandId { client: self.client, seq: self.completed.seq }
    }
}

/// Reference: the value that a command after `up_to` slots reads, by a backward scan of the log.
pub(crate) fn newest(log: &[Executed], up_to: usize, key: u64) -> (usize, CommandId) {
    let write = log[..up_to].iter().rev().find(|(_, _, k, put)| *k == key && put.is_some());
    write.map_or((0, CommandId::NONE), |(slot, _, _, value)| {
        (*slot as usize, writer_of(value.as_ref().unwrap()).unwrap())
    })
}

/// Checks that strong commands respect real-time order and read the preceding write in the log under any leader, and
/// that weak reads are no older than their session's observations and writes.
pub(crate) fn check_answers(log: &[Executed], answers: &[Answer]) {
    let slots: HashMap<CommandId, usize> = log.iter().map(|(slot, id, ..)| (*id, *slot as usize)).collect();
    for answer in answers {
        let Completed { request: Request { class, put, key }, read, path, .. } = answer.completed;
        let id = answer.id();
        let slot = *slots.get(&id).unwrap_or_else(|| panic!("{id:?} has an answer and was lost"));
        if class == Class::Strong {
            assert!(path != Path::Bound);
            // Commands completed before this one was sent have earlier slots.
            for earlier in &answers[..answer.sent_after] {
                if earlier.completed.request.class == Class::Strong {
                    assert!(slots[&earlier.id()] < slot, "{:?} was done before {id:?} was sent", earlier.id());
                }
            }
            let expected = if put { CommandId::NONE } else { newest(log, slot - 1, key).1 };
            assert_eq!(read, expected, "the answer to {id:?}, slot {slot}, by {path:?}");
        } else if !put {
            assert_eq!(path, Path::Bound);
            check_causality(log, &slots, answers, answer);
        }
    }
}

/// Checks that reads are no older than the session's earlier observations and writes.
fn check_causality(log: &[Executed], slots: &HashMap<CommandId, usize>, answers: &[Answer], answer: &Answer) {
    let Answer { client, completed, sent_after } = answer;
    let version = slots.get(&completed.read).copied().unwrap_or(0);
    let mine = answers[..*sent_after].iter().filter(|a| a.client == *client).map(|a| &a.completed);
    // Causes of another session's write have earlier slots, including its own writes; the converse does not hold.
    let foreign = mine.map(|earlier| earlier.read).filter(|writer| writer.client != *client);
    let seen = foreign.filter_map(|writer| slots.get(&writer)).copied().max().unwrap_or(0);
    let (known, _) = newest(log, seen, completed.request.key);
    let own = log.iter().filter(|(_, id, key, put)| {
        id.client == *client && id.seq < completed.seq && *key == completed.request.key && put.is_some()
    });
    let own = own.map(|(slot, ..)| *slot as usize).max().unwrap_or(0);
    assert!(version >= own, "client {client} does not read its own write");
    assert!(version >= known, "client {client} reads a value older than its last observation");
}
