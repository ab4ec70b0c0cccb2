//! Runs one block of trials inside its pod and records each attempt. See README.md.

mod bench;
mod block;
mod caller;
mod canary;
mod capture;
mod cgroup;
mod confine;
mod counters;
mod cpus;
mod deaths;
mod ended;
mod environment;
mod exec;
mod host;
mod images;
mod inherited;
mod install;
mod isolation;
mod keeper;
mod kernel;
mod kill;
mod launch;
mod layout;
mod log;
mod output;
mod placed;
mod plan;
mod pmu;
mod privacy;
mod probe;
mod process;
mod processes;
mod programs;
mod record;
mod requirements;
mod roles;
mod room;
mod scratch;
mod segments;
mod signals;
mod steps;
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

/// Exit code for failures of the runner itself, e.g. to write an attempt.
const EXIT_RUNNER: u8 = 1;
/// Exit code for invalid input: wave, block, lease or output folder. clap uses the same code.
const EXIT_INPUT: u8 = 2;

/// Exit code if a step around a trial failed; the last line of standard error begins with [`SETUP_BROKEN`].
const EXIT_SETUP: u8 = 3;
const SETUP_BROKEN: &str = "the setup is broken: ";

/// Runs benchmark trials and records their attempts.
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
        /// Folder that the block's container mounts too.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Copy the files that a wave lists for this container's image to its blocks' folder; for an init container.
    Copy {
        /// File with the wave, as written by the planner.
        #[arg(long, value_name = "FILE")]
        wave: PathBuf,
        /// The image of this container, as named in the wave.
        #[arg(long, value_name = "REFERENCE")]
        image: String,
        /// Root of the image's file system.
        #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
        from: PathBuf,
        /// Maximum number of bytes to copy.
        #[arg(long, value_name = "N", default_value_t = u64::MAX)]
        most_bytes: u64,
    },
    /// Run one block of a wave and write one attempt per trial.
    Block(BlockArgs),
    /// Run a setup or cleanup of a run on this machine.
    Step {
        /// File with the steps, or fd:NUMBER for an inherited descriptor.
        #[arg(long, value_name = "SOURCE")]
        steps: String,
        /// Index of the cell in the steps.
        #[arg(long, value_name = "N")]
        cell: usize,
        /// The step of the cell.
        #[arg(long, value_name = "KIND")]
        kind: steps::Kind,
    },
    /// Print the machine's fingerprint, the isolation of a block on it, and its current noise as JSON.
    Probe,
    /// Print which counters of the processor this machine has, as JSON: for each the reason if not, else "".
    Counters,
    /// Print figures of the runner's own overhead, one JSON line each.
    Bench {
        /// Number of trials.
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(100..=100_000))]
        trials: u32,
    },
    /// Send a process a signal.
    #[command(hide = true)]
    Kill { signal: i32, process: i32 },
    /// Print a result and exit; the trial that `bench` runs.
    #[command(hide = true)]
    Trivial {
        /// Amount of memory to use.
        #[arg(long, default_value_t = 0)]
        bytes: usize,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Install { to } => install::install(&to).map_err(Stop::Runner),
        Command::Copy { wave, image, from, most_bytes } => {
            images::copy(&wave, &image, &from, most_bytes).map_err(Stop::Runner)
        }
        Command::Block(args) => block::run(&args).map(drop),
        Command::Step { steps, cell, kind } => steps::run(&steps, cell, kind),
        Command::Probe => survey::print().map_err(Stop::Runner),
        Command::Counters => pmu::print().map_err(Stop::Runner),
        Command::Bench { trials } => bench::run(trials),
        Command::Kill { signal, process } => kill::kill(signal, process).map_err(Stop::Runner),
        Command::Trivial { bytes } => bench::trivial(bytes).map_err(Stop::Runner),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Input(error)) => fail(&error, EXIT_INPUT),
        Err(Stop::Runner(error)) => fail(&error, EXIT_RUNNER),
        Err(Stop::Setup(reason)) => {
            log(format_args!("{SETUP_BROKEN}{reason}"));
            ExitCode::from(EXIT_SETUP)
        }
        // The exit code that a shell reports for a program terminated by a signal.
        Err(Stop::Signal(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    log(format_args!("assay-runner: {error:#}"));
    ExitCode::from(code)
}
