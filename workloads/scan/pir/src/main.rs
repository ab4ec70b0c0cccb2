//! The command line of the PIR scan: `scan-pir run` measures one trial, `scan-pir bench` the project's figures.

use std::process::ExitCode;

use assay_harness::program;
use scan_pir::figures::{self, Settings};
use scan_pir::run::{self, Parameters};

const HELP: &str = "usage: scan-pir run [--name=value ...]    one trial; prints its result as JSON
       scan-pir bench [--name=value ...]  the project's figures; one line of JSON each
See workloads/scan/pir/README.md for the parameters.";

fn main() -> ExitCode {
    program::kernel(
        env!("CARGO_PKG_NAME"),
        HELP,
        |arguments| run::run(&Parameters::parse(arguments)?),
        |arguments, out| figures::bench(&Settings::parse(arguments)?, out),
        &[],
    )
}
