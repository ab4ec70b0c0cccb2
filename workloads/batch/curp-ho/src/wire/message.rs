//! Messages, and their bytes. Numbers are little-endian; decoding borrows values from the frame and never trusts a count.

use std::fmt;

use super::frame;
use super::{FrameError, MAX_FRAME};
use crate::command::{
    Ballot, Class, CommandId, Era, Found, LAST_BALLOT, LAST_SLOT, MAX_VALUE, Op, REPLICAS, Seq, Slot,
};

/// Messages of the largest batch, accepts and acknowledgements together.
pub const MAX_BATCH: usize = 4096;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A replica says which one it is, first thing on a connection to another; the leader answers with its state, so it is also how a
    /// replica that has missed something asks for it.
    PeerHello {
        /// Which.
        replica: u8,
        /// The newest ballot that it knows.
        ballot: Ballot,
        /// It has just been started, and may have forgotten earlier promises.
        starting: bool,
        /// The trial that it serves: replicas that serve different ones have nothing to do with each other.
        era: Era,
    },
    /// The leader is alive.
    Beat {
        /// Its ballot.
        ballot: Ballot,
        /// Its newest executed slot. It was sent before this, so a replica that does not have it has missed it.
        executed: Slot,
    },
    /// A replica wants to lead.
    Elect {
        /// The ballot that would make it the leader.
        ballot: Ballot,
        /// The ballot whose leader's log it has.
        view: Ballot,
        /// The last slot of that log.
        last: Slot,
    },
    /// A replica ignores older ballots from now on, and the candidate's log is at least as recent as its own.
    Vote {
        /// The candidate's ballot.
        ballot: Ballot,
    },
    /// A part of the leader's state, by which a replica becomes its follower; see `replica::snapshot`.
    State {
        /// The leader's ballot.
        ballot: Ballot,
        /// Whether it is the last part.
        last: bool,
        /// The part.
        bytes: &'a [u8],
    },
    /// A session begins, or binds itself to another replica.
    ClientHello {
        /// The session.
        client: u32,
        /// The replica that answers its weak commands.
        bound: u8,
    },
    /// The answer to a client's hello.
    Welcome {
        /// Who answers.
        replica: u8,
        /// The session's newest command that is known here.
        known: Seq,
    },
    /// A replica has a leader that it did not have before.
    NewLeader {
        /// Its ballot.
        ballot: Ballot,
        /// The last slot of its initial log; clients have observed no later one.
        base: Slot,
    },
    /// A client's command, sent to every replica.
    Propose(Proposal<'a>),
    /// The leader's answer to a strong command, given before the command is final.
    Reply(Reply<'a>),
    /// A follower's answer to a strong command.
    RecordAck(Ack),
    /// A client asks the leader for an answer that is final.
    Sync {
        /// The command.
        seq: Seq,
    },
    /// The leader's answer to a strong command that is final.
    SyncReply {
        /// The command.
        seq: Seq,
        /// The result.
        found: Found<'a>,
    },
    /// The bound replica's answer to a weak command.
    CausalReply {
        /// The command.
        seq: Seq,
        /// The result.
        found: Found<'a>,
    },
    /// Messages of one replica to the others about the log.
    Batch(Batch<'a>),
    /// Requests a replica's state once it has executed `executed` slots.
    StatusRequest {
        /// Number of slots.
        executed: Slot,
    },
    /// A trial begins: the replica is to forget all that it has, and to go on with these settings.
    Begin {
        /// The trial's era, newer than the replica's.
        era: Era,
        /// The settings, as JSON.
        settings: &'a [u8],
    },
    /// All three replicas have begun anew in this era.
    Begun {
        /// The era.
        era: Era,
    },
    /// A replica's state, as JSON.
    Status {
        /// The JSON.
        json: &'a [u8],
    },
    /// Why the connection is about to be closed.
    Error {
        /// The kind.
        code: ErrorCode,
        /// The sentence.
        message: &'a str,
    },
}

/// A command with its session's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proposal<'a> {
    /// Strong or weak.
    pub class: Class,
    /// The command's number.
    pub seq: Seq,
    /// All commands of the session below this number are answered; their answers may be discarded.
    pub done_below: Seq,
    /// The newest of the session's own writes that the command must see.
    pub causal_dep: Seq,
    /// The newest slot that the session has read from; the command must see it, and with it all that came before.
    pub observed: Slot,
    /// The ballot in which that slot was given.
    pub ballot: Ballot,
    /// Strong commands only: the fast path is out of reach, so send the final answer unasked.
    pub sync: bool,
    /// What to do.
    pub op: Op<'a>,
}

/// The leader's speculative answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The command.
    pub seq: Seq,
    /// The leader's ballot.
    pub ballot: Ballot,
    /// Whether nothing that conflicts with it was still uncommitted.
    pub ok: bool,
    /// The uncommitted weak write that the result shows, if any.
    pub read_dep: CommandId,
    /// The result.
    pub found: Found<'a>,
}

/// A follower's verdict on a strong command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Something on the key is pending that does not commute with it.
    Conflict,
    /// Recorded; nothing conflicts.
    Recorded,
    /// Accepted at the slot that the leader gave it.
    Ordered,
}

/// A follower's answer to a strong command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Who answers.
    pub replica: u8,
    /// The command.
    pub seq: Seq,
    /// The ballot in which it says so.
    pub ballot: Ballot,
    /// The verdict.
    pub verdict: Verdict,
    /// The pending weak write that a read would show here, if any.
    pub read_dep: CommandId,
}

/// The leader puts a command into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept<'a> {
    /// The slot.
    pub slot: Slot,
    /// The command's name.
    pub id: CommandId,
    /// Strong or weak.
    pub class: Class,
    /// The command.
    pub op: Op<'a>,
}

impl Accept<'_> {
    /// Appends it as a field of a message.
    pub fn append(&self, out: &mut Vec<u8>) {
        Writer(out).u64(self.slot).id(self.id).op(self.class, self.op);
    }
}

/// Accepts and acknowledgements sent together. The contents are validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The ballot in which they were said.
    pub ballot: Ballot,
    accepts: &'a [u8],
    accept_count: u32,
    acks: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The accepts, in slot order.
    #[must_use]
    pub fn accepts(&self) -> Accepts<'a> {
        Accepts(Reader(self.accepts))
    }

    /// The acknowledged slots.
    #[must_use]
    pub fn acks(&self) -> Acks<'a> {
        Acks(self.acks)
    }
}

/// The accepts of a batch.
#[derive(Debug, Clone)]
pub struct Accepts<'a>(Reader<'a>);

impl<'a> Iterator for Accepts<'a> {
    type Item = Accept<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        // A batch is checked when it is decoded, so an error here is only its end.
        self.0.accept().ok()
    }
}

/// The acknowledged slots of a batch.
#[derive(Debug, Clone)]
pub struct Acks<'a>(&'a [u8]);

impl Iterator for Acks<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Self::Item> {
        let (slot, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(Slot::from_le_bytes(*slot))
    }
}

/// A batch that is being put together, already in its bytes.
#[derive(Debug, Clone, Default)]
pub struct BatchWriter {
    accepts: Vec<u8>,
    acks: Vec<u8>,
    accept_count: u32,
}

impl BatchWriter {
    /// Bytes after which a batch is full: room for one more accept is left.
    const FULL: usize = MAX_FRAME - MAX_VALUE - 64;

    /// Adds an accept.
    pub fn accept(&mut self, accept: &Accept<'_>) {
        accept.append(&mut self.accepts);
        self.accept_count += 1;
    }

    /// Adds an acknowledgement.
    pub fn ack(&mut self, slot: Slot) {
        self.acks.extend(slot.to_le_bytes());
    }

    /// How many messages it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.accept_count as usize + self.acks.len() / size_of::<Slot>()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it takes no further message.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= MAX_BATCH || self.accepts.len() + self.acks.len() >= Self::FULL
    }

    /// Appends the batch as one frame, said in `ballot`, and starts anew.
    pub fn take(&mut self, ballot: Ballot, out: &mut Vec<u8>) {
        let (accepts, accept_count, acks) = (&self.accepts[..], self.accept_count, &self.acks[..]);
        Message::Batch(Batch { ballot, accepts, accept_count, acks }).append(out);
        self.accepts.clear();
        self.acks.clear();
        self.accept_count = 0;
    }
}

/// The error that ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// Bytes that are no message.
    Malformed,
    /// A frame or a batch that is too large.
    Oversized,
    /// A message that this connection may not send, or not now.
    Unexpected,
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The frame's length.
    Frame(FrameError),
    /// A message of this kind does not exist.
    Kind(u8),
    /// The message ends early.
    Short,
    /// The message goes on after its end.
    Long,
    /// A field has a value that it cannot have.
    Field(&'static str),
    /// A batch declares this many messages.
    Oversized(u64),
}

impl Malformed {
    /// The code of the error frame.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Frame(FrameError(length)) if *length > MAX_FRAME => ErrorCode::Oversized,
            Self::Oversized(_) => ErrorCode::Oversized,
            _ => ErrorCode::Malformed,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Kind(kind) => write!(f, "a message of the unknown kind {kind}"),
            Self::Short => f.write_str("a message that ends early"),
            Self::Long => f.write_str("a message with bytes after its end"),
            Self::Field(name) => write!(f, "a message whose {name} is out of range"),
            Self::Oversized(count) => write!(f, "a batch of {count} messages; at most {MAX_BATCH} are allowed"),
        }
    }
}

mod kind {
    pub(super) const PEER_HELLO: u8 = 1;
    pub(super) const CLIENT_HELLO: u8 = 2;
    pub(super) const WELCOME: u8 = 3;
    pub(super) const PROPOSE: u8 = 4;
    pub(super) const CAUSAL_PROPOSE: u8 = 5;
    pub(super) const REPLY: u8 = 6;
    pub(super) const RECORD_ACK: u8 = 7;
    pub(super) const SYNC: u8 = 8;
    pub(super) const SYNC_REPLY: u8 = 9;
    pub(super) const CAUSAL_REPLY: u8 = 10;
    pub(super) const BATCH: u8 = 11;
    pub(super) const STATUS_REQUEST: u8 = 12;
    pub(super) const STATUS: u8 = 13;
    pub(super) const BEAT: u8 = 14;
    pub(super) const ELECT: u8 = 15;
    pub(super) const VOTE: u8 = 16;
    pub(super) const STATE: u8 = 17;
    pub(super) const NEW_LEADER: u8 = 18;
    pub(super) const BEGIN: u8 = 19;
    pub(super) const BEGUN: u8 = 20;
    pub(super) const ERROR: u8 = 255;
}

impl<'a> Message<'a> {
    /// Appends the message as one frame.
    pub fn append(&self, out: &mut Vec<u8>) {
        frame::append(out, |out| self.body(Writer(out)));
    }

    fn body(&self, out: Writer<'_>) {
        match *self {
            Self::PeerHello { replica, ballot, starting, era } => {
                out.u8(kind::PEER_HELLO).u8(replica).u32(ballot).bool(starting).u64(era)
            }
            Self::Begin { era, settings } => out.u8(kind::BEGIN).u64(era).bytes(settings),
            Self::Begun { era } => out.u8(kind::BEGUN).u64(era),
            Self::Beat { ballot, executed } => out.u8(kind::BEAT).u32(ballot).u64(executed),
            Self::Vote { ballot } => out.u8(kind::VOTE).u32(ballot),
            Self::Elect { ballot, view, last } => out.u8(kind::ELECT).u32(ballot).u32(view).u64(last),
            Self::State { ballot, last, bytes } => out.u8(kind::STATE).u32(ballot).bool(last).bytes(bytes),
            Self::ClientHello { client, bound } => out.u8(kind::CLIENT_HELLO).u32(client).u8(bound),
            Self::Welcome { replica, known } => out.u8(kind::WELCOME).u8(replica).u32(known),
            Self::NewLeader { ballot, base } => out.u8(kind::NEW_LEADER).u32(ballot).u64(base),
            Self::Propose(p) => {
                let out = out.u8(if p.class == Class::Strong { kind::PROPOSE } else { kind::CAUSAL_PROPOSE });
                let out = out.u32(p.seq).u32(p.done_below).u32(p.causal_dep);
                out.u64(p.observed).u32(p.ballot).bool(p.sync).op(p.class, p.op)
            }
            Self::Reply(r) => out.u8(kind::REPLY).u32(r.seq).u32(r.ballot).bool(r.ok).id(r.read_dep).found(r.found),
            Self::RecordAck(a) => {
                let out = out.u8(kind::RECORD_ACK).u8(a.replica).u32(a.seq).u32(a.ballot);
                out.u8(a.verdict as u8).id(a.read_dep)
            }
            Self::Sync { seq } => out.u8(kind::SYNC).u32(seq),
            Self::SyncReply { seq, found } => out.u8(kind::SYNC_REPLY).u32(seq).found(found),
            Self::CausalReply { seq, found } => out.u8(kind::CAUSAL_REPLY).u32(seq).found(found),
            Self::Batch(Batch { ballot, accepts, accept_count, acks }) => {
                let ack_count = (acks.len() / size_of::<Slot>()) as u32;
                out.u8(kind::BATCH).u32(ballot).u32(accept_count).u32(ack_count).bytes(accepts).bytes(acks)
            }
            Self::StatusRequest { executed } => out.u8(kind::STATUS_REQUEST).u64(executed),
            Self::Status { json } => out.u8(kind::STATUS).bytes(json),
            Self::Error { code, message } => out.u8(kind::ERROR).u8(code as u8).bytes(message.as_bytes()),
        };
    }

    /// The command of a session that this is an answer to.
    #[must_use]
    pub fn answers(&self) -> Option<Seq> {
        match *self {
            Self::Reply(Reply { seq, .. })
            | Self::RecordAck(Ack { seq, .. })
            | Self::SyncReply { seq, .. }
            | Self::CausalReply { seq, .. } => Some(seq),
            _ => None,
        }
    }

    /// Decodes the message in a frame's body.
    ///
    /// # Errors
    ///
    /// If it is invalid.
    pub fn decode(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader(body);
        let message = match r.u8()? {
            kind::PEER_HELLO => {
                let (replica, ballot, starting) = (r.replica()?, r.ballot()?, r.bool("starting")?);
                Self::PeerHello { replica, ballot, starting, era: r.u64()? }
            }
            kind::BEGIN => Self::Begin { era: r.u64()?, settings: r.rest() },
            kind::BEGUN => Self::Begun { era: r.u64()? },
            kind::BEAT => Self::Beat { ballot: r.ballot()?, executed: r.slot()? },
            kind::ELECT => Self::Elect { ballot: r.ballot()?, view: r.ballot()?, last: r.slot()? },
            kind::VOTE => Self::Vote { ballot: r.ballot()? },
            kind::STATE => Self::State { ballot: r.ballot()?, last: r.bool("last")?, bytes: r.rest() },
            kind::CLIENT_HELLO => Self::ClientHello { client: r.u32()?, bound: r.replica()? },
            kind::WELCOME => Self::Welcome { replica: r.replica()?, known: r.u32()? },
            kind::NEW_LEADER => Self::NewLeader { ballot: r.ballot()?, base: r.slot()? },
            of @ (kind::PROPOSE | kind::CAUSAL_PROPOSE) => {
                let (seq, done_below, causal_dep) = (r.seq()?, r.u32()?, r.u32()?);
                let (observed, ballot, sync) = (r.slot()?, r.ballot()?, r.bool("sync")?);
                let (class, op) = r.op()?;
                if (class == Class::Strong) != (of == kind::PROPOSE) {
                    return Err(Malformed::Field("class"));
                }
                Self::Propose(Proposal { class, seq, done_below, causal_dep, observed, ballot, sync, op })
            }
            kind::REPLY => {
                let (seq, ballot, ok) = (r.seq()?, r.ballot()?, r.bool("ok")?);
                Self::Reply(Reply { seq, ballot, ok, read_dep: r.id()?, found: r.found()? })
            }
            kind::RECORD_ACK => Self::RecordAck(Ack {
                replica: r.replica()?,
                seq: r.seq()?,
                ballot: r.ballot()?,
                verdict: r.one_of(&[Verdict::Conflict, Verdict::Recorded, Verdict::Ordered], "verdict")?,
                read_dep: r.id()?,
            }),
            kind::SYNC => Self::Sync { seq: r.seq()? },
            kind::SYNC_REPLY => Self::SyncReply { seq: r.seq()?, found: r.found()? },
            kind::CAUSAL_REPLY => Self::CausalReply { seq: r.seq()?, found: r.found()? },
            kind::BATCH => Self::Batch(r.batch()?),
            kind::STATUS_REQUEST => Self::StatusRequest { executed: r.u64()? },
            kind::STATUS => Self::Status { json: r.rest() },
            kind::ERROR => Self::Error {
                code: r.one_of(&[ErrorCode::Malformed, ErrorCode::Oversized, ErrorCode::Unexpected], "code")?,
                message: std::str::from_utf8(r.rest()).map_err(|_| Malformed::Field("text"))?,
            },
            unknown => return Err(Malformed::Kind(unknown)),
        };
        if r.0.is_empty() { Ok(message) } else { Err(Malformed::Long) }
    }
}

/// Puts fields behind each other.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    fn bytes(self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(self, number: u8) -> Self {
        self.bytes(&[number])
    }

    fn bool(self, truth: bool) -> Self {
        self.u8(u8::from(truth))
    }

    pub(crate) fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn id(self, id: CommandId) -> Self {
        self.u32(id.client).u32(id.seq)
    }

    fn value(self, value: &[u8]) -> Self {
        self.bytes(&(value.len() as u16).to_le_bytes()).bytes(value)
    }

    pub(crate) fn found(self, found: Found<'_>) -> Self {
        self.u64(found.version).value(found.value)
    }

    fn op(self, class: Class, op: Op<'_>) -> Self {
        let out = self.u8(u8::from(class == Class::Strong) | u8::from(op.put.is_some()) << 1).u64(op.key);
        if let Some(value) = op.put { out.value(value) } else { out }
    }
}

/// Takes fields off the front of a body.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// The one of `all` whose place is its number.
    fn one_of<T: Copy>(&mut self, all: &[T], name: &'static str) -> Result<T, Malformed> {
        all.get(usize::from(self.u8()?)).copied().ok_or(Malformed::Field(name))
    }

    fn bool(&mut self, name: &'static str) -> Result<bool, Malformed> {
        self.one_of(&[false, true], name)
    }

    fn replica(&mut self) -> Result<u8, Malformed> {
        self.u8().and_then(|r| if usize::from(r) < REPLICAS { Ok(r) } else { Err(Malformed::Field("replica")) })
    }

    fn ballot(&mut self) -> Result<Ballot, Malformed> {
        self.u32().and_then(|ballot| if ballot <= LAST_BALLOT { Ok(ballot) } else { Err(Malformed::Field("ballot")) })
    }

    pub(crate) fn slot(&mut self) -> Result<Slot, Malformed> {
        self.u64().and_then(|slot| if slot <= LAST_SLOT { Ok(slot) } else { Err(Malformed::Field("slot")) })
    }

    fn seq(&mut self) -> Result<Seq, Malformed> {
        self.u32().and_then(|seq| if seq == 0 { Err(Malformed::Field("sequence number")) } else { Ok(seq) })
    }

    pub(crate) fn id(&mut self) -> Result<CommandId, Malformed> {
        Ok(CommandId { client: self.u32()?, seq: self.u32()? })
    }

    fn value(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::from(self.u16()?);
        if length > MAX_VALUE {
            return Err(Malformed::Field("value's length"));
        }
        let (value, rest) = self.0.split_at_checked(length).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(value)
    }

    pub(crate) fn found(&mut self) -> Result<Found<'a>, Malformed> {
        Ok(Found { version: self.slot()?, value: self.value()? })
    }

    fn op(&mut self) -> Result<(Class, Op<'a>), Malformed> {
        let flags = self.u8()?;
        if flags > 3 {
            return Err(Malformed::Field("operation"));
        }
        let class = if flags & 1 == 1 { Class::Strong } else { Class::Weak };
        let key = self.u64()?;
        let put = if flags & 2 == 2 { Some(self.value()?) } else { None };
        Ok((class, Op { key, put }))
    }

    pub(crate) fn accept(&mut self) -> Result<Accept<'a>, Malformed> {
        let (slot, id) = (self.slot()?, self.id()?);
        let (class, op) = self.op()?;
        Ok(Accept { slot, id, class, op })
    }

    fn batch(&mut self) -> Result<Batch<'a>, Malformed> {
        let (ballot, accept_count, ack_count) = (self.ballot()?, self.u32()?, self.u32()?);
        let count = u64::from(accept_count) + u64::from(ack_count);
        if count > MAX_BATCH as u64 {
            return Err(Malformed::Oversized(count));
        }
        let whole = self.0;
        for _ in 0..accept_count {
            self.accept()?;
        }
        let (accepts, acks) = whole.split_at(whole.len() - self.0.len());
        let wanted = ack_count as usize * size_of::<Slot>();
        if acks.len() != wanted {
            return Err(if acks.len() < wanted { Malformed::Short } else { Malformed::Long });
        }
        self.0 = &[];
        Ok(Batch { ballot, accepts, accept_count, acks })
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::split;

    fn decoded(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
        Message::decode(split(bytes).unwrap().unwrap().0)
    }

    #[test]
    fn batch_round_trips_and_reports_when_full() {
        let accept = Accept {
            slot: 9,
            id: CommandId { client: 1, seq: 2 },
            class: Class::Weak,
            op: Op { key: 3, put: Some(&[7; 100]) },
        };
        let mut writer = BatchWriter::default();
        writer.accept(&accept);
        writer.ack(5);
        writer.ack(6);
        assert_eq!(writer.len(), 3);
        let mut bytes = Vec::new();
        writer.take(3, &mut bytes);
        assert!(writer.is_empty());
        let Ok(Message::Batch(batch)) = decoded(&bytes) else { panic!("no batch") };
        assert_eq!(batch.ballot, 3);
        assert_eq!(batch.accepts().collect::<Vec<_>>(), [accept]);
        assert_eq!(batch.acks().collect::<Vec<_>>(), [5, 6]);
        let mut again = Vec::new();
        Message::Batch(batch).append(&mut again);
        assert_eq!(again, bytes);
        (0..MAX_BATCH as u64).for_each(|slot| writer.ack(slot));
        assert!(writer.is_full());
    }

    #[test]
    fn the_largest_batch_of_the_largest_values_fits_into_a_frame() {
        let value = [0; MAX_VALUE];
        let mut writer = BatchWriter::default();
        while !writer.is_full() {
            let op = Op { key: 0, put: Some(&value) };
            writer.accept(&Accept { slot: 1, id: CommandId::NONE, class: Class::Strong, op });
        }
        let mut bytes = Vec::new();
        writer.take(0, &mut bytes);
        assert!(decoded(&bytes).is_ok());
    }

    #[test]
    fn invalid_message_is_reported() {
        let cases: [(&[u8], Malformed); 11] = [
            (&[77], Malformed::Kind(77)),
            (&[1], Malformed::Short),
            (&[1, 3], Malformed::Field("replica")),
            (&[16, 0, 0, 0, 0, 0], Malformed::Long),
            (&[16, 0, 0, 0, 0x80], Malformed::Field("ballot")),
            (&[14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80], Malformed::Field("slot")),
            (&[8, 0, 0, 0, 0], Malformed::Field("sequence number")),
            (&[11, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0], Malformed::Oversized(0x1_0000_0000)),
            (&[11, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], Malformed::Short),
            (&[11, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], Malformed::Short),
            (&[255, 9], Malformed::Field("code")),
        ];
        for (body, expected) in cases {
            assert_eq!(Message::decode(body), Err(expected), "{body:?}");
        }
    }
}
