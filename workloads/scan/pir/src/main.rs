//! The command line of the PIR scan: `scan-pir run` measures one trial.

use std::process::ExitCode;

use assay_harness::program;
use scan_pir::run::{self, Parameters};

const HELP: &str = "usage: scan-pir run [--name=value ...]    one trial; prints its result as JSON
See workloads/scan/pir/README.md for the parameters.";

fn main() -> ExitCode {
    program::trials(HELP, |arguments| run::run(&Parameters::parse(arguments)?), &[])
}
