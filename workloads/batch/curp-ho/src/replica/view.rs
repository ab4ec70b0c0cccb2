//! A replica's view of the others and of the leader.

use super::snapshot::Snapshot;
use crate::command::{Ballot, Era, REPLICAS, Slot};

/// How often a leader says that it is alive, and a replica repeats a question: nanoseconds.
pub(super) const BEAT: u64 = 20_000_000;
/// How long a leader may be silent, unless a replica is told otherwise: nanoseconds.
pub(super) const PATIENCE: u64 = 1_000_000_000;

/// A replica's view of the others and of the leader.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The trial that it serves.
    pub era: Era,
    pub phase: Phase,
    /// The newest ballot that this replica takes part in.
    pub ballot: Ballot,
    /// The ballot whose leader's log it has.
    pub adopted: Ballot,
    /// The last slot of the log with which that leader began.
    pub base: Slot,
    /// When it last heard from its leader, or began to look for one.
    pub heard: u64,
    /// When it last said something unasked.
    pub said: u64,
    /// Whether it has asked for the leader's state.
    pub asked: bool,
    pub patience: u64,
    /// Received parts of a leader's state.
    pub incoming: (Ballot, Vec<u8>),
    /// A whole one that cannot be taken over yet.
    pub held: Option<(Ballot, Snapshot)>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Phase {
    /// Just started: for each other replica its ballot, and whether it has just been started too.
    Starting([Option<(Ballot, bool)>; REPLICAS]),
    /// It has the log of its ballot's leader, or leads.
    #[default]
    Settled,
    /// It waits for its ballot's leader, or for votes: who gave theirs.
    Electing(u8),
}
