//! Drives one session: sends its commands when they are due, takes the answers, and never waits forever.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use assay_harness::Failure;

use super::control::receive;
use super::log::Log;
use super::record::Record;
use super::replica::Writes;
use crate::client::quorum::Path;
use crate::client::{Broken, Completed, Outbox, Request, Session};
use crate::command::{Addresses, Class, ClientId, CommandId, REPLICAS};
use crate::net::{Connection, Dial, Idle, Poll, Ready, State, Timer, now};
use crate::replica::Usage;
use crate::wire::Message;
use crate::workload::Arrivals;

/// Commands that an open loop may have without an answer. Later ones wait with the client, and their latency runs.
pub const BACKLOG: usize = 4096;
/// How long a replica has to answer a hello.
const HELLO: Duration = Duration::from_secs(10);
/// How long the leader has to read a session's last commands.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often the age of open commands is looked at, in milliseconds.
const TICK: i32 = 20;
/// When a strong command has waited so long for its quorum, the leader is asked for the final answer: nanoseconds.
const SYNC_AFTER: u64 = 100_000_000;
/// When a weak command has waited so long for a bound replica that is silent, another is asked: nanoseconds. A leader that is away is
/// replaced sooner, and until then a replica that is well may have to wait for it.
const REBIND_AFTER: u64 = 2_000_000_000;

/// When commands are sent.
#[derive(Debug, Clone)]
pub enum Pace {
    /// Closed loop: a new command as soon as fewer than `window` are outstanding.
    Closed {
        /// Number of outstanding commands.
        window: usize,
    },
    /// At the times that were drawn for them.
    Open(Box<Arrivals>),
}

/// Plan of one session.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many commands.
    pub count: usize,
    /// When to send them.
    pub pace: Pace,
    /// How long to send. A closed loop that is not done by then has failed; an open one stops.
    pub time_limit: u64,
    /// How long a command may take.
    pub operation_timeout: u64,
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::error(broken)
    }
}

/// A session and its connections.
#[derive(Debug)]
pub struct Driver {
    client: ClientId,
    session: Session,
    replicas: Addresses,
    /// Attempts to reach replicas that are gone.
    dials: [Option<Dial>; REPLICAS],
    links: Links,
    timer: Timer,
    records: Vec<Record>,
    log: Option<Log>,
}

#[derive(Debug)]
struct Links {
    poll: Poll,
    connections: [Option<Connection>; REPLICAS],
    writes: Writes,
    usage: Usage,
}

impl Outbox for Links {
    fn send(&mut self, replica: u8, message: &Message<'_>) {
        let Some(connection) = &mut self.connections[usize::from(replica)] else { return };
        connection.push(message, &mut self.usage);
        if self.writes == Writes::Each {
            // A connection that breaks here is found to be closed when it is read.
            connection.write(&mut self.usage);
        }
    }
}

const TIMER: u64 = u64::MAX;

impl Driver {
    /// Connects a session to all replicas.
    ///
    /// # Errors
    ///
    /// When one of them does not answer.
    pub fn connect(
        client: ClientId,
        bound: u8,
        value_size: usize,
        replicas: &Addresses,
        writes: Writes,
    ) -> io::Result<Self> {
        let (poll, timer) = (Poll::new()?, Timer::new()?);
        poll.add(&timer, TIMER)?;
        let mut connections = [const { None }; REPLICAS];
        for (token, address) in replicas.iter().enumerate() {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(HELLO))?;
            let mut hello = Vec::new();
            Message::ClientHello { client, bound }.append(&mut hello);
            stream.write_all(&hello)?;
            match Message::decode(&receive(&mut stream)?) {
                Ok(Message::Welcome { replica, .. }) if usize::from(replica) == token => {}
                other => return Err(io::Error::other(format!("replica {token} answered a hello with {other:?}"))),
            }
            let connection = Connection::new(stream)?;
            poll.add(&connection, token as u64)?;
            connections[token] = Some(connection);
        }
        let links = Links { poll, connections, writes, usage: Usage::default() };
        let session = Session::new(client, bound, value_size);
        let (replicas, dials) = (replicas.clone(), Default::default());
        Ok(Self { client, session, replicas, dials, links, timer, records: Vec::new(), log: None })
    }

    /// Has it do something else than sleep when there is nothing to do.
    pub fn idle(&mut self, idle: Idle) {
        self.links.poll.idle = idle;
    }

    /// Logs a line when a command is sent, and one when its answer comes.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn log(&mut self) -> io::Result<()> {
        self.log = Some(Log::new(self.client)?);
        Ok(())
    }

    /// Allocates and touches memory for the records of `count` commands, so that no page faults occur while commands
    /// are timed.
    pub fn make_room(&mut self, count: usize) {
        self.records.reserve(count);
        let filler = Completed {
            seq: 0,
            request: Request { class: Class::Weak, put: false, key: 0 },
            intended: 0,
            invoked: 0,
            read: CommandId::NONE,
            path: Path::Bound,
        };
        for slot in self.records.spare_capacity_mut() {
            slot.write(Record::new(0, &filler, 0));
        }
    }

    /// Carries out a plan whose time starts at `start`; `next` gives the requests.
    ///
    /// # Errors
    ///
    /// When the replicas do not let it.
    pub fn drive(&mut self, plan: &Plan, start: u64, mut next: impl FnMut() -> Request) -> Result<(), Failure> {
        let mut pace = plan.pace.clone();
        let window = if let Pace::Closed { window } = pace { window } else { BACKLOG };
        let arrival = |pace: &mut Pace| match pace {
            Pace::Closed { .. } => None,
            Pace::Open(arrivals) => Some(start + arrivals.draw()),
        };
        let mut due = arrival(&mut pace);
        let done_before = self.records.len();
        let (mut sent, mut stopped, mut looked) = (0, false, start);
        let mut events: Vec<Ready> = Vec::new();
        loop {
            let mut time = now();
            while !stopped
                && sent < plan.count
                && self.session.outstanding() < window
                && self.session.may_start()
                && due.is_none_or(|due| due <= time)
            {
                let request = next();
                if let Some(log) = &mut self.log {
                    let (client, seq) = (self.client, self.session.next());
                    log.write(format_args!("{time} client {client} sends command {seq}: {request:?}"))?;
                }
                self.session.start(request, due.unwrap_or(time), time, &mut self.links);
                sent += 1;
                due = arrival(&mut pace);
                if self.links.writes == Writes::Each {
                    // The one before took its time to be written.
                    time = now();
                }
            }
            self.write()?;
            if self.session.outstanding() == 0 && (sent == plan.count || stopped) {
                return Ok(());
            }
            let may_send = !stopped && sent < plan.count && self.session.outstanding() < window;
            self.timer.set(due.filter(|_| may_send))?;
            events.clear();
            events.extend(self.links.poll.wait(TICK)?);
            for event in &events {
                if event.token == TIMER {
                    self.timer.fired();
                } else if event.readable {
                    self.read(event.token as u8)?;
                }
            }
            let time = now();
            if time - looked > TICK as u64 * 1_000_000 {
                looked = time;
                self.look_for_replicas()?;
                self.session.sync_older_than(time.saturating_sub(SYNC_AFTER), &mut self.links);
                self.session.rebind_older_than(time.saturating_sub(REBIND_AFTER), &mut self.links);
                if self.session.oldest_invoked().is_some_and(|invoked| time - invoked > plan.operation_timeout) {
                    let (outstanding, after) = (self.session.outstanding(), plan.operation_timeout as f64 / 1e9);
                    return Err(Failure::error(format_args!(
                        "a command got no answer for {after} s; {outstanding} are without one"
                    )));
                }
                if time - start > plan.time_limit && sent < plan.count {
                    match pace {
                        Pace::Open(_) => stopped = true,
                        Pace::Closed { .. } => {
                            let (done, of) = (self.records.len() - done_before, plan.count);
                            return Err(Failure::error(format_args!(
                                "only {done} of {of} commands were done within the time limit"
                            )));
                        }
                    }
                }
            }
        }
    }

    fn read(&mut self, replica: u8) -> Result<(), Failure> {
        let Some(connection) = &mut self.links.connections[usize::from(replica)] else { return Ok(()) };
        let state = connection.read(&mut self.links.usage);
        let mut input = std::mem::take(&mut connection.input);
        let time = now();
        while let Some(body) = input.next_frame().map_err(|error| Broken::Refused(error.to_string()))? {
            let message = Message::decode(body).map_err(|error| Broken::Refused(error.to_string()))?;
            if let Some(completed) = self.session.receive(replica, &message, &mut self.links)? {
                if let Some(log) = &mut self.log {
                    let Completed { seq, invoked, path, .. } = completed;
                    let micros = (time - invoked) / 1000;
                    log.write(format_args!(
                        "{time} client {}: command {seq} done in {micros} us by {path:?}",
                        self.client
                    ))?;
                }
                self.records.push(Record::new(self.client, &completed, time));
            }
        }
        if let Some(connection) = &mut self.links.connections[usize::from(replica)] {
            connection.input = input;
        }
        if state == State::Closed {
            let ended = self.links.connections[usize::from(replica)].take();
            self.links.usage.segments += ended.map_or(0, |connection| connection.segments());
            self.session.lost(replica, &mut self.links);
        }
        Ok(())
    }

    /// Says hello to the replicas that were gone and are there again.
    fn look_for_replicas(&mut self) -> io::Result<()> {
        let dials = self.dials.iter_mut().zip(&mut self.links.connections).zip(&self.replicas).enumerate();
        for (token, ((dial, connection), address)) in dials.filter(|(_, ((_, connection), _))| connection.is_none()) {
            let Some(stream) = dial.get_or_insert_with(|| Dial::to(address)).connected() else { continue };
            *dial = None;
            let mut connected = Connection::new(stream)?;
            let hello = Message::ClientHello { client: self.client, bound: self.session.bound() };
            connected.push(&hello, &mut self.links.usage);
            self.links.poll.add(&connected, token as u64)?;
            *connection = Some(connected);
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        for (token, connection) in self.links.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            // A connection that breaks here is found to be closed when it is read.
            connection.write(&mut self.links.usage);
            let has_output = connection.has_output();
            if has_output != connection.wants_room {
                connection.wants_room = has_output;
                self.links.poll.writable(connection, token as u64, has_output)?;
            }
        }
        Ok(())
    }

    /// Ends the session and returns the records of all commands in the order of their answers.
    ///
    /// A weak command is answered before the leader knows it, so that the session stays open until the leader has read
    /// everything. Followers learn all commands from the leader.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Record>, Usage) {
        self.links.usage.segments += self.links.connections.iter().flatten().map(Connection::segments).sum::<u64>();
        if let Some(leader) = self.links.connections[usize::from(self.session.leader())].take() {
            // If the leader is gone or stuck, so is the trial: its own checks say so, with more to say than is known here.
            let _ = leader.finish(FAREWELL);
        }
        (self.records, Usage { waits: self.links.poll.waits, ..self.links.usage })
    }
}
