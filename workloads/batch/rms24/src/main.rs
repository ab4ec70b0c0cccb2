//! The command line of the RMS24 client and server: `batch-rms24 run` measures one trial, `serve` is the server role.

use std::process::ExitCode;

use assay_harness::{Failure, program};
use batch_rms24::run::{self, Parameters};
use batch_rms24::serve;

const HELP: &str = "usage: batch-rms24 run [--name=value ...]    one trial; prints its result as JSON
       batch-rms24 serve [--name=value ...]  the server; prints its address as JSON and serves until it is ended
See workloads/batch/rms24/README.md for the parameters.";

/// The server that the platform has started for a run, if any.
const ROLE: &str = "ASSAY_ROLE_SERVER";

fn main() -> ExitCode {
    program::trials(
        HELP,
        |arguments| {
            let program = std::env::current_exe();
            let program = program.map_err(|error| Failure::error(format_args!("this program's own path: {error}")))?;
            run::run(&Parameters::parse(arguments, std::env::var(ROLE).ok())?, &program)
        },
        &[("serve", &|arguments| serve::serve(&serve::Settings::parse(arguments)?))],
    )
}
