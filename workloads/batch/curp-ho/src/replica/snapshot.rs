//! What a leader gives a replica that is to follow it: the state, what sessions may still ask for, and the part of the log that is not
//! executed. It is one string of bytes, sent in parts that fit into frames.

use std::collections::VecDeque;

use super::Replica;
use super::log::{Entry, Log};
use super::store::Store;
use crate::command::{ClientId, Seq, Slot};
use crate::wire::{Accept, Malformed, Reader, put_found};

/// Bytes of a part.
pub(super) const PART: usize = 256 << 10;

/// What a session may still ask for: its newest executed command, and the answers that it may not have.
pub(super) type Kept = (Seq, VecDeque<(Seq, Slot, Vec<u8>)>);

/// A leader's state.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// A running hash over the names of the executed commands.
    pub history: u64,
    pub store: Store,
    pub sessions: Vec<(ClientId, Kept)>,
    pub log: Log,
}

/// The state of `replica`, as bytes.
pub(super) fn encode(replica: &Replica) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(replica.executed().to_le_bytes());
    out.extend(replica.history.to_le_bytes());
    out.extend((replica.store.len() as u64).to_le_bytes());
    for (key, found) in replica.store.iter() {
        out.extend(key.to_le_bytes());
        put_found(&mut out, found);
    }
    out.extend((replica.sessions.len() as u32).to_le_bytes());
    for (client, session) in &replica.sessions {
        let numbers = [*client, session.executed, session.kept() as u32];
        numbers.into_iter().for_each(|number| out.extend(number.to_le_bytes()));
        for (seq, found) in session.answers() {
            out.extend(seq.to_le_bytes());
            put_found(&mut out, found);
        }
    }
    out.extend((replica.log.len() as u32).to_le_bytes());
    for (slot, entry) in replica.log.iter() {
        Accept { slot, id: entry.id, class: entry.class, op: entry.op() }.append(&mut out);
    }
    out
}

/// The state in `bytes`; the replicas of the set `accepted_by` have accepted its log.
///
/// # Errors
///
/// When there is none. No count is trusted.
pub(super) fn decode(bytes: &[u8], accepted_by: u8) -> Result<Snapshot, Malformed> {
    let mut r = Reader(bytes);
    let (executed, history) = (r.u64()?, r.u64()?);
    let mut store = Store::default();
    for _ in 0..r.u64()? {
        let (key, found) = (r.u64()?, r.found()?);
        store.put(key, found.version, found.value);
    }
    let mut sessions = Vec::new();
    for _ in 0..r.u32()? {
        let (client, done) = (r.u32()?, r.u32()?);
        let mut answers = VecDeque::new();
        for _ in 0..r.u32()? {
            let (seq, found) = (r.u32()?, r.found()?);
            answers.push_back((seq, found.version, found.value.to_vec()));
        }
        sessions.push((client, (done, answers)));
    }
    let mut log = Log::after(executed);
    for _ in 0..r.u32()? {
        let Accept { slot, id, class, op } = r.accept()?;
        if slot != log.next() {
            return Err(Malformed::Field("slot"));
        }
        let put = op.put.map(<[u8]>::to_vec);
        log.append(Entry { id, class, key: op.key, put, sync: false }, accepted_by);
    }
    if r.0.is_empty() { Ok(Snapshot { history, store, sessions, log }) } else { Err(Malformed::Long) }
}
