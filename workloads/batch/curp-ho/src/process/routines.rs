//! Writes answers beside the thread that handles messages, as the document's program did: there each command that was not executed had a
//! routine, up to a bound beyond which that thread did the work itself, and all writes of a replica took one lock.
//!
//! Routines are many on few threads, as many as there are CPUs. The answers to one command go through one thread, so that they keep their
//! order; those to different commands may overtake each other.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::{CommandId, mix};
use crate::net::writable_within;

/// Lock that serializes writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteLock {
    /// A lock of the connection.
    #[default]
    Connection,
    /// One lock for all that a replica writes.
    Replica,
}

assay_harness::choices!(WriteLock { "connection" => Connection, "replica" => Replica });

/// Timeout of writes to a client, which hold the lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection that several threads write to.
#[derive(Debug)]
pub(super) struct Way {
    stream: Arc<TcpStream>,
    lock: Mutex<()>,
}

impl Way {
    pub(super) fn new(stream: Arc<TcpStream>) -> Self {
        Self { stream, lock: Mutex::new(()) }
    }
}

/// A frame, and the way that it is to go.
type Job = (Arc<Way>, Vec<u8>);

/// State shared by the threads.
#[derive(Debug, Default)]
struct Shared {
    /// The lock that all writes of the replica take, if they take one.
    replica: Option<Arc<Mutex<()>>>,
    /// Frames that are handed over and not written.
    left: AtomicUsize,
    writes: AtomicU64,
    bytes: AtomicU64,
}

/// Threads that write answers. Dropping it waits until all are written.
#[derive(Debug)]
pub(super) struct Routines {
    bound: usize,
    /// Answers by routines, and those beyond the bound.
    pub(super) answers: (u64, u64),
    shared: Arc<Shared>,
    threads: Vec<(Sender<Job>, JoinHandle<()>)>,
}

impl Routines {
    /// At most `bound` routines on `threads` threads; all writes lock `replica` if given.
    pub(super) fn new(bound: usize, threads: usize, replica: Option<Arc<Mutex<()>>>) -> Self {
        let shared = Arc::new(Shared { replica, ..Shared::default() });
        let start = |_| {
            let (sender, jobs) = channel();
            let shared = Arc::clone(&shared);
            (sender, std::thread::spawn(move || shared.work(&jobs)))
        };
        let threads = (0..threads).map(start).collect();
        Self { bound, answers: (0, 0), shared, threads }
    }

    /// Writes an answer to `command`, while `live` commands are not executed: by a routine if it may have one, else at once.
    pub(super) fn answer(&mut self, command: CommandId, live: usize, way: &Arc<Way>, frame: Vec<u8>) {
        if live >= self.bound {
            self.answers.1 += 1;
            self.shared.write(way, &frame);
            return;
        }
        let at = mix(u64::from(command.client) << 32 | u64::from(command.seq)) as usize % self.threads.len();
        self.answers.0 += 1;
        self.shared.left.fetch_add(1, Ordering::Relaxed);
        self.threads[at].0.send((Arc::clone(way), frame)).expect("a routine ends with its sender");
    }

    /// Writes a message other than an answer, after all answers queued before it.
    pub(super) fn tell(&self, way: &Way, frame: &[u8]) {
        self.settle();
        self.shared.write(way, frame);
    }

    /// Waits until all that was handed over is written.
    pub(super) fn settle(&self) {
        while self.shared.left.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }

    /// Calls of `write`, and the bytes that they wrote.
    pub(super) fn written(&self) -> (u64, u64) {
        (self.shared.writes.load(Ordering::Relaxed), self.shared.bytes.load(Ordering::Relaxed))
    }
}

impl Drop for Routines {
    fn drop(&mut self) {
        for (sender, thread) in self.threads.drain(..) {
            drop(sender);
            thread.join().expect("a routine does not panic");
        }
    }
}

impl Shared {
    fn work(&self, jobs: &Receiver<Job>) {
        for (way, frame) in jobs {
            self.write(&way, &frame);
            self.left.fetch_sub(1, Ordering::Release);
        }
    }

    /// Writes a whole frame. A connection that breaks here is found to be closed when it is read.
    fn write(&self, way: &Way, frame: &[u8]) {
        let lock = self.replica.as_deref().unwrap_or(&way.lock);
        // The lock protects the order of bytes on a connection, which a panic cannot leave inconsistent.
        let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = frame;
        while !left.is_empty() {
            self.writes.fetch_add(1, Ordering::Relaxed);
            match (&*way.stream).write(left) {
                Ok(count) => {
                    self.bytes.fetch_add(count as u64, Ordering::Relaxed);
                    left = &left[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && writable_within(&way.stream, PATIENCE) => {}
                Err(_) => {
                    // Half a frame would make nonsense of all that follows.
                    let _ = way.stream.shutdown(Shutdown::Both);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{HEADER, Message, split};
    use std::io::Read;
    use std::net::TcpListener;

    /// A connection whose sending end does not block.
    fn pair() -> (Arc<Way>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let sender = listener.accept().unwrap().0;
        sender.set_nonblocking(true).unwrap();
        (Arc::new(Way::new(Arc::new(sender))), receiver)
    }

    fn locks() -> [Option<Arc<Mutex<()>>>; 2] {
        [None, Some(Arc::default())]
    }

    #[test]
    fn frames_arrive_whole_and_once_and_those_of_a_command_in_their_order() {
        const COMMANDS: u32 = 400;
        for lock in locks() {
            // All by routines, all by the one thread, and some by each.
            for bound in [usize::MAX, 0, 3] {
                let mut routines = Routines::new(bound, 4, lock.clone());
                let ways = [pair(), pair()];
                // A command's number, the part of its answer, and padding; data beyond the socket's buffer waits for
                // the reader.
                let answer = |seq: u32, part: u8| {
                    let filler = vec![seq as u8 ^ part; (seq as usize * 7919) % 100_000];
                    [&seq.to_le_bytes()[..], &[part], &filler].concat()
                };
                let seen = std::thread::scope(|scope| {
                    let readers = ways.each_ref().map(|(_, receiver)| {
                        scope.spawn(move || {
                            let (mut receiver, mut bytes) = (receiver, Vec::new());
                            receiver.read_to_end(&mut bytes).unwrap();
                            bytes
                        })
                    });
                    for seq in 1..=COMMANDS {
                        for (client, (way, _)) in (1..).zip(&ways) {
                            for part in [1, 2] {
                                let mut frame = Vec::new();
                                Message::Status { json: &answer(seq, part) }.append(&mut frame);
                                // Whether a command has a routine does not change while it has answers.
                                routines.answer(CommandId { client, seq }, seq as usize % 5, way, frame);
                            }
                        }
                    }
                    for (way, _) in &ways {
                        routines.tell(way, &[1, 0, 0, 0, 0xff]);
                        way.stream.shutdown(Shutdown::Write).unwrap();
                    }
                    readers.map(|reader| reader.join().unwrap())
                });
                let mut written = 0;
                for bytes in seen {
                    written += bytes.len() as u64;
                    let (mut left, mut parts) = (&bytes[..], vec![0; COMMANDS as usize + 1]);
                    while let Some((body, rest)) = split(left).unwrap() {
                        left = rest;
                        if rest.is_empty() {
                            assert_eq!(body, [0xff], "other messages follow all answers");
                            break;
                        }
                        let Ok(Message::Status { json }) = Message::decode(body) else { panic!("{body:?}") };
                        let (number, rest) = json.split_first_chunk().unwrap();
                        let seq = u32::from_le_bytes(*number);
                        parts[seq as usize] += 1;
                        assert_eq!(rest[0], parts[seq as usize], "an answer to {seq} comes once and in its turn");
                        assert_eq!(json, answer(seq, rest[0]), "a whole answer");
                    }
                    assert!(left.is_empty() && parts[1..].iter().all(|parts| *parts == 2), "bound {bound}: {parts:?}");
                }
                let all = u64::from(COMMANDS) * 4;
                let by_routines = if bound == 3 { all * 3 / 5 } else { all * (bound as u64).min(1) };
                assert_eq!(routines.answers, (by_routines, all - by_routines));
                let (calls, bytes) = routines.written();
                assert!(bytes == written && calls >= all, "{calls} calls, {bytes} of {written} bytes");
            }
        }
    }

    #[test]
    fn client_that_does_not_read_is_disconnected() {
        let routines = Routines::new(1, 1, None);
        let (way, mut receiver) = pair();
        routines.tell(&way, &vec![0; 64 << 20]);
        let mut bytes = Vec::new();
        receiver.read_to_end(&mut bytes).unwrap();
        assert!((HEADER..64 << 20).contains(&bytes.len()), "{} bytes", bytes.len());
    }
}
