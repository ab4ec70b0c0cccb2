//! Fuzzes the state transfer of a CURP-HO leader. A replica rejects the state or adopts all of it and can pass it on.
#![no_main]

use batch_curp_ho::command::ClientId;
use batch_curp_ho::replica::batcher::Flush;
use batch_curp_ho::replica::witness::Conflicts;
use batch_curp_ho::replica::{Outbox, Replica};
use batch_curp_ho::wire::{Message, split};
use libfuzzer_sys::fuzz_target;

/// Messages sent to replica 0.
#[derive(Default)]
struct Sent(Vec<u8>);

impl Outbox for Sent {
    fn send(&mut self, _: ClientId, _: &Message<'_>) {}

    fn send_peer(&mut self, replica: u8, message: &Message<'_>) {
        if replica == 0 {
            message.append(&mut self.0);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let replica = |id| Replica::new(id, Flush::Natural, Conflicts::Writes);
    let (mut second, mut third, mut sent) = (replica(0), replica(2), Sent::default());
    let state = Message::State { ballot: 1, last: true, bytes };
    if third.peer(1, &state, 0, &mut sent).is_err() {
        assert_eq!((third.executed(), third.ballot()), (0, 0), "a rejected state changes nothing");
        return;
    }
    // Its leader is lost, it leads, and the other follows.
    third.peer_lost(1, 0, &mut sent);
    third.peer(0, &Message::Vote { ballot: 2 }, 0, &mut sent).expect("a vote for it");
    assert!(third.leads());
    let mut left = &sent.0[..];
    while let Ok(Some((body, rest))) = split(left) {
        let message = Message::decode(body).expect("a replica sends valid messages");
        second.peer(2, &message, 0, &mut Sent::default()).expect("a leader's state is accepted");
        left = rest;
    }
    let (given, taken) = (third.status(), second.status());
    assert_eq!((given.executed, given.history, &given.state), (taken.executed, taken.history, &taken.state));
    assert_eq!((given.keys, given.ballot, taken.settled), (taken.keys, taken.ballot, true));
});
