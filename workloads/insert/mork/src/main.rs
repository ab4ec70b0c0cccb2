//! The command line of the MeTTa insertion: `insert-mork run` measures one trial, `insert-mork bench` the project's
//! figures.

use std::process::ExitCode;

use assay_harness::flags::USAGE;
use insert_mork::counting::Counting;
use insert_mork::figures::{self, Settings};
use insert_mork::run::{self, Failure, Parameters};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HELP: &str = "usage: insert-mork run [--name=value ...]    one trial; prints its result as JSON
       insert-mork bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/insert/mork/README.md for the parameters.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some("run") => command_run(arguments),
        Some("bench") => command_bench(arguments),
        Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err((USAGE, HELP.to_owned())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

/// The exit code and the message of a command that failed.
type Failed = (u8, String);

fn command_run(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let parameters = Parameters::parse(arguments).map_err(|error| (USAGE, error.to_string()))?;
    let report = run::run(&parameters).map_err(failed)?;
    report.print().map_err(|error| (1, error.to_string()))
}

fn command_bench(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let settings = Settings::parse(arguments).map_err(|error| (USAGE, error.to_string()))?;
    figures::bench(&settings, &mut std::io::stdout().lock()).map_err(failed)
}

fn failed(failure: Failure) -> Failed {
    (if failure.is_usage() { USAGE } else { 1 }, failure.to_string())
}
