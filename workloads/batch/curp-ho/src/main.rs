//! The command line: `batch-curp-ho run` measures one trial. The other commands are the processes that a trial starts, or finds.

use std::process::ExitCode;

use assay_harness::program::{self, Arguments};
use assay_harness::{Failure, FlagError, Flags};
use batch_curp_ho::command::REPLICAS;
use batch_curp_ho::parameters::{Parameters, addresses};
use batch_curp_ho::process::{load, relay, replica};
use batch_curp_ho::run;

const HELP: &str = "usage: batch-curp-ho run [--name=value ...]      one trial; prints its result as JSON
       batch-curp-ho replica [--name=value ...]  one replica, as a trial starts it
       batch-curp-ho load                        one load generator, as a trial starts it
       batch-curp-ho relay [--name=value ...]    passes connections on, later
See workloads/batch/curp-ho/README.md for the parameters.";

fn main() -> ExitCode {
    program::trials(
        HELP,
        |arguments| run::run(&Parameters::parse(arguments)?),
        &[
            ("replica", &|arguments| Ok(replica::run(&replica_place(arguments)?)?)),
            ("load", &command_load),
            ("relay", &command_relay),
        ],
    )
}

fn replica_place(arguments: impl Iterator<Item = String>) -> Result<replica::Place, FlagError> {
    let mut flags = Flags::parse(arguments)?;
    let place = replica::Place {
        id: flags.integer("id", 0, 0..=REPLICAS as u64 - 1)? as u8,
        listen: flags.text("listen").unwrap_or_else(|| "127.0.0.1:0".to_owned()),
        replicas: addresses(&mut flags, "replicas")?,
        settings: match flags.text("settings") {
            None => replica::Settings::default(),
            Some(json) => replica::Settings::from_json(json.as_bytes()).map_err(|error| {
                FlagError::new("settings", json, format_args!("settings as JSON: {error}").to_string())
            })?,
        },
    };
    flags.finish()?;
    Ok(place)
}

fn command_relay(arguments: Arguments) -> Result<(), Failure> {
    let mut flags = Flags::parse(arguments)?;
    let listen = flags.text("listen").unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let to =
        flags.text("to").ok_or_else(|| FlagError::new("to", "nothing", "an address such as host:7000 is needed"))?;
    let delay = flags.integer("delay-micros", 0, 0..=1_000_000)? * 1000;
    flags.finish()?;
    Ok(relay::run(&relay::Settings { listen, to, delay })?)
}

fn command_load(mut arguments: Arguments) -> Result<(), Failure> {
    match arguments.next() {
        None => Ok(load::run()?),
        Some(argument) => Err(Failure::usage(format_args!("{argument:?}: load takes its orders from standard input"))),
    }
}
