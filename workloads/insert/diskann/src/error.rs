//! Errors of an index.

use std::fmt;
use std::io;

use assay_harness::Failure;

/// The kinds of errors.
#[derive(Debug)]
pub enum Error {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The system refused.
    System(io::Error),
    /// The file is no index, or a damaged one.
    Damaged(String),
    /// The fixed memory per vector exceeds the memory budget.
    Budget {
        /// Bytes that it may have.
        budget: u64,
        /// Bytes that its vectors take.
        needed: u64,
        /// How many there are.
        vectors: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "SQLite: {error}"),
            Self::System(error) => error.fmt(f),
            Self::Damaged(problem) => write!(f, "the index is damaged: {problem}"),
            Self::Budget { budget, needed, vectors } => {
                let kib = |bytes: u64| bytes.div_ceil(1024);
                let (budget, needed) = (kib(*budget), kib(*needed));
                write!(
                    f,
                    "invalid --memory-budget-kib: without SQLite's cache it leaves {budget} KiB, and the codes of {vectors} vectors take \
                     {needed} KiB; give it more"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Budget { .. } => Self::usage(error),
            other => Self::error(other),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Result of an index operation.
pub type Result<T> = std::result::Result<T, Error>;
