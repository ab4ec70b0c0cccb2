//! Moments of an insert or a delete at which a test kills the process, as `kill -9` would: to see that the index survives it.

/// A moment of an insert or a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The walk has ended; nothing is written.
    Search,
    /// The vector's row is written.
    ShadowRow,
    /// The new vector has its edges.
    Phase1,
    /// Its neighbours have theirs.
    Phase2,
    /// Everything is written, nothing committed.
    FlushNew,
    /// The transaction is committed.
    Commit,
    /// The vector is marked as deleted.
    Mark,
    /// No edge leads to a deleted vector any more; their rows are still there. The vector is the last of them.
    Bypass,
}

assay_harness::choices!(Moment {
    "search" => Search,
    "shadow-row" => ShadowRow,
    "phase1" => Phase1,
    "phase2" => Phase2,
    "flush-new" => FlushNew,
    "commit" => Commit,
    "mark" => Mark,
    "bypass" => Bypass,
});

/// Optional crash point: a moment during the insert of an id.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crash(pub Option<(u64, Moment)>);

impl Crash {
    /// Does not return if this is the moment.
    #[inline]
    pub fn here(self, id: u64, moment: Moment) {
        if self.0 == Some((id, moment)) {
            // SAFETY: sends a signal to this very process; no memory is involved.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}
