//! The command line of the RMS24 client and server: `batch-rms24 run` measures one trial, `serve` is the server role, `bench` the project's
//! figures.

use std::path::PathBuf;
use std::process::ExitCode;

use assay_harness::flags::USAGE;
use batch_rms24::figures;
use batch_rms24::run::{self, Failure, Parameters};
use batch_rms24::serve;

const HELP: &str = "usage: batch-rms24 run [--name=value ...]    one trial; prints its result as JSON
       batch-rms24 serve [--name=value ...]  the server; prints its address as JSON and serves until it is ended
       batch-rms24 bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/batch/rms24/README.md for the parameters.";

/// The server that the platform has started for a run, if any.
const ROLE: &str = "ASSAY_ROLE_SERVER";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some("run") => command_run(arguments),
        Some("serve") => command_serve(arguments),
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
    let parameters = Parameters::parse(arguments, std::env::var(ROLE).ok());
    let parameters = parameters.map_err(|error| (USAGE, error.to_string()))?;
    let report = run::run(&parameters, &program()?).map_err(failed)?;
    report.print().map_err(|error| (1, error.to_string()))
}

fn command_serve(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let settings = serve::Settings::parse(arguments).map_err(|error| (USAGE, error.to_string()))?;
    serve::serve(&settings).map_err(failed)
}

fn command_bench(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let settings = figures::Settings::parse(arguments).map_err(|error| (USAGE, error.to_string()))?;
    figures::bench(&settings, &program()?, &mut std::io::stdout().lock()).map_err(failed)
}

/// The program to start as a server: this one.
fn program() -> Result<PathBuf, Failed> {
    std::env::current_exe().map_err(|error| (1, format!("this program's own path: {error}")))
}

fn failed(failure: Failure) -> Failed {
    (if failure.is_usage() { USAGE } else { 1 }, failure.to_string())
}
