//! Runs the commands around trials: setup, prepare, conclude and cleanup.
//!
//! No step runs while anything is measured. A step that fails has left its trial without the conditions that it is to be
//! measured in, so that the block ends and nothing is said about an arm.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use assay_schema::steps::CellSteps;
use clap::ValueEnum;

use crate::ended::{Ended, How};
use crate::launch::{Launch, Launcher};
use crate::log::log;
use crate::plan;
use crate::privacy;
use crate::scratch::{Scratch, ScratchArgs};
use crate::stop::Stop;
use crate::usage::{self, Exit};
use crate::words::{last_words, shortened};

/// Maximum size of the steps.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum length of a command in messages, in characters.
const LONGEST_COMMAND: usize = 200;

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Once per cell, before the first trial of the run.
    Setup,
    /// Directly before every trial.
    Prepare,
    /// Directly after every trial that was started.
    Conclude,
    /// Once per cell, after the last trial of the run.
    Cleanup,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Prepare => "prepare",
            Self::Conclude => "conclude",
            Self::Cleanup => "cleanup",
        }
    }

    fn of(self, cell: &CellSteps) -> Option<&[String]> {
        match self {
            Self::Setup => cell.setup.as_deref(),
            Self::Prepare => cell.prepare.as_deref(),
            Self::Conclude => cell.conclude.as_deref(),
            Self::Cleanup => cell.cleanup.as_deref(),
        }
    }

    /// Whether the step also runs after a request to stop, because it undoes another step.
    fn finishes(self) -> bool {
        matches!(self, Self::Conclude | Self::Cleanup)
    }
}

/// The reason why a step did not succeed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The step failed.
    Broken(String),
    /// The runner was asked to stop, or failed.
    Stop(Stop),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Broken(reason) => Self::Setup(reason),
            Fault::Stop(stop) => stop,
        }
    }
}

/// The steps of a run.
#[derive(Debug, Default)]
pub(crate) struct Steps(Option<assay_schema::Steps>);

impl Steps {
    /// Reads the steps from a file, or from an inherited descriptor, `fd:NUMBER`, which is closed afterwards. A descriptor is out
    /// of reach of trials, which could change a file between blocks.
    pub(crate) fn read(source: Option<&str>) -> Result<Self> {
        let Some(source) = source else { return Ok(Self(None)) };
        let file = match source.strip_prefix("fd:") {
            Some(number) => {
                let number = number.parse().ok().filter(|&number: &i32| number > 2);
                let number = number.with_context(|| format!("--steps {source}: a descriptor is a number above 2"))?;
                // SAFETY: F_GETFD only asks whether the descriptor is open.
                let open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
                ensure!(open, "--steps {source}: the runner was not started with this descriptor");
                // SAFETY: the descriptor is open, and the command line hands it over to this one owner.
                unsafe { File::from_raw_fd(number) }
            }
            None => File::open(source).with_context(|| format!("cannot read {source}"))?,
        };
        let mut text = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut text).with_context(|| format!("cannot read {source}"))?;
        ensure!(text.len() as u64 <= MOST_BYTES, "--steps {source}: more than {MOST_BYTES} bytes");
        let steps: assay_schema::Steps = assay_schema::read(&text).with_context(|| format!("--steps {source}"))?;
        for (i, cell) in steps.cells.iter().enumerate() {
            for kind in Kind::value_variants() {
                let argv = kind.of(cell).unwrap_or_default();
                let fits = argv.first().is_none_or(|program| !program.is_empty());
                ensure!(fits, "--steps {source}: field cells[{i}].{}[0]: the program's name is empty", kind.word());
                let fits = argv.iter().all(|argument| !argument.contains('\0'));
                ensure!(fits, "--steps {source}: field cells[{i}].{}: it contains a NUL character", kind.word());
            }
        }
        Ok(Self(Some(steps)))
    }

    /// Runs a step of a trial in the environment of the trial; a cell without it succeeds.
    pub(crate) fn around(
        &self,
        kind: Kind,
        launcher: &Launcher,
        (command, trial): (&plan::Command, &str),
        environment: (&BTreeMap<String, String>, &[Vec<u8>]),
    ) -> Result<(), Fault> {
        let Some(steps) = &self.0 else { return Ok(()) };
        let cell = steps.cells.iter().find(|cell| cell.arm == command.arm && cell.point == command.point);
        let Some(argv) = cell.and_then(|cell| kind.of(cell)) else { return Ok(()) };
        let place = if kind == Kind::Prepare { "before" } else { "after" };
        let of = format!("{}, {place} trial {trial}", named(kind, &command.arm, &command.point));
        let step = Step { kind, argv, of, environment, timeout: Duration::from_secs_f64(steps.timeout_seconds) };
        let done = step.run(launcher);
        launcher.inherited.restore_cpus();
        done
    }
}

/// One step of the run itself: `assay-runner step`.
pub(crate) fn run(source: &str, cell: usize, kind: Kind) -> Result<(), Stop> {
    let steps = Steps::read(Some(source)).map_err(Stop::Input)?.0.unwrap_or_else(|| unreachable!("a source was given"));
    let Some(cell) = steps.cells.get(cell) else {
        return Err(Stop::Input(anyhow!("--cell {cell}: the steps have {} cells", steps.cells.len())));
    };
    let Some(argv) = kind.of(cell) else { return Ok(()) };
    privacy::hide().map_err(Stop::Runner)?;
    let scratch = Scratch::confine(&ScratchArgs::default()).map_err(Stop::Runner)?;
    let launcher = Launcher::new(false, scratch, Duration::ZERO).map_err(Stop::Runner)?;
    let own = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    let mut env: BTreeMap<String, String> = ["PATH", "HOME"].into_iter().filter_map(own).collect();
    env.extend(steps.inherited.iter().flatten().filter_map(|name| own(name)));
    env.extend(cell.env.clone());
    let (of, timeout) = (named(kind, &cell.arm, &cell.point), Duration::from_secs_f64(steps.timeout_seconds));
    Ok(Step { kind, argv, of, environment: (&env, &[]), timeout }.run(&launcher)?)
}

/// Names a step for messages.
fn named(kind: Kind, arm: &str, point: &str) -> String {
    let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
    format!("{} of {arm}{at}", kind.word())
}

/// One step to run.
struct Step<'a> {
    kind: Kind,
    argv: &'a [String],
    /// Its name in messages.
    of: String,
    environment: (&'a BTreeMap<String, String>, &'a [Vec<u8>]),
    timeout: Duration,
}

impl Step<'_> {
    fn run(&self, launcher: &Launcher) -> Result<(), Fault> {
        let ended = launcher
            .run(&Launch {
                program: &self.argv[0],
                argv: self.argv,
                env: self.environment.0,
                inherited: self.environment.1,
                stdout_is_result: false,
                folder: None,
                timeout: self.timeout,
                cpus: None,
                services: &[],
                finishes: self.kind.finishes(),
                counted: false,
            })
            .map_err(Fault::Stop)?;
        if ended.left_behind > 0 {
            let n = ended.left_behind;
            log(format_args!("warning: {} left {n} processes running, which were killed", self.of));
        }
        self.fault(&ended).map_or(Ok(()), |why| {
            let command = shortened(&self.argv.join(" "), LONGEST_COMMAND);
            Err(Fault::Broken(format!("{} failed: {command:?} {why}{}", self.of, last_words(&ended.stderr))))
        })
    }

    /// Why the step failed; None if it succeeded.
    fn fault(&self, ended: &Ended) -> Option<String> {
        match &ended.how {
            How::Exited(Exit::Code(0)) => None,
            How::Exited(Exit::Code(code)) => Some(format!("exited with code {code}")),
            How::Exited(Exit::Signal(signal)) => {
                Some(format!("was terminated by signal {signal} ({})", usage::signal_name(*signal)))
            }
            How::TimedOut => Some(format!("was killed after the timeout of {} s", self.timeout.as_secs_f64())),
            How::NotStarted(reason) | How::CannotStart(reason) => Some(format!("did not start: {reason}")),
            How::ReachedLimit(reason) | How::Deserted(reason) => Some(reason.clone()),
            How::TooMuchOutput => Some("wrote too much".to_owned()),
        }
    }
}
