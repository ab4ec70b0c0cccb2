//! What is kept of every command, and how it travels from a load generator to whoever started it.

use std::io::{self, Read, Write};

use crate::client::quorum::Path;
use crate::client::{Completed, Request};
use crate::command::{Class, ClientId, CommandId};

/// A command with its answer. Times are nanoseconds of the machine's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The command's name.
    pub id: CommandId,
    /// What was asked.
    pub request: Request,
    /// When it was meant to start.
    pub intended: u64,
    /// When it was sent.
    pub invoked: u64,
    /// When its answer came.
    pub ended: u64,
    /// Who wrote what it read.
    pub read: CommandId,
    /// How it came to its answer.
    pub path: Path,
}

/// Bytes of a record on its way.
pub const RECORD: usize = 49;

impl Record {
    /// The record of `client`'s command, whose answer came at `ended`.
    #[must_use]
    pub fn new(client: ClientId, completed: &Completed, ended: u64) -> Self {
        let Completed { seq, request, intended, invoked, read, path } = *completed;
        Self { id: CommandId { client, seq }, request, intended, invoked, ended, read, path }
    }

    fn to_bytes(self) -> [u8; RECORD] {
        let path = match self.path {
            Path::Fast => 0,
            Path::Slow => 1,
            Path::Synced => 2,
            Path::Bound => 3,
            Path::Overtaken => 4,
        };
        let strong = self.request.class == Class::Strong;
        let mut bytes = [0; RECORD];
        let numbers = [self.request.key, self.intended, self.invoked, self.ended];
        bytes.chunks_mut(8).zip(numbers).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
        let small = [self.id.client, self.id.seq, self.read.client, self.read.seq];
        bytes[32..].chunks_mut(4).zip(small).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
        bytes[48] = path | u8::from(strong) << 3 | u8::from(self.request.put) << 4;
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Self {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let small = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let flags = bytes[48];
        let path = match flags & 7 {
            0 => Path::Fast,
            1 => Path::Slow,
            2 => Path::Synced,
            3 => Path::Bound,
            _ => Path::Overtaken,
        };
        let class = if flags & 8 == 8 { Class::Strong } else { Class::Weak };
        Self {
            id: CommandId { client: small(32), seq: small(36) },
            request: Request { class, put: flags & 16 == 16, key: number(0) },
            intended: number(8),
            invoked: number(16),
            ended: number(24),
            read: CommandId { client: small(40), seq: small(44) },
            path,
        }
    }
}

/// Writes records.
///
/// # Errors
///
/// When the receiver is gone.
pub fn write(records: &[Record], out: &mut impl Write) -> io::Result<()> {
    records.iter().try_for_each(|record| out.write_all(&record.to_bytes()))
}

/// Reads `count` records.
///
/// # Errors
///
/// When there are fewer.
pub fn read(count: usize, input: &mut impl Read) -> io::Result<Vec<Record>> {
    let mut bytes = [0; RECORD];
    (0..count).map(|_| input.read_exact(&mut bytes).map(|()| Record::from_bytes(&bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back() {
        let paths = [Path::Fast, Path::Slow, Path::Synced, Path::Overtaken, Path::Bound];
        let records: Vec<Record> = paths
            .into_iter()
            .zip([Class::Strong, Class::Strong, Class::Strong, Class::Strong, Class::Weak])
            .zip([true, false, true, false, false])
            .map(|((path, class), put)| Record {
                id: CommandId { client: 3, seq: 4 },
                request: Request { class, put, key: u64::MAX },
                intended: 1,
                invoked: 2,
                ended: 3,
                read: CommandId { client: 5, seq: 6 },
                path,
            })
            .collect();
        let mut bytes = Vec::new();
        write(&records, &mut bytes).unwrap();
        assert_eq!(read(5, &mut bytes.as_slice()).unwrap(), records);
        assert!(read(6, &mut bytes.as_slice()).is_err());
    }
}
