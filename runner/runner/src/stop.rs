//! Reasons for a premature end of the runner.

/// Reason for a premature end of the block.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Invalid input.
    Input(anyhow::Error),
    /// A failure of the runner itself.
    Runner(anyhow::Error),
    /// A request to stop, by this signal.
    Signal(i32),
    /// A step around a trial failed.
    Setup(String),
}
