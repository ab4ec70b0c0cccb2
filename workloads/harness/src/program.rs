//! The `main` of a kernel: commands, exit codes and messages.

use std::process::ExitCode;

use crate::failure::Failure;
use crate::flags::USAGE;
use crate::report::Report;

/// The arguments after the command.
pub type Arguments = std::vec::IntoIter<String>;

/// An additional command of a kernel, with its name.
pub type Command<'a> = (&'a str, &'a dyn Fn(Arguments) -> Result<(), Failure>);

/// Runs a kernel's program. `run` measures a trial and returns the result to print; `others` are additional commands.
/// Any other command prints the help.
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
    fn command_gets_its_arguments_and_an_unknown_one_prints_the_help() {
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
