//! Errors of a kernel's commands.

use std::fmt::{self, Display};
use std::io;

use crate::flags::FlagError;
use crate::path::Unavailable;

/// An error message, classified as a usage error or a failure.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    usage: bool,
    message: String,
}

impl Failure {
    /// An error of the command line; a different one helps.
    pub fn usage(message: impl Display) -> Self {
        Self { usage: true, message: message.to_string() }
    }

    /// A failure at run time.
    pub fn error(message: impl Display) -> Self {
        Self { usage: false, message: message.to_string() }
    }

    /// Whether the command line is at fault, not the machine or the program.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.usage
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<FlagError> for Failure {
    fn from(error: FlagError) -> Self {
        Self::usage(error)
    }
}

impl From<Unavailable> for Failure {
    fn from(unavailable: Unavailable) -> Self {
        Self::usage(format_args!("--path: {unavailable}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::error(error)
    }
}
