//! One session, without its connections: commands go in, messages for the replicas and completed commands come out.

pub mod quorum;

use std::collections::VecDeque;
use std::fmt;

use self::quorum::{FollowerSaid, LeaderSaid, Path, decide, nothing_else_will_come};
use crate::command::{
    Ballot, Class, ClientId, CommandId, Found, Op, REPLICAS, Seq, Slot, fill_value, leader_of, writer_of,
};
use crate::replica::session::MAX_SPAN;
use crate::wire::{Message, Proposal};

/// Takes messages for replicas.
pub trait Outbox {
    /// Sends `message` to `replica`.
    fn send(&mut self, replica: u8, message: &Message<'_>);
}

/// A request to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Strong or weak.
    pub class: Class,
    /// Whether to write; the value follows from the command's name.
    pub put: bool,
    /// The key.
    pub key: u64,
}

/// A command with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// Its number.
    pub seq: Seq,
    /// The request.
    pub request: Request,
    /// When it was meant to start.
    pub intended: u64,
    /// When it was sent.
    pub invoked: u64,
    /// The writer of the value read; [`CommandId::NONE`] for a write, and for a key that was never written.
    pub read: CommandId,
    /// How it came to its answer.
    pub path: Path,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A replica that was away does not know of a command that the session no longer knows of either.
    Forgotten(Seq),
    /// A replica returned a value that no client wrote.
    Corrupt(Seq),
    /// A replica sent an error, or a message that clients do not get.
    Refused(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forgotten(seq) => write!(f, "a replica that was away asks for command {seq}, which is too long ago"),
            Self::Corrupt(seq) => write!(f, "command {seq} was answered with a value that no client wrote"),
            Self::Refused(message) => write!(f, "a replica refused: {message}"),
        }
    }
}

#[derive(Debug, Clone)]
struct Pending {
    request: Request,
    intended: u64,
    invoked: u64,
    leader: Option<LeaderSaid>,
    found: (CommandId, Slot),
    /// Answers of the replicas that do not lead; None at the leader's index.
    followers: [Option<FollowerSaid>; REPLICAS],
    asked_for_sync: bool,
    causal_dep: Seq,
    observed: Slot,
    ballot: Ballot,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    client: ClientId,
    bound: u8,
    alive: [bool; REPLICAS],
    /// Which of them something has waited for in vain since they last spoke: cut off, stuck, or slow.
    silent: [bool; REPLICAS],
    /// The newest ballot that it has heard of.
    ballot: Ballot,
    /// The newest commands, with and without answers: a replica that was away gets them again.
    sent: VecDeque<Request>,
    /// Commands from the oldest without an answer on; `None` for those that have theirs.
    pending: VecDeque<Option<Pending>>,
    /// The number of the first of them.
    oldest: Seq,
    outstanding: usize,
    last_write: Seq,
    observed: Slot,
    value: Vec<u8>,
}

impl Session {
    /// A session bound to a replica, whose values have `value_size` bytes.
    #[must_use]
    pub fn new(client: ClientId, bound: u8, value_size: usize) -> Self {
        Self {
            client,
            bound,
            alive: [true; REPLICAS],
            silent: [false; REPLICAS],
            ballot: 0,
            sent: VecDeque::new(),
            pending: VecDeque::new(),
            oldest: 1,
            outstanding: 0,
            last_write: 0,
            observed: 0,
            value: vec![0; value_size],
        }
    }

    /// The replica that answers weak commands.
    #[must_use]
    pub fn bound(&self) -> u8 {
        self.bound
    }

    /// The replica that leads, as far as the session knows.
    #[must_use]
    pub fn leader(&self) -> u8 {
        leader_of(self.ballot)
    }

    /// Commands without an answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// The number of the next command.
    #[must_use]
    pub fn next(&self) -> Seq {
        self.oldest + self.pending.len() as Seq
    }

    /// Whether a further command may be sent although older ones have no answer.
    #[must_use]
    pub fn may_start(&self) -> bool {
        self.pending.len() < MAX_SPAN as usize
    }

    /// Sends a command to every replica.
    pub fn start(&mut self, request: Request, intended: u64, now: u64, out: &mut impl Outbox) {
        let seq = self.next();
        let pending = Pending {
            request,
            intended,
            invoked: now,
            leader: None,
            found: (CommandId::NONE, 0),
            followers: [None; REPLICAS],
            // Without one of them no answer is fast, and nothing but the leader's last word will come.
            asked_for_sync: !(0..REPLICAS as u8).all(|replica| self.speaks(replica)),
            causal_dep: self.last_write,
            observed: self.observed,
            ballot: self.ballot,
        };
        let alive = self.alive;
        self.send_proposal(seq, &pending, |replica| alive[usize::from(replica)], out);
        if self.sent.len() == MAX_SPAN as usize {
            self.sent.pop_front();
        }
        self.sent.push_back(request);
        if request.put {
            self.last_write = seq;
        }
        self.pending.push_back(Some(pending));
        self.outstanding += 1;
    }

    fn send_proposal(&mut self, seq: Seq, pending: &Pending, to: impl Fn(u8) -> bool, out: &mut impl Outbox) {
        let Request { class, put, key } = pending.request;
        if put {
            fill_value(&mut self.value, CommandId { client: self.client, seq });
        }
        let message = Message::Propose(Proposal {
            class,
            seq,
            done_below: self.oldest,
            causal_dep: pending.causal_dep,
            observed: pending.observed,
            ballot: pending.ballot,
            sync: class == Class::Strong && pending.asked_for_sync,
            op: Op { key, put: put.then_some(&*self.value) },
        });
        (0..REPLICAS as u8).filter(|replica| to(*replica)).for_each(|replica| out.send(replica, &message));
    }

    /// Whether a replica is there, and nothing has waited for it in vain.
    fn speaks(&self, replica: u8) -> bool {
        self.alive[usize::from(replica)] && !self.silent[usize::from(replica)]
    }

    /// Handles a message from a replica; answers to completed commands are ignored.
    ///
    /// # Errors
    ///
    /// If the session cannot continue.
    pub fn receive(
        &mut self,
        from: u8,
        message: &Message<'_>,
        out: &mut impl Outbox,
    ) -> Result<Option<Completed>, Broken> {
        let found = |session: &Self, seq: Seq, found: Found<'_>| match writer_of(found.value) {
            Some(writer) => Ok((writer, if writer.client == session.client { 0 } else { found.version })),
            None => Err(Broken::Corrupt(seq)),
        };
        self.silent[usize::from(from)] = false;
        match *message {
            Message::Welcome { known, .. } => self.back(from, known, out).map(|()| None),
            Message::NewLeader { ballot, base } => {
                self.follow(ballot, base, out);
                Ok(None)
            }
            Message::Reply(reply) => {
                let found = found(self, reply.seq, reply.found)?;
                let current = reply.ballot == self.ballot;
                let Some(pending) = self.pending(reply.seq).filter(|_| current) else { return Ok(None) };
                pending.leader = Some(LeaderSaid { ok: reply.ok, read_dep: reply.read_dep });
                pending.found = found;
                Ok(self.decide(reply.seq, out))
            }
            Message::RecordAck(ack) => {
                let current = ack.ballot == self.ballot && from != leader_of(ack.ballot);
                let Some(pending) = self.pending(ack.seq).filter(|_| current) else { return Ok(None) };
                let said = &mut pending.followers[usize::from(from)];
                *said = Some(FollowerSaid::after(*said, &ack));
                Ok(self.decide(ack.seq, out))
            }
            Message::SyncReply { seq, found: answer } | Message::CausalReply { seq, found: answer } => {
                let path = if matches!(message, Message::SyncReply { .. }) { Path::Synced } else { Path::Bound };
                let found = found(self, seq, answer)?;
                let Some(pending) = self.pending(seq) else { return Ok(None) };
                pending.found = found;
                Ok(Some(self.complete(seq, path)))
            }
            Message::Error { message, .. } => Err(Broken::Refused(message.to_owned())),
            _ => Err(Broken::Refused("a message that clients do not get".into())),
        }
    }

    fn pending(&mut self, seq: Seq) -> Option<&mut Pending> {
        let at = seq.checked_sub(self.oldest)?;
        self.pending.get_mut(at as usize)?.as_mut()
    }

    fn decide(&mut self, seq: Seq, out: &mut impl Outbox) -> Option<Completed> {
        let (client, leader) = (self.client, leader_of(self.ballot));
        let pending = self.pending(seq)?;
        let mut followers = [None; REPLICAS - 1];
        let others = (0..REPLICAS as u8).filter(|replica| *replica != leader);
        followers.iter_mut().zip(others).for_each(|(said, other)| *said = pending.followers[usize::from(other)]);
        if let Some(path) = decide(pending.leader, &followers, |id| id.client == client) {
            return Some(self.complete(seq, path));
        }
        if !pending.asked_for_sync && nothing_else_will_come(pending.leader, &followers) {
            pending.asked_for_sync = true;
            out.send(leader, &Message::Sync { seq });
        }
        None
    }

    fn complete(&mut self, seq: Seq, path: Path) -> Completed {
        let at = (seq - self.oldest) as usize;
        let pending = self.pending[at].take().expect("only a pending command is completed");
        while self.pending.front().is_some_and(Option::is_none) {
            self.pending.pop_front();
            self.oldest += 1;
        }
        self.outstanding -= 1;
        let (read, version) = pending.found;
        self.observed = self.observed.max(version);
        let Pending { request, intended, invoked, .. } = pending;
        Completed { seq, request, intended, invoked, read, path }
    }

    /// A replica is gone. Strong commands can no longer be fast: the leader is asked for final answers. If it was the bound replica, the
    /// session binds itself to another, which gets its open weak commands again. If it was the leader, the session waits for another.
    pub fn lost(&mut self, replica: u8, out: &mut impl Outbox) {
        self.alive[usize::from(replica)] = false;
        if self.bound == replica {
            self.bind_to_another(out);
        }
        if replica != leader_of(self.ballot) {
            self.ask_for_sync(u64::MAX, out);
        }
    }

    /// Binds itself to a follower that speaks if there is one, else to the leader.
    fn bind_to_another(&mut self, out: &mut impl Outbox) {
        let leader = leader_of(self.ballot);
        let mut others = (0..REPLICAS as u8).filter(|other| *other != leader).chain([leader]);
        if let Some(bound) = others.find(|other| self.speaks(*other)) {
            self.bind(bound, out);
        }
    }

    /// Binds itself to a replica, which gets the open weak commands again. The one before is told, for when it reads again.
    fn bind(&mut self, bound: u8, out: &mut impl Outbox) {
        let (before, hello) = (self.bound, Message::ClientHello { client: self.client, bound });
        self.bound = bound;
        out.send(bound, &hello);
        if before != bound {
            out.send(before, &hello);
        }
        for seq in self.oldest..self.next() {
            let Some(pending) = self.pending(seq).filter(|p| p.request.class == Class::Weak) else { continue };
            let pending = pending.clone();
            self.send_proposal(seq, &pending, |to| to == bound, out);
        }
    }

    /// A replica has reconnected and knows the session's commands up to `known`. Later ones are sent again, because it
    /// needs them if it becomes the leader.
    fn back(&mut self, replica: u8, known: Seq, out: &mut impl Outbox) -> Result<(), Broken> {
        if std::mem::replace(&mut self.alive[usize::from(replica)], true) {
            return Ok(());
        }
        let first = self.next() - self.sent.len() as Seq;
        if known < first - 1 {
            return Err(Broken::Forgotten(known + 1));
        }
        for seq in known.saturating_add(1)..self.next() {
            let pending = self.pending(seq).cloned().unwrap_or_else(|| Pending {
                request: self.sent[(seq - first) as usize],
                intended: 0,
                invoked: 0,
                leader: None,
                found: (CommandId::NONE, 0),
                followers: [None; REPLICAS],
                asked_for_sync: true,
                causal_dep: 0,
                observed: 0,
                ballot: 0,
            });
            self.send_proposal(seq, &pending, |to| to == replica, out);
        }
        if !self.alive[usize::from(self.bound)] {
            self.bind(replica, out);
        }
        if replica == leader_of(self.ballot) {
            self.ask_anew(out);
        }
        Ok(())
    }

    /// A new leader was elected. Answers under the old leader are void, so that the new one is asked for final answers.
    /// Everything that the session has observed is in the new leader's initial log.
    fn follow(&mut self, ballot: Ballot, base: Slot, out: &mut impl Outbox) {
        if ballot > self.ballot {
            self.ballot = ballot;
            if self.observed > 0 {
                self.observed = base;
            }
            self.ask_anew(out);
        }
    }

    fn ask_anew(&mut self, out: &mut impl Outbox) {
        for pending in self.pending.iter_mut().flatten() {
            (pending.leader, pending.followers, pending.asked_for_sync) = (None, [None; REPLICAS], false);
        }
        self.ask_for_sync(u64::MAX, out);
    }

    /// Strong commands that were sent before `invoked` have waited for long: the leader is asked for their final answers. A replica that
    /// has said nothing of one of them is taken for silent until it speaks, so that later ones need not wait for it as long.
    pub fn sync_older_than(&mut self, invoked: u64, out: &mut impl Outbox) {
        let leader = leader_of(self.ballot);
        let waited = |pending: &&Pending| pending.request.class == Class::Strong && pending.invoked < invoked;
        let mut found = false;
        for pending in self.pending.iter().flatten().filter(waited) {
            for replica in (0..REPLICAS as u8).filter(|replica| *replica != leader) {
                let silent = pending.followers[usize::from(replica)].is_none();
                found |= silent && !std::mem::replace(&mut self.silent[usize::from(replica)], silent);
            }
        }
        self.ask_for_sync(if found { u64::MAX } else { invoked }, out);
    }

    /// A weak command that was sent before `invoked` has no answer. If the bound replica has not spoken since the last call that found
    /// one, the session binds itself to another.
    pub fn rebind_older_than(&mut self, invoked: u64, out: &mut impl Outbox) {
        let waited = |pending: &Pending| pending.request.class == Class::Weak && pending.invoked < invoked;
        if self.pending.iter().flatten().any(waited)
            && std::mem::replace(&mut self.silent[usize::from(self.bound)], true)
        {
            self.bind_to_another(out);
        }
    }

    /// Asks the leader for the final answers to strong commands that were sent before `invoked`, once for each.
    fn ask_for_sync(&mut self, invoked: u64, out: &mut impl Outbox) {
        let leader = leader_of(self.ballot);
        for (seq, pending) in (self.oldest..).zip(&mut self.pending) {
            let Some(pending) = pending else { continue };
            if pending.request.class == Class::Strong && !pending.asked_for_sync && pending.invoked < invoked {
                pending.asked_for_sync = true;
                out.send(leader, &Message::Sync { seq });
            }
        }
    }

    /// When the oldest command without an answer was sent.
    #[must_use]
    pub fn oldest_invoked(&self) -> Option<u64> {
        self.pending.front()?.as_ref().map(|pending| pending.invoked)
    }
}
