//! The command line: `batch-curp-ho run` measures one trial, `batch-curp-ho bench` the project's figures. The other two commands are the
//! processes that a trial starts.

use std::process::ExitCode;

use assay_harness::Flags;
use assay_harness::flags::{FlagError, USAGE};
use batch_curp_ho::command::REPLICAS;
use batch_curp_ho::figures::{self, Settings};
use batch_curp_ho::parameters::{FlushKind, Parameters};
use batch_curp_ho::process::replica::{TimerKind, Writes};
use batch_curp_ho::process::{load, replica};
use batch_curp_ho::replica::batcher::Flush;
use batch_curp_ho::run::{self, Failure};

const HELP: &str = "usage: batch-curp-ho run [--name=value ...]      one trial; prints its result as JSON
       batch-curp-ho bench [--name=value ...]    the project's figures; one line of JSON each
       batch-curp-ho replica [--name=value ...]  one replica, as a trial starts it
       batch-curp-ho load                        one load generator, as a trial starts it
See workloads/batch/curp-ho/README.md for the parameters.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some("run") => command_run(arguments),
        Some("bench") => command_bench(arguments),
        Some("replica") => command_replica(arguments),
        Some("load") => command_load(arguments),
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

fn command_replica(arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    let settings = replica_settings(arguments).map_err(usage)?;
    replica::run(&settings).map_err(|error| (1, error.to_string()))
}

fn replica_settings(arguments: impl Iterator<Item = String>) -> Result<replica::Settings, FlagError> {
    let mut flags = Flags::parse(arguments)?;
    let id = flags.integer("id", 0, 0..=REPLICAS as u64 - 1)? as u8;
    let kinds = [("immediate", FlushKind::Immediate), ("natural", FlushKind::Natural), ("timed", FlushKind::Timed)];
    let kind = flags.choice("flush", FlushKind::Natural, &kinds)?;
    let delay = flags.integer("batch-delay-micros", 0, 0..=100_000)?;
    let timer = flags.choice("timer", TimerKind::Precise, &TimerKind::CHOICES)?;
    let writes = flags.choice("message-writes", Writes::Coalesced, &Writes::CHOICES)?;
    flags.finish()?;
    let flush = match kind {
        FlushKind::Immediate => Flush::Immediate,
        FlushKind::Natural => Flush::Natural,
        FlushKind::Timed => Flush::timed(delay),
    };
    Ok(replica::Settings { id, flush, timer, writes })
}

fn command_load(mut arguments: impl Iterator<Item = String>) -> Result<(), Failed> {
    match arguments.next() {
        None => load::run().map_err(|error| (1, error.to_string())),
        Some(argument) => Err((USAGE, format!("{argument:?}: load takes its orders from standard input"))),
    }
}

fn usage(error: FlagError) -> Failed {
    (USAGE, error.to_string())
}

fn failed(failure: Failure) -> Failed {
    (if failure.is_usage() { USAGE } else { 1 }, failure.to_string())
}
