//! A seeded simulator: three replicas and a few sessions with messages, clock ticks, crashes, restarts, pauses and
//! broken connections in random order. As long as no two replicas lose their memory at once, no answered command is
//! lost, strong commands are linearizable and weak ones causal. After the faults end, every command completes.

mod common;

use std::collections::{BTreeMap, VecDeque};

use batch_curp_ho::client::{Request, Session};
use batch_curp_ho::command::{REPLICAS, Slot};
use batch_curp_ho::replica::batcher::{Flush, Moment};
use batch_curp_ho::replica::witness::Conflicts;
use batch_curp_ho::replica::{Executed, Replica};
use batch_curp_ho::wire::Message;
use proptest::prelude::*;

use common::{Answer, FromReplica, ToReplicas, body, bytes, check_answers, frames, request, rules};

/// Nanoseconds of silence after which a leader is suspected here.
const PATIENCE: u64 = 100_000_000;

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    queue: VecDeque<Vec<u8>>,
    open: bool,
    /// It has broken, and the receiver does not know yet.
    broken: bool,
}

impl Pipe {
    fn open() -> Self {
        Self { open: true, ..Self::default() }
    }

    fn push(&mut self, bytes: Vec<u8>) {
        if self.open {
            self.queue.push_back(bytes);
        }
    }

    /// Breaks the connection after `arrive` more messages.
    fn cut(&mut self, arrive: usize) {
        if self.open {
            self.queue.truncate(arrive);
            (self.open, self.broken) = (false, true);
        }
    }
}

/// Who sends, or receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Client(usize),
    Replica(usize),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Start(usize),
    Deliver(End, End),
    /// The receiver learns that the connection is broken.
    Notice(End, End),
    Connect(End, usize),
    Flush(usize),
    Tick(usize),
    /// A client has waited for long.
    Patience(usize),
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Crash(usize),
    Restart(usize),
    Pause(usize),
    Resume(usize),
    Cut(usize, usize),
    CutClient(usize, usize),
}

struct World {
    flush: Flush,
    replicas: Vec<Option<Replica>>,
    paused: [bool; REPLICAS],
    sessions: Vec<Session>,
    todo: Vec<VecDeque<Request>>,
    /// By sender and receiver: replicas first, then clients.
    pipes: Vec<Vec<Pipe>>,
    answers: Vec<Answer>,
    sent_after: BTreeMap<(usize, u32), usize>,
    /// Commands executed by any replica, by slot.
    log: BTreeMap<Slot, Executed>,
    clock: u64,
    /// How far the clock jumps at most when a replica looks at it.
    jump: usize,
    /// Whether sessions send already.
    begun: bool,
    window: usize,
    /// Whether a replica's answers may overtake each other, as they do where routines write them.
    overtaking: bool,
    random: u64,
}

fn index(end: End) -> usize {
    match end {
        End::Replica(replica) => replica,
        End::Client(client) => REPLICAS + client,
    }
}

impl World {
    fn new(flush: Flush, bound: u8, todo: &[Vec<Request>], window: usize, seed: u64) -> Self {
        let ends = REPLICAS + todo.len();
        let mut world = Self {
            flush,
            replicas: Vec::new(),
            paused: [false; REPLICAS],
            sessions: (1..=todo.len() as u32).map(|client| Session::new(client, bound, 16)).collect(),
            todo: todo.iter().map(|list| list.iter().copied().collect()).collect(),
            pipes: (0..ends).map(|_| (0..ends).map(|_| Pipe::default()).collect()).collect(),
            answers: Vec::new(),
            sent_after: BTreeMap::new(),
            log: BTreeMap::new(),
            clock: 1,
            jump: 20_000_000,
            begun: false,
            window,
            overtaking: false,
            random: seed,
        };
        world.overtaking = world.draw(2) == 1;
        for id in 0..REPLICAS {
            let fresh = world.fresh(id);
            world.replicas.push(Some(fresh));
        }
        // As the processes do: a session begins when all replicas have welcomed it.
        for client in 0..todo.len() {
            for replica in 0..REPLICAS {
                world.connect(End::Client(client), replica);
            }
        }
        let welcome = |world: &Self| {
            world.replicas.iter().flatten().all(|replica| !is_starting(replica))
                && world.pipes.iter().all(|from| from[REPLICAS..].iter().all(|pipe| pipe.queue.is_empty()))
        };
        while !welcome(&world) {
            world.run(1);
        }
        world.begun = true;
        world
    }

    fn fresh(&self, id: usize) -> Replica {
        let mut replica = Replica::starting(id as u8, 0, self.flush, Conflicts::Writes);
        replica.suspect_after(PATIENCE);
        replica.keep_log();
        replica
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    fn pipe(&mut self, from: End, to: End) -> &mut Pipe {
        &mut self.pipes[index(from)][index(to)]
    }

    fn is_up(&self, end: End) -> bool {
        match end {
            End::Client(_) => true,
            End::Replica(replica) => self.replicas[replica].is_some() && !self.paused[replica],
        }
    }

    fn ends(&self) -> Vec<End> {
        (0..REPLICAS).map(End::Replica).chain((0..self.sessions.len()).map(End::Client)).collect()
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let ends = self.ends();
        for to in ends.iter().copied().filter(|to| self.is_up(*to)) {
            for from in ends.iter().copied() {
                let pipe = &self.pipes[index(from)][index(to)];
                if !pipe.queue.is_empty() {
                    // Deliveries are the most frequent step.
                    steps.extend([Step::Deliver(from, to); 4]);
                } else if pipe.broken {
                    steps.push(Step::Notice(from, to));
                }
            }
        }
        for replica in (0..REPLICAS).filter(|replica| self.is_up(End::Replica(*replica))) {
            steps.push(Step::Tick(replica));
            let batcher = &self.replicas[replica].as_ref().unwrap().batcher;
            if batcher.due(Moment::InputEmpty, u64::MAX) {
                steps.extend([Step::Flush(replica); 2]);
            }
            for from in ends.iter().copied().filter(|from| self.is_up(*from) && self.may_connect(*from, replica)) {
                steps.push(Step::Connect(from, replica));
            }
        }
        for client in 0..self.sessions.len() {
            if self.begun && !self.todo[client].is_empty() && self.sessions[client].outstanding() < self.window {
                steps.extend([Step::Start(client); 2]);
            }
            steps.push(Step::Patience(client));
        }
        steps
    }

    /// Both ends have noticed the loss of their connection. Of two replicas the one with the larger number connects.
    fn may_connect(&self, from: End, to: usize) -> bool {
        let (there, back) = (&self.pipes[index(from)][to], &self.pipes[to][index(from)]);
        let gone = |pipe: &Pipe| !pipe.open && !pipe.broken && pipe.queue.is_empty();
        from != End::Replica(to) && index(from) > to && gone(there) && gone(back)
    }

    fn connect(&mut self, from: End, to: usize) {
        *self.pipe(from, End::Replica(to)) = Pipe::open();
        *self.pipe(End::Replica(to), from) = Pipe::open();
        match from {
            End::Replica(replica) => {
                for (from, to) in [(replica, to), (to, replica)] {
                    let hello = bytes(&self.replicas[from].as_ref().unwrap().greeting());
                    self.pipe(End::Replica(from), End::Replica(to)).push(hello);
                }
            }
            End::Client(client) => {
                let bound = self.sessions[client].bound();
                let hello = bytes(&Message::ClientHello { client: client as u32 + 1, bound });
                self.pipe(from, End::Replica(to)).push(hello);
            }
        }
    }

    fn take(&mut self, step: Step) {
        let jump = self.draw(200_000) as u64;
        self.clock += jump;
        match step {
            Step::Start(client) => {
                let request = self.todo[client].pop_front().unwrap();
                self.sent_after.insert((client, self.sessions[client].next()), self.answers.len());
                let mut out = ToReplicas::default();
                self.sessions[client].start(request, 0, self.clock, &mut out);
                self.send_up(client, out);
            }
            Step::Patience(client) => {
                let mut out = ToReplicas::default();
                self.sessions[client].sync_older_than(self.clock.saturating_sub(PATIENCE), &mut out);
                self.sessions[client].rebind_older_than(self.clock.saturating_sub(2 * PATIENCE), &mut out);
                self.send_up(client, out);
            }
            Step::Deliver(from, to) => {
                let at = self.next_to_come(from, to);
                let bytes = self.pipe(from, to).queue.remove(at).unwrap();
                match to {
                    End::Client(client) => self.client_gets(index(from) as u8, client, &bytes),
                    End::Replica(replica) => self.replica_gets(from, replica, &bytes),
                }
            }
            Step::Notice(from, to) => {
                self.pipe(from, to).broken = false;
                match (from, to) {
                    (End::Replica(lost), End::Client(client)) => {
                        let mut out = ToReplicas::default();
                        self.sessions[client].lost(lost as u8, &mut out);
                        self.send_up(client, out);
                    }
                    (End::Replica(lost), End::Replica(replica)) => {
                        let mut out = FromReplica::default();
                        let clock = self.clock;
                        self.replicas[replica].as_mut().unwrap().peer_lost(lost as u8, clock, &mut out);
                        self.sent(replica, out);
                    }
                    (End::Client(_), _) => {}
                }
            }
            Step::Connect(from, to) => self.connect(from, to),
            Step::Flush(replica) => self.flush(replica),
            Step::Tick(replica) => {
                let jump = self.draw(self.jump) as u64;
                self.clock += jump;
                let mut out = FromReplica::default();
                let clock = self.clock;
                self.replicas[replica].as_mut().unwrap().tick(clock, &mut out);
                self.sent(replica, out);
            }
        }
    }

    /// The place of the message that comes next: the first, or for a client any answer before which there are only answers.
    fn next_to_come(&mut self, from: End, to: End) -> usize {
        if !self.overtaking || !matches!(to, End::Client(_)) {
            return 0;
        }
        let answers = |bytes: &&Vec<u8>| Message::decode(body(bytes)).unwrap().answers().is_some();
        let answers = self.pipe(from, to).queue.iter().take_while(answers).count();
        self.draw(answers.max(1))
    }

    fn client_gets(&mut self, from: u8, client: usize, bytes: &[u8]) {
        let mut out = ToReplicas::default();
        let message = Message::decode(body(bytes)).unwrap();
        if let Some(completed) = self.sessions[client].receive(from, &message, &mut out).unwrap() {
            let sent_after = self.sent_after[&(client, completed.seq)];
            self.answers.push(Answer { client: client as u32 + 1, completed, sent_after });
        }
        self.send_up(client, out);
    }

    fn replica_gets(&mut self, from: End, replica: usize, bytes: &[u8]) {
        let mut out = FromReplica::default();
        let (clock, server) = (self.clock, self.replicas[replica].as_mut().unwrap());
        match (from, Message::decode(body(bytes)).unwrap()) {
            (End::Replica(peer), message) => server.peer(peer as u8, &message, clock, &mut out).unwrap(),
            (End::Client(client), message) => {
                let name = client as u32 + 1;
                match message {
                    Message::Propose(proposal) => server.propose(name, &proposal, clock, &mut out).unwrap(),
                    Message::Sync { seq } => server.sync(name, seq, &mut out),
                    Message::ClientHello { client, bound } => server.hello(client, bound, &mut out),
                    other => panic!("{other:?}"),
                }
            }
        }
        self.sent(replica, out);
        if self.replicas[replica].as_ref().unwrap().batcher.due(Moment::MessageHandled, u64::MAX) {
            self.flush(replica);
        }
    }

    fn send_up(&mut self, client: usize, out: ToReplicas) {
        for (replica, bytes) in out.0 {
            self.pipe(End::Client(client), End::Replica(usize::from(replica))).push(bytes);
        }
    }

    fn sent(&mut self, replica: usize, out: FromReplica) {
        let from = End::Replica(replica);
        for (client, bytes) in out.clients {
            self.pipe(from, End::Client(client as usize - 1)).push(bytes);
        }
        for (peer, bytes) in out.peers {
            self.pipe(from, End::Replica(usize::from(peer))).push(bytes);
        }
        self.remember(replica);
    }

    /// Executed commands are final: no replica ever has a different one in that slot.
    fn remember(&mut self, replica: usize) {
        for executed in self.replicas[replica].as_mut().unwrap().take_log() {
            let known = self.log.entry(executed.0).or_insert_with(|| executed.clone());
            assert_eq!(*known, executed, "replica {replica} has executed something else in this slot");
        }
    }

    fn flush(&mut self, replica: usize) {
        let mut all = Vec::new();
        self.replicas[replica].as_mut().unwrap().batcher.take(0, |bytes| all.extend_from_slice(bytes));
        for frame in frames(&all) {
            for to in (0..REPLICAS).filter(|to| *to != replica) {
                self.pipe(End::Replica(replica), End::Replica(to)).push(frame.clone());
            }
        }
    }

    fn cut(&mut self, one: End, other: End) {
        for (from, to) in [(one, other), (other, one)] {
            let arrive = self.draw(self.pipes[index(from)][index(to)].queue.len() + 1);
            self.pipe(from, to).cut(arrive);
        }
    }

    /// Whether a replica may lose its memory now: both others have theirs.
    fn may_crash(&self, replica: usize) -> bool {
        let remembers = |other: &Option<Replica>| other.as_ref().is_some_and(|other| !is_starting(other));
        let mut others = self.replicas.iter().enumerate().filter(|(other, _)| *other != replica);
        self.replicas[replica].is_some() && others.all(|(_, other)| remembers(other))
    }

    fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::Crash(replica) if self.may_crash(replica) => {
                // Unsent messages are lost. Its connections end, and messages to it are dropped.
                self.paused[replica] = false;
                self.replicas[replica] = None;
                for other in self.ends().into_iter().filter(|other| *other != End::Replica(replica)) {
                    self.cut(End::Replica(replica), other);
                    *self.pipe(other, End::Replica(replica)) = Pipe::default();
                }
            }
            Fault::Restart(replica) if self.replicas[replica].is_none() => {
                self.replicas[replica] = Some(self.fresh(replica));
            }
            Fault::Pause(replica) => self.paused[replica] = true,
            Fault::Resume(replica) => self.paused[replica] = false,
            Fault::Cut(one, other) if one != other => self.cut(End::Replica(one), End::Replica(other)),
            Fault::CutClient(client, replica) => {
                self.cut(End::Client(client % self.sessions.len()), End::Replica(replica));
            }
            _ => {}
        }
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let steps = self.steps();
            let step = steps[self.draw(steps.len())];
            self.take(step);
        }
    }

    /// The faults have ended: everything gets done.
    fn finish(&mut self) {
        // Messages are faster than patience is long.
        self.jump = 2_000_000;
        for replica in 0..REPLICAS {
            self.inject(Fault::Resume(replica));
            self.inject(Fault::Restart(replica));
        }
        let done = |world: &Self| {
            let idle = world.todo.iter().all(VecDeque::is_empty) && world.sessions.iter().all(|s| s.outstanding() == 0);
            let replicas = || world.replicas.iter().flatten();
            let executed = world.answers.len() as Slot;
            idle && replicas().all(|replica| replica.settled() && replica.executed() == executed)
        };
        for _ in 0..400 {
            self.run(200);
            if done(self) {
                return;
            }
        }
        let replicas: Vec<_> =
            self.replicas.iter().flatten().map(|r| (r.ballot(), r.settled(), r.executed())).collect();
        let outstanding: Vec<_> = self.sessions.iter().map(Session::outstanding).collect();
        panic!("not done: {} answers, outstanding {outstanding:?}, replicas {replicas:?}", self.answers.len());
    }

    fn check(&self) {
        let log: Vec<Executed> = self.log.values().cloned().collect();
        assert!((1..).zip(&log).all(|(slot, (at, ..))| slot == *at), "every slot was executed");
        assert_eq!(log.len(), self.answers.len(), "a command was lost, or done twice");
        check_answers(&log, &self.answers);
        let statuses: Vec<_> = self.replicas.iter().flatten().map(Replica::status).collect();
        for status in &statuses {
            assert_eq!((&status.state, status.history), (&statuses[0].state, statuses[0].history));
            assert_eq!(status.residue, 0, "replica {} keeps something of commands that are done", status.replica);
        }
    }
}

fn is_starting(replica: &Replica) -> bool {
    matches!(replica.greeting(), Message::PeerHello { starting: true, .. })
}

fn fault() -> impl Strategy<Value = Fault> {
    let replica = || 0..REPLICAS;
    prop_oneof![
        3 => replica().prop_map(Fault::Crash),
        4 => replica().prop_map(Fault::Restart),
        2 => replica().prop_map(Fault::Pause),
        3 => replica().prop_map(Fault::Resume),
        1 => (replica(), replica()).prop_map(|(one, other)| Fault::Cut(one, other)),
        1 => (0..4_usize, replica()).prop_map(|(client, replica)| Fault::CutClient(client, replica)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn consistency_holds_under_random_faults(
        todo in prop::collection::vec(prop::collection::vec(request(), 1..20), 1..4),
        faults in prop::collection::vec((0..300_usize, fault()), 0..12),
        bound in 0..REPLICAS as u8,
        window in 1..6_usize,
        seed: u64,
    ) {
        for flush in rules() {
            let mut world = World::new(flush, bound, &todo, window, seed);
            for (after, fault) in &faults {
                world.run(*after);
                world.inject(*fault);
            }
            world.finish();
            world.check();
        }
    }

    #[test]
    fn the_leader_crashes_again_and_again_and_comes_back(
        todo in prop::collection::vec(prop::collection::vec(request(), 10..30), 2..4),
        lives in prop::collection::vec(1..400_usize, 1..6),
        seed: u64,
    ) {
        let mut world = World::new(Flush::Natural, 1, &todo, 5, seed);
        for life in lives {
            world.run(life);
            let leader = world.replicas.iter().flatten().find(|replica| replica.leads());
            if let Some(leader) = leader.map(|leader| usize::from(leader.status().replica)) {
                world.inject(Fault::Crash(leader));
                world.run(life);
                world.inject(Fault::Restart(leader));
            }
        }
        world.finish();
        world.check();
    }
}

#[test]
fn without_faults_the_first_leader_leads_to_the_end() {
    let class = batch_curp_ho::command::Class::Strong;
    let todo: Vec<Vec<Request>> =
        (0..3).map(|_| (0..40).map(|key| Request { class, put: key % 2 == 0, key: key % 5 }).collect()).collect();
    let mut world = World::new(Flush::Natural, 1, &todo, 4, 7);
    world.replicas.iter_mut().flatten().for_each(|replica| replica.suspect_after(u64::MAX / 8));
    world.finish();
    world.check();
    assert!(world.replicas.iter().flatten().all(|replica| replica.ballot() == 0));
}
