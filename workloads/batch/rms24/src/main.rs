//! The command line of the RMS24 client and server: `batch-rms24 run` measures one trial, `serve` is the server role, `bench` the project's
//! figures.

use std::path::PathBuf;
use std::process::ExitCode;

use assay_harness::{Failure, program};
use batch_rms24::run::{self, Parameters};
use batch_rms24::{figures, serve};

const HELP: &str = "usage: batch-rms24 run [--name=value ...]    one trial; prints its result as JSON
       batch-rms24 serve [--name=value ...]  the server; prints its address as JSON and serves until it is ended
       batch-rms24 bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/batch/rms24/README.md for the parameters.";

/// The server that the platform has started for a run, if any.
const ROLE: &str = "ASSAY_ROLE_SERVER";

fn main() -> ExitCode {
    program::kernel(
        env!("CARGO_PKG_NAME"),
        HELP,
        |arguments| run::run(&Parameters::parse(arguments, std::env::var(ROLE).ok())?, &program()?),
        |arguments, out| figures::bench(&figures::Settings::parse(arguments)?, &program()?, out),
        &[("serve", &|arguments| serve::serve(&serve::Settings::parse(arguments)?))],
    )
}

/// The program to start as a server: this one.
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::error(format_args!("this program's own path: {error}")))
}
