//! The command line of the MeTTa insertion: `insert-mork run` measures one trial, `insert-mork bench` the project's
//! figures.

use std::process::ExitCode;

use assay_harness::program::{self, Arguments, Failed};
use insert_mork::counting::Counting;
use insert_mork::figures::{self, Settings};
use insert_mork::run::{self, Failure, Parameters};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HELP: &str = "usage: insert-mork run [--name=value ...]    one trial; prints its result as JSON
       insert-mork bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/insert/mork/README.md for the parameters.";

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
