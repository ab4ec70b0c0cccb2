//! The command line of the graph index in SQLite.

use std::path::PathBuf;
use std::process::ExitCode;

use assay_harness::flags::USAGE;
use insert_diskann::figures::{self, Settings};
use insert_diskann::options::take_path;
use insert_diskann::run::{self, Failure, Parameters};
use insert_diskann::{build, verify};

const HELP: &str = "usage: insert-diskann run [--name=value ...]               one trial; prints its result as JSON
       insert-diskann bench [--name=value ...]             the project's figures; one line of JSON each
       insert-diskann build --index=FILE [--name=value ...]  inserts into a file; prints every id once it is committed
       insert-diskann verify --index=FILE                  whether a file is a consistent index
See workloads/insert/diskann/README.md for the parameters.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some("run") => command_run(arguments),
        Some("bench") => command_bench(arguments),
        Some("build") => command_build(arguments),
        Some("verify") => command_verify(arguments),
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
    let parameters = Parameters::parse(arguments).map_err(usage)?;
    let report = run::run(&parameters).map_err(failed)?;
    report.print().map_err(|error| (1, error.to_string()))
}

fn command_bench(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let settings = Settings::parse(arguments).map_err(usage)?;
    figures::bench(&settings, &mut std::io::stdout().lock()).map_err(failed)
}

fn command_build(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let parameters = build::Parameters::parse(arguments).map_err(usage)?;
    build::build(&parameters, &mut std::io::stdout().lock()).map_err(failed)
}

fn command_verify(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let mut arguments: Vec<String> = arguments.collect();
    let index: Option<PathBuf> = take_path(&mut arguments, "index").map_err(usage)?;
    match (index, arguments.first()) {
        (_, Some(unknown)) => Err((USAGE, format!("{unknown:?}: verify takes --index=FILE and nothing else"))),
        (None, None) => Err((USAGE, "--index=: the file to verify is needed".to_owned())),
        (Some(path), None) => {
            let summary = verify::check_file(&path).map_err(|error| (1, format!("{}: {error}", path.display())))?;
            println!("{}", serde_json::to_string(&summary).map_err(|error| (1, error.to_string()))?);
            Ok(())
        }
    }
}

fn usage(error: impl std::fmt::Display) -> Failed {
    (USAGE, error.to_string())
}

fn failed(failure: Failure) -> Failed {
    (if failure.is_usage() { USAGE } else { 1 }, failure.to_string())
}
