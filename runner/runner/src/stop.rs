//! Why the runner ends before its work is done.

/// Why the runner stopped before the end of its block.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What it was given is wrong.
    Input(anyhow::Error),
    /// It could not do its work.
    Runner(anyhow::Error),
    /// It was asked to, by this signal.
    Signal(i32),
}
