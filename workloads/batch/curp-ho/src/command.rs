//! Commands, who sent them, and values that say who wrote them.

/// How many replicas there are.
pub const REPLICAS: usize = 3;
/// How many of them make a slot final.
pub const MAJORITY: usize = REPLICAS / 2 + 1;
/// How many of them must agree for the fast path: `floor(3N/4) + 1`, which for three replicas is every one.
pub const FAST_QUORUM: usize = 3 * REPLICAS / 4 + 1;
/// The replica that orders commands until another is elected: the leader of ballot 0.
pub const LEADER: u8 = leader_of(0);
/// Bytes of the longest value.
pub const MAX_VALUE: usize = 4096;
/// Bytes of the shortest value: the part that names its writer.
pub const MIN_VALUE: usize = 16;

/// Where the replicas listen: a host and a port of each.
pub type Addresses = [String; REPLICAS];

/// One of the trials that the same replicas serve one after another.
pub type Era = u64;

/// A session's name.
pub type ClientId = u32;
/// A command's number within its session, from 1 without gaps. Zero is "none".
pub type Seq = u32;
/// A command's place in the log, from 1 without gaps. Zero is "before everything".
pub type Slot = u64;
/// Whose turn it is to lead; a later leader has a larger one.
pub type Ballot = u32;
/// The last ballot and the last slot that are spoken of: those after them can be counted without an end in sight.
pub const LAST_BALLOT: Ballot = Ballot::MAX / 2;
/// See [`LAST_BALLOT`].
pub const LAST_SLOT: Slot = Slot::MAX / 2;

/// The replica that leads in a ballot: no two replicas ever share one.
#[must_use]
pub const fn leader_of(ballot: Ballot) -> u8 {
    (ballot % REPLICAS as u32) as u8
}

/// A command's name. Sequence number zero names no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CommandId {
    /// Whose it is.
    pub client: ClientId,
    /// Its number.
    pub seq: Seq,
}

impl CommandId {
    /// No command.
    pub const NONE: Self = Self { client: 0, seq: 0 };
}

/// The consistency that a client is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Linearizable.
    Strong,
    /// Causally consistent; answered by the session's bound replica alone.
    Weak,
}

/// What to do with a key: read it, or write a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op<'a> {
    /// The key.
    pub key: u64,
    /// The value of a PUT; a GET has none.
    pub put: Option<&'a [u8]>,
}

/// Result of a read: the slot of the observed write (zero if the key was never written, or if the write is the
/// session's own and has no slot here yet) and the value (empty if absent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found<'a> {
    /// Slot of the write.
    pub version: Slot,
    /// Its value.
    pub value: &'a [u8],
}

/// Fills `value` with the name of its writer, and with bytes that follow from the name, so that a mixed-up value is noticed.
///
/// # Panics
///
/// When the value is shorter than [`MIN_VALUE`].
pub fn fill_value(value: &mut [u8], writer: CommandId) {
    value[..4].copy_from_slice(&writer.client.to_le_bytes());
    value[4..8].copy_from_slice(&writer.seq.to_le_bytes());
    let pattern = mix(u64::from(writer.client) << 32 | u64::from(writer.seq)).to_le_bytes();
    for chunk in value[8..].chunks_mut(8) {
        chunk.copy_from_slice(&pattern[..chunk.len()]);
    }
}

/// Returns the writer of `value`: [`CommandId::NONE`] for the empty value of a key that was never written, `None` for a
/// value that no client can have written.
#[must_use]
pub fn writer_of(value: &[u8]) -> Option<CommandId> {
    if value.is_empty() {
        return Some(CommandId::NONE);
    }
    let number = |at: usize| value.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let writer = CommandId { client: number(0)?, seq: number(4)? };
    let pattern = mix(u64::from(writer.client) << 32 | u64::from(writer.seq)).to_le_bytes();
    let whole = value.len() >= MIN_VALUE && value[8..].chunks(8).all(|chunk| *chunk == pattern[..chunk.len()]);
    (whole && writer.seq != 0).then_some(writer)
}

/// A bijection that spreads its argument over all bits (the finaliser of `SplitMix64`).
#[must_use]
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_replicas_need_a_majority_or_all_for_the_fast_path() {
        assert_eq!((MAJORITY, FAST_QUORUM), (2, 3));
    }

    #[test]
    fn value_identifies_its_writer_and_a_damaged_one_does_not() {
        let writer = CommandId { client: 7, seq: 9 };
        for length in [16, 17, 100, 4096] {
            let mut value = vec![0; length];
            fill_value(&mut value, writer);
            assert_eq!(writer_of(&value), Some(writer));
            for at in [0, 5, 8, length - 1] {
                let mut damaged = value.clone();
                damaged[at] ^= 1;
                assert_eq!(writer_of(&damaged), None, "byte {at} of {length}");
            }
        }
        assert_eq!(writer_of(&[]), Some(CommandId::NONE));
        assert_eq!(writer_of(&[0; 100]), None);
        assert_eq!(writer_of(&[1; 7]), None);
    }
}
