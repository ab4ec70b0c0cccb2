//! The command line: `batch-curp-ho run` measures one trial, `batch-curp-ho bench` the project's figures. The other two commands are the
//! processes that a trial starts.

use std::process::ExitCode;

use assay_harness::Flags;
use assay_harness::flags::FlagError;
use assay_harness::program::{self, Arguments, Failed};
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
    program::main(HELP, |command, arguments| match command {
        "run" => Some(command_run(arguments)),
        "bench" => Some(command_bench(arguments)),
        "replica" => Some(command_replica(arguments)),
        "load" => Some(command_load(arguments)),
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

fn command_replica(arguments: Arguments) -> Result<(), Failed> {
    let settings = replica_settings(arguments).map_err(Failed::usage)?;
    replica::run(&settings).map_err(Failed::error)
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

fn command_load(mut arguments: Arguments) -> Result<(), Failed> {
    match arguments.next() {
        None => load::run().map_err(Failed::error),
        Some(argument) => Err(Failed::usage(format!("{argument:?}: load takes its orders from standard input"))),
    }
}

fn failed(failure: Failure) -> Failed {
    Failed::of(failure.is_usage(), failure)
}
