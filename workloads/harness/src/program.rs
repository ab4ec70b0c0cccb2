//! The frame of a kernel's program: its commands, its exit codes, and where its messages go.

use std::fmt::Display;
use std::process::ExitCode;

use crate::flags::USAGE;

/// Why a command ended without doing what it was asked to.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    code: u8,
    message: String,
}

impl Failed {
    /// The command was asked for something that it does not do: another command line helps.
    pub fn usage(message: impl Display) -> Self {
        Self { code: USAGE, message: message.to_string() }
    }

    /// It could not be done.
    pub fn error(message: impl Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// One of the two.
    pub fn of(is_usage: bool, message: impl Display) -> Self {
        if is_usage { Self::usage(message) } else { Self::error(message) }
    }
}

/// What is left of the command line after the command.
pub type Arguments = std::vec::IntoIter<String>;

/// Runs the command that the command line begins with. `execute` returns nothing for a command that it does not know, and the
/// help is the message then.
pub fn main(help: &str, execute: impl FnOnce(&str, Arguments) -> Option<Result<(), Failed>>) -> ExitCode {
    match dispatch(std::env::args().skip(1).collect(), help, execute) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed { code, message }) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

fn dispatch(
    arguments: Vec<String>,
    help: &str,
    execute: impl FnOnce(&str, Arguments) -> Option<Result<(), Failed>>,
) -> Result<(), Failed> {
    let mut arguments = arguments.into_iter();
    match arguments.next().as_deref() {
        Some("help" | "--help" | "-h") => {
            println!("{help}");
            Ok(())
        }
        Some(command) => execute(command, arguments).unwrap_or_else(|| Err(Failed::usage(help))),
        None => Err(Failed::usage(help)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_follows_it_and_an_unknown_one_the_help() {
        let run = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            dispatch(arguments, "usage: it run", |command, rest| match command {
                "run" => Some(match rest.len() {
                    0 => Ok(()),
                    1 => Err(Failed::of(true, format!("{rest:?}: it takes nothing"))),
                    _ => Err(Failed::of(false, "it broke")),
                }),
                _ => None,
            })
        };
        assert_eq!(run(&["run"]), Ok(()));
        assert_eq!(run(&["--help"]), Ok(()));
        assert_eq!(run(&["run", "a", "b"]), Err(Failed { code: 1, message: "it broke".to_owned() }));
        assert!(
            matches!(run(&["run", "a"]), Err(Failed { code: USAGE, message }) if message.contains("it takes nothing"))
        );
        for unknown in [&[][..], &["walk"]] {
            assert_eq!(run(unknown), Err(Failed { code: USAGE, message: "usage: it run".to_owned() }));
        }
    }
}
