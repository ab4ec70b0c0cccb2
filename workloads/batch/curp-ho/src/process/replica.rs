//! `batch-curp-ho replica`: one replica and its connections, on one thread.
//!
//! It prints `port N`, reads `peers N N N` from standard input, connects to the replicas before it, and prints `ready` once it is
//! connected to both others. It ends when standard input does.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::command::{ClientId, REPLICAS};
use crate::net::{Connection, Poll, Ready, State, Timer, now, usage};
use crate::replica::batcher::{Flush, Moment};
use crate::replica::{Outbox, Replica, Unexpected, Usage};
use crate::wire::{ErrorCode, Malformed, Message};

/// How a timed batch waits for its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// As the document's program did: an idle process sleeps in whole milliseconds, a busy one looks at the clock whenever it has
    /// handled its input.
    GoLike,
    /// To the nanosecond.
    Precise,
}

impl TimerKind {
    /// Their names.
    pub const CHOICES: [(&'static str, Self); 2] = [("go-like", Self::GoLike), ("precise", Self::Precise)];
}

/// When messages other than batches are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Each by itself, as the document's program did.
    Each,
    /// Together, once all input that was there has been handled.
    Coalesced,
}

impl Writes {
    /// Their names.
    pub const CHOICES: [(&'static str, Self); 2] = [("each", Self::Each), ("coalesced", Self::Coalesced)];
}

/// The command line of a replica.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Which one it is.
    pub id: u8,
    /// When batches are sent.
    pub flush: Flush,
    /// How timed batches wait.
    pub timer: TimerKind,
    /// When other messages are sent.
    pub writes: Writes,
}

const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;

/// Runs a replica until standard input ends.
///
/// # Errors
///
/// When the system refuses, or the one that started it says something else than it should.
pub fn run(settings: &Settings) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    say(&format!("port {}", listener.local_addr()?.port()))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let ports = line.strip_prefix("peers ").map(|rest| rest.split_whitespace().map(str::parse::<u16>));
    let ports: Vec<u16> = ports.and_then(|ports| ports.collect::<Result<_, _>>().ok()).unwrap_or_default();
    if ports.len() != REPLICAS {
        return Err(io::Error::other(format!("{line:?} on standard input instead of \"peers\" and {REPLICAS} ports")));
    }

    let mut server = Server::new(settings, listener)?;
    for peer in 0..settings.id {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ports[usize::from(peer)]))?;
        let token = server.adopt(stream)?;
        server.io.send_to(token, &Message::PeerHello { replica: settings.id });
        server.io.dial(peer, token);
    }
    server.serve()
}

/// Says something to whoever started the process.
pub(super) fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Stranger,
    /// A replica that was called and has not answered yet.
    Dialled(u8),
    Peer(u8),
    Client(ClientId),
}

struct Link {
    connection: Connection,
    role: Role,
    /// An error frame is on its way; nothing else is read or sent.
    closing: bool,
}

/// The connections.
struct Io {
    poll: Poll,
    links: Vec<Option<Link>>,
    clients: HashMap<ClientId, usize>,
    peers: [Option<usize>; REPLICAS],
    /// Connections with something to send.
    dirty: Vec<usize>,
    writes: Writes,
    usage: Usage,
}

struct Server {
    replica: Replica,
    io: Io,
    listener: TcpListener,
    timer: Timer,
    timer_kind: TimerKind,
    /// Who wants to know the state, and after how many slots.
    questions: Vec<(usize, u64)>,
    ready: bool,
    id: u8,
}

/// A mistake of the other end's.
struct Fault(ErrorCode, String);

impl From<Unexpected> for Fault {
    fn from(unexpected: Unexpected) -> Self {
        Self(ErrorCode::Unexpected, unexpected.0)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self(malformed.code(), malformed.to_string())
    }
}

impl Io {
    fn dial(&mut self, peer: u8, token: usize) {
        if let Some(link) = &mut self.links[token] {
            link.role = Role::Dialled(peer);
        }
    }

    fn send_to(&mut self, token: usize, message: &Message<'_>) {
        let Some(link) = self.links[token].as_mut().filter(|link| !link.closing) else { return };
        link.connection.push(message, &mut self.usage);
        match self.writes {
            Writes::Each => self.write(token),
            Writes::Coalesced => self.dirty.push(token),
        }
    }

    /// Sends a batch to all other replicas, one call of `write` for each.
    fn broadcast(&mut self, frames: &[u8]) {
        for token in self.peers.into_iter().flatten() {
            if let Some(link) = &mut self.links[token] {
                link.connection.push_frames(frames, &mut self.usage);
                self.write(token);
            }
        }
    }

    fn write(&mut self, token: usize) {
        let Some(link) = &mut self.links[token] else { return };
        let state = link.connection.write(&mut self.usage);
        let has_output = link.connection.has_output();
        if state == State::Closed || (link.closing && !has_output) {
            self.close(token);
        } else if has_output != link.connection.wants_room {
            link.connection.wants_room = has_output;
            if self.poll.writable(&link.connection, token as u64, has_output).is_err() {
                self.close(token);
            }
        }
    }

    fn write_dirty(&mut self) {
        while let Some(token) = self.dirty.pop() {
            self.write(token);
        }
    }

    fn close(&mut self, token: usize) {
        // Dropping the connection closes it, which also takes it out of the poll.
        match self.links[token].take().map(|link| link.role) {
            Some(Role::Client(client)) if self.clients.get(&client) == Some(&token) => {
                self.clients.remove(&client);
            }
            Some(Role::Peer(peer)) => self.peers[usize::from(peer)] = None,
            _ => {}
        }
    }
}

impl Outbox for Io {
    fn send(&mut self, client: ClientId, message: &Message<'_>) {
        if let Some(token) = self.clients.get(&client) {
            self.send_to(*token, message);
        }
    }
}

impl Server {
    fn new(settings: &Settings, listener: TcpListener) -> io::Result<Self> {
        let (poll, timer) = (Poll::new()?, Timer::new()?);
        listener.set_nonblocking(true)?;
        poll.add(&listener, LISTENER)?;
        poll.add(&timer, TIMER)?;
        poll.add(&io::stdin(), STDIN)?;
        let (links, clients, dirty) = Default::default();
        let (writes, usage) = (settings.writes, Usage::default());
        Ok(Self {
            replica: Replica::new(settings.id, settings.flush),
            io: Io { poll, links, clients, peers: [None; REPLICAS], dirty, writes, usage },
            listener,
            timer,
            timer_kind: settings.timer,
            questions: Vec::new(),
            ready: false,
            id: settings.id,
        })
    }

    fn adopt(&mut self, stream: TcpStream) -> io::Result<usize> {
        let link = Link { connection: Connection::new(stream)?, role: Role::Stranger, closing: false };
        let free = self.io.links.iter().position(Option::is_none);
        let token = free.unwrap_or_else(|| {
            self.io.links.push(None);
            self.io.links.len() - 1
        });
        self.io.poll.add(&link.connection, token as u64)?;
        self.io.links[token] = Some(link);
        Ok(token)
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events: Vec<Ready> = Vec::new();
        self.io.write_dirty();
        loop {
            let patience = self.patience()?;
            events.clear();
            events.extend(self.io.poll.wait(patience)?);
            for event in &events {
                match event.token {
                    STDIN => return Ok(()),
                    TIMER => self.timer.fired(),
                    LISTENER => self.accept(),
                    token => self.handle(token as usize, event),
                }
            }
            self.flush(Moment::InputEmpty);
            self.answer_questions();
            self.io.write_dirty();
            if !self.ready && self.io.peers.iter().flatten().count() == REPLICAS - 1 {
                self.ready = true;
                say("ready")?;
            }
        }
    }

    /// How long to wait for input, in milliseconds.
    fn patience(&mut self) -> io::Result<i32> {
        let deadline = self.replica.batcher.deadline();
        match (self.timer_kind, deadline) {
            (TimerKind::GoLike, Some(deadline)) => {
                Ok(i32::try_from(deadline.saturating_sub(now()).div_ceil(1_000_000)).unwrap_or(i32::MAX))
            }
            (TimerKind::GoLike, None) => Ok(-1),
            (TimerKind::Precise, deadline) => {
                // A timer that is left set when its batch has gone wakes the process once for nothing; resetting it every time would
                // cost a system call per batch.
                if deadline.is_some() {
                    self.timer.set(deadline)?;
                }
                Ok(-1)
            }
        }
    }

    fn flush(&mut self, moment: Moment) {
        // The immediate and the natural rule do not depend on the time, but the delay that was achieved does.
        if self.replica.batcher.deadline().is_none() && !self.replica.batcher.due(moment, 0) {
            return;
        }
        let time = now();
        if self.replica.batcher.due(moment, time) {
            self.replica.batcher.take(time, |frames| self.io.broadcast(frames));
        }
    }

    fn accept(&mut self) {
        // An error here is the connecting end's problem (it went away) or passes (no descriptors left); the replica goes on.
        while let Ok((stream, _)) = self.listener.accept() {
            let _ = self.adopt(stream);
        }
    }

    fn handle(&mut self, token: usize, event: &Ready) {
        let Some(link) = self.io.links.get_mut(token).and_then(Option::as_mut) else { return };
        if event.readable {
            let state = link.connection.read(&mut self.io.usage);
            let mut input = link.connection.take_input();
            let mut outcome = if link.closing { Err(None) } else { Ok(()) };
            while outcome.is_ok() {
                match input.next_frame() {
                    Ok(None) => break,
                    Ok(Some(body)) => outcome = self.message(token, body).map_err(Some),
                    Err(error) => outcome = Err(Some(Malformed::Frame(error).into())),
                }
                self.flush(Moment::MessageHandled);
            }
            if let Some(link) = self.io.links[token].as_mut() {
                match outcome {
                    Ok(()) => link.connection.put_back(input),
                    Err(Some(Fault(code, message))) => {
                        let error = Message::Error { code, message: &message };
                        link.connection.push(&error, &mut self.io.usage);
                        link.closing = true;
                        self.io.write(token);
                    }
                    // What still comes on a connection that is being closed is thrown away.
                    Err(None) => {}
                }
            }
            if state == State::Closed {
                self.io.close(token);
                self.questions.retain(|(asker, _)| *asker != token);
            }
        }
        if event.writable {
            self.io.write(token);
        }
    }

    fn message(&mut self, token: usize, body: &[u8]) -> Result<(), Fault> {
        let message = Message::decode(body)?;
        let role = self.io.links[token].as_ref().map_or(Role::Stranger, |link| link.role);
        let unexpected = |what: &str| Err(Fault(ErrorCode::Unexpected, what.to_owned()));
        match (message, role) {
            (Message::PeerHello { replica }, Role::Stranger) => {
                if replica == self.id || self.io.peers[usize::from(replica)].is_some() {
                    return unexpected("that replica is connected already");
                }
                self.become_peer(token, replica);
                self.io.send_to(token, &Message::Welcome { replica: self.id });
            }
            (Message::Welcome { replica }, Role::Dialled(expected)) => {
                if replica != expected {
                    return unexpected("a welcome from another replica than was called");
                }
                self.become_peer(token, replica);
            }
            (Message::ClientHello { client, bound }, Role::Stranger) => {
                if client == 0 {
                    return unexpected("client 0 is nobody");
                }
                if let Some(link) = &mut self.io.links[token] {
                    link.role = Role::Client(client);
                }
                self.io.clients.insert(client, token);
                self.replica.hello(client, bound);
                self.io.send_to(token, &Message::Welcome { replica: self.id });
            }
            (Message::ClientHello { client, bound }, Role::Client(known)) if client == known => {
                self.replica.hello(client, bound);
            }
            (Message::Propose(proposal), Role::Client(client)) => {
                self.replica.propose(client, &proposal, now(), &mut self.io)?;
            }
            (Message::Sync { seq }, Role::Client(client)) => self.replica.sync(client, seq, &mut self.io),
            (Message::Batch(batch), Role::Peer(peer)) => self.replica.batch(peer, &batch, now(), &mut self.io)?,
            (Message::StatusRequest { executed }, _) => self.questions.push((token, executed)),
            _ => return unexpected("a message that this connection may not send now"),
        }
        Ok(())
    }

    fn become_peer(&mut self, token: usize, replica: u8) {
        if let Some(link) = &mut self.io.links[token] {
            link.role = Role::Peer(replica);
        }
        self.io.peers[usize::from(replica)] = Some(token);
    }

    fn answer_questions(&mut self) {
        let executed = self.replica.executed();
        while let Some(at) = self.questions.iter().position(|(_, after)| *after <= executed) {
            let (token, _) = self.questions.swap_remove(at);
            let mut status = self.replica.status();
            status.process = usage(self.io.usage);
            let json = serde_json::to_vec(&status).expect("a status is only numbers, text and lists");
            self.io.send_to(token, &Message::Status { json: &json });
        }
    }
}
