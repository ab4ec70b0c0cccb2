//! The command line of the RMS24 client and server: `batch-rms24 run` measures one trial, `serve` is the server role, `bench` the project's
//! figures.

use std::path::PathBuf;
use std::process::ExitCode;

use assay_harness::program::{self, Arguments, Failed};
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
    program::main(HELP, |command, arguments| match command {
        "run" => Some(command_run(arguments)),
        "serve" => Some(command_serve(arguments)),
        "bench" => Some(command_bench(arguments)),
        _ => None,
    })
}

fn command_run(arguments: Arguments) -> Result<(), Failed> {
    let parameters = Parameters::parse(arguments, std::env::var(ROLE).ok());
    let parameters = parameters.map_err(Failed::usage)?;
    let report = run::run(&parameters, &program()?).map_err(failed)?;
    report.print().map_err(Failed::error)
}

fn command_serve(arguments: Arguments) -> Result<(), Failed> {
    let settings = serve::Settings::parse(arguments).map_err(Failed::usage)?;
    serve::serve(&settings).map_err(failed)
}

fn command_bench(arguments: Arguments) -> Result<(), Failed> {
    let settings = figures::Settings::parse(arguments).map_err(Failed::usage)?;
    figures::bench(&settings, &program()?, &mut std::io::stdout().lock()).map_err(failed)
}

/// The program to start as a server: this one.
fn program() -> Result<PathBuf, Failed> {
    std::env::current_exe().map_err(|error| Failed::error(format!("this program's own path: {error}")))
}

fn failed(failure: Failure) -> Failed {
    Failed::of(failure.is_usage(), failure)
}
