//! The frame of a kernel's program: its commands, its exit codes, and where its messages go.

use std::process::ExitCode;

use crate::failure::Failure;
use crate::flags::USAGE;
use crate::report::Report;

/// What is left of the command line after the command.
pub type Arguments = std::vec::IntoIter<String>;

/// A command that only this kernel has, by its name.
pub type Command<'a> = (&'a str, &'a dyn Fn(Arguments) -> Result<(), Failure>);

/// The program of a kernel: `run` measures a trial, whose result is printed; `others` are what it has beside this. The help is the answer
/// to every other command.
pub fn trials(help: &str, run: impl Fn(Arguments) -> Result<Report, Failure>, others: &[Command<'_>]) -> ExitCode {
    let run = |arguments| Ok(run(arguments)?.print()?);
    let commands: Vec<Command<'_>> = [("run", &run as _)].into_iter().chain(others.iter().copied()).collect();
    match dispatch(std::env::args().skip(1).collect(), help, &commands) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(if failure.is_usage() { USAGE } else { 1 })
        }
    }
}

fn dispatch(arguments: Vec<String>, help: &str, commands: &[Command<'_>]) -> Result<(), Failure> {
    let mut arguments = arguments.into_iter();
    let command = arguments.next();
    if matches!(command.as_deref(), Some("help" | "--help" | "-h")) {
        println!("{help}");
        return Ok(());
    }
    match commands.iter().find(|(name, _)| command.as_deref() == Some(name)) {
        Some((_, execute)) => execute(arguments),
        None => Err(Failure::usage(help)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_follows_it_and_an_unknown_one_the_help() {
        let it = |rest: Arguments| match rest.len() {
            0 => Ok(()),
            1 => Err(Failure::usage(format_args!("{rest:?}: it takes nothing"))),
            _ => Err(Failure::error("it broke")),
        };
        let run = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            dispatch(arguments, "usage: it run", &[("run", &it)])
        };
        assert_eq!(run(&["run"]), Ok(()));
        assert_eq!(run(&["--help"]), Ok(()));
        assert_eq!(run(&["run", "a", "b"]), Err(Failure::error("it broke")));
        let refused = run(&["run", "a"]).unwrap_err();
        assert!(refused.is_usage() && refused.to_string().contains("it takes nothing"), "{refused}");
        for unknown in [&[][..], &["walk"]] {
            assert_eq!(run(unknown), Err(Failure::usage("usage: it run")));
        }
    }
}
