//! A replica's state of a client, used to execute each command at most once.

use std::collections::VecDeque;

use super::pool::Pool;
use crate::command::{Class, Found, Seq, Slot};

/// Commands that a session may have between the oldest without an answer and the newest.
pub const MAX_SPAN: u32 = 8192;

/// A session, as seen by one replica.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The replica that answers the weak commands.
    pub bound: u8,
    /// The newest command that is known: proposed by the client, or put into a slot by the leader.
    pub known: Seq,
    /// The newest command that was executed.
    pub executed: Seq,
    /// Commands in the witness pool, oldest first.
    pending: VecDeque<Recorded>,
    /// Final answers to strong commands that the client may still ask for, oldest first. Followers keep them too: each may lead later.
    answers: VecDeque<(Seq, Slot, Vec<u8>)>,
}

/// A command in the witness pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub seq: Seq,
    /// Strong or weak.
    pub class: Class,
    /// Its key.
    pub key: u64,
    /// Whether it writes.
    pub put: bool,
    /// Whether the client was notified of a conflict, and waits for the slot.
    pub conflicted: bool,
    /// Its place in the order in which commands came to this replica, over all sessions.
    pub arrival: u64,
}

/// How a command's number relates to those that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The next one.
    New,
    /// Seen before.
    Duplicate,
    /// One before it is missing, or too many have no answer.
    Gap,
}

impl Session {
    /// Judges a command's number. A connection keeps its order, so a gap is a client's mistake.
    #[must_use]
    pub fn admit(&self, seq: Seq, done_below: Seq) -> Admission {
        match seq {
            _ if seq <= self.known => Admission::Duplicate,
            _ if seq - self.known > 1 || seq.saturating_sub(done_below) > MAX_SPAN => Admission::Gap,
            _ => Admission::New,
        }
    }

    /// Records a command; see [`Recorded`].
    pub fn record(&mut self, recorded: Recorded) {
        self.known = recorded.seq;
        self.pending.push_back(recorded);
    }

    /// The commands in the witness pool, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Recorded> {
        self.pending.iter()
    }

    /// The kept answers, oldest first.
    pub fn answers(&self) -> impl Iterator<Item = (Seq, Found<'_>)> {
        self.answers.iter().map(|(seq, version, value)| (*seq, Found { version: *version, value }))
    }

    /// Adopts a leader's state of the session: the newest executed command and the answers. Returns the records of the
    /// commands executed by this.
    pub fn install(&mut self, executed: Seq, answers: VecDeque<(Seq, Slot, Vec<u8>)>) -> Vec<Recorded> {
        (self.executed, self.known, self.answers) = (executed, self.known.max(executed), answers);
        let done = self.pending.partition_point(|recorded| recorded.seq <= executed);
        self.pending.drain(..done).collect()
    }

    /// The record of a pending command.
    #[must_use]
    pub fn recorded(&self, seq: Seq) -> Option<Recorded> {
        self.pending.iter().find(|recorded| recorded.seq == seq).copied()
    }

    /// A command was executed; returns its record, if there was one. A session's commands are executed in their order.
    pub fn execute(&mut self, seq: Seq) -> Option<Recorded> {
        debug_assert_eq!(seq, self.executed + 1, "a session's commands are executed in order");
        (self.executed, self.known) = (seq, self.known.max(seq));
        let recorded = self.pending.front().is_some_and(|recorded| recorded.seq == seq);
        if recorded { self.pending.pop_front() } else { None }
    }

    /// Keeps the final answer to a strong command.
    pub(super) fn keep(&mut self, seq: Seq, found: Found<'_>, pool: &mut Pool) {
        self.answers.push_back((seq, found.version, pool.copy(found.value)));
    }

    /// The final answer to a strong command, while it is kept.
    #[must_use]
    pub fn answer(&self, seq: Seq) -> Option<Found<'_>> {
        let (_, version, value) = self.answers.iter().find(|(kept, ..)| *kept == seq)?;
        Some(Found { version: *version, value })
    }

    /// Forgets the answers that the client has.
    pub(super) fn forget_below(&mut self, done_below: Seq, pool: &mut Pool) {
        while self.answers.front().is_some_and(|(seq, ..)| *seq < done_below)
            && let Some((_, _, value)) = self.answers.pop_front()
        {
            pool.take_back(value);
        }
    }

    /// How many answers are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.answers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(seq: Seq) -> Recorded {
        Recorded { seq, class: Class::Strong, key: 3, put: false, conflicted: seq == 2, arrival: u64::from(seq) }
    }

    #[test]
    fn a_number_is_new_once() {
        let mut session = Session::default();
        assert_eq!([1, 2, 0].map(|seq| session.admit(seq, 1)), [Admission::New, Admission::Gap, Admission::Duplicate]);
        session.record(recorded(1));
        assert_eq!([1, 2, 3].map(|seq| session.admit(seq, 1)), [Admission::Duplicate, Admission::New, Admission::Gap]);
        assert_eq!(session.execute(1), Some(recorded(1)));
        assert_eq!(session.admit(1, 1), Admission::Duplicate);
        assert_eq!(session.execute(2), None, "the leader's slot may come before the client's proposal");
        assert_eq!([2, 3].map(|seq| session.admit(seq, 1)), [Admission::Duplicate, Admission::New]);
    }

    #[test]
    fn a_leaders_state_ends_what_it_has_executed_and_nothing_else() {
        let mut session = Session::default();
        (1..=3).for_each(|seq| session.record(recorded(seq)));
        assert_eq!(session.install(2, VecDeque::from([(2, 7, b"v".to_vec())])), [recorded(1), recorded(2)]);
        assert_eq!(session.pending().copied().collect::<Vec<_>>(), [recorded(3)]);
        assert_eq!((session.known, session.executed), (3, 2));
        assert_eq!(session.answer(2), Some(Found { version: 7, value: b"v" }));
        assert_eq!(session.admit(4, 1), Admission::New);
        assert_eq!(Session::default().install(9, VecDeque::new()), []);
    }

    #[test]
    fn too_many_commands_without_an_answer_are_refused() {
        let session = Session { known: MAX_SPAN + 1, ..Session::default() };
        assert_eq!(session.admit(MAX_SPAN + 2, 1), Admission::Gap);
        assert_eq!(session.admit(MAX_SPAN + 2, 2), Admission::New);
    }

    #[test]
    fn answers_are_kept_until_the_client_has_them() {
        let mut session = Session::default();
        let mut pool = Pool::default();
        (1..=3).for_each(|seq| session.keep(seq, Found { version: 9, value: b"v" }, &mut pool));
        session.forget_below(3, &mut pool);
        assert_eq!((session.answer(2), session.kept()), (None, 1));
        assert_eq!(session.answer(3), Some(Found { version: 9, value: b"v" }));
    }
}
