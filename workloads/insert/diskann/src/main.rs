//! The command line of the graph index in SQLite.

use std::path::PathBuf;
use std::process::ExitCode;

use assay_harness::program::{self, Arguments};
use assay_harness::{Failure, Flags};
use insert_diskann::run::{self, Parameters};
use insert_diskann::{build, peers, verify};

const HELP: &str = "usage: insert-diskann run [--name=value ...]               one trial; prints its result as JSON
       insert-diskann peer --peer=NAME [--name=value ...]  one trial of ours or of another index
       insert-diskann arm --data=FOLDER [--name=value ...]  the index of such a trial, where it is of this program
       insert-diskann build --index=FILE [--name=value ...]  inserts into a file; prints every id once it is committed
       insert-diskann verify --index=FILE                  whether a file is a consistent index
See workloads/insert/diskann/README.md for the parameters.";

fn main() -> ExitCode {
    program::trials(
        HELP,
        |arguments| run::run(&Parameters::parse(arguments)?),
        &[
            ("build", &|arguments| build::build(&build::Parameters::parse(arguments)?, &mut std::io::stdout().lock())),
            ("verify", &command_verify),
            ("peer", &|arguments| Ok(peers::trial::run(&peers::trial::Parameters::parse(arguments)?)?.print()?)),
            ("arm", &|arguments| {
                let parameters = peers::arm::Parameters::parse(arguments)?;
                peers::arm::serve(&parameters, std::io::stdin().lock(), &mut std::io::stdout().lock())
            }),
        ],
    )
}

fn command_verify(arguments: Arguments) -> Result<(), Failure> {
    let mut flags = Flags::parse(arguments)?;
    let path = flags.optional("index").map(PathBuf::from);
    flags.finish()?;
    let path = path.ok_or_else(|| Failure::usage("--index=: the file to verify is needed"))?;
    let summary = verify::check_file(&path);
    let summary = summary.map_err(|error| Failure::error(format_args!("{}: {error}", path.display())))?;
    println!("{}", serde_json::to_string(&summary).map_err(Failure::error)?);
    Ok(())
}
