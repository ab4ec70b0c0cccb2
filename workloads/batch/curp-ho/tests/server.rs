//! A replica reports invalid input, closes that connection, and continues.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use batch_curp_ho::command::{Class, CommandId, Op};
use batch_curp_ho::process::control;
use batch_curp_ho::process::replica::Settings;
use batch_curp_ho::wire::{Accept, BatchWriter, ErrorCode, MAX_BATCH, MAX_FRAME, Message, Proposal};

/// A replica whose two peers say hello, and nothing else.
struct Server {
    child: Child,
    address: String,
    peers: Vec<TcpStream>,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_batch-curp-ho"));
        let mut child =
            command.args(["replica", "--id=0"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listens ").unwrap().to_owned();
        writeln!(child.stdin.as_mut().unwrap(), "replicas {address} 127.0.0.1:1 127.0.0.1:2").unwrap();
        let mut server = Self { child, address, peers: Vec::new() };
        server.peers = [1, 2].map(|replica| server.peer(replica, 0)).into();
        server
    }

    /// Another replica that has just been started in an era, and has greeted.
    fn peer(&self, replica: u8, era: u64) -> TcpStream {
        let mut peer = self.connect();
        peer.write_all(&bytes(&[Message::PeerHello { replica, ballot: 0, starting: true, era }])).unwrap();
        control::receive(&mut peer).unwrap();
        peer
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes; returns the error that comes back before the connection ends.
    fn refused(&self, stream: &mut TcpStream, bytes: &[u8]) -> (ErrorCode, String) {
        stream.write_all(bytes).unwrap();
        loop {
            let body = control::receive(stream).unwrap();
            match Message::decode(&body).unwrap() {
                Message::Error { code, message } => {
                    let error = (code, message.to_owned());
                    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0, "the connection is closed after {error:?}");
                    return error;
                }
                Message::Welcome { .. } | Message::Reply { .. } | Message::PeerHello { .. } | Message::State { .. } => {
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn lives(&mut self) {
        let status = control::status(&self.address, 0, Duration::from_secs(20)).unwrap();
        assert_eq!(status.executed, 0);
        assert!(self.child.try_wait().unwrap().is_none());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bytes(messages: &[Message<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.append(&mut bytes));
    bytes
}

fn frame(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], body].concat()
}

fn proposal(seq: u32) -> Message<'static> {
    let op = Op { key: 1, put: Some(&[7; 100]) };
    let (class, done_below, causal_dep, observed) = (Class::Strong, 1, 0, 0);
    Message::Propose(Proposal { class, seq, done_below, causal_dep, observed, ballot: 0, sync: false, op })
}

fn accepts(slots: &[u64]) -> Vec<u8> {
    let mut batch = BatchWriter::default();
    for slot in slots {
        let (id, op) = (CommandId { client: 1, seq: 1 }, Op { key: 1, put: None });
        batch.accept(&Accept { slot: *slot, id, class: Class::Weak, op });
    }
    let mut bytes = Vec::new();
    batch.take(0, &mut bytes);
    bytes
}

#[test]
fn every_protocol_error_is_reported_and_the_replica_continues() {
    use ErrorCode::{Malformed, Oversized, Unexpected};
    let mut server = Server::start();
    let hello = Message::ClientHello { client: 9, bound: 0 };
    let peer = Message::PeerHello { replica: 1, ballot: 0, starting: true, era: 0 };
    let too_many = (MAX_BATCH as u32 + 1).to_le_bytes();
    let acks = |slot| {
        let mut batch = BatchWriter::default();
        batch.ack(slot);
        let mut bytes = Vec::new();
        batch.take(0, &mut bytes);
        bytes
    };
    let cases: Vec<(&str, Vec<u8>, ErrorCode, &str)> = vec![
        ("an empty frame", frame(&[]), Malformed, "a frame of 0 bytes"),
        ("a frame that is too large", (MAX_FRAME as u32 + 1).to_le_bytes().to_vec(), Oversized, "a frame of 1048577"),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec(), Oversized, "a frame of 542393671 bytes"),
        ("an unknown message", frame(&[99]), Malformed, "the unknown kind 99"),
        ("half a message", frame(&bytes(&[hello])[4..8]), Malformed, "ends early"),
        ("a message and more", frame(&[&bytes(&[hello])[4..], b"x"].concat()), Malformed, "bytes after its end"),
        ("a replica that is not there", frame(&[1, 7]), Malformed, "replica is out of range"),
        (
            "an oversized batch",
            [bytes(&[peer]), frame(&[&[11][..], &[0; 4], &too_many, &[0; 4]].concat())].concat(),
            Oversized,
            "a batch of 4097 messages; at most 4096 are allowed",
        ),
        ("a batch from a stranger", accepts(&[1]), Unexpected, "may not send now"),
        ("a batch from a client", [bytes(&[hello]), accepts(&[1])].concat(), Unexpected, "may not send now"),
        ("an accept for the leader", [bytes(&[peer]), accepts(&[1])].concat(), Unexpected, "does not lead"),
        ("an empty slot acknowledged", [bytes(&[peer]), acks(5)].concat(), Unexpected, "slot 5, which is empty"),
        (
            "the replica itself",
            bytes(&[Message::PeerHello { replica: 0, ballot: 0, starting: true, era: 0 }]),
            Unexpected,
            "a hello from this replica itself",
        ),
        ("a vote from a client", bytes(&[hello, Message::Vote { ballot: 1 }]), Unexpected, "may not send now"),
        (
            "an invalid state",
            bytes(&[peer, Message::State { ballot: 1, last: true, bytes: &[1; 30] }]),
            Unexpected,
            "a state with a message that ends early",
        ),
        (
            "a state from a replica that does not lead in it",
            bytes(&[peer, Message::State { ballot: 2, last: true, bytes: &[] }]),
            Unexpected,
            "the state of ballot 2 from replica 1",
        ),
        ("a command from a stranger", bytes(&[proposal(1)]), Unexpected, "may not send now"),
        ("a command left out", bytes(&[hello, proposal(2)]), Unexpected, "command 2 of client 9 after command 0"),
        (
            "a client without a name",
            bytes(&[Message::ClientHello { client: 0, bound: 0 }]),
            Unexpected,
            "client 0 is invalid",
        ),
        ("another client's hello", bytes(&[hello, Message::ClientHello { client: 8, bound: 0 }]), Unexpected, "now"),
        ("an answer", bytes(&[Message::Sync { seq: 1 }]), Unexpected, "may not send now"),
    ];
    for (name, bytes, code, part) in cases {
        let mut stream = server.connect();
        let (found, message) = server.refused(&mut stream, &bytes);
        assert!(found == code && message.contains(part), "{name}: {found:?} {message}");
        server.lives();
    }
}

#[test]
fn truncated_connections_are_cleaned_up() {
    let mut server = Server::start();
    let whole = bytes(&[Message::ClientHello { client: 9, bound: 0 }, proposal(1)]);
    // The last byte would make it a command.
    for cut in [1, 4, 6, 11, whole.len() - 1] {
        server.connect().write_all(&whole[..cut]).unwrap();
    }
    server.lives();
    // A connection that still has good things to say is served beside all of them.
    let mut stream = server.connect();
    stream.write_all(&whole).unwrap();
    let welcome = control::receive(&mut stream).unwrap();
    assert_eq!(Message::decode(&welcome), Ok(Message::Welcome { replica: 0, known: 0 }));
    let reply = control::receive(&mut stream).unwrap();
    assert!(matches!(Message::decode(&reply), Ok(Message::Reply(reply)) if reply.ok && reply.seq == 1));
}

#[test]
fn a_trial_begins_when_all_replicas_have_forgotten_the_one_before() {
    let mut server = Server::start();
    let status = |server: &Server| control::status(&server.address, 0, Duration::from_secs(20)).unwrap();
    // A command that the leader and a follower have: the replica has a state now.
    let mut client = server.connect();
    client.write_all(&bytes(&[Message::ClientHello { client: 9, bound: 0 }, proposal(1)])).unwrap();
    (0..2).for_each(|_| drop(control::receive(&mut client).unwrap()));
    let mut ack = BatchWriter::default();
    ack.ack(1);
    let mut acked = Vec::new();
    ack.take(0, &mut acked);
    server.peers[0].write_all(&acked).unwrap();
    let before = control::status(&server.address, 1, Duration::from_secs(20)).unwrap();
    assert_eq!((before.era, before.executed, before.keys), (0, 1, 1));

    let settings = serde_json::to_vec(&Settings::default()).unwrap();
    let mut asker = server.connect();
    asker.write_all(&bytes(&[Message::Begin { era: 7, settings: &settings }])).unwrap();
    // All connections of the trial before have ended, and nothing is left of it.
    for mut old in server.peers.drain(..).chain([client]) {
        while old.read(&mut [0; 256]).unwrap_or(0) > 0 {}
    }
    let after = status(&server);
    assert_eq!((after.era, after.executed, after.keys, after.settled), (7, 0, 0, false));
    // A replica that has not begun anew is not heard: neither its hello nor the state that it still has.
    for era in [0, 6, 8] {
        let mut other = server.connect();
        let hello = Message::PeerHello { replica: 1, ballot: 3, starting: false, era };
        let (code, message) = server.refused(&mut other, &bytes(&[hello]));
        assert!(code == ErrorCode::Unexpected && message.contains("another era"), "{message}");
    }
    // It confirms that all have begun anew once it has heard so from both, and not before.
    let _one = server.peer(1, 7);
    assert!(!status(&server).settled);
    // All earlier messages to this client have arrived.
    asker.set_nonblocking(true).unwrap();
    let nothing = asker.peek(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock, "one of them has not begun anew");
    asker.set_nonblocking(false).unwrap();
    let _two = server.peer(2, 7);
    assert_eq!(Message::decode(&control::receive(&mut asker).unwrap()), Ok(Message::Begun { era: 7 }));
    assert!(status(&server).settled);

    let endless = serde_json::to_vec(&Settings { suspect_after: u64::MAX, ..Settings::default() }).unwrap();
    for (era, settings, part) in [
        (7, &*settings, "era 7, and this replica is in era 7"),
        (3, &settings, "era 3, and this replica is in era 7"),
        (8, b"{}", "invalid settings: missing field"),
        (8, &endless, "invalid settings: suspect_after of 18446744073709551615 ns; at most 60000000000"),
    ] {
        let mut late = server.connect();
        let (code, message) = server.refused(&mut late, &bytes(&[Message::Begin { era, settings }]));
        assert!(code == ErrorCode::Unexpected && message.contains(part), "{message}");
    }
    server.lives();
}

#[test]
fn replica_that_does_not_catch_up_is_reported_with_its_timeout() {
    let mut server = Server::start();
    let error = control::status(&server.address, 5, Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.to_string(), "a replica has not executed 5 commands after 0.05 s");
    server.lives();
}

#[test]
fn replica_exits_with_its_parent() {
    let mut server = Server::start();
    server.lives();
    drop(server.child.stdin.take());
    assert!(server.child.wait().unwrap().success());
}
