//! One suite over all batching rules: three replicas and a few sessions with arbitrary message orders, compared with a
//! slow reference.
//!
//! Connections are FIFO queues. The next queue to deliver is random, and so is the time at which a timed batch is due.

mod common;

use std::collections::{HashMap, VecDeque};

use batch_curp_ho::client::quorum::Path;
use batch_curp_ho::client::{Request, Session};
use batch_curp_ho::command::{Class, CommandId, Found, LAST_BALLOT, LAST_SLOT, LEADER, Op, REPLICAS};
use batch_curp_ho::replica::batcher::{Flush, Moment};
use batch_curp_ho::replica::witness::Conflicts;
use batch_curp_ho::replica::{Executed, Replica};
use batch_curp_ho::wire::{Accept, Ack, BatchWriter, ErrorCode, Malformed, Message, Proposal, Reply, Verdict, split};
use proptest::prelude::*;

use common::{Answer, FromReplica, ToReplicas, body, bytes, check_answers, frames, newest, request, rules};

/// Messages on their way over one connection, as bytes.
type Queue = VecDeque<Vec<u8>>;

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
        let mut replicas: Vec<Replica> =
            (0..REPLICAS as u8).map(|id| Replica::new(id, flush, Conflicts::Writes)).collect();
        let sessions: Vec<Session> = (1..=todo.len() as u32).map(|client| Session::new(client, bound, 16)).collect();
        for replica in &mut replicas {
            replica.keep_log();
            (1..=todo.len() as u32).for_each(|client| replica.hello(client, bound, &mut FromReplica::default()));
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
        let mut sent = FromReplica::default();
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
                    Message::Propose(proposal) => server.propose(name, &proposal, 0, &mut sent).unwrap(),
                    Message::Sync { seq } => server.sync(name, seq, &mut sent),
                    Message::ClientHello { client, bound } => server.hello(client, bound, &mut sent),
                    other => panic!("{other:?}"),
                }
                self.send_down(replica, sent, self.replicas[replica].executed());
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
                let before = self.replicas[to].executed();
                let message = Message::decode(body(&bytes)).unwrap();
                self.replicas[to].peer(from as u8, &message, 0, &mut sent).unwrap();
                self.send_down(to, sent, before);
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

    fn send_down(&mut self, replica: usize, out: FromReplica, before: u64) {
        assert!(out.peers.is_empty(), "no election happens");
        for (client, bytes) in out.clients {
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
        let mut all = Vec::new();
        self.replicas[replica].batcher.take(0, |bytes| all.extend_from_slice(bytes));
        for frame in frames(&all) {
            for to in (0..REPLICAS).filter(|to| *to != replica && self.dead != Some(*to as u8)) {
                self.peers[replica][to].push_back(frame.clone());
            }
        }
    }

    /// A replica is killed: messages to it are lost, its sent messages still arrive, and then all others notice.
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
            self.sessions[client].lost(replica, &mut out);
            self.send_up(client, out);
        }
    }

    fn check(&self) {
        let commands = self.answers.len();
        assert!(self.sessions.iter().all(|session| session.outstanding() == 0), "a session waits forever");
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
        check_answers(log, &self.answers);
        self.check_weak_reads(log);
    }

    /// A weak read returns the session's newest own write sent before it, unless that was executed already; else the
    /// executed value.
    fn check_weak_reads(&self, log: &[Executed]) {
        for Answer { client, completed, .. } in &self.answers {
            let (Request { class, put, key }, seq) = (completed.request, completed.seq);
            if class == Class::Strong || put {
                continue;
            }
            assert_eq!(completed.path, Path::Bound);
            let (before, after) = self.seen[&CommandId { client: *client, seq }];
            let expected = |executed: u64| {
                let own = log.iter().rev().find(|(slot, writer, k, put)| {
                    writer.client == *client && writer.seq < seq && *slot > executed && *k == key && put.is_some()
                });
                own.map_or(newest(log, executed as usize, key).1, |(_, writer, ..)| *writer)
            };
            let possible: Vec<CommandId> = (before..=after).map(expected).collect();
            let read = completed.read;
            assert!(possible.contains(&read), "{read:?} after {before} to {after} slots, not {possible:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn consistency_holds_for_every_rule_and_message_order(
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
    fn consistency_holds_if_a_follower_dies_at_any_time(
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
        let (b, c, x, y) = (b & LAST_BALLOT, c & LAST_BALLOT, x & LAST_SLOT, y & LAST_SLOT);
        let seq = a.max(1);
        let class = if flags.0 { Class::Strong } else { Class::Weak };
        let op = Op { key: x, put: flags.1.then_some(&*value) };
        let found = batch_curp_ho::command::Found { version: y, value: &value };
        let read_dep = CommandId { client: b, seq: c };
        let mut batch = BatchWriter::default();
        batch.accept(&Accept { slot: y, id: read_dep, class, op });
        batch.ack(x);
        let mut batch_bytes = Vec::new();
        batch.take(c, &mut batch_bytes);
        let messages = [
            Message::PeerHello { replica, ballot: b, starting: flags.0, era: x },
            Message::Begin { era: x, settings: &value },
            Message::Begun { era: y },
            Message::Beat { ballot: b, executed: x },
            Message::Elect { ballot: b, view: c, last: x },
            Message::Vote { ballot: c },
            Message::State { ballot: b, last: flags.0, bytes: &value },
            Message::ClientHello { client: b, bound: replica },
            Message::Welcome { replica, known: c },
            Message::NewLeader { ballot: b, base: y },
            Message::Propose(Proposal {
                class,
                seq,
                done_below: b,
                causal_dep: c,
                observed: y,
                ballot: b,
                sync: flags.1,
                op,
            }),
            Message::Reply(Reply { seq, ballot: b, ok: flags.1, read_dep, found }),
            Message::RecordAck(Ack { replica, seq, ballot: c, verdict, read_dep }),
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
            // A truncated message is invalid, unless the truncated part is text of arbitrary length.
            let open = matches!(message, Message::Status { .. } | Message::Error { .. } | Message::State { .. } | Message::Begin { .. });
            if !open {
                let cut = &body(&bytes)[..body(&bytes).len() - 1];
                prop_assert!(Message::decode(cut).is_err());
            }
        }
    }

    #[test]
    fn arbitrary_messages_do_not_panic_a_replica(
        id in 0..REPLICAS as u8,
        steps in prop::collection::vec((0..6_u8, 1..4_u32, any::<(bool, bool)>(), 0..2_u64, 1..6_u64), 1..40),
    ) {
        let mut replica = Replica::new(id, Flush::Natural, Conflicts::Writes);
        let mut out = FromReplica::default();
        (1..=2).for_each(|client| replica.hello(client, id, &mut out));
        let others: Vec<u8> = (0..REPLICAS as u8).filter(|other| *other != id).collect();
        for (kind, seq, (strong, put), key, slot) in steps {
            let class = if strong { Class::Strong } else { Class::Weak };
            let op = Op { key, put: put.then_some(&[7; 16][..]) };
            let (client, ballot, observed) = (1 + u32::from(kind % 2), 0, slot);
            let proposal = Proposal { class, seq, done_below: 1, causal_dep: 0, observed, ballot, sync: put, op };
            // Clients that send different commands to each replica, leaders with arbitrary slots, and unsolicited
            // answers.
            let heard = match kind {
                0 | 1 => replica.propose(client, &proposal, 0, &mut out),
                2 | 3 => {
                    let bytes = accept(slot, CommandId { client, seq }, class, op);
                    replica.peer(others[0], &Message::decode(body(&bytes)).unwrap(), 0, &mut out)
                }
                4 => {
                    let mut batch = BatchWriter::default();
                    (1..=slot).for_each(|slot| batch.ack(slot));
                    let mut bytes = Vec::new();
                    batch.take(0, &mut bytes);
                    replica.peer(others[seq as usize % 2], &Message::decode(body(&bytes)).unwrap(), 0, &mut out)
                }
                _ => {
                    replica.sync(client, seq, &mut out);
                    Ok(())
                }
            };
            // A peer that violates the protocol is disconnected.
            if heard.is_err() {
                break;
            }
        }
        let _ = replica.status();
    }

    #[test]
    fn arbitrary_bytes_do_not_panic_the_decoder(kind: u8, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let all = [&[kind % 21], &bytes[..]].concat();
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

fn accept(slot: u64, id: CommandId, class: Class, op: Op<'_>) -> Vec<u8> {
    let mut batch = BatchWriter::default();
    batch.accept(&Accept { slot, id, class, op });
    let mut bytes = Vec::new();
    batch.take(0, &mut bytes);
    bytes
}

#[test]
fn a_leader_puts_a_sessions_commands_into_slots_in_their_order() {
    let op = Op { key: 1, put: Some(&[1; 16]) };
    for (slots, refused) in [
        (&[(1, 1), (2, 2), (3, 3)][..], None),
        (&[(1, 2)], Some("command 2 of client 1 in the slot after command 0")),
        (&[(1, 1), (2, 3)], Some("command 3 of client 1 in the slot after command 1")),
        (&[(1, 1), (2, 1)], Some("command 1 of client 1 in the slot after command 1")),
    ] {
        let mut follower = Replica::new(1, Flush::Natural, Conflicts::Writes);
        let mut out = FromReplica::default();
        let last = slots.iter().map(|(slot, seq)| {
            let bytes = accept(*slot, CommandId { client: 1, seq: *seq }, Class::Weak, op);
            follower.peer(LEADER, &Message::decode(body(&bytes)).unwrap(), 0, &mut out).err().map(|error| error.0)
        });
        assert_eq!(last.last().unwrap().as_deref(), refused, "{slots:?}");
    }
}

#[test]
fn recorded_command_is_removed_regardless_of_the_leaders_version() {
    let value = [1; 16];
    let commands: Vec<(Class, Op<'_>)> = [Class::Strong, Class::Weak]
        .into_iter()
        .flat_map(|class| {
            [(1, true), (1, false), (2, true)].map(|(key, put)| (class, Op { key, put: put.then_some(&value[..]) }))
        })
        .collect();
    for told in &commands {
        for ordered in &commands {
            let mut follower = Replica::new(1, Flush::Natural, Conflicts::Writes);
            let mut out = FromReplica::default();
            follower.hello(1, 1, &mut out);
            let (class, op) = *told;
            let (seq, done_below, causal_dep, observed, ballot, sync) = (1, 1, 0, 0, 0, false);
            let proposal = Proposal { class, seq, done_below, causal_dep, observed, ballot, sync, op };
            follower.propose(1, &proposal, 0, &mut out).unwrap();
            let (class, op) = *ordered;
            let bytes = accept(1, CommandId { client: 1, seq }, class, op);
            follower.peer(LEADER, &Message::decode(body(&bytes)).unwrap(), 0, &mut out).unwrap();
            let status = follower.status();
            assert_eq!((status.executed, status.residue), (1, 0), "told {told:?}, and the leader ordered {ordered:?}");
        }
    }
}

#[test]
fn a_leader_has_all_that_is_executed() {
    let mut follower = Replica::new(1, Flush::Natural, Conflicts::Writes);
    let mut out = FromReplica::default();
    let bytes = accept(1, CommandId { client: 1, seq: 1 }, Class::Weak, Op { key: 1, put: Some(&[1; 16]) });
    follower.peer(LEADER, &Message::decode(body(&bytes)).unwrap(), 0, &mut out).unwrap();
    assert_eq!(follower.executed(), 1, "the leader and itself are a majority");
    // A state with nothing in it.
    let state = Message::State { ballot: 3, last: true, bytes: &[0; 32] };
    let refused = follower.peer(LEADER, &state, 0, &mut out).unwrap_err();
    assert_eq!(refused.0, "a state without command 1 of client 1, which is executed");
    assert_eq!((follower.executed(), follower.ballot()), (1, 0));
}

#[test]
fn non_leader_assigns_no_slots_and_a_lagging_one_requests_the_state() {
    let mut follower = Replica::new(1, Flush::Natural, Conflicts::Writes);
    let (id, op) = (CommandId { client: 1, seq: 1 }, Op { key: 1, put: Some(&[1; 16]) });
    let mut out = FromReplica::default();
    let frame = accept(1, id, Class::Weak, op);
    let refused = follower.peer(2, &Message::decode(body(&frame)).unwrap(), 0, &mut out).unwrap_err();
    assert_eq!(refused.to_string(), "an accept from replica 2, which does not lead");
    let frame = accept(2, id, Class::Weak, op);
    for _ in 0..2 {
        follower.peer(LEADER, &Message::decode(body(&frame)).unwrap(), 0, &mut out).unwrap();
    }
    assert_eq!(follower.executed(), 0);
    let asked = [(LEADER, bytes(&Message::PeerHello { replica: 1, ballot: 0, starting: false, era: 0 }))];
    assert_eq!(out.peers, asked, "once is enough");
    assert_eq!(Malformed::Oversized(5000).code(), ErrorCode::Oversized);
}

#[test]
fn weak_read_waits_for_the_sessions_observations() {
    let mut follower = Replica::new(1, Flush::Natural, Conflicts::Writes);
    let mut out = FromReplica::default();
    follower.hello(2, 1, &mut out);
    out.clients.clear();
    // The session has read client 1's write in slot 1 at the leader.
    let op = Op { key: 5, put: None };
    let (class, done_below, causal_dep, observed) = (Class::Weak, 1, 0, 1);
    let read = Proposal { class, seq: 1, done_below, causal_dep, observed, ballot: 0, sync: false, op };
    follower.propose(2, &read, 0, &mut out).unwrap();
    assert!(out.clients.is_empty(), "the follower does not know slot 1 yet");
    assert_eq!((follower.status().weak_waits, follower.status().residue), (1, 1));

    let mut value = [0; 16];
    batch_curp_ho::command::fill_value(&mut value, CommandId { client: 1, seq: 1 });
    let frame = accept(1, CommandId { client: 1, seq: 1 }, Class::Weak, Op { key: 5, put: Some(&value) });
    follower.peer(LEADER, &Message::decode(body(&frame)).unwrap(), 0, &mut out).unwrap();
    let [(2, bytes)] = &out.clients[..] else { panic!("{} messages", out.clients.len()) };
    let found = batch_curp_ho::command::Found { version: 1, value: &value };
    assert_eq!(Message::decode(body(bytes)), Ok(Message::CausalReply { seq: 1, found }));
}

#[test]
fn observations_under_an_older_leader_precede_the_new_ones_base() {
    let mut replica = Replica::new(2, Flush::Natural, Conflicts::Writes);
    let mut out = FromReplica::default();
    replica.hello(1, 0, &mut out);
    replica.hello(3, 2, &mut out);
    let propose = |replica: &mut Replica, client, seq, put: Option<&[u8]>, observed, out: &mut FromReplica| {
        let (class, done_below, causal_dep, ballot, op) = (Class::Weak, 1, 0, 0, Op { key: 5, put });
        let proposal = Proposal { class, seq, done_below, causal_dep, observed, ballot, sync: false, op };
        replica.propose(client, &proposal, 0, out).unwrap();
    };
    let mut value = [0; 16];
    for seq in [1, 2] {
        batch_curp_ho::command::fill_value(&mut value, CommandId { client: 1, seq });
        propose(&mut replica, 1, seq, Some(&value), 0, &mut out);
    }
    // The leader is lost, and this replica leads with two commands that it has recorded: the last of them has slot 2.
    replica.peer_lost(LEADER, 0, &mut out);
    replica.peer(1, &Message::Vote { ballot: 2 }, 0, &mut out).unwrap();
    assert!(replica.leads() && replica.executed() == 0);
    // The session has seen slot 1 of the lost leader, which may have been either.
    out.clients.clear();
    propose(&mut replica, 3, 1, None, 1, &mut out);
    let ack = |replica: &mut Replica, slot, out: &mut FromReplica| {
        let (mut batch, mut bytes) = (BatchWriter::default(), Vec::new());
        batch.ack(slot);
        batch.take(2, &mut bytes);
        replica.peer(1, &Message::decode(body(&bytes)).unwrap(), 0, out).unwrap();
    };
    ack(&mut replica, 1, &mut out);
    assert!(replica.executed() == 1 && out.clients.is_empty(), "slot 2 may be the observed one");
    ack(&mut replica, 2, &mut out);
    let found = batch_curp_ho::command::Found { version: 2, value: &value };
    assert_eq!(out.clients, [(3, bytes(&Message::CausalReply { seq: 1, found }))]);
}

/// The commands that were sent to a replica, and whether they ask for the leader's last word.
fn proposed(out: &ToReplicas, replica: u8) -> Vec<(u32, bool)> {
    let to = out.0.iter().filter(|(to, _)| *to == replica);
    to.filter_map(|(_, bytes)| match Message::decode(body(bytes)).unwrap() {
        Message::Propose(proposal) => Some((proposal.seq, proposal.sync)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_session_waits_for_a_silent_replica_once_until_it_speaks_again() {
    let mut session = Session::new(1, 1, 16);
    let request = Request { class: Class::Strong, put: true, key: 1 };
    let start = |session: &mut Session, now| {
        let mut out = ToReplicas::default();
        session.start(request, now, now, &mut out);
        proposed(&out, LEADER)[0]
    };
    let says = |session: &mut Session, replica, seq| {
        let (verdict, read_dep) = (Verdict::Recorded, CommandId::NONE);
        let ack = Message::RecordAck(Ack { replica, seq, ballot: 0, verdict, read_dep });
        session.receive(replica, &ack, &mut ToReplicas::default()).unwrap();
    };
    assert_eq!([start(&mut session, 10), start(&mut session, 20)], [(1, false), (2, false)]);
    for seq in [1, 2] {
        says(&mut session, 1, seq);
    }

    let mut out = ToReplicas::default();
    session.sync_older_than(10, &mut out);
    assert!(out.0.is_empty(), "nothing has waited for long");
    assert_eq!(start(&mut session, 30), (3, false));
    // The first has, and for replica 2: the others that wait for it are asked for as well, and later ones do not wait.
    session.sync_older_than(11, &mut out);
    let asked: Vec<_> = [1, 2, 3].map(|seq| (LEADER, bytes(&Message::Sync { seq }))).into();
    assert_eq!(out.0, asked);
    assert_eq!(start(&mut session, 40), (4, true));
    says(&mut session, 1, 4);
    assert_eq!(start(&mut session, 50), (5, true), "another replica has spoken");
    says(&mut session, 2, 1);
    assert_eq!(start(&mut session, 60), (6, false), "it speaks again");
}

#[test]
fn a_session_binds_itself_to_another_replica_where_the_bound_one_is_silent() {
    let mut session = Session::new(1, 1, 16);
    let mut out = ToReplicas::default();
    let hello = |bound| bytes(&Message::ClientHello { client: 1, bound });
    for (seq, put) in [(1, true), (2, false)] {
        session.start(Request { class: Class::Weak, put, key: 1 }, seq, seq, &mut out);
    }
    let found = Found::default();
    session.receive(1, &Message::CausalReply { seq: 1, found }, &mut out).unwrap().unwrap();
    out.0.clear();
    session.rebind_older_than(2, &mut out);
    session.rebind_older_than(2, &mut out);
    assert_eq!(session.bound(), 1, "long-waiting commands are answered");
    // It has one look's time to say something.
    session.rebind_older_than(3, &mut out);
    session.receive(1, &Message::CausalReply { seq: 1, found }, &mut out).unwrap();
    session.rebind_older_than(3, &mut out);
    assert!(session.bound() == 1 && out.0.is_empty(), "it has spoken");
    session.rebind_older_than(3, &mut out);
    assert_eq!((session.bound(), proposed(&out, 2)), (2, vec![(2, false)]));
    assert!([1, 2].iter().all(|replica| out.0.contains(&(*replica, hello(2)))), "the silent one is told");
    // A late answer of the old replica is valid, because the session had observed nothing else when it asked.
    let late = session.receive(1, &Message::CausalReply { seq: 2, found }, &mut out).unwrap();
    assert_eq!((late.unwrap().seq, session.outstanding()), (2, 0));
}
