//! One suite over every rule by which batches are sent: three replicas and a few sessions, any order in which messages can arrive, and
//! a slow reference that says what every answer must have been.
//!
//! The connections are queues. Each keeps its order; which of them delivers next is random, and so is when a timed batch is due.

use std::collections::{HashMap, VecDeque};

use batch_curp_ho::client::quorum::Path;
use batch_curp_ho::client::{self, Completed, Request, Session};
use batch_curp_ho::command::{Class, ClientId, CommandId, LEADER, Op, REPLICAS, writer_of};
use batch_curp_ho::replica::batcher::{Flush, Moment};
use batch_curp_ho::replica::{self, Executed, Replica};
use batch_curp_ho::wire::{Accept, Ack, BatchWriter, ErrorCode, Malformed, Message, Proposal, Reply, Verdict, split};
use proptest::prelude::*;

/// Messages on their way over one connection, as bytes.
type Queue = VecDeque<Vec<u8>>;

#[derive(Default)]
struct ToReplicas(Vec<(u8, Vec<u8>)>);

impl client::Outbox for ToReplicas {
    fn send(&mut self, replica: u8, message: &Message<'_>) {
        let mut bytes = Vec::new();
        message.append(&mut bytes);
        self.0.push((replica, bytes));
    }
}

#[derive(Default)]
struct ToClients(Vec<(ClientId, Vec<u8>)>);

impl replica::Outbox for ToClients {
    fn send(&mut self, client: ClientId, message: &Message<'_>) {
        let mut bytes = Vec::new();
        message.append(&mut bytes);
        self.0.push((client, bytes));
    }
}

fn body(bytes: &[u8]) -> &[u8] {
    split(bytes).unwrap().unwrap().0
}

/// What a client got, and what its bound replica had executed when it answered (for weak reads).
struct Answer {
    client: ClientId,
    completed: Completed,
    /// Commands of the whole system that were completed before this one was sent.
    sent_after: usize,
}

struct World {
    replicas: Vec<Replica>,
    sessions: Vec<Session>,
    todo: Vec<VecDeque<Request>>,
    /// By client and replica.
    up: Vec<[Queue; REPLICAS]>,
    down: Vec<[Queue; REPLICAS]>,
    /// By sender and receiver.
    peers: [[Queue; REPLICAS]; REPLICAS],
    answers: Vec<Answer>,
    sent_after: HashMap<CommandId, usize>,
    /// For every weak read that was answered: how many slots the replica had executed then. One that waited is answered in the middle of
    /// a batch, so these are the slots before the batch and after it.
    seen: HashMap<CommandId, (u64, u64)>,
    dead: Option<u8>,
    window: usize,
    random: u64,
}

/// A step that can be taken now.
#[derive(Clone, Copy)]
enum Step {
    Start(usize),
    Up(usize, usize),
    Down(usize, usize),
    Peer(usize, usize),
    /// The replica has handled all that was there, or its timer is due.
    Flush(usize),
}

impl World {
    fn new(flush: Flush, bound: u8, todo: &[Vec<Request>], window: usize, seed: u64) -> Self {
        let mut replicas: Vec<Replica> = (0..REPLICAS as u8).map(|id| Replica::new(id, flush)).collect();
        let sessions: Vec<Session> = (1..=todo.len() as u32).map(|client| Session::new(client, bound, 16)).collect();
        for replica in &mut replicas {
            replica.keep_log();
            (1..=todo.len() as u32).for_each(|client| replica.hello(client, bound));
        }
        let queues = || (0..todo.len()).map(|_| Default::default()).collect();
        Self {
            replicas,
            sessions,
            todo: todo.iter().map(|list| list.iter().copied().collect()).collect(),
            up: queues(),
            down: queues(),
            peers: Default::default(),
            answers: Vec::new(),
            sent_after: HashMap::new(),
            seen: HashMap::new(),
            dead: None,
            window,
            random: seed,
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (client, todo) in self.todo.iter().enumerate() {
            if !todo.is_empty() && self.sessions[client].outstanding() < self.window {
                steps.push(Step::Start(client));
            }
            for replica in 0..REPLICAS {
                if !self.up[client][replica].is_empty() {
                    steps.push(Step::Up(client, replica));
                }
                if !self.down[client][replica].is_empty() {
                    steps.push(Step::Down(client, replica));
                }
            }
        }
        for from in 0..REPLICAS {
            steps.extend((0..REPLICAS).filter(|to| !self.peers[from][*to].is_empty()).map(|to| Step::Peer(from, to)));
            if self.replicas[from].batcher.due(Moment::InputEmpty, u64::MAX) {
                steps.push(Step::Flush(from));
            }
        }
        steps
    }

    /// Takes random steps until none is left, or `most` are taken.
    fn run(&mut self, most: usize) {
        for _ in 0..most {
            let steps = self.steps();
            if steps.is_empty() {
                return;
            }
            let step = steps[self.draw(steps.len())];
            self.take(step);
        }
    }

    fn take(&mut self, step: Step) {
        let mut to_replicas = ToReplicas::default();
        let mut to_clients = ToClients::default();
        match step {
            Step::Start(client) => {
                let request = self.todo[client].pop_front().unwrap();
                let id = CommandId { client: client as u32 + 1, seq: self.sessions[client].next() };
                self.sent_after.insert(id, self.answers.len());
                self.sessions[client].start(request, 0, 0, &mut to_replicas);
                self.send_up(client, to_replicas);
            }
            Step::Up(client, replica) => {
                let bytes = self.up[client][replica].pop_front().unwrap();
                let name = client as u32 + 1;
                let server = &mut self.replicas[replica];
                match Message::decode(body(&bytes)).unwrap() {
                    Message::Propose(proposal) => server.propose(name, &proposal, 0, &mut to_clients).unwrap(),
                    Message::Sync { seq } => server.sync(name, seq, &mut to_clients),
                    Message::ClientHello { client, bound } => server.hello(client, bound),
                    other => panic!("{other:?}"),
                }
                self.send_down(replica, to_clients, self.replicas[replica].executed());
            }
            Step::Down(client, replica) => {
                let bytes = self.down[client][replica].pop_front().unwrap();
                let message = Message::decode(body(&bytes)).unwrap();
                if let Some(completed) =
                    self.sessions[client].receive(replica as u8, &message, &mut to_replicas).unwrap()
                {
                    let client = client as u32 + 1;
                    let sent_after = self.sent_after[&CommandId { client, seq: completed.seq }];
                    self.answers.push(Answer { client, completed, sent_after });
                }
                self.send_up(client, to_replicas);
            }
            Step::Peer(from, to) => {
                let bytes = self.peers[from][to].pop_front().unwrap();
                let Message::Batch(batch) = Message::decode(body(&bytes)).unwrap() else { panic!("no batch") };
                let before = self.replicas[to].executed();
                self.replicas[to].batch(from as u8, &batch, 0, &mut to_clients).unwrap();
                self.send_down(to, to_clients, before);
            }
            Step::Flush(replica) => self.flush(replica),
        }
    }

    fn send_up(&mut self, client: usize, out: ToReplicas) {
        for (replica, bytes) in out.0 {
            if self.dead != Some(replica) {
                self.up[client][usize::from(replica)].push_back(bytes);
            }
        }
    }

    fn send_down(&mut self, replica: usize, out: ToClients, before: u64) {
        for (client, bytes) in out.0 {
            if let Ok(Message::CausalReply { seq, .. }) = Message::decode(body(&bytes)) {
                self.seen.insert(CommandId { client, seq }, (before, self.replicas[replica].executed()));
            }
            self.down[client as usize - 1][replica].push_back(bytes);
        }
        if self.replicas[replica].batcher.due(Moment::MessageHandled, u64::MAX) {
            self.flush(replica);
        }
    }

    fn flush(&mut self, replica: usize) {
        let mut frames = Vec::new();
        self.replicas[replica].batcher.take(0, |bytes| frames.extend_from_slice(bytes));
        let mut rest = &frames[..];
        while let Some((body, after)) = split(rest).unwrap() {
            let frame = rest[..rest.len() - after.len()].to_vec();
            assert!(!body.is_empty());
            for to in (0..REPLICAS).filter(|to| *to != replica && self.dead != Some(*to as u8)) {
                self.peers[replica][to].push_back(frame.clone());
            }
            rest = after;
        }
    }

    /// A replica is gone: what is on its way to it is lost, what it has sent still arrives, and then everybody notices.
    fn kill(&mut self, replica: u8) {
        self.dead = Some(replica);
        let dead = usize::from(replica);
        self.peers.iter_mut().for_each(|to| to[dead].clear());
        // Its unsent batch dies with it.
        self.replicas[dead].batcher.take(0, |_| {});
        for client in 0..self.sessions.len() {
            self.up[client][dead].clear();
            while !self.down[client][dead].is_empty() {
                self.take(Step::Down(client, dead));
            }
            let mut out = ToReplicas::default();
            self.sessions[client].lost(replica, &mut out).unwrap();
            self.send_up(client, out);
        }
    }

    fn check(&self) {
        let commands = self.answers.len();
        assert!(self.sessions.iter().all(|session| session.outstanding() == 0), "somebody waits forever");
        let alive: Vec<&Replica> =
            (0..).zip(&self.replicas).filter(|(id, _)| self.dead != Some(*id)).map(|(_, r)| r).collect();
        let log = alive[0].kept_log();
        assert_eq!(log.len(), commands, "a command was lost, or done twice");
        for replica in &alive {
            assert_eq!(replica.kept_log(), log, "the same commands in the same order");
            let (status, first) = (replica.status(), alive[0].status());
            assert_eq!((status.state, status.history, status.executed), (first.state, first.history, first.executed));
            if self.dead.is_none() {
                assert_eq!(status.residue, 0, "something is kept of commands that are done");
            }
        }
        self.check_answers(log);
    }

    /// The reference: what a command at `slot` reads, by walking backwards through the log.
    fn newest(log: &[Executed], up_to: usize, key: u64) -> (usize, CommandId) {
        let writes = |(_, (_, k, put)): &(usize, &(CommandId, u64, Option<Vec<u8>>))| *k == key && put.is_some();
        let write = log[..up_to].iter().enumerate().rev().find(writes);
        write.map_or((0, CommandId::NONE), |(at, (_, _, value))| (at + 1, writer_of(value.as_ref().unwrap()).unwrap()))
    }

    fn check_answers(&self, log: &[Executed]) {
        let slots: HashMap<CommandId, usize> = log.iter().enumerate().map(|(at, (id, ..))| (*id, at + 1)).collect();
        for (at, answer) in self.answers.iter().enumerate() {
            let Answer { client, completed, sent_after } = answer;
            let Completed { seq, request: Request { class, put, key }, read, path, .. } = *completed;
            let id = CommandId { client: *client, seq };
            let slot = slots[&id];
            // Strong commands keep the order of real time: what was done before this one was sent has an earlier slot.
            if class == Class::Strong {
                assert!(path != Path::Bound);
                for earlier in self.answers[..*sent_after].iter().filter(|a| a.completed.request.class == Class::Strong)
                {
                    let earlier = CommandId { client: earlier.client, seq: earlier.completed.seq };
                    assert!(slots[&earlier] < slot, "{earlier:?} was done before {id:?} was sent");
                }
                let expected = if put { CommandId::NONE } else { Self::newest(log, slot - 1, key).1 };
                assert_eq!(read, expected, "the answer to {id:?}, slot {slot}");
            } else if !put {
                assert_eq!(path, Path::Bound);
                // The newest own write that was sent before, unless it was executed already; else what was executed.
                let (before, after) = self.seen[&id];
                let expected = |executed: u64| {
                    let executed = executed as usize;
                    let own = log.iter().enumerate().rev().find(|(slot, (writer, k, put))| {
                        let own = writer.client == *client && writer.seq < seq;
                        own && *slot + 1 > executed && *k == key && put.is_some()
                    });
                    own.map_or(Self::newest(log, executed, key).1, |(_, (writer, ..))| *writer)
                };
                let possible: Vec<CommandId> = (before..=after).map(expected).collect();
                assert!(
                    possible.contains(&read),
                    "{id:?} read {read:?} after {before} to {after} slots, not {possible:?}"
                );
                self.check_causality(log, &slots, at, read);
            }
        }
    }

    /// Nothing older than what the session had seen or written before it asked.
    fn check_causality(&self, log: &[Executed], slots: &HashMap<CommandId, usize>, at: usize, read: CommandId) {
        let Answer { client, completed, sent_after } = &self.answers[at];
        let version = slots.get(&read).copied().unwrap_or(0);
        let mine = self.answers[..*sent_after].iter().filter(|a| a.client == *client).map(|a| &a.completed);
        // What led to another session's write has an earlier slot. That goes for its own writes as well, but not the other way round.
        let foreign = mine.map(|earlier| earlier.read).filter(|writer| writer.client != *client);
        let seen = foreign.filter_map(|writer| slots.get(&writer)).copied().max().unwrap_or(0);
        let (known, _) = Self::newest(log, seen, completed.request.key);
        let at_least = log.iter().enumerate().filter(|(_, (id, key, put))| {
            id.client == *client && id.seq < completed.seq && *key == completed.request.key && put.is_some()
        });
        let own = at_least.map(|(at, _)| at + 1).max().unwrap_or(0);
        assert!(version >= own, "client {client} does not read its own write");
        assert!(version >= known, "client {client} reads older than what it has seen");
    }
}

fn request() -> impl Strategy<Value = Request> {
    (any::<bool>(), any::<bool>(), 0..3_u64).prop_map(|(strong, put, key)| {
        let class = if strong { Class::Strong } else { Class::Weak };
        Request { class, put, key }
    })
}

fn rules() -> [Flush; 3] {
    [Flush::Immediate, Flush::Natural, Flush::timed(150)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_keeps_all_promises_in_any_order_of_arrival(
        todo in prop::collection::vec(prop::collection::vec(request(), 0..14), 1..4),
        bound in 0..REPLICAS as u8,
        window in 1..6_usize,
        seed: u64,
    ) {
        for flush in rules() {
            let mut world = World::new(flush, bound, &todo, window, seed);
            world.run(usize::MAX);
            prop_assert_eq!(world.answers.len(), todo.iter().map(Vec::len).sum::<usize>());
            world.check();
        }
    }

    #[test]
    fn all_promises_are_kept_when_a_follower_dies_at_any_moment(
        todo in prop::collection::vec(prop::collection::vec(request(), 1..14), 1..4),
        bound in 0..REPLICAS as u8,
        dies in 1..REPLICAS as u8,
        after in 0..400_usize,
        window in 1..6_usize,
        seed: u64,
    ) {
        for flush in rules() {
            let mut world = World::new(flush, bound, &todo, window, seed);
            world.run(after);
            world.kill(dies);
            world.run(usize::MAX);
            prop_assert_eq!(world.answers.len(), todo.iter().map(Vec::len).sum::<usize>());
            world.check();
        }
    }

    #[test]
    fn one_session_with_one_command_at_a_time_finds_the_same_under_every_rule(
        todo in prop::collection::vec(request(), 1..40),
        seed: u64,
    ) {
        let mut outcomes = Vec::new();
        for (flush, bound) in rules().into_iter().zip([0, 1, 2]) {
            let mut world = World::new(flush, bound, std::slice::from_ref(&todo), 1, seed);
            world.run(usize::MAX);
            let found: Vec<CommandId> = world.answers.iter().map(|answer| answer.completed.read).collect();
            outcomes.push((found, world.replicas[0].status().state));
        }
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
        prop_assert_eq!(&outcomes[0], &outcomes[2]);
    }

    #[test]
    fn messages_read_back_as_they_were_written(
        numbers in any::<(u32, u32, u32, u64, u64)>(),
        flags in any::<(bool, bool)>(),
        replica in 0..REPLICAS as u8,
        value in prop::collection::vec(any::<u8>(), 0..200),
        verdict in prop::sample::select(vec![Verdict::Conflict, Verdict::Recorded, Verdict::Ordered]),
    ) {
        let (a, b, c, x, y) = numbers;
        let seq = a.max(1);
        let class = if flags.0 { Class::Strong } else { Class::Weak };
        let op = Op { key: x, put: flags.1.then_some(&*value) };
        let found = batch_curp_ho::command::Found { version: y, value: &value };
        let read_dep = CommandId { client: b, seq: c };
        let mut batch = BatchWriter::default();
        batch.accept(&Accept { slot: y, id: read_dep, class, op });
        batch.ack(x);
        let mut batch_bytes = Vec::new();
        batch.take(&mut batch_bytes);
        let messages = [
            Message::PeerHello { replica },
            Message::ClientHello { client: b, bound: replica },
            Message::Welcome { replica },
            Message::Propose(Proposal { class, seq, done_below: b, causal_dep: c, observed: y, sync: flags.1, op }),
            Message::Reply(Reply { seq, ok: flags.1, read_dep, found }),
            Message::RecordAck(Ack { replica, seq, verdict, read_dep }),
            Message::Sync { seq },
            Message::SyncReply { seq, found },
            Message::CausalReply { seq, found },
            Message::decode(body(&batch_bytes)).unwrap(),
            Message::StatusRequest { executed: x },
            Message::Status { json: &value },
            Message::Error { code: ErrorCode::Oversized, message: "a sentence" },
        ];
        for message in messages {
            let mut bytes = Vec::new();
            message.append(&mut bytes);
            prop_assert_eq!(Message::decode(body(&bytes)), Ok(message));
            // A message that is cut off is none, unless what is cut off is text that may have any length.
            if !matches!(message, Message::Status { .. } | Message::Error { .. }) {
                let cut = &body(&bytes)[..body(&bytes).len() - 1];
                prop_assert!(Message::decode(cut).is_err());
            }
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(kind: u8, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let all = [&[kind % 16], &bytes[..]].concat();
        match Message::decode(&all) {
            Ok(message) => {
                let mut again = Vec::new();
                message.append(&mut again);
                prop_assert_eq!(body(&again), &all[..]);
            }
            Err(malformed) => prop_assert!(malformed.code() != ErrorCode::Unexpected, "{}", malformed),
        }
        let _ = split(&all);
    }
}

#[test]
fn the_leaders_own_mistakes_are_refused_and_change_nothing() {
    let mut follower = Replica::new(1, Flush::Natural);
    let accept = |slot| {
        let mut batch = BatchWriter::default();
        let op = Op { key: 1, put: Some(&[1; 16]) };
        batch.accept(&Accept { slot, id: CommandId { client: 1, seq: 1 }, class: Class::Strong, op });
        let mut bytes = Vec::new();
        batch.take(&mut bytes);
        bytes
    };
    let cases = [(LEADER, 2, "slot 2 after slot 0"), (2, 1, "an accept from replica 2, which does not lead")];
    for (from, slot, expected) in cases {
        let bytes = accept(slot);
        let Ok(Message::Batch(batch)) = Message::decode(body(&bytes)) else { panic!("no batch") };
        let refused = follower.batch(from, &batch, 0, &mut ToClients::default()).unwrap_err();
        assert_eq!(refused.to_string(), expected);
        assert_eq!(follower.executed(), 0);
    }
    assert_eq!(Malformed::Oversized(5000).code(), ErrorCode::Oversized);
}

#[test]
fn a_weak_read_waits_until_its_replica_has_seen_what_its_session_has_seen() {
    let mut follower = Replica::new(1, Flush::Natural);
    let mut out = ToClients::default();
    follower.hello(2, 1);
    // The session has read, at the leader, what client 1 wrote in slot 1.
    let op = Op { key: 5, put: None };
    let (class, done_below, causal_dep, observed) = (Class::Weak, 1, 0, 1);
    let read = Proposal { class, seq: 1, done_below, causal_dep, observed, sync: false, op };
    follower.propose(2, &read, 0, &mut out).unwrap();
    assert!(out.0.is_empty(), "the follower does not know slot 1 yet");
    assert_eq!((follower.status().weak_waits, follower.status().residue), (1, 1));

    let mut value = [0; 16];
    batch_curp_ho::command::fill_value(&mut value, CommandId { client: 1, seq: 1 });
    let mut batch = BatchWriter::default();
    let (id, op) = (CommandId { client: 1, seq: 1 }, Op { key: 5, put: Some(&value) });
    batch.accept(&Accept { slot: 1, id, class: Class::Weak, op });
    let mut bytes = Vec::new();
    batch.take(&mut bytes);
    let Ok(Message::Batch(batch)) = Message::decode(body(&bytes)) else { panic!("no batch") };
    follower.batch(LEADER, &batch, 0, &mut out).unwrap();
    let [(2, bytes)] = &out.0[..] else { panic!("{} messages", out.0.len()) };
    let found = batch_curp_ho::command::Found { version: 1, value: &value };
    assert_eq!(Message::decode(body(bytes)), Ok(Message::CausalReply { seq: 1, found }));
}
