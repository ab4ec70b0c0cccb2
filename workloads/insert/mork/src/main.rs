//! The command line of the MeTTa insertion: `insert-mork run` measures one trial, `insert-mork bench` the project's
//! figures.

use std::process::ExitCode;

use assay_harness::program;
use insert_mork::counting::Counting;
use insert_mork::figures::{self, Settings};
use insert_mork::run::{self, Parameters};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HELP: &str = "usage: insert-mork run [--name=value ...]    one trial; prints its result as JSON
       insert-mork bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/insert/mork/README.md for the parameters.";

fn main() -> ExitCode {
    program::kernel(
        env!("CARGO_PKG_NAME"),
        HELP,
        |arguments| run::run(&Parameters::parse(arguments)?),
        |arguments, out| figures::bench(&Settings::parse(arguments)?, out),
        &[],
    )
}
