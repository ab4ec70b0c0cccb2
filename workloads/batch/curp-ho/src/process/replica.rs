//! `batch-curp-ho replica`: one replica with its connections on one thread.
//!
//! It prints `listens HOST:PORT`, reads `replicas` and three addresses from standard input unless given as flags,
//! connects to the replicas with smaller numbers, and prints `ready` once it is connected to both others. It exits at
//! the end of standard input, unless the addresses were given as flags.
//!
//! It serves several trials in sequence. Each has an era. [`Message::Begin`] ends the previous one and all its
//! connections, and replicas ignore messages of other eras, so that no state of an older trial is taken over.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assay_harness::machine::PeakMemory;
use serde::{Deserialize, Serialize};

use super::routines::{Routines, Way, WriteLock};
use crate::command::{Addresses, ClientId, CommandId, Era, REPLICAS};
use crate::net::{Connection, Dial, Idle, Poll, Ready, State, Timer, now, usage};
use crate::replica::batcher::{Flush, Moment};
use crate::replica::heap::Heap;
use crate::replica::witness::Conflicts;
use crate::replica::{Outbox, Replica, Unexpected, Usage};
use crate::wire::{ErrorCode, Malformed, Message};

/// How a timed batch waits for its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerKind {
    /// As the document's program did: an idle process sleeps in whole milliseconds, a busy one looks at the clock whenever it has
    /// handled its input.
    GoLike,
    /// To the nanosecond.
    #[default]
    Precise,
}

assay_harness::choices!(TimerKind { "go-like" => GoLike, "precise" => Precise });

/// When messages other than batches are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Writes {
    /// Each by itself, as the document's program did.
    Each,
    /// Together, once all input that was there has been handled.
    #[default]
    Coalesced,
}

assay_harness::choices!(Writes { "each" => Each, "coalesced" => Coalesced });

/// The command line of a replica.
#[derive(Debug, Clone)]
pub struct Place {
    /// Which one it is.
    pub id: u8,
    /// The address that it listens at.
    pub listen: String,
    /// Where all replicas are, this one too. Where that is not given it is told by standard input, with whose end the replica ends.
    pub replicas: Option<Addresses>,
    /// How it does its work until a trial says otherwise.
    pub settings: Settings,
}

/// Settings of a replica for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Treatment of descriptors of executed commands.
    pub heap: Heap,
    /// Which strong commands conflict.
    pub conflicts: Conflicts,
    /// Nanoseconds of a leader's silence after which it is taken for lost.
    pub suspect_after: u64,
    /// Nanoseconds that it sleeps whenever something has come, to be slow.
    pub slow: u64,
    /// When batches are sent.
    pub flush: Flush,
    /// How timed batches wait.
    pub timer: TimerKind,
    /// When other messages are sent.
    pub writes: Writes,
    /// How many commands may have a routine that writes their answers; with none the thread that handles messages writes them all.
    pub routines: usize,
    /// Lock that serializes writes.
    pub write_lock: WriteLock,
    /// Behaviour of the event thread when it is idle.
    pub idle: Idle,
}

impl Default for Settings {
    fn default() -> Self {
        let (heap, conflicts, timer, writes, routines, write_lock, idle) = Default::default();
        let (suspect_after, slow, flush) = (1_000_000_000, 0, Flush::Natural);
        Self { heap, conflicts, suspect_after, slow, flush, timer, writes, routines, write_lock, idle }
    }
}

/// The longest time that a setting may be, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;
const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
/// How often the replica looks at the clock at least, in milliseconds.
const TICK: i32 = 10;

/// Runs a replica until standard input ends.
///
/// # Errors
///
/// When the system refuses, or the one that started it says something else than it should.
pub fn run(place: &Place) -> io::Result<()> {
    let listener = TcpListener::bind(&place.listen)?;
    say(&format!("listens {}", listener.local_addr()?))?;
    let addresses = match &place.replicas {
        Some(addresses) => addresses.clone(),
        None => told_addresses()?,
    };
    Server::new(place, listener, addresses)?.serve()
}

/// The addresses of all replicas, from standard input.
fn told_addresses() -> io::Result<Addresses> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let addresses = line.strip_prefix("replicas ").map(|rest| rest.split_whitespace().map(str::to_owned).collect());
    let addresses = addresses.and_then(|addresses: Vec<String>| addresses.try_into().ok());
    addresses.ok_or_else(|| {
        io::Error::other(format!("{line:?} on standard input instead of \"replicas\" and {REPLICAS} addresses"))
    })
}

/// Prints a line to the parent process.
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
    /// How routines write to it: a client's, if there are any.
    way: Option<Arc<Way>>,
}

/// The connections.
struct Io {
    poll: Poll,
    links: Vec<Option<Link>>,
    clients: HashMap<ClientId, usize>,
    peers: [Option<usize>; REPLICAS],
    /// Connections with something to send.
    dirty: Vec<usize>,
    /// Replicas whose connection has ended.
    lost: Vec<u8>,
    writes: Writes,
    /// The one lock that all writes take, if they take one.
    lock: Option<Arc<Mutex<()>>>,
    routines: Option<Routines>,
    /// Commands that are not executed.
    live: usize,
    usage: Usage,
    /// Segments of connections that have ended.
    ended: u64,
    /// Usage of the process at the start of the trial.
    before: Usage,
}

struct Server {
    replica: Replica,
    io: Io,
    listener: TcpListener,
    addresses: Addresses,
    /// Attempts to reach the replicas that this one connects to.
    dials: [Option<Dial>; REPLICAS],
    /// When it last looked at the clock.
    looked: u64,
    settings: Settings,
    timer: Timer,
    /// Who wants to know the state, and after how many slots.
    questions: Vec<(usize, u64)>,
    /// Who wants to know when all replicas have begun anew.
    beginner: Option<usize>,
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

impl Settings {
    /// Parses the settings.
    ///
    /// # Errors
    ///
    /// If they are invalid or out of bounds.
    pub fn from_json(json: &[u8]) -> Result<Self, String> {
        let settings: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let delay = if let Flush::Timed(delay) = settings.flush { delay } else { 0 };
        let times = [("flush", delay), ("slow", settings.slow), ("suspect_after", settings.suspect_after)];
        match times.into_iter().find(|(_, found)| *found > LONGEST) {
            Some((name, found)) => Err(format!("{name} of {found} ns; at most {LONGEST} are allowed")),
            None => Ok(settings),
        }
    }

    /// A replica that does its work like this.
    fn replica(&self, id: u8, era: Era) -> Replica {
        let mut replica = Replica::starting(id, era, self.flush, self.conflicts);
        replica.suspect_after(self.suspect_after);
        replica.heap(self.heap);
        replica
    }
}

impl Io {
    /// Usage of the process during the trial.
    fn used(&self) -> Usage {
        let (writes, bytes_sent) = self.routines.as_ref().map(Routines::written).unwrap_or_default();
        let (writes, bytes_sent) = (self.usage.writes + writes, self.usage.bytes_sent + bytes_sent);
        // Of a connection that is broken the system may say nothing any more.
        let segments = self.segments().saturating_sub(self.before.segments);
        let mut used = usage(Usage { waits: self.poll.waits, writes, bytes_sent, segments, ..self.usage });
        used.waits -= self.before.waits;
        used.sleeps -= self.before.sleeps;
        used.user_seconds -= self.before.user_seconds;
        used.system_seconds -= self.before.system_seconds;
        used
    }

    /// The segments of all connections there have been.
    fn segments(&self) -> u64 {
        self.ended + self.links.iter().flatten().map(|link| link.connection.segments()).sum::<u64>()
    }

    /// A trial begins, which has used nothing.
    fn begin(&mut self, settings: &Settings) {
        self.writes = settings.writes;
        self.poll.idle = settings.idle;
        self.lock = (settings.write_lock == WriteLock::Replica).then(Arc::default);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let routines = || Routines::new(settings.routines, threads, self.lock.clone());
        self.routines = (settings.routines > 0).then(routines);
        self.usage = Usage::default();
        self.before = usage(Usage { waits: self.poll.waits, segments: self.segments(), ..self.usage });
        // Where the system keeps the old peak, it is that of the process and not of the trial.
        let _ = PeakMemory::start();
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
        let held = self.lock.as_deref().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner));
        let state = link.connection.write(&mut self.usage);
        drop(held);
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
        let link = self.links[token].take();
        self.ended += link.as_ref().map_or(0, |link| link.connection.segments());
        match link.map(|link| link.role) {
            Some(Role::Client(client)) if self.clients.get(&client) == Some(&token) => {
                self.clients.remove(&client);
            }
            Some(Role::Peer(peer)) => {
                self.peers[usize::from(peer)] = None;
                self.lost.push(peer);
            }
            _ => {}
        }
    }
}

impl Outbox for Io {
    fn send(&mut self, client: ClientId, message: &Message<'_>) {
        let Some(&token) = self.clients.get(&client) else { return };
        let way = self.links[token].as_ref().filter(|link| !link.closing).and_then(|link| link.way.as_ref());
        let Some((routines, way)) = self.routines.as_mut().zip(way) else {
            self.send_to(token, message);
            return;
        };
        self.usage.frames_sent += 1;
        let mut frame = Vec::new();
        message.append(&mut frame);
        match message.answers() {
            Some(seq) => routines.answer(CommandId { client, seq }, self.live, way, frame),
            None => routines.tell(way, &frame),
        }
    }

    fn send_peer(&mut self, replica: u8, message: &Message<'_>) {
        if let Some(token) = self.peers[usize::from(replica)] {
            self.send_to(token, message);
        }
    }
}

impl Server {
    fn new(place: &Place, listener: TcpListener, addresses: Addresses) -> io::Result<Self> {
        let (poll, timer) = (Poll::new()?, Timer::new()?);
        listener.set_nonblocking(true)?;
        poll.add(&listener, LISTENER)?;
        poll.add(&timer, TIMER)?;
        if place.replicas.is_none() {
            poll.add(&io::stdin(), STDIN)?;
        }
        let settings = place.settings;
        let (links, clients, dirty, lost, writes, lock) = Default::default();
        let (peers, routines, live, usage, before) = Default::default();
        let ended = 0;
        let mut io =
            Io { poll, links, clients, peers, dirty, lost, writes, lock, routines, live, usage, ended, before };
        io.begin(&settings);
        Ok(Self {
            replica: settings.replica(place.id, 0),
            io,
            listener,
            addresses,
            dials: Default::default(),
            looked: 0,
            settings,
            timer,
            questions: Vec::new(),
            beginner: None,
            ready: false,
            id: place.id,
        })
    }

    /// Resets the state, connections and usage of the previous trial. Connections of unknown type stay open, among them
    /// the requester's.
    fn begin(&mut self, era: Era, settings: Settings, beginner: usize) {
        for link in &mut self.io.links {
            link.take_if(|link| link.role != Role::Stranger);
        }
        self.io.clients.clear();
        self.io.peers = [None; REPLICAS];
        self.io.lost.clear();
        self.io.begin(&settings);
        (self.settings, self.replica, self.beginner) = (settings, settings.replica(self.id, era), Some(beginner));
        self.dials = Default::default();
        self.questions.clear();
    }

    fn adopt(&mut self, stream: TcpStream, role: Role) -> io::Result<usize> {
        let link = Link { connection: Connection::new(stream)?, role, closing: false, way: None };
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
        loop {
            let patience = self.patience()?;
            events.clear();
            events.extend(self.io.poll.wait(patience)?);
            if self.settings.slow > 0 && !events.is_empty() {
                std::thread::sleep(Duration::from_nanos(self.settings.slow));
            }
            for event in &events {
                match event.token {
                    STDIN => return Ok(()),
                    TIMER => self.timer.fired(),
                    LISTENER => self.accept(),
                    token => self.handle(token as usize, event),
                }
            }
            self.look_at_the_clock()?;
            self.flush(Moment::InputEmpty);
            self.answer_questions();
            if self.replica.settled()
                && let Some(beginner) = self.beginner.take()
            {
                self.io.send_to(beginner, &Message::Begun { era: self.replica.era() });
            }
            self.io.write_dirty();
            if !self.ready && self.replica.settled() {
                self.ready = true;
                say("ready")?;
            }
        }
    }

    /// Handles timers: connects to replicas, and suspects leaders.
    fn look_at_the_clock(&mut self) -> io::Result<()> {
        let time = now();
        while let Some(peer) = self.io.lost.pop() {
            self.replica.peer_lost(peer, time, &mut self.io);
        }
        if time - self.looked < TICK as u64 * 1_000_000 {
            return Ok(());
        }
        self.looked = time;
        self.replica.tick(time, &mut self.io);
        // Of two replicas the one with the larger number calls.
        for peer in 0..self.id {
            let called = |link: &Link| link.role == Role::Dialled(peer) || link.role == Role::Peer(peer);
            if self.io.links.iter().flatten().any(called) {
                continue;
            }
            let dial = &mut self.dials[usize::from(peer)];
            let address = &self.addresses[usize::from(peer)];
            let Some(stream) = dial.get_or_insert_with(|| Dial::to(address)).connected() else { continue };
            *dial = None;
            let token = self.adopt(stream, Role::Dialled(peer))?;
            self.io.send_to(token, &self.replica.greeting());
        }
        Ok(())
    }

    /// How long to wait for input, in milliseconds.
    fn patience(&mut self) -> io::Result<i32> {
        match (self.settings.timer, self.replica.batcher.deadline()) {
            (TimerKind::GoLike, Some(deadline)) => {
                let milliseconds = deadline.saturating_sub(now()).div_ceil(1_000_000);
                return Ok(milliseconds.min(TICK as u64) as i32);
            }
            // A timer that is left set when its batch has gone wakes the process once for nothing; resetting it every time would cost a
            // system call per batch.
            (TimerKind::Precise, deadline @ Some(_)) => self.timer.set(deadline)?,
            (_, None) => {}
        }
        Ok(TICK)
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
            let _ = self.adopt(stream, Role::Stranger);
        }
    }

    fn handle(&mut self, token: usize, event: &Ready) {
        let Some(link) = self.io.links.get_mut(token).and_then(Option::as_mut) else { return };
        if event.readable {
            let state = link.connection.read(&mut self.io.usage);
            let mut input = std::mem::take(&mut link.connection.input);
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
                    Ok(()) => link.connection.input = input,
                    Err(Some(Fault(code, message))) => {
                        // The final message follows all earlier ones and does not interleave with them.
                        self.io.routines.iter().for_each(Routines::settle);
                        let error = Message::Error { code, message: &message };
                        link.connection.push(&error, &mut self.io.usage);
                        link.closing = true;
                        self.io.write(token);
                    }
                    // Input of a closing connection is discarded.
                    Err(None) => {}
                }
            }
            if state == State::Closed {
                self.io.close(token);
                self.questions.retain(|(asker, _)| *asker != token);
                self.beginner = self.beginner.filter(|beginner| *beginner != token);
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
            // The era is told in every hello, and only there: a connection ends with it.
            (Message::PeerHello { era, .. }, Role::Stranger | Role::Dialled(_)) if era != self.replica.era() => {
                return unexpected("a hello from another era");
            }
            (Message::PeerHello { replica, .. }, Role::Stranger) if replica == self.id => {
                return unexpected("a hello from this replica itself");
            }
            (Message::PeerHello { replica, .. }, Role::Dialled(expected)) if replica != expected => {
                return unexpected("a hello from another replica than was called");
            }
            (Message::PeerHello { replica, .. }, Role::Stranger | Role::Dialled(_)) => {
                self.become_peer(token, replica);
                if role == Role::Stranger {
                    self.io.send_to(token, &self.replica.greeting());
                }
                self.replica.peer(replica, &message, now(), &mut self.io)?;
            }
            (Message::ClientHello { client, bound }, Role::Stranger) => {
                if client == 0 {
                    return unexpected("client 0 is invalid");
                }
                if let Some(link) = &mut self.io.links[token] {
                    link.role = Role::Client(client);
                    link.way = self.io.routines.as_ref().map(|_| Arc::new(Way::new(link.connection.stream())));
                }
                self.io.clients.insert(client, token);
                self.replica.hello(client, bound, &mut self.io);
            }
            (Message::ClientHello { client, bound }, Role::Client(known)) if client == known => {
                self.replica.hello(client, bound, &mut self.io);
            }
            (Message::Propose(proposal), Role::Client(client)) => {
                self.io.live = self.replica.live();
                self.replica.propose(client, &proposal, now(), &mut self.io)?;
            }
            (Message::Sync { seq }, Role::Client(client)) => self.replica.sync(client, seq, &mut self.io),
            (Message::StatusRequest { executed }, _) => self.questions.push((token, executed)),
            (Message::Begin { era, settings }, Role::Stranger) => {
                if era <= self.replica.era() {
                    let newest = self.replica.era();
                    return unexpected(&format!("era {era}, and this replica is in era {newest}"));
                }
                match Settings::from_json(settings) {
                    Ok(settings) => self.begin(era, settings, token),
                    Err(error) => return unexpected(&format!("invalid settings: {error}")),
                }
            }
            (_, Role::Peer(peer)) => self.replica.peer(peer, &message, now(), &mut self.io)?,
            _ => return unexpected("a message that this connection may not send now"),
        }
        Ok(())
    }

    /// A connection is to another replica. One that there was is of no use any more: the other end has begun anew.
    fn become_peer(&mut self, token: usize, replica: u8) {
        if let Some(old) = self.io.peers[usize::from(replica)] {
            self.io.close(old);
            self.io.lost.retain(|lost| *lost != replica);
            self.replica.peer_lost(replica, now(), &mut self.io);
        }
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
            status.process = self.io.used();
            status.answers = self.io.routines.as_ref().map(|routines| routines.answers).unwrap_or_default();
            let json = serde_json::to_vec(&status).expect("a status is only numbers, text and lists");
            self.io.send_to(token, &Message::Status { json: &json });
        }
    }
}
