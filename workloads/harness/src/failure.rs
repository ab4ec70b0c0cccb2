//! Why a command ended without doing what it was asked to.

use std::fmt::{self, Display};
use std::io;

use crate::flags::FlagError;
use crate::path::Unavailable;

/// What a command says when it has no result, and whose fault that is.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    usage: bool,
    message: String,
}

impl Failure {
    /// The command was asked for something that it does not do: another command line helps.
    pub fn usage(message: impl Display) -> Self {
        Self { usage: true, message: message.to_string() }
    }

    /// It could not be done.
    pub fn error(message: impl Display) -> Self {
        Self { usage: false, message: message.to_string() }
    }

    /// Whether the parameters are to blame, and not the machine or the program.
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
