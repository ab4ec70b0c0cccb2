//! Fuzzes a CURP-HO replica with arbitrary messages from clients and other replicas. It accepts or rejects each without
//! a panic.
#![no_main]

use batch_curp_ho::command::ClientId;
use batch_curp_ho::replica::batcher::Flush;
use batch_curp_ho::replica::witness::Conflicts;
use batch_curp_ho::replica::{Outbox, Replica};
use batch_curp_ho::wire::Message;
use libfuzzer_sys::fuzz_target;

struct Nobody;

impl Outbox for Nobody {
    fn send(&mut self, _: ClientId, _: &Message<'_>) {}

    fn send_peer(&mut self, _: u8, _: &Message<'_>) {}
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, mut left)) = bytes.split_first() else { return };
    let (id, starting) = (which % 3, which & 4 > 0);
    let mut replica = if starting {
        Replica::starting(id, 0, Flush::Natural, Conflicts::Writes)
    } else {
        Replica::new(id, Flush::Natural, Conflicts::Writes)
    };
    replica.hello(7, id, &mut Nobody);
    // Each input byte group selects sender, length and message; some milliseconds pass in between.
    let mut now = 0;
    while let [from, length, rest @ ..] = left {
        let body;
        (body, left) = rest.split_at(rest.len().min(usize::from(*length)));
        now += 10_000_000;
        let other = (id + 1 + from % 2) % 3;
        let heard = match (from / 2 % 4, Message::decode(body)) {
            (0 | 1, Ok(message)) => replica.peer(other, &message, now, &mut Nobody),
            (2, Ok(Message::Propose(proposal))) => replica.propose(7, &proposal, now, &mut Nobody),
            (2, Ok(Message::Sync { seq })) => {
                replica.sync(7, seq, &mut Nobody);
                Ok(())
            }
            (3, _) => {
                replica.peer_lost(other, now, &mut Nobody);
                Ok(())
            }
            _ => {
                replica.tick(now, &mut Nobody);
                Ok(())
            }
        };
        // A peer that violates the protocol is disconnected.
        if heard.is_err() {
            break;
        }
        replica.batcher.take(now, |_| {});
    }
    let _ = replica.status();
});
