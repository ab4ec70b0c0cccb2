//! The client: builds queries, sends them in batches, decodes replies and renews hints.

mod flush;
mod transport;

pub use flush::Flush;
pub use transport::{End, Link, Memory, Tcp, Transport};

use std::collections::VecDeque;
use std::fmt;
use std::thread;
use std::time::Duration;

use assay_harness::{Failure, Phases, Stopwatch};

use crate::clock::{self, Span};
use crate::geometry::Geometry;
use crate::hints::Hint;
use crate::offline::State;
use crate::prf::AnyPrf;
use crate::query::{Builder, Built, Question};
use crate::wire::{Item, Reply, Request};

/// Longer than the server needed by this much, and an exchange was waiting for an acknowledgement. The timer behind
/// delayed acknowledgements runs for 40 ms; a loopback round trip takes a hundredth of a millisecond.
pub const STALL: Duration = Duration::from_millis(20);

/// Why a run ended.
#[derive(Debug)]
pub enum Broken {
    /// No hint contains the entry.
    NoHint {
        /// The entry.
        index: u32,
    },
    /// The server refused, or answered something else than it was asked.
    Server(String),
    /// The connection broke.
    Link(std::io::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHint { index } => write!(f, "no hint contains entry {index}: --lambda is too small"),
            Self::Server(problem) => write!(f, "the server: {problem}"),
            Self::Link(error) => write!(f, "the connection to the server: {error}"),
        }
    }
}

impl std::error::Error for Broken {}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::error(broken)
    }
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        Self::Link(error)
    }
}

/// Results of a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Seconds from the start of a query to its decoded answer, in order of completion.
    pub latencies: Vec<f64>,
    /// Seconds of building each query.
    pub builds: Vec<f64>,
    /// Seconds from the first byte written to the last byte read, for every exchange.
    pub exchanges: Vec<f64>,
    /// Seconds the server says it spent on all questions.
    pub server_seconds: f64,
    /// Seconds of the server's work, decoding included, that fell into the client's calls of write, and of read.
    pub server_in_write: f64,
    /// The same of read.
    pub server_in_read: f64,
    /// Whether the server said something that cannot be on this machine's clock: then neither is known.
    pub other_clock: bool,
    /// Exchanges that waited for an acknowledgement.
    pub stalls: u64,
    /// How many exchanges had that many questions: index 1 for one.
    pub batch_sizes: Vec<u64>,
    /// Bytes in both directions.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// The numbers of the hints used, in order of use.
    pub used: Vec<u32>,
    /// The answers, in order of the queries.
    pub answers: Vec<u64>,
}

impl Tally {
    /// Adds another client's results.
    pub fn extend(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.builds.extend(other.builds);
        self.exchanges.extend(other.exchanges);
        self.server_seconds += other.server_seconds;
        self.server_in_write += other.server_in_write;
        self.server_in_read += other.server_in_read;
        self.other_clock |= other.other_clock;
        self.stalls += other.stalls;
        self.batch_sizes.resize(self.batch_sizes.len().max(other.batch_sizes.len()), 0);
        for (mine, others) in self.batch_sizes.iter_mut().zip(other.batch_sizes) {
            *mine += others;
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.used.extend(other.used);
        self.answers.extend(other.answers);
    }
}

/// A query on its way.
#[derive(Debug)]
struct Pending {
    index: u32,
    slot: u32,
    hint: Hint,
    real: usize,
    /// The real half's sum, once it is there.
    sum: Option<Vec<u8>>,
    /// Replies that have not come yet.
    missing: usize,
    started: Stopwatch,
}

/// A client in the middle of a run.
pub struct Client<'a> {
    prf: &'a AnyPrf,
    geometry: Geometry,
    state: State,
    builder: Builder,
    link: Link<'a>,
    batch: usize,
    flush: Flush,
    think_time: Duration,
    questions: VecDeque<(u64, Question)>,
    pending: VecDeque<Pending>,
    /// The number of the first pending query.
    first_pending: u64,
    /// Its results.
    pub tally: Tally,
}

impl<'a> Client<'a> {
    /// Creates a client that sends at most `batch` questions at a time.
    ///
    /// # Panics
    ///
    /// If `batch` is zero.
    #[must_use]
    pub fn new(prf: &'a AnyPrf, state: State, builder: Builder, link: Link<'a>, batch: usize, flush: Flush) -> Self {
        assert!(batch > 0, "an exchange has at least one question");
        Self {
            prf,
            geometry: state.hints.geometry(),
            state,
            builder,
            link,
            batch,
            flush,
            think_time: Duration::ZERO,
            questions: VecDeque::new(),
            pending: VecDeque::new(),
            first_pending: 0,
            tally: Tally::default(),
        }
    }

    /// The same client, which thinks for so long before it builds a query: it sleeps.
    #[must_use]
    pub fn with_think_time(mut self, think_time: Duration) -> Self {
        self.think_time = think_time;
        self
    }

    /// Queries one entry and sends the pending questions that are due.
    ///
    /// # Errors
    ///
    /// See [`Broken`].
    pub fn query(&mut self, index: u32, phases: &mut Phases) -> Result<(), Broken> {
        let started = Stopwatch::start();
        if !self.think_time.is_zero() {
            phases.time("think", || thread::sleep(self.think_time));
        }
        let build = Stopwatch::start();
        let built = phases.time("buildQuery", || self.builder.build(self.prf, &mut self.state.hints, index));
        self.tally.builds.push(build.seconds());
        let Built { index, slot, hint, questions, real } = built.ok_or(Broken::NoHint { index })?;
        self.tally.used.push(hint.id);
        let number = self.first_pending + self.pending.len() as u64;
        let missing = questions.len();
        for (position, question) in questions.into_iter().enumerate() {
            self.questions.push_back((2 * number + position as u64, question));
        }
        self.pending.push_back(Pending { index, slot, hint, real, sum: None, missing, started });
        for _ in 0..self.flush.due(self.questions.len(), self.batch) {
            self.exchange(self.batch, phases)?;
        }
        Ok(())
    }

    /// Sends everything that is left.
    ///
    /// # Errors
    ///
    /// See [`Broken`].
    pub fn finish(&mut self, phases: &mut Phases) -> Result<(), Broken> {
        while !self.questions.is_empty() {
            self.exchange(self.batch.min(self.questions.len()), phases)?;
        }
        Ok(())
    }

    /// The link to the server.
    #[must_use]
    pub fn link(&self) -> &dyn Transport {
        &*self.link
    }

    /// How queries are built.
    #[must_use]
    pub fn builder(&self) -> &Builder {
        &self.builder
    }

    /// The hints.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    fn exchange(&mut self, count: usize, phases: &mut Phases) -> Result<(), Broken> {
        let frame = self.link.frame();
        let mut questions: Vec<(u64, Question)> = self.questions.drain(..count).collect();
        let request = match questions.pop() {
            Some((id, question)) if self.batch == 1 => Request::Query(id, question),
            last => {
                questions.extend(last);
                Request::Batch(questions)
            }
        };
        phases.time("serialize", || request.encode(frame));
        for question in request.into_questions() {
            self.builder.recycle(question);
        }
        let watch = Stopwatch::start();
        let writing = clock::nanoseconds();
        self.tally.bytes_sent += phases.time("writeFrame", || self.link.write())?;
        let writing = Span::since(writing);
        let message = phases.time("readFrame", || self.link.read())?;
        let reading = Span::since(writing.ended);
        let seconds = watch.seconds();
        self.tally.bytes_received += message.len() as u64;
        let reply = phases.time("deserialize", || Reply::decode(message));
        let (items, worked) = match reply.map_err(|malformed| Broken::Server(malformed.to_string()))? {
            Reply::Item(item, span) => (vec![item], span),
            Reply::Batch(items, span) => (items, span),
            Reply::Error(problem) => return Err(Broken::Server(problem)),
            Reply::Ready(_) => return Err(Broken::Server("it is ready when it should answer".to_owned())),
        };
        if items.len() != count {
            return Err(Broken::Server(format!("{} answers to {count} questions", items.len())));
        }
        let server: f64 = items.iter().map(|item| item.nanoseconds as f64 * 1e-9).sum();
        let tally = &mut self.tally;
        tally.exchanges.push(seconds);
        tally.server_seconds += server;
        tally.server_in_write += writing.overlap_seconds(&worked);
        tally.server_in_read += reading.overlap_seconds(&worked);
        tally.other_clock |= !Span { began: writing.began, ended: reading.ended }.contains(&worked);
        tally.stalls += u64::from(seconds - server > STALL.as_secs_f64());
        tally.batch_sizes.resize(tally.batch_sizes.len().max(count + 1), 0);
        tally.batch_sizes[count] += 1;
        phases.time("decode", || items.into_iter().try_for_each(|item| self.receive(item)))
    }

    fn receive(&mut self, item: Item) -> Result<(), Broken> {
        let number = item.id / 2;
        let position = (item.id % 2) as usize;
        let refused = |problem| Broken::Server(format!("question {}: {problem}", item.id));
        let sums = item.outcome.map_err(refused)?;
        let at = number.checked_sub(self.first_pending).map(|at| at as usize);
        let Some(pending) = at.and_then(|at| self.pending.get_mut(at)).filter(|pending| pending.missing > 0) else {
            return Err(Broken::Server(format!("an answer to the unknown question {}", item.id)));
        };
        let size = self.geometry.entry_size();
        pending.missing -= 1;
        if sums.len() == 2 * size {
            pending.sum = sums.chunks_exact(size).nth(pending.real).map(<[u8]>::to_vec);
        } else if sums.len() != size {
            return Err(Broken::Server(format!("a sum of {} bytes; an entry has {size}", sums.len())));
        } else if position == pending.real {
            pending.sum = Some(sums);
        }
        while self.pending.front().is_some_and(|pending| pending.missing == 0) {
            let done = self.pending.pop_front().expect("there is a first one");
            self.first_pending += 1;
            self.decode(&done)?;
        }
        Ok(())
    }

    /// The hint's sum less the real half's is the entry; a backup takes the place of the hint.
    fn decode(&mut self, done: &Pending) -> Result<(), Broken> {
        let sum = done.sum.as_ref().ok_or_else(|| Broken::Server("it did not answer the real half".to_owned()))?;
        let words = sum.chunks_exact(8).map(|word| u64::from_le_bytes(*word.first_chunk().expect("chunks of eight")));
        let entry: Vec<u64> = done.hint.parity.iter().zip(words).map(|(hint, word)| hint ^ word).collect();
        if let Some(hint) = self.state.backups.take(self.prf, done.index, &entry) {
            self.state.hints.refill(done.slot, hint);
        }
        self.tally.answers.extend_from_slice(&entry);
        self.tally.latencies.push(done.started.seconds());
        Ok(())
    }
}
