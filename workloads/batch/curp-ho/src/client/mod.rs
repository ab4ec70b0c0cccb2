//! One session, without its connections: commands go in, messages for the replicas and completed commands come out.

pub mod quorum;

use std::collections::VecDeque;
use std::fmt;

use self::quorum::{FollowerSaid, LeaderSaid, Path, decide, nothing_else_will_come};
use crate::command::{Class, ClientId, CommandId, Found, LEADER, Op, REPLICAS, Seq, Slot, fill_value, writer_of};
use crate::replica::session::MAX_SPAN;
use crate::wire::{Message, Proposal};

/// Takes messages for replicas.
pub trait Outbox {
    /// Sends `message` to `replica`.
    fn send(&mut self, replica: u8, message: &Message<'_>);
}

/// What a session can be asked to do.
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
    /// What was asked.
    pub request: Request,
    /// When it was meant to start.
    pub intended: u64,
    /// When it was sent.
    pub invoked: u64,
    /// Who wrote what it read; [`CommandId::NONE`] for a write, and for a key that was never written.
    pub read: CommandId,
    /// How it came to its answer.
    pub path: Path,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The leader is gone; this protocol has no successor for it.
    LeaderLost,
    /// No replica is left that could answer weak commands beside the leader, or the slow path lacks its majority.
    MajorityLost,
    /// A replica answered with something that nobody can have written.
    Corrupt(Seq),
    /// A replica sent an error, or a message that clients do not get.
    Refused(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaderLost => {
                write!(f, "replica {LEADER}, the leader, is lost, and a leader change is not supported")
            }
            Self::MajorityLost => f.write_str("both followers are gone, so nothing can become final"),
            Self::Corrupt(seq) => write!(f, "command {seq} was answered with a value that nobody wrote"),
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
    followers: [Option<FollowerSaid>; REPLICAS - 1],
    asked_for_sync: bool,
    causal_dep: Seq,
    observed: Slot,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    client: ClientId,
    bound: u8,
    alive: [bool; REPLICAS],
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
            followers: [None; REPLICAS - 1],
            asked_for_sync: !self.alive.iter().all(|alive| *alive),
            causal_dep: self.last_write,
            observed: self.observed,
        };
        let alive = self.alive;
        self.send_proposal(seq, &pending, |replica| alive[usize::from(replica)], out);
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
            sync: class == Class::Strong && pending.asked_for_sync,
            op: Op { key, put: put.then_some(&*self.value) },
        });
        (0..REPLICAS as u8).filter(|replica| to(*replica)).for_each(|replica| out.send(replica, &message));
    }

    /// A message from a replica. What comes for a command that has its answer is ignored.
    ///
    /// # Errors
    ///
    /// When the session cannot go on.
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
        match *message {
            Message::Welcome { .. } => Ok(None),
            Message::Reply(reply) => {
                let found = found(self, reply.seq, reply.found)?;
                let Some(pending) = self.pending(reply.seq) else { return Ok(None) };
                pending.leader = Some(LeaderSaid { ok: reply.ok, read_dep: reply.read_dep });
                pending.found = found;
                Ok(self.decide(reply.seq, out))
            }
            Message::RecordAck(ack) => {
                let at = match from {
                    LEADER => return Err(Broken::Refused("an acknowledgement from the leader".into())),
                    follower => usize::from(follower) - 1,
                };
                let Some(pending) = self.pending(ack.seq) else { return Ok(None) };
                pending.followers[at] = Some(FollowerSaid { verdict: ack.verdict, read_dep: ack.read_dep });
                Ok(self.decide(ack.seq, out))
            }
            Message::SyncReply { seq, found: answer } => {
                let found = found(self, seq, answer)?;
                let Some(pending) = self.pending(seq) else { return Ok(None) };
                pending.found = found;
                Ok(Some(self.complete(seq, Path::Synced)))
            }
            Message::CausalReply { seq, found: answer } => {
                let found = found(self, seq, answer)?;
                let Some(pending) = self.pending(seq) else { return Ok(None) };
                pending.found = found;
                Ok(Some(self.complete(seq, Path::Bound)))
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
        let client = self.client;
        let pending = self.pending(seq)?;
        if let Some(path) = decide(pending.leader, &pending.followers, |id| id.client == client) {
            return Some(self.complete(seq, path));
        }
        if !pending.asked_for_sync && nothing_else_will_come(pending.leader, &pending.followers) {
            pending.asked_for_sync = true;
            out.send(LEADER, &Message::Sync { seq });
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
    /// session binds itself to another, which gets its open weak commands again.
    ///
    /// # Errors
    ///
    /// When the session cannot go on without it.
    pub fn lost(&mut self, replica: u8, out: &mut impl Outbox) -> Result<(), Broken> {
        if !std::mem::replace(&mut self.alive[usize::from(replica)], false) {
            return Ok(());
        }
        if replica == LEADER {
            return Err(Broken::LeaderLost);
        }
        if self.alive.iter().filter(|alive| **alive).count() < crate::command::MAJORITY {
            return Err(Broken::MajorityLost);
        }
        let rebind = self.bound == replica;
        if rebind {
            // A follower if there is one, else the leader.
            let alive = |replica: &u8| self.alive[usize::from(*replica)];
            self.bound = (1..REPLICAS as u8).chain([LEADER]).find(alive).expect("a majority is alive");
            out.send(self.bound, &Message::ClientHello { client: self.client, bound: self.bound });
        }
        self.sync_older_than(u64::MAX, out);
        let bound = self.bound;
        for seq in self.oldest..self.next() {
            let Some(pending) = self.pending(seq).filter(|p| rebind && p.request.class == Class::Weak) else {
                continue;
            };
            let pending = pending.clone();
            self.send_proposal(seq, &pending, |to| to == bound, out);
        }
        Ok(())
    }

    /// Asks the leader for the final answers to strong commands that were sent before `invoked`, once for each.
    pub fn sync_older_than(&mut self, invoked: u64, out: &mut impl Outbox) {
        for (seq, pending) in (self.oldest..).zip(&mut self.pending) {
            let Some(pending) = pending else { continue };
            if pending.request.class == Class::Strong && !pending.asked_for_sync && pending.invoked < invoked {
                pending.asked_for_sync = true;
                out.send(LEADER, &Message::Sync { seq });
            }
        }
    }

    /// When the oldest command without an answer was sent.
    #[must_use]
    pub fn oldest_invoked(&self) -> Option<u64> {
        self.pending.front()?.as_ref().map(|pending| pending.invoked)
    }
}
