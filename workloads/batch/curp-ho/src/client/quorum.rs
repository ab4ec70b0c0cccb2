//! When a strong command has its answer.

use crate::command::{CommandId, FAST_QUORUM, MAJORITY};
use crate::wire::{Ack, Verdict};

/// The leader's answer with a command's speculative result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderSaid {
    /// Nothing that conflicts was uncommitted.
    pub ok: bool,
    /// The uncommitted weak write that the result shows, if any.
    pub read_dep: CommandId,
}

/// A follower's latest answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerSaid {
    /// Its verdict.
    pub verdict: Verdict,
    /// Whether it has found a conflict before.
    pub conflicted: bool,
    /// The pending weak write that a read would have shown there.
    pub read_dep: CommandId,
}

impl FollowerSaid {
    /// Merges a new answer with the one `before`. Answers may overtake each other, and a command that is in order stays
    /// in order.
    #[must_use]
    pub fn after(before: Option<Self>, ack: &Ack) -> Self {
        let conflicted = ack.verdict == Verdict::Conflict || before.is_some_and(|before| before.conflicted);
        match before.filter(|before| before.verdict == Verdict::Ordered) {
            Some(before) => Self { conflicted, ..before },
            None => Self { verdict: ack.verdict, conflicted, read_dep: ack.read_dep },
        }
    }
}

/// How a command came to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// All replicas recorded it without a conflict: one round trip.
    Fast,
    /// A follower had it at the leader's slot before it had it from the client, so that a majority has it there: one round trip too.
    Overtaken,
    /// After a conflict, a majority has it at the leader's slot.
    Slow,
    /// The leader confirmed that it is final.
    Synced,
    /// A weak command: the bound replica's answer.
    Bound,
}

/// The path on which the leader's result may be taken now, if any. Both have spoken in the same ballot. `own` reports whether a weak write
/// is the session's own: such a write was sent to every replica before the command, on the same connections, so a follower that names
/// none has executed it.
#[must_use]
pub fn decide(
    leader: Option<LeaderSaid>,
    followers: &[Option<FollowerSaid>],
    own: impl Fn(CommandId) -> bool,
) -> Option<Path> {
    let leader = leader?;
    let said = || followers.iter().flatten();
    let ordered = said().filter(|f| f.verdict == Verdict::Ordered).count();
    if 1 + ordered >= MAJORITY {
        let conflict = !leader.ok || said().any(|f| f.conflicted || f.verdict == Verdict::Conflict);
        return Some(if conflict { Path::Slow } else { Path::Overtaken });
    }
    let agrees = |f: &&FollowerSaid| {
        let executed = f.read_dep == CommandId::NONE && own(leader.read_dep);
        f.verdict == Verdict::Recorded && (f.read_dep == leader.read_dep || executed)
    };
    (leader.ok && 1 + said().filter(agrees).count() >= FAST_QUORUM).then_some(Path::Fast)
}

/// Whether no further unsolicited answer can arrive. A replica that found a conflict answers again once the command has
/// its slot. If all replicas recorded the command and disagree on the result of a read, none does.
#[must_use]
pub fn nothing_else_will_come(leader: Option<LeaderSaid>, followers: &[Option<FollowerSaid>]) -> bool {
    let recorded = |said: &Option<FollowerSaid>| said.is_some_and(|said| said.verdict == Verdict::Recorded);
    leader.is_some_and(|leader| leader.ok) && followers.iter().all(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Conflict, Ordered, Recorded};

    #[test]
    fn answers_of_a_follower_say_the_same_in_any_order() {
        let ack = |verdict| Ack { replica: 1, seq: 5, ballot: 0, verdict, read_dep: CommandId::NONE };
        for verdicts in [[Conflict, Ordered], [Ordered, Conflict]] {
            let said =
                verdicts.into_iter().fold(None, |before, verdict| Some(FollowerSaid::after(before, &ack(verdict))));
            let expected = FollowerSaid { verdict: Ordered, conflicted: true, read_dep: CommandId::NONE };
            assert_eq!(said, Some(expected), "{verdicts:?}");
        }
    }

    #[test]
    fn each_path_is_taken_when_it_may_be() {
        const NONE: CommandId = CommandId::NONE;
        const OWN: CommandId = CommandId { client: 1, seq: 5 };
        const FOREIGN: CommandId = CommandId { client: 2, seq: 5 };
        let said = |verdict, read_dep| Some(FollowerSaid { verdict, conflicted: false, read_dep });
        let after_conflict = Some(FollowerSaid { verdict: Ordered, conflicted: true, read_dep: NONE });
        let leader = |ok, read_dep| Some(LeaderSaid { ok, read_dep });
        let cases = [
            ("no answers", None, [None, None], None),
            ("followers without the leader", None, [said(Recorded, NONE); 2], None),
            ("followers have it in order, but the result is missing", None, [said(Ordered, NONE); 2], None),
            ("the leader alone", leader(true, NONE), [None, None], None),
            ("all three", leader(true, NONE), [said(Recorded, NONE); 2], Some(Path::Fast)),
            ("two of three are not enough to be fast", leader(true, NONE), [said(Recorded, NONE), None], None),
            ("one conflict", leader(true, NONE), [said(Recorded, NONE), said(Conflict, NONE)], None),
            ("a conflict at the leader", leader(false, NONE), [said(Recorded, NONE); 2], None),
            (
                "one follower has the slot already",
                leader(true, NONE),
                [said(Ordered, NONE), None],
                Some(Path::Overtaken),
            ),
            ("a follower has the slot after a conflict", leader(true, NONE), [after_conflict, None], Some(Path::Slow)),
            ("one follower has the slot", leader(false, NONE), [said(Ordered, NONE), None], Some(Path::Slow)),
            (
                "the slot after a conflict",
                leader(true, NONE),
                [said(Conflict, NONE), said(Ordered, NONE)],
                Some(Path::Slow),
            ),
            ("a weak write that all know", leader(true, FOREIGN), [said(Recorded, FOREIGN); 2], Some(Path::Fast)),
            (
                "a weak write that one misses",
                leader(true, FOREIGN),
                [said(Recorded, FOREIGN), said(Recorded, NONE)],
                None,
            ),
            (
                "a weak write that the leader misses",
                leader(true, NONE),
                [said(Recorded, FOREIGN), said(Recorded, NONE)],
                None,
            ),
            ("its own weak write", leader(true, OWN), [said(Recorded, NONE), said(Recorded, OWN)], Some(Path::Fast)),
            (
                "its own weak write, and another's after it at a follower",
                leader(true, OWN),
                [said(Recorded, FOREIGN), said(Recorded, OWN)],
                None,
            ),
        ];
        for (name, leader, followers, expected) in cases {
            assert_eq!(decide(leader, &followers, |id| id.client == 1), expected, "{name}");
            // A replica with neither an answer nor a request for one waits for a replica that found a conflict or has
            // not answered.
            let waits = expected.is_none() && !nothing_else_will_come(leader, &followers);
            let reason = leader.is_none_or(|leader| !leader.ok)
                || followers.iter().any(|said| said.is_none_or(|said| said.verdict == Conflict));
            assert!(!waits || reason, "{name}");
        }
        assert!(nothing_else_will_come(leader(true, FOREIGN), &[said(Recorded, FOREIGN), said(Recorded, NONE)]));
        assert!(!nothing_else_will_come(leader(true, FOREIGN), &[said(Recorded, FOREIGN), None]));
        assert!(!nothing_else_will_come(leader(false, NONE), &[said(Recorded, NONE); 2]));
    }
}
