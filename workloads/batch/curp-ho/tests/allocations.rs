//! Replicas and sessions in their stride allocate nothing for a command, so that a long run is as fast as a short one.

use std::alloc::System;

use batch_curp_ho::client::{self, Request, Session};
use batch_curp_ho::command::{Class, ClientId, REPLICAS, mix};
use batch_curp_ho::replica::batcher::Flush;
use batch_curp_ho::replica::witness::Conflicts;
use batch_curp_ho::replica::{self, Replica};
use batch_curp_ho::wire::{Message, split};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CLIENTS: usize = 4;
const WINDOW: usize = 15;

/// Bytes on their way from one to another, in buffers that stay.
struct Ways<const N: usize>([Vec<u8>; N]);

impl<const N: usize> Default for Ways<N> {
    fn default() -> Self {
        Self([const { Vec::new() }; N])
    }
}

impl client::Outbox for Ways<REPLICAS> {
    fn send(&mut self, replica: u8, message: &Message<'_>) {
        message.append(&mut self.0[usize::from(replica)]);
    }
}

/// Messages of a replica to clients and to other replicas.
#[derive(Default)]
struct Sent {
    clients: Ways<CLIENTS>,
    peers: Ways<REPLICAS>,
}

impl replica::Outbox for Sent {
    fn send(&mut self, client: ClientId, message: &Message<'_>) {
        message.append(&mut self.clients.0[client as usize - 1]);
    }

    fn send_peer(&mut self, replica: u8, message: &Message<'_>) {
        message.append(&mut self.peers.0[usize::from(replica)]);
    }
}

/// Handles all messages in `bytes`, which are empty then.
fn each(bytes: &mut Vec<u8>, mut handle: impl FnMut(Message<'_>)) {
    let mut left = &bytes[..];
    while let Some((body, rest)) = split(left).unwrap() {
        handle(Message::decode(body).unwrap());
        left = rest;
    }
    bytes.clear();
}

struct World {
    replicas: Vec<(Replica, Sent)>,
    clients: Vec<(Session, Ways<REPLICAS>)>,
    drawn: u64,
    done: usize,
}

impl World {
    fn new(bound: u8) -> Self {
        let mut replicas: Vec<_> = (0..REPLICAS as u8)
            .map(|id| (Replica::new(id, Flush::Natural, Conflicts::Writes), Sent::default()))
            .collect();
        for client in 1..=CLIENTS as ClientId {
            replicas.iter_mut().for_each(|(replica, sent)| replica.hello(client, bound, sent));
        }
        let clients = (1..=CLIENTS as ClientId).map(|client| (Session::new(client, bound, 100), Ways::default()));
        Self { replicas, clients: clients.collect(), drawn: 0, done: 0 }
    }

    /// Lets every session send all it may, and delivers everything. With few `keys` all are written soon.
    fn round(&mut self, keys: u64) {
        for (session, out) in &mut self.clients {
            while session.outstanding() < WINDOW && session.may_start() {
                self.drawn += 1;
                let draw = mix(self.drawn);
                let class = if draw & 1 == 0 { Class::Weak } else { Class::Strong };
                session.start(Request { class, put: draw >> 8 & 3 == 0, key: (draw >> 16) % keys }, 0, 0, out);
            }
        }
        for client in 0..CLIENTS {
            for (at, (replica, sent)) in self.replicas.iter_mut().enumerate() {
                each(&mut self.clients[client].1.0[at], |message| match message {
                    Message::Propose(proposal) => replica.propose(client as u32 + 1, &proposal, 0, sent).unwrap(),
                    Message::Sync { seq } => replica.sync(client as u32 + 1, seq, sent),
                    other => panic!("{other:?}"),
                });
            }
        }
        // The leader's accepts, the followers' acknowledgements, and the resulting messages.
        for from in (0..REPLICAS).chain(0..REPLICAS) {
            let (replica, sent) = &mut self.replicas[from];
            replica.batcher.take(0, |frames| {
                (0..REPLICAS).filter(|to| *to != from).for_each(|to| sent.peers.0[to].extend_from_slice(frames));
            });
            for to in (0..REPLICAS).filter(|to| *to != from) {
                let mut bytes = std::mem::take(&mut self.replicas[from].1.peers.0[to]);
                let (replica, sent) = &mut self.replicas[to];
                each(&mut bytes, |message| replica.peer(from as u8, &message, 0, sent).unwrap());
                self.replicas[from].1.peers.0[to] = bytes;
            }
        }
        for (client, (session, out)) in self.clients.iter_mut().enumerate() {
            for (from, (_, sent)) in self.replicas.iter_mut().enumerate() {
                each(&mut sent.clients.0[client], |message| {
                    self.done += usize::from(session.receive(from as u8, &message, out).unwrap().is_some());
                });
            }
        }
    }

    fn run(&mut self, commands: usize, keys: u64) {
        let until = self.done + commands;
        while self.done < until {
            self.round(keys);
        }
    }
}

#[test]
fn steady_state_commands_do_not_allocate() {
    for (keys, bound) in [(1, 0), (50, 1), (1000, 2)] {
        let mut world = World::new(bound);
        world.run(40_000, keys);
        let region = Region::new(ALLOCATOR);
        world.run(40_000, keys);
        let change = region.change();
        // Tables grow by doubling, now and then.
        let allocations = change.allocations + change.reallocations;
        assert!(allocations < 100, "{keys} keys: {allocations} allocations for 40,000 commands");
        assert!(change.bytes_allocated < 4 << 20, "{keys} keys: {change:?}");
        let executed: Vec<u64> = world.replicas.iter().map(|(replica, _)| replica.executed()).collect();
        assert!(executed.iter().all(|slots| *slots > 75_000), "{executed:?}");
    }
}
