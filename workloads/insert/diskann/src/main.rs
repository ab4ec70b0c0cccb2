//! The command line of the graph index in SQLite.

use std::path::PathBuf;
use std::process::ExitCode;

use assay_harness::program::{self, Arguments, Failed};
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
    program::main(HELP, |command, arguments| match command {
        "run" => Some(command_run(arguments)),
        "bench" => Some(command_bench(arguments)),
        "build" => Some(command_build(arguments)),
        "verify" => Some(command_verify(arguments)),
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

fn command_build(arguments: Arguments) -> Result<(), Failed> {
    let parameters = build::Parameters::parse(arguments).map_err(Failed::usage)?;
    build::build(&parameters, &mut std::io::stdout().lock()).map_err(failed)
}

fn command_verify(arguments: Arguments) -> Result<(), Failed> {
    let mut arguments: Vec<String> = arguments.collect();
    let index: Option<PathBuf> = take_path(&mut arguments, "index").map_err(Failed::usage)?;
    match (index, arguments.first()) {
        (_, Some(unknown)) => Err(Failed::usage(format!("{unknown:?}: verify takes --index=FILE and nothing else"))),
        (None, None) => Err(Failed::usage("--index=: the file to verify is needed")),
        (Some(path), None) => {
            let summary =
                verify::check_file(&path).map_err(|error| Failed::error(format!("{}: {error}", path.display())))?;
            println!("{}", serde_json::to_string(&summary).map_err(Failed::error)?);
            Ok(())
        }
    }
}

fn failed(failure: Failure) -> Failed {
    Failed::of(failure.is_usage(), failure)
}
