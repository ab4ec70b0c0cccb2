//! Rules by which a replica's messages to the others are batched, the subject of the document.

use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::command::{Ballot, Slot};
use crate::wire::{Accept, BatchWriter};

/// The rule by which a batch is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flush {
    /// After every message that was handled.
    Immediate,
    /// When all input that was there has been handled.
    Natural,
    /// The given number of nanoseconds after the batch's first message.
    Timed(u64),
}

impl Flush {
    /// The rule of the document's batcher: take a message, sleep for the delay, then send it with all messages queued
    /// meanwhile. Without a delay it sends the queued messages, which is the natural rule.
    #[must_use]
    pub fn timed(micros: u64) -> Self {
        if micros == 0 { Self::Natural } else { Self::Timed(micros * 1000) }
    }
}

/// Where the event loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A message has just been handled.
    MessageHandled,
    /// All input that was there has been handled.
    InputEmpty,
}

/// Collects accepts and acknowledgements, and says when they are due. A clock is an argument.
#[derive(Debug)]
pub struct Batcher {
    flush: Flush,
    ballot: Ballot,
    open: BatchWriter,
    /// Whole frames: batches that were full before they were due.
    full: Vec<u8>,
    /// When the oldest message came; there is one exactly while something is to be sent.
    since: Option<u64>,
    /// Messages per frame.
    pub sizes: Tally,
    /// Nanoseconds from a batch's first message to its sending.
    pub delays: Tally,
}

impl Batcher {
    /// An empty batch.
    #[must_use]
    pub fn new(flush: Flush) -> Self {
        let (sizes, delays) = Default::default();
        Self { flush, ballot: 0, open: BatchWriter::default(), full: Vec::new(), since: None, sizes, delays }
    }

    /// Adds an accept.
    pub fn accept(&mut self, accept: &Accept<'_>, now: u64) {
        self.open.accept(accept);
        self.added(now);
    }

    /// Adds an acknowledgement.
    pub fn ack(&mut self, slot: Slot, now: u64) {
        self.open.ack(slot);
        self.added(now);
    }

    /// A new ballot begins and voids pending messages of the old one.
    pub fn restart(&mut self, ballot: Ballot) {
        (self.ballot, self.open, self.since) = (ballot, BatchWriter::default(), None);
        self.full.clear();
    }

    fn added(&mut self, now: u64) {
        self.since.get_or_insert(now);
        if self.open.is_full() {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.sizes.add(self.open.len() as u64);
            self.open.take(self.ballot, &mut self.full);
        }
    }

    /// Whether the batch is to be sent now.
    #[must_use]
    pub fn due(&self, moment: Moment, now: u64) -> bool {
        self.since.is_some_and(|since| match self.flush {
            Flush::Immediate => true,
            Flush::Natural => moment == Moment::InputEmpty,
            Flush::Timed(delay) => moment == Moment::InputEmpty && now >= since + delay,
        })
    }

    /// When a timed batch is due; `None` while nothing waits for a timer.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        match self.flush {
            Flush::Timed(delay) => self.since.map(|since| since + delay),
            _ => None,
        }
    }

    /// Passes the pending frames to `send` and clears them.
    pub fn take(&mut self, now: u64, send: impl FnOnce(&[u8])) {
        self.seal();
        if let Some(since) = self.since.take() {
            self.delays.add(now.saturating_sub(since));
            send(&self.full);
            self.full.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{MAX_BATCH, Message, split};

    #[test]
    fn each_rule_is_due_at_its_moment() {
        use Moment::{InputEmpty, MessageHandled};
        // The batch's first message comes at 1,000 ns.
        let cases = [
            (Flush::Immediate, MessageHandled, 1000, true),
            (Flush::Natural, MessageHandled, 9_999_999, false),
            (Flush::Natural, InputEmpty, 1000, true),
            (Flush::timed(150), MessageHandled, 9_999_999, false),
            (Flush::timed(150), InputEmpty, 150_999, false),
            (Flush::timed(150), InputEmpty, 151_000, true),
            (Flush::timed(0), MessageHandled, 9_999_999, false),
            (Flush::timed(0), InputEmpty, 1000, true),
        ];
        for (flush, moment, now, due) in cases {
            let mut batcher = Batcher::new(flush);
            assert!(!batcher.due(moment, now), "nothing is never due");
            batcher.ack(1, 1000);
            batcher.ack(2, 2000);
            assert_eq!(batcher.due(moment, now), due, "{flush:?} {moment:?} {now}");
            assert_eq!(batcher.deadline(), (flush == Flush::Timed(150_000)).then_some(151_000));
        }
    }

    #[test]
    fn large_batch_is_split_into_several_frames() {
        let mut batcher = Batcher::new(Flush::timed(150));
        let all = 2 * MAX_BATCH as u64 + 5;
        (1..=all).for_each(|slot| batcher.ack(slot, 10));
        let mut seen = Vec::new();
        batcher.take(40, |mut bytes| {
            while let Some((body, rest)) = split(bytes).unwrap() {
                let Ok(Message::Batch(batch)) = Message::decode(body) else { panic!("no batch") };
                seen.extend(batch.acks());
                bytes = rest;
            }
        });
        assert_eq!(seen, (1..=all).collect::<Vec<_>>());
        assert_eq!((batcher.sizes.count(), batcher.delays.count()), (3, 1));
        batcher.take(50, |_| panic!("nothing is left"));
        assert_eq!(batcher.deadline(), None);
    }
}
