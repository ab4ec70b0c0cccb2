//! The record of a command, and its transfer from a load generator to its parent.

use std::io::{self, Read, Write};

use crate::client::quorum::Path;
use crate::client::{Completed, Request};
use crate::command::{Class, ClientId, CommandId};
use crate::wire::{Malformed, Reader, Writer};

/// A command with its answer. Times are nanoseconds of the machine's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The command's name.
    pub id: CommandId,
    /// The request.
    pub request: Request,
    /// When it was meant to start.
    pub intended: u64,
    /// When it was sent.
    pub invoked: u64,
    /// When its answer came.
    pub ended: u64,
    /// The writer of the value read.
    pub read: CommandId,
    /// How it came to its answer.
    pub path: Path,
}

/// Bytes of a record on its way.
const RECORD: usize = 49;
/// The paths, by their numbers there.
const PATHS: [Path; 5] = [Path::Fast, Path::Overtaken, Path::Slow, Path::Synced, Path::Bound];

impl Record {
    /// The record of `client`'s command, whose answer came at `ended`.
    #[must_use]
    pub fn new(client: ClientId, completed: &Completed, ended: u64) -> Self {
        let Completed { seq, request, intended, invoked, read, path } = *completed;
        Self { id: CommandId { client, seq }, request, intended, invoked, ended, read, path }
    }

    fn append(&self, out: &mut Vec<u8>) {
        let Self { request, intended, invoked, ended, .. } = *self;
        let flags = self.path as u8 | u8::from(request.class == Class::Strong) << 3 | u8::from(request.put) << 4;
        Writer(out).u64(request.key).u64(intended).u64(invoked).u64(ended).id(self.id).id(self.read).u8(flags);
    }

    fn decode(bytes: &[u8; RECORD]) -> Result<Self, Malformed> {
        let mut r = Reader(bytes);
        let (key, intended, invoked, ended) = (r.u64()?, r.u64()?, r.u64()?, r.u64()?);
        let (id, read, flags) = (r.id()?, r.id()?, r.u8()?);
        let class = if flags & 8 == 8 { Class::Strong } else { Class::Weak };
        let path = *PATHS.get(usize::from(flags & 7)).ok_or(Malformed::Field("path"))?;
        Ok(Self { id, request: Request { class, put: flags & 16 == 16, key }, intended, invoked, ended, read, path })
    }
}

/// Writes records.
///
/// # Errors
///
/// When the receiver is gone.
pub fn write(records: &[Record], out: &mut impl Write) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(RECORD);
    records.iter().try_for_each(|record| {
        bytes.clear();
        record.append(&mut bytes);
        out.write_all(&bytes)
    })
}

/// Reads `count` records.
///
/// # Errors
///
/// If there are fewer, or they are invalid.
pub fn read(count: usize, input: &mut impl Read) -> io::Result<Vec<Record>> {
    let mut bytes = [0; RECORD];
    let mut one = || {
        input.read_exact(&mut bytes)?;
        Record::decode(&bytes).map_err(|malformed| io::Error::other(malformed.to_string()))
    };
    (0..count).map(|_| one()).collect()
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
