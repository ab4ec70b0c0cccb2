//! The state that a leader sends to a follower: keys, answers that sessions may request, and the unexecuted part of the
//! log. It is one byte string, sent in frame-sized parts.

use std::collections::{HashMap, VecDeque};

use super::hash::NumberMap;
use super::log::{Entry, Log};
use super::session::Session;
use super::store::Store;
use crate::command::{ClientId, Seq, Slot};
use crate::wire::{Accept, Malformed, Reader, Writer};

/// Bytes of a part.
pub(super) const PART: usize = 256 << 10;

/// A session's newest executed command, and the answers that it may not have.
pub(super) type Kept = (Seq, VecDeque<(Seq, Slot, Vec<u8>)>);

/// A leader's state.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// A running hash over the names of the executed commands.
    pub history: u64,
    pub store: Store,
    pub sessions: Vec<(ClientId, Kept)>,
    pub log: Log,
    /// The newest command of each session, executed or in the log.
    pub newest: HashMap<ClientId, Seq>,
}

/// A leader's state, as bytes.
pub(super) fn encode(history: u64, store: &Store, sessions: &NumberMap<ClientId, Session>, log: &Log) -> Vec<u8> {
    let mut out = Vec::new();
    Writer(&mut out).u64(log.executed()).u64(history).u64(store.len() as u64);
    for (key, found) in store.iter() {
        Writer(&mut out).u64(key).found(found);
    }
    Writer(&mut out).u32(sessions.len() as u32);
    for (client, session) in sessions {
        Writer(&mut out).u32(*client).u32(session.executed).u32(session.kept() as u32);
        for (seq, found) in session.answers() {
            Writer(&mut out).u32(seq).found(found);
        }
    }
    Writer(&mut out).u32(log.len() as u32);
    for (slot, entry) in log.iter() {
        Accept { slot, id: entry.id, class: entry.class, op: entry.op() }.append(&mut out);
    }
    out
}

/// Decodes a state; the replicas in `accepted_by` have accepted its log.
///
/// # Errors
///
/// If it is invalid. Counts are validated, and the log's commands must follow those executed by their sessions.
pub(super) fn decode(bytes: &[u8], accepted_by: u8) -> Result<Snapshot, Malformed> {
    let mut r = Reader(bytes);
    let (executed, history) = (r.slot()?, r.u64()?);
    let mut store = Store::default();
    for _ in 0..r.u64()? {
        let (key, found) = (r.u64()?, r.found()?);
        store.put(key, found.version, found.value);
    }
    let (mut sessions, mut newest) = (Vec::new(), HashMap::new());
    for _ in 0..r.u32()? {
        let (client, done) = (r.u32()?, r.u32()?);
        let mut answers = VecDeque::new();
        for _ in 0..r.u32()? {
            let (seq, found) = (r.u32()?, r.found()?);
            answers.push_back((seq, found.version, found.value.to_vec()));
        }
        newest.insert(client, done);
        sessions.push((client, (done, answers)));
    }
    let mut log = Log::after(executed);
    for _ in 0..r.u32()? {
        let Accept { slot, id, class, op } = r.accept()?;
        let newest: &mut Seq = newest.entry(id.client).or_default();
        if slot != log.next() || newest.checked_add(1) != Some(id.seq) {
            return Err(Malformed::Field("slot"));
        }
        *newest = id.seq;
        let put = op.put.map(<[u8]>::to_vec);
        log.append(Entry { id, class, key: op.key, put, sync: false }, accepted_by);
    }
    if r.0.is_empty() { Ok(Snapshot { history, store, sessions, log, newest }) } else { Err(Malformed::Long) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Class, CommandId};

    #[test]
    fn a_state_reads_back_whole_and_no_part_of_it_is_one() {
        let (mut store, mut sessions, mut log) = (Store::default(), NumberMap::default(), Log::after(7));
        store.put(3, 5, b"value");
        let mut session = Session::default();
        session.install(4, VecDeque::from([(4, 5, b"value".to_vec())]));
        sessions.insert(9, session);
        sessions.insert(10, Session::default());
        for (seq, put) in [(5, Some(b"other".to_vec())), (6, None)] {
            let id = CommandId { client: 9, seq };
            log.append(Entry { id, class: Class::Strong, key: 3, put, sync: true }, 1);
        }
        let bytes = encode(77, &store, &sessions, &log);
        let snapshot = decode(&bytes, 0b11).unwrap();
        assert_eq!(
            (snapshot.history, snapshot.store.digest(), snapshot.store.get(3)),
            (77, store.digest(), store.get(3))
        );
        assert_eq!((snapshot.log.executed(), snapshot.log.next()), (7, 10));
        let mut kept: Vec<_> = snapshot.sessions;
        kept.sort_unstable_by_key(|(client, _)| *client);
        assert_eq!(kept[0], (9, (4, VecDeque::from([(4, 5, b"value".to_vec())]))));
        assert_eq!(kept[1], (10, (0, VecDeque::new())));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut], 0b11).is_err(), "{cut} of {} bytes", bytes.len());
        }
        assert_eq!(decode(&[&bytes[..], b"x"].concat(), 0b11).unwrap_err(), Malformed::Long);
        // There is no slot after the last one.
        assert_eq!(decode(&[&[0xff; 8][..], &bytes[8..]].concat(), 0b11).unwrap_err(), Malformed::Field("slot"));
        // Each bit flip is rejected or gives a different state.
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = decode(&damaged, 0b11) {
                assert_eq!(other.log.len(), 2, "bit {bit}");
            }
        }
    }
}
