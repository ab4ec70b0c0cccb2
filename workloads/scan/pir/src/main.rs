//! The command line of the PIR scan: `scan-pir run` measures one trial, `scan-pir bench` the project's figures.

use std::process::ExitCode;

use assay_harness::program::{self, Arguments, Failed};
use scan_pir::figures::{self, Settings};
use scan_pir::run::{self, Failure, Parameters};

const HELP: &str = "usage: scan-pir run [--name=value ...]    one trial; prints its result as JSON
       scan-pir bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/scan/pir/README.md for the parameters.";

fn main() -> ExitCode {
    program::main(HELP, |command, arguments| match command {
        "run" => Some(command_run(arguments)),
        "bench" => Some(command_bench(arguments)),
        _ => None,
    })
}

fn command_run(arguments: Arguments) -> Result<(), Failed> {
    let parameters = Parameters::parse(arguments).map_err(Failed::usage)?;
    let report = run::run(&parameters).map_err(failed)?;
    report.print().map_err(Failed::error)
}

fn command_bench(arguments: Arguments) -> Result<(), Failed> {
    let settings = Settings::parse(arguments).map_err(Failed::usage)?;
    figures::bench(&settings, &mut std::io::stdout().lock()).map_err(failed)
}

fn failed(failure: Failure) -> Failed {
    Failed::of(failure.is_usage(), failure)
}
