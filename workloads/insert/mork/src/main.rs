//! The command line of the MeTTa insertion: `insert-mork run` measures one trial.

use std::process::ExitCode;

use assay_harness::program;
use insert_mork::counting::Counting;
use insert_mork::run::{self, Parameters};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HELP: &str = "usage: insert-mork run [--name=value ...]    one trial; prints its result as JSON
See workloads/insert/mork/README.md for the parameters.";

fn main() -> ExitCode {
    program::trials(HELP, |arguments| run::run(&Parameters::parse(arguments)?), &[])
}
