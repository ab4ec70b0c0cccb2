//! Leader election and recovery of replicas.
//!
//! A ballot belongs to one replica ([`leader_of`]). A replica that suspects its leader takes its next ballot and
//! requests votes. A voter ignores older ballots from then on, and votes only for a log that is at least as recent as
//! its own. One of any two electing replicas therefore has every final slot, and it becomes the leader (Raft's rule,
//! Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", 2014, section 5.4.1).
//!
//! The new leader also has every command that a client considers complete on the fast path, because all replicas
//! recorded it before any of them voted. It appends its recorded commands to its log in order of arrival (Park and
//! Ousterhout, "Exploiting Commutativity For Practical Fast Replication", NSDI 2019, section 3.3); [`super::witness`]
//! explains why a command then has the result that its client was told. Then it sends the others its state.
//!
//! Replicas have no persistent state. A restarted one may have forgotten a vote. It therefore takes no part until it
//! has heard from both others and has the state of a leader that neither of them has superseded (Liskov and Cowling,
//! "Viewstamped Replication Revisited", 2012, section 4.3). If all three have just been started, there is nothing to
//! forget.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::batcher::Flush;
use super::log::Entry;
use super::snapshot::{self, Kept, Snapshot};
use super::view::{BEAT, Phase};
use super::witness::Conflicts;
use super::{Outbox, Replica, Unexpected, Waiting};
use crate::command::{Ballot, ClientId, CommandId, Era, MAJORITY, REPLICAS, Slot, leader_of};
use crate::wire::Message;

impl Replica {
    /// A replica that has just been started in an era, and does not know whether it was there before.
    #[must_use]
    pub fn starting(id: u8, era: Era, flush: Flush, conflicts: Conflicts) -> Self {
        let mut replica = Self::new(id, flush, conflicts);
        (replica.view.era, replica.view.phase) = (era, Phase::Starting([None; REPLICAS]));
        replica
    }

    /// The trial that it serves.
    #[must_use]
    pub fn era(&self) -> Era {
        self.view.era
    }

    /// A leader without messages for this many nanoseconds is suspected.
    pub fn suspect_after(&mut self, nanoseconds: u64) {
        self.view.patience = nanoseconds;
    }

    /// The newest ballot that this replica takes part in.
    #[must_use]
    pub fn ballot(&self) -> Ballot {
        self.view.ballot
    }

    /// Whether this replica has a leader, or is one.
    #[must_use]
    pub fn settled(&self) -> bool {
        matches!(self.view.phase, Phase::Settled)
    }

    /// Whether this replica orders the commands.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.settled() && leader_of(self.view.ballot) == self.id
    }

    /// The first message to another replica.
    #[must_use]
    pub fn greeting(&self) -> Message<'static> {
        let starting = matches!(self.view.phase, Phase::Starting(_));
        Message::PeerHello { replica: self.id, ballot: self.view.ballot, starting, era: self.view.era }
    }

    /// A session begins, or binds itself to another replica. It is accepted once this replica has recovered.
    pub fn hello(&mut self, client: ClientId, bound: u8, out: &mut impl Outbox) {
        self.sessions.entry(client).or_default().bound = bound;
        if !matches!(self.view.phase, Phase::Starting(_)) {
            self.welcome(client, out);
        }
    }

    fn welcome(&self, client: ClientId, out: &mut impl Outbox) {
        out.send(client, &Message::Welcome { replica: self.id, known: self.sessions[&client].known });
        if self.settled() && self.view.ballot > 0 {
            out.send(client, &Message::NewLeader { ballot: self.view.ballot, base: self.view.base });
        }
    }

    /// A message from another replica.
    ///
    /// # Errors
    ///
    /// When it makes no sense.
    pub fn peer(&mut self, from: u8, message: &Message<'_>, now: u64, out: &mut impl Outbox) -> Result<(), Unexpected> {
        match *message {
            Message::Batch(batch) => self.batch(from, &batch, now, out)?,
            Message::PeerHello { ballot, starting, .. } => self.greeted(from, ballot, starting, now, out),
            Message::Beat { ballot, executed } => {
                self.heard_from(from, now);
                if ballot > self.view.ballot || (self.settled() && executed > self.executed()) {
                    self.ask_for_state(from, out);
                }
            }
            Message::Elect { ballot, view, last } => self.asked_for_vote(from, ballot, (view, last), now, out),
            Message::Vote { ballot } => self.vote(from, ballot, now, out),
            Message::State { ballot, last, bytes } => self.state(from, ballot, last, bytes, now, out)?,
            _ => return Err(Unexpected("a message that this connection may not send now".into())),
        }
        Ok(())
    }

    /// The connection to another replica is lost, with the messages in flight.
    pub fn peer_lost(&mut self, peer: u8, now: u64, out: &mut impl Outbox) {
        self.view.incoming.1.clear();
        match &mut self.view.phase {
            Phase::Starting(greetings) => greetings[usize::from(peer)] = None,
            _ if leader_of(self.view.ballot) == peer => self.stand(now, out),
            _ => {}
        }
    }

    /// Time has passed. To be called every few milliseconds.
    pub fn tick(&mut self, now: u64, out: &mut impl Outbox) {
        if self.view.heard == 0 {
            self.view.heard = now;
        }
        let due = now.saturating_sub(self.view.said) >= BEAT;
        // The later a replica's turn after the leader's, the longer it waits, so that two seldom stand at once.
        let turns = (REPLICAS as u8 + self.id - leader_of(self.view.ballot) - 1) % REPLICAS as u8;
        let patience = self.view.patience / 2 * (2 + u64::from(turns));
        match self.view.phase {
            Phase::Starting(greetings) => {
                let known = self.others().all(|other| greetings[usize::from(other)].is_some());
                if known && due {
                    self.view.said = now;
                    let greeting = self.greeting();
                    self.others().for_each(|other| out.send_peer(other, &greeting));
                }
            }
            Phase::Settled if self.leads() => {
                // It hears itself.
                self.view.heard = now;
                if due {
                    self.view.said = now;
                    let beat = Message::Beat { ballot: self.view.ballot, executed: self.executed() };
                    self.others().for_each(|other| out.send_peer(other, &beat));
                }
            }
            _ if now.saturating_sub(self.view.heard) > patience => self.stand(now, out),
            _ => {}
        }
        if due {
            self.view.asked = false;
        }
    }

    /// The position of a slot that a session saw in `ballot`, in the ballot whose log is here. A slot of an older ballot may have become
    /// another one; but no later one than the last with which the present leader began.
    pub(super) fn in_this_view(&self, ballot: Ballot, slot: Slot) -> (Ballot, Slot) {
        match slot {
            0 => (0, 0),
            _ if ballot < self.view.adopted => (self.view.adopted, self.view.base),
            _ => (ballot, slot),
        }
    }

    pub(super) fn heard_from(&mut self, from: u8, now: u64) {
        if from == leader_of(self.view.ballot) {
            self.view.heard = now;
        }
    }

    /// Asks a leader for its state, and not again before a while has passed.
    pub(super) fn ask_for_state(&mut self, leader: u8, out: &mut impl Outbox) {
        if !std::mem::replace(&mut self.view.asked, true) {
            out.send_peer(leader, &self.greeting());
        }
    }

    fn others(&self) -> impl Iterator<Item = u8> + use<> {
        let id = self.id;
        (0..REPLICAS as u8).filter(move |other| *other != id)
    }

    fn greeted(&mut self, from: u8, ballot: Ballot, starting: bool, now: u64, out: &mut impl Outbox) {
        match &mut self.view.phase {
            Phase::Starting(greetings) => {
                greetings[usize::from(from)] = Some((ballot, starting));
                let greetings = *greetings;
                if self.others().all(|other| matches!(greetings[usize::from(other)], Some((_, true)))) {
                    (self.view.phase, self.view.heard) = (Phase::Settled, now);
                    self.tell_clients(true, out);
                } else {
                    self.take_over(now, out);
                }
            }
            Phase::Settled if leader_of(self.view.ballot) == self.id => self.send_state(from, out),
            Phase::Electing(_) if leader_of(self.view.ballot) == self.id => self.ask_for_vote(from, out),
            _ => {}
        }
    }

    /// Takes its next ballot and requests votes.
    fn stand(&mut self, now: u64, out: &mut impl Outbox) {
        let later = self.view.ballot + 1;
        let ballot = (later..).find(|ballot| leader_of(*ballot) == self.id).expect("every replica has ballots");
        self.promise(ballot, now);
        self.view.phase = Phase::Electing(1 << self.id);
        self.others().for_each(|other| self.ask_for_vote(other, out));
    }

    /// Ignores older ballots from now on.
    fn promise(&mut self, ballot: Ballot, now: u64) {
        (self.view.ballot, self.view.phase, self.view.heard) = (ballot, Phase::Electing(0), now);
        self.batcher.restart(ballot);
    }

    fn ask_for_vote(&self, of: u8, out: &mut impl Outbox) {
        let (ballot, (view, last)) = (self.view.ballot, self.newest());
        out.send_peer(of, &Message::Elect { ballot, view, last });
    }

    /// How new its log is.
    fn newest(&self) -> (Ballot, Slot) {
        (self.view.adopted, self.log.next() - 1)
    }

    fn asked_for_vote(&mut self, from: u8, ballot: Ballot, log: (Ballot, Slot), now: u64, out: &mut impl Outbox) {
        if matches!(self.view.phase, Phase::Starting(_)) || leader_of(ballot) != from {
            return;
        }
        if ballot <= self.view.ballot {
            // It was away, and does not know who leads.
            if self.leads() {
                self.send_state(from, out);
            }
            return;
        }
        self.promise(ballot, now);
        if log >= self.newest() {
            out.send_peer(from, &Message::Vote { ballot });
        } else {
            self.stand(now, out);
        }
    }

    fn vote(&mut self, from: u8, ballot: Ballot, now: u64, out: &mut impl Outbox) {
        let Phase::Electing(votes) = &mut self.view.phase else { return };
        if ballot != self.view.ballot || leader_of(ballot) != self.id {
            return;
        }
        *votes |= 1 << from;
        if votes.count_ones() as usize >= MAJORITY {
            self.lead(now, out);
        }
    }

    /// Appends its recorded commands to its log, and sends the others its state.
    fn lead(&mut self, now: u64, out: &mut impl Outbox) {
        let in_log: HashSet<CommandId> = self.log.iter().map(|(_, entry)| entry.id).collect();
        self.log.reaccept(1 << self.id);
        let recorded = self.sessions.iter().flat_map(|(client, session)| {
            session
                .pending()
                .map(|recorded| (recorded.arrival, CommandId { client: *client, seq: recorded.seq }, *recorded))
        });
        let mut recorded: Vec<_> = recorded.filter(|(_, id, _)| !in_log.contains(id)).collect();
        recorded.sort_unstable_by_key(|(arrival, ..)| *arrival);
        for (_, id, recorded) in recorded {
            let value = || self.witness.value(recorded.key, id).expect("a recorded write is in the pool").to_vec();
            let put = recorded.put.then(value);
            let entry = Entry { id, class: recorded.class, key: recorded.key, put, sync: false };
            self.log.append(entry, 1 << self.id);
        }
        self.settle(self.view.ballot, now);
        self.others().for_each(|other| self.send_state(other, out));
        self.tell_clients(false, out);
        self.answer_waiting(out);
    }

    fn send_state(&self, to: u8, out: &mut impl Outbox) {
        let bytes = snapshot::encode(self.history, &self.store, &self.sessions, &self.log);
        let parts = bytes.len().div_ceil(snapshot::PART);
        for (at, bytes) in bytes.chunks(snapshot::PART).enumerate() {
            out.send_peer(to, &Message::State { ballot: self.view.ballot, last: at + 1 == parts, bytes });
        }
    }

    fn state(
        &mut self,
        from: u8,
        ballot: Ballot,
        last: bool,
        bytes: &[u8],
        now: u64,
        out: &mut impl Outbox,
    ) -> Result<(), Unexpected> {
        if leader_of(ballot) != from {
            return Err(Unexpected(format!(
                "the state of ballot {ballot} from replica {from}, which does not lead in it"
            )));
        }
        if ballot < self.view.ballot {
            return Ok(());
        }
        self.heard_from(from, now);
        let incoming = &mut self.view.incoming;
        if incoming.0 != ballot {
            *incoming = (ballot, Vec::new());
        }
        incoming.1.extend_from_slice(bytes);
        if last {
            let bytes = std::mem::take(&mut incoming.1);
            let snapshot = snapshot::decode(&bytes, 1 << from | 1 << self.id);
            let snapshot = snapshot.map_err(|malformed| Unexpected(format!("a state with {malformed}")))?;
            let newest = |client: &ClientId| snapshot.newest.get(client).copied().unwrap_or_default();
            if let Some((client, session)) =
                self.sessions.iter().find(|(client, session)| newest(client) < session.executed)
            {
                let done = session.executed;
                return Err(Unexpected(format!(
                    "a state without command {done} of client {client}, which is executed"
                )));
            }
            self.view.held = Some((ballot, snapshot));
            self.take_over(now, out);
        }
        Ok(())
    }

    /// Takes over the state that has come, if it may.
    fn take_over(&mut self, now: u64, out: &mut impl Outbox) {
        let Some((ballot, _)) = &self.view.held else { return };
        let was_starting = if let Phase::Starting(greetings) = &self.view.phase {
            let past = |other: u8| greetings[usize::from(other)].is_some_and(|(known, _)| known <= *ballot);
            if !self.others().all(past) {
                return;
            }
            true
        } else {
            false
        };
        let Some((ballot, snapshot)) = self.view.held.take().filter(|(ballot, _)| *ballot >= self.view.ballot) else {
            return;
        };
        let Snapshot { history, store, sessions, log, .. } = snapshot;
        (self.history, self.store, self.log) = (history, store, log);
        if let Some(kept) = &mut self.keep_log {
            kept.retain(|(slot, ..)| *slot <= self.log.executed());
        }
        // A session that the leader does not name has no executed command there.
        let mut kept: HashMap<ClientId, Kept> = sessions.into_iter().collect();
        for client in self.sessions.keys() {
            kept.entry(*client).or_default();
        }
        for (client, (executed, answers)) in kept {
            for done in self.sessions.entry(client).or_default().install(executed, answers) {
                self.witness.remove(CommandId { client, seq: done.seq }, done.class, done.key, done.put);
            }
        }
        self.batcher.restart(ballot);
        self.settle(ballot, now);
        self.log.iter().for_each(|(slot, _)| self.batcher.ack(slot, now));
        self.execute(out);
        self.answer_waiting(out);
        self.tell_clients(was_starting, out);
    }

    /// It has the log of the leader of `ballot`, which begins with it.
    fn settle(&mut self, ballot: Ballot, now: u64) {
        let base = self.log.next() - 1;
        let view = &mut self.view;
        (view.phase, view.ballot, view.adopted) = (Phase::Settled, ballot, ballot);
        (view.base, view.heard, view.asked, view.held) = (base, now, false, None);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        self.waiting = waiting
            .map(|Reverse(read)| {
                let seen = if read.seen < (ballot, 0) { (ballot, base) } else { read.seen };
                Reverse(Waiting { seen, ..read })
            })
            .collect();
    }

    /// Tells all clients who leads, and if it has just been started, that they are welcome.
    fn tell_clients(&self, welcome: bool, out: &mut impl Outbox) {
        for client in self.sessions.keys() {
            if welcome {
                self.welcome(*client, out);
            } else {
                out.send(*client, &Message::NewLeader { ballot: self.view.ballot, base: self.view.base });
            }
        }
    }
}
