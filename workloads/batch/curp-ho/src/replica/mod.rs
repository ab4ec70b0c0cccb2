//! One replica without its connections: a state machine over messages.
//!
//! The leader assigns a slot to every command and sends it to the followers; a follower acknowledges it to all
//! replicas. A slot accepted by a majority is final, and final slots are executed in order. All of this happens in the
//! background. A strong command is answered before it is final, by the leader with a result and by the followers with
//! "recorded, no conflict". A weak command is answered by its session's bound replica alone.
//!
//! `election.rs` handles the loss of the leader.

pub mod batcher;
mod election;
mod hash;
pub mod heap;
mod log;
mod pool;
pub mod session;
mod snapshot;
mod store;
pub mod tally;
mod view;
pub mod witness;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use serde::{Deserialize, Serialize};

use self::batcher::{Batcher, Flush};
use self::hash::NumberMap;
use self::heap::{Descriptors, Heap};
use self::log::{Entry, Log};
use self::pool::Pool;
use self::session::{Admission, Recorded, Session};
use self::store::Store;
use self::tally::Tally;
use self::view::{PATIENCE, View};
use self::witness::{Conflicts, Witness};
use crate::command::{Ballot, Class, ClientId, CommandId, Era, Found, Seq, Slot, leader_of, mix};
use crate::wire::{Accept, Ack, Batch, Message, Proposal, Reply, Verdict};

/// Takes messages. One for a client or a replica that is gone is dropped.
pub trait Outbox {
    /// Sends `message` to `client`.
    fn send(&mut self, client: ClientId, message: &Message<'_>);
    /// Sends `message` to `replica`, another one than the sender.
    fn send_peer(&mut self, replica: u8, message: &Message<'_>);
}

/// A message that must not come: the sender broke the protocol, and its connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unexpected(pub String);

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A replica's status.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Which one it is.
    pub replica: u8,
    /// The trial that it serves.
    pub era: Era,
    /// The ballot of the leader that it has or waits for.
    pub ballot: Ballot,
    /// Whether it has a leader, or is one.
    pub settled: bool,
    /// The newest executed slot.
    pub executed: Slot,
    /// BLAKE3 over keys and values.
    pub state: String,
    /// A running hash over the names of the executed commands, in their order.
    pub history: u64,
    /// Keys that were ever written.
    pub keys: u64,
    /// Slots that are not executed, keys with something pending, reads that wait: zero after a run.
    pub residue: u64,
    /// Messages per batch.
    pub batch_sizes: Tally,
    /// Nanoseconds from a batch's first message to its sending.
    pub batch_delays: Tally,
    /// Weak reads that had to wait until the replica had caught up with their session.
    pub weak_waits: u64,
    /// Descriptors of commands that are done, and how often all of them were visited.
    pub descriptors: (u64, u64),
    /// Number of answers by routines, and of those dropped for lack of a receiver; set by the process that runs the
    /// replica.
    pub answers: (u64, u64),
    /// Usage of the process; set likewise.
    pub process: Usage,
}

/// Usage of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Calls of `write`.
    pub writes: u64,
    /// TCP segments in which the bytes were sent: fewer than calls where messages join on their way.
    pub segments: u64,
    /// Calls of `read`.
    pub reads: u64,
    /// Calls of `epoll_wait`.
    pub waits: u64,
    /// Frames sent.
    pub frames_sent: u64,
    /// How often a thread of it slept until it was woken.
    pub sleeps: u64,
    /// Seconds of CPU time of the program itself.
    pub user_seconds: f64,
    /// Seconds of CPU time of the system on its behalf.
    pub system_seconds: f64,
    /// Bytes of memory at most.
    pub peak_memory: u64,
}

impl Usage {
    /// Seconds of CPU time, of the program and of the system.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

/// An executed command, as tests keep it: its slot, its name, its key, and the value it wrote.
pub type Executed = (Slot, CommandId, u64, Option<Vec<u8>>);

/// A replica.
#[derive(Debug)]
pub struct Replica {
    id: u8,
    view: View,
    log: Log,
    store: Store,
    witness: Witness,
    sessions: NumberMap<ClientId, Session>,
    /// Weak reads that wait, first those that wait for the oldest slot.
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// The memory of values in slots and of answers.
    pool: Pool,
    arrivals: u64,
    /// Pending messages to the other replicas.
    pub batcher: Batcher,
    history: u64,
    weak_waits: u64,
    keep_log: Option<Vec<Executed>>,
    descriptors: Descriptors,
}

/// A weak read that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    /// The slot of a ballot that it waits for.
    seen: (Ballot, Slot),
    id: CommandId,
    key: u64,
    causal_dep: Seq,
}

impl Replica {
    /// A replica without any state that knows that no other has any: it follows the first leader, or is it.
    #[must_use]
    pub fn new(id: u8, flush: Flush, conflicts: Conflicts) -> Self {
        Self {
            id,
            view: View { patience: PATIENCE, ..View::default() },
            log: Log::default(),
            store: Store::default(),
            witness: Witness::new(conflicts),
            sessions: NumberMap::default(),
            waiting: BinaryHeap::new(),
            pool: Pool::default(),
            arrivals: 0,
            batcher: Batcher::new(flush),
            history: 0,
            weak_waits: 0,
            keep_log: None,
            descriptors: Descriptors::default(),
        }
    }

    /// Sets the treatment of descriptors of executed commands.
    pub fn heap(&mut self, heap: Heap) {
        self.descriptors = Descriptors::new(heap);
    }

    /// Keeps every executed command, for tests that compare with a reference. Memory then grows with the run.
    pub fn keep_log(&mut self) {
        self.keep_log = Some(Vec::new());
    }

    /// The executed commands, if they are kept: names, keys and written values, in slot order.
    #[must_use]
    pub fn kept_log(&self) -> &[Executed] {
        self.keep_log.as_deref().unwrap_or_default()
    }

    /// Returns the commands executed since the last call, if they are recorded.
    pub fn take_log(&mut self) -> Vec<Executed> {
        self.keep_log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The newest executed slot.
    #[must_use]
    pub fn executed(&self) -> Slot {
        self.log.executed()
    }

    /// Commands in the log that are not executed.
    #[must_use]
    pub fn live(&self) -> usize {
        self.log.len()
    }

    /// A client's command.
    ///
    /// # Errors
    ///
    /// When the client is unknown or left out a command.
    pub fn propose(
        &mut self,
        client: ClientId,
        p: &Proposal<'_>,
        now: u64,
        out: &mut impl Outbox,
    ) -> Result<(), Unexpected> {
        let session = self.sessions.get_mut(&client).ok_or_else(|| Unexpected("a command before a hello".into()))?;
        session.forget_below(p.done_below, &mut self.pool);
        match (session.admit(p.seq, p.done_below), p.class) {
            (Admission::Gap, _) => {
                let known = session.known;
                return Err(Unexpected(format!("command {} of client {client} after command {known}", p.seq)));
            }
            (Admission::New, Class::Strong) => self.new_strong(client, p, now, out),
            (Admission::New, Class::Weak) => {
                self.record(client, p, false, now);
                self.answer_weak(client, p, out);
            }
            (Admission::Duplicate, Class::Strong) => self.known_strong(client, p, out),
            (Admission::Duplicate, Class::Weak) => self.answer_weak(client, p, out),
        }
        Ok(())
    }

    fn new_strong(&mut self, client: ClientId, p: &Proposal<'_>, now: u64, out: &mut impl Outbox) {
        let key = p.op.key;
        let read = p.op.put.is_none();
        let conflict = self.witness.conflicts(key, !read);
        if !self.settled() {
            // The next leader finds it here, and the client asks for its answer.
        } else if self.leads() {
            // Slots are assigned in pool order, so that this command reads the pool's newest write.
            let pending = self.witness.newest(key).filter(|_| read);
            let read_dep = pending.filter(|(_, class, _)| *class == Class::Weak).map(|(id, ..)| id).unwrap_or_default();
            let found = match pending {
                Some((id, _, value)) => Found { version: self.slot_of(id), value },
                None if read => self.store.get(key),
                None => Found::default(),
            };
            let (seq, ballot) = (p.seq, self.ballot());
            out.send(client, &Message::Reply(Reply { seq, ballot, ok: !conflict, read_dep, found }));
        } else {
            let verdict = if conflict { Verdict::Conflict } else { Verdict::Recorded };
            self.ack_strong(client, p, verdict, out);
        }
        self.record(client, p, conflict, now);
    }

    fn ack_strong(&self, client: ClientId, p: &Proposal<'_>, verdict: Verdict, out: &mut impl Outbox) {
        let reads = p.op.put.is_none() && verdict != Verdict::Ordered;
        let read_dep = if reads { self.witness.newest_weak(p.op.key) } else { CommandId::NONE };
        let (replica, ballot) = (self.id, self.ballot());
        out.send(client, &Message::RecordAck(Ack { replica, seq: p.seq, ballot, verdict, read_dep }));
    }

    /// The slot of a command that is not executed yet. Rarely asked for, and the log is short.
    fn slot_of(&self, id: CommandId) -> Slot {
        self.log.slot_of(id).unwrap_or_default()
    }

    /// Puts a command into the witness pool and, at the leader, into a slot.
    fn record(&mut self, client: ClientId, p: &Proposal<'_>, conflicted: bool, now: u64) {
        let (id, op) = (CommandId { client, seq: p.seq }, p.op);
        self.witness.add(id, p.class, op);
        self.arrivals += 1;
        let (class, put, arrival) = (p.class, op.put.is_some(), self.arrivals);
        let recorded = Recorded { seq: p.seq, class, key: op.key, put, conflicted, arrival };
        self.sessions.get_mut(&client).expect("a session that has just been looked up").record(recorded);
        if self.leads() {
            let sync = p.class == Class::Strong && (conflicted || p.sync);
            let entry = Entry { id, class: p.class, key: op.key, put: op.put.map(|value| self.pool.copy(value)), sync };
            let slot = self.log.append(entry, 1 << self.id);
            self.batcher.accept(&Accept { slot, id, class: p.class, op }, now);
        }
    }

    /// A strong command that is known already: because the leader's slot came first, or because the client asks again.
    fn known_strong(&mut self, client: ClientId, p: &Proposal<'_>, out: &mut impl Outbox) {
        if self.leads() {
            self.sync(client, p.seq, out);
            return;
        }
        if !self.settled() {
            return;
        }
        let session = &self.sessions[&client];
        let verdict = match session.recorded(p.seq) {
            None => Verdict::Ordered,
            Some(recorded) if recorded.conflicted => Verdict::Conflict,
            Some(_) => Verdict::Recorded,
        };
        self.ack_strong(client, p, verdict, out);
    }

    /// A client wants the final answer to a strong command: now if it is final, else as soon as it is.
    pub fn sync(&mut self, client: ClientId, seq: Seq, out: &mut impl Outbox) {
        if let Some(entry) = self.log.find(CommandId { client, seq }) {
            entry.sync = true;
        } else if let Some(found) = self.sessions.get(&client).and_then(|session| session.answer(seq)) {
            out.send(client, &Message::SyncReply { seq, found });
        }
    }

    /// Answers a weak command if its session is bound to this replica.
    fn answer_weak(&mut self, client: ClientId, p: &Proposal<'_>, out: &mut impl Outbox) {
        let id = CommandId { client, seq: p.seq };
        if self.sessions[&client].bound != self.id {
            return;
        }
        if p.op.put.is_some() {
            out.send(client, &Message::CausalReply { seq: p.seq, found: Found::default() });
            return;
        }
        // Writes that the session observed elsewhere must be visible here. This includes its own pending writes,
        // because the observed ones may follow them.
        let seen = self.in_this_view(p.ballot, p.observed);
        let read = Waiting { seen, id, key: p.op.key, causal_dep: p.causal_dep };
        if seen > (self.view.adopted, self.executed()) {
            self.weak_waits += 1;
            self.waiting.push(Reverse(read));
        } else {
            self.answer_weak_read(read, out);
        }
    }

    fn answer_weak_read(&self, read: Waiting, out: &mut impl Outbox) {
        let found = match self.witness.own(read.key, read.id.client, read.causal_dep) {
            // Its slot is not known here; the session has no need of it, since it always sees its own writes.
            Some(value) => Found { version: 0, value },
            None => self.store.get(read.key),
        };
        out.send(read.id.client, &Message::CausalReply { seq: read.id.seq, found });
    }

    /// Handles another replica's messages about the log.
    ///
    /// # Errors
    ///
    /// If they are invalid.
    fn batch(&mut self, from: u8, batch: &Batch<'_>, now: u64, out: &mut impl Outbox) -> Result<(), Unexpected> {
        if batch.ballot != self.ballot() || !self.settled() {
            // Said by or to a leader of before, which does not count any more; or by one that this replica has not heard of.
            if batch.ballot > self.ballot() {
                self.ask_for_state(from, out);
            }
            return Ok(());
        }
        self.heard_from(from, now);
        for accept in batch.accepts() {
            if from != leader_of(batch.ballot) {
                return Err(Unexpected(format!("an accept from replica {from}, which does not lead")));
            }
            let Accept { slot, id, class, op } = accept;
            if slot > self.log.next() {
                // Messages were lost while this replica was disconnected.
                self.ask_for_state(from, out);
                break;
            }
            if slot == self.log.next() {
                let executed = || self.sessions.get(&id.client).map(|session| session.executed);
                let newest = self.log.newest_of(id.client).or_else(executed).unwrap_or_default();
                if newest.checked_add(1) != Some(id.seq) {
                    let CommandId { client, seq } = id;
                    return Err(Unexpected(format!(
                        "command {seq} of client {client} in the slot after command {newest}"
                    )));
                }
                let put = op.put.map(|value| self.pool.copy(value));
                self.log.append(Entry { id, class, key: op.key, put, sync: false }, 1 << from | 1 << self.id);
            }
            self.batcher.ack(slot, now);
        }
        for slot in batch.acks() {
            // A follower may hear of an acknowledgement before it hears of the slot. It can do without: its own acceptance and the
            // leader's are a majority.
            if !self.log.accepted(slot, from) && self.leads() {
                return Err(Unexpected(format!("an acknowledgement of slot {slot}, which is empty")));
            }
        }
        self.execute(out);
        Ok(())
    }

    fn execute(&mut self, out: &mut impl Outbox) {
        let (leads, ballot) = (self.leads(), self.ballot());
        while let Some((slot, entry)) = self.log.take_executable() {
            self.descriptors.done(slot, &entry);
            let Entry { id, class, key, put, sync } = entry;
            if let Some(value) = &put {
                self.store.put(key, slot, value);
            }
            self.history = mix(self.history ^ mix(u64::from(id.client) << 32 | u64::from(id.seq)));
            let session = self.sessions.entry(id.client).or_default();
            let recorded = session.execute(id.seq);
            if let Some(recorded) = recorded {
                // A client may have sent different commands to this replica and to the leader.
                self.witness.remove(id, recorded.class, recorded.key, recorded.put);
            }
            if class == Class::Strong {
                let found = if put.is_none() { self.store.get(key) } else { Found::default() };
                session.keep(id.seq, found, &mut self.pool);
                if leads {
                    if sync {
                        out.send(id.client, &Message::SyncReply { seq: id.seq, found });
                    }
                } else if recorded.is_some_and(|recorded| recorded.conflicted) {
                    let (verdict, read_dep) = (Verdict::Ordered, CommandId::NONE);
                    let ack = Ack { replica: self.id, seq: id.seq, ballot, verdict, read_dep };
                    out.send(id.client, &Message::RecordAck(ack));
                }
            }
            if let Some(log) = &mut self.keep_log {
                log.push((slot, id, key, put));
            } else if let Some(value) = put {
                self.pool.take_back(value);
            }
            self.answer_waiting(out);
        }
    }

    /// Answers the weak reads whose slot is executed now.
    fn answer_waiting(&mut self, out: &mut impl Outbox) {
        let here = (self.view.adopted, self.executed());
        while self.waiting.peek().is_some_and(|Reverse(read)| read.seen <= here)
            && let Some(Reverse(read)) = self.waiting.pop()
        {
            self.answer_weak_read(read, out);
        }
    }

    /// Returns the replica's status.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            replica: self.id,
            era: self.era(),
            ballot: self.ballot(),
            settled: self.settled(),
            executed: self.executed(),
            state: self.store.digest(),
            history: self.history,
            keys: self.store.len() as u64,
            residue: (self.log.len() + self.witness.len() + self.waiting.len()) as u64,
            batch_sizes: self.batcher.sizes.clone(),
            batch_delays: self.batcher.delays.clone(),
            weak_waits: self.weak_waits,
            descriptors: (self.descriptors.len() as u64, self.descriptors.collections),
            answers: (0, 0),
            process: Usage::default(),
        }
    }
}
