//! Runs one block of trials inside its pod and records what really happened. See README.md.

mod bench;
mod block;
mod canary;
mod capture;
mod cgroup;
mod counters;
mod cpus;
mod ended;
mod environment;
mod exec;
mod host;
mod images;
mod inherited;
mod install;
mod isolation;
mod keeper;
mod kill;
mod launch;
mod layout;
mod log;
mod output;
mod placed;
mod plan;
mod privacy;
mod probe;
mod process;
mod programs;
mod record;
mod requirements;
mod roles;
mod room;
mod segments;
mod signals;
mod stop;
mod survey;
mod usage;
mod verdict;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use block::BlockArgs;
use log::log;
use stop::Stop;

/// The runner could not do its work: it could not write an attempt, say.
const EXIT_RUNNER: u8 = 1;
/// The wave, the block, the lease or the output folder is not as it must be. clap uses the same code.
const EXIT_INPUT: u8 = 2;

/// Runs benchmark trials and records what really happened.
#[derive(Parser)]
#[command(version = assay_schema::VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Copy this program to DIR/assay-runner, for an init container.
    Install {
        /// Folder that the block's container also mounts.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Copy what a wave names of this container's image to where its blocks look for it, for an init container.
    Copy {
        /// The wave, as the planner wrote it.
        #[arg(long, value_name = "FILE")]
        wave: PathBuf,
        /// The image that this container runs, as the wave names it.
        #[arg(long, value_name = "REFERENCE")]
        image: String,
        /// Where the image's files are.
        #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
        from: PathBuf,
    },
    /// Run one block of a wave and write one attempt per trial.
    Block(BlockArgs),
    /// Print as JSON what this machine is, how well a block would be kept apart here, and how quiet it is now.
    Probe,
    /// Print the runner's own figures, one JSON line each.
    Bench {
        /// How many trials.
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(100..=100_000))]
        trials: u32,
    },
    /// Send a process a signal.
    #[command(hide = true)]
    Kill { signal: i32, process: i32 },
    /// Print a result and end: the trial that `bench` runs.
    #[command(hide = true)]
    Trivial {
        /// How much memory to use.
        #[arg(long, default_value_t = 0)]
        bytes: usize,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Install { to } => install::install(&to).map_err(Stop::Runner),
        Command::Copy { wave, image, from } => images::copy(&wave, &image, &from).map_err(Stop::Runner),
        Command::Block(args) => block::run(&args).map(drop),
        Command::Probe => survey::print().map_err(Stop::Runner),
        Command::Bench { trials } => bench::run(trials),
        Command::Kill { signal, process } => kill::kill(signal, process).map_err(Stop::Runner),
        Command::Trivial { bytes } => bench::trivial(bytes).map_err(Stop::Runner),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Input(error)) => fail(&error, EXIT_INPUT),
        Err(Stop::Runner(error)) => fail(&error, EXIT_RUNNER),
        // As a shell reports a program that a signal ended.
        Err(Stop::Signal(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    log(format_args!("assay-runner: {error:#}"));
    ExitCode::from(code)
}
