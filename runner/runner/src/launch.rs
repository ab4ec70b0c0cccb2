//! Launches one process, waits for its exit and cleans up its descendants.
//!
//! While the process runs the runner sleeps in a single `poll`. Output, exit, timeout and signals wake it; it never
//! polls on a timer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal};

use crate::capture::{Capture, Keep};
use crate::cpus::CpuSet;
use crate::deaths::Deaths;
use crate::ended::{Ended, How, STDOUT_LIMIT};
use crate::exec::Program;
use crate::host::Host;
use crate::inherited::Inherited;
use crate::log::log;
use crate::pmu::{Counted, Kernel};
use crate::process::{self, Prepared, SWEEP_TIME, Started, cannot_start, has_ended};
use crate::processes::{self, State};
use crate::roles::{Company, Service, Start};
use crate::scratch::Scratch;
use crate::signals::Signals;
use crate::stop::Stop;
use crate::usage::{self, Reap, Reaped};

/// Maximum amount of standard error in an attempt.
const STDERR_LIMIT: usize = 16 << 10;
/// Time for the pipes to close after all known processes have exited.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// Parameters of a launch.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The program to execute, which may differ from the name in its arguments.
    pub(crate) program: &'a str,
    pub(crate) argv: &'a [String],
    /// The environment, without inherited variables.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Further variables, as `NAME=value`.
    pub(crate) inherited: &'a [Vec<u8>],
    /// If set, standard output is the result; otherwise it is captured with standard error.
    pub(crate) stdout_is_result: bool,
    /// Working directory; absent: the runner's.
    pub(crate) folder: Option<&'a Path>,
    pub(crate) timeout: Duration,
    /// CPU affinity; absent: all CPUs of the block.
    pub(crate) cpus: Option<&'a CpuSet>,
    /// Services that must be ready before it starts and are stopped after it.
    pub(crate) services: &'a [Service<'a>],
    /// Whether it runs to its end also after a request to stop.
    pub(crate) finishes: bool,
    /// Whether the counters of the processor are read.
    pub(crate) counted: bool,
}

/// Launches one process at a time.
pub(crate) struct Launcher {
    pub(crate) signals: Signals,
    pub(crate) inherited: Inherited,
    /// The folders that trials may write to.
    pub(crate) scratch: Scratch,
    /// Whether all other processes in this container come from trials.
    alone: bool,
}

impl Launcher {
    /// Makes the runner a subreaper, so that no orphan escapes.
    pub(crate) fn new(alone: bool, scratch: Scratch, finish: Duration) -> Result<Self> {
        ensure!(!alone || is_in_a_container(), "--alone kills every other process and is allowed in a container only");
        let signals = Signals::register(finish).context("cannot receive signals")?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("cannot adopt orphans")?;
        Ok(Self { signals, inherited: Inherited::read(), scratch, alone })
    }

    /// Fails if the runner has been asked to stop.
    pub(crate) fn check_stop(&self) -> Result<(), Stop> {
        self.signals.stop().map_or(Ok(()), |signal| Err(Stop::Signal(signal)))
    }

    /// Runs one process until it exits or times out.
    pub(crate) fn run(&self, launch: &Launch<'_>) -> Result<Ended, Stop> {
        self.supervise(launch).map_err(Stop::Runner)?.ok_or(()).or_else(|()| {
            self.check_stop()?;
            Err(Stop::Runner(anyhow::anyhow!("the trial was abandoned without a signal")))
        })
    }

    /// None if the runner was asked to stop.
    fn supervise(&self, launch: &Launch<'_>) -> Result<Option<Ended>> {
        let (stderr, stderr_writer) = io::pipe().context("cannot make a pipe")?;
        let mut stderr = Capture::new(stderr.into(), Keep::Tail, STDERR_LIMIT)?;
        let mut prepared = match Program::find(launch.program, launch.argv, launch.env, launch.inherited) {
            Ok(program) => Prepared::new(program, launch.cpus)?,
            Err(error) => return Ok(Some(Ended::never_ran(cannot_start(launch.program, &error)))),
        };
        if let Some(folder) = launch.folder {
            prepared.command.current_dir(folder);
        }
        self.scratch.begin();
        let (mut company, mut deaths) = (Company::default(), Deaths::default());
        match company.start(
            (&self.signals, &self.scratch),
            launch.services,
            (launch.env, launch.inherited),
            &mut deaths,
        )? {
            Start::Ready => {}
            Start::NotStarted(how) => return self.dismiss(company, how, deaths),
            Start::Failed(reason) => {
                let how = self.scratch.reached().map_or(How::Deserted(reason), How::ReachedLimit);
                return self.dismiss(company, how, deaths);
            }
            Start::ReachedLimit(reason) => return self.dismiss(company, How::ReachedLimit(reason), deaths),
            Start::Stopped => return self.sweep(None, &mut deaths).map(|_| None),
        }
        let mut stdout = None;
        if launch.stdout_is_result {
            let (reader, writer) = io::pipe().context("cannot make a pipe")?;
            stdout = Some(Capture::new(reader.into(), Keep::Head, STDOUT_LIMIT)?);
            prepared.command.stdout(writer);
        } else {
            prepared.command.stdout(stderr_writer.try_clone().context("cannot share a pipe")?);
        }
        prepared.command.stderr(stderr_writer);

        let host = Host::real();
        let counted = launch.counted.then(|| Counted::begin(&Kernel, &host));
        let started_at = SystemTime::now();
        let start = Instant::now();
        let Started { pid, floor } = match prepared.spawn() {
            Ok(started) => started,
            Err(error) => return self.dismiss(company, cannot_start(launch.program, &error), deaths),
        };
        let deadline = start + launch.timeout;
        let how = loop {
            self.signals.clear();
            if !launch.finishes && self.signals.must_stop().is_some() {
                break None;
            }
            if has_ended(pid)? {
                break Some(None);
            }
            stderr.drain().context("cannot read standard error")?;
            if let Some(stdout) = &mut stdout {
                stdout.drain().context("cannot read standard output")?;
                if stdout.overflowed() {
                    break Some(Some(How::TooMuchOutput));
                }
            }
            company.drain()?;
            if let Some(reason) = company.gone(&mut deaths)? {
                break Some(Some(How::Deserted(reason)));
            }
            if let Some(reason) = self.scratch.reached_by_now() {
                break Some(Some(How::ReachedLimit(reason)));
            }
            let now = Instant::now();
            if now >= deadline {
                break Some(Some(How::TimedOut));
            }
            let mut sources = company.captures();
            sources.extend([Some(&stderr), stdout.as_ref()]);
            let left = if launch.finishes { None } else { self.signals.time_to_finish() };
            let time = left.map_or(deadline - now, |left| left.min(deadline - now));
            process::wait(&self.signals, &sources, self.scratch.pause(time))?;
        };
        let duration = start.elapsed();
        deaths.before_kill(None);
        // The process has not been reaped, so that its process group id cannot have been reused.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        let services =
            if how.is_some() { company.stop((&self.signals, &self.scratch), &mut deaths)? } else { Vec::new() };
        let swept = self.sweep(Some(pid), &mut deaths)?;
        let counts = counted.map(|counted| counted.end(&host)).unwrap_or_default();
        let Some(how) = how else { return Ok(None) };
        // A program may handle the refusal of a write and print a result.
        let how = self.scratch.reached().map(How::ReachedLimit).or(how);
        self.inherited.restore()?;

        let drained_by = Instant::now() + DRAIN_TIME;
        loop {
            stderr.drain().context("cannot read standard error")?;
            if let Some(stdout) = &mut stdout {
                stdout.drain().context("cannot read standard output")?;
            }
            let open = stderr.readable().is_some()
                || stdout.as_ref().is_some_and(|stdout| stdout.readable().is_some() && !stdout.overflowed());
            let now = Instant::now();
            if !open || now >= drained_by {
                break;
            }
            self.signals.clear();
            process::wait(&self.signals, &[Some(&stderr), stdout.as_ref()], drained_by - now)?;
        }
        let how = match how {
            Some(how) => how,
            None if stdout.as_ref().is_some_and(Capture::overflowed) => How::TooMuchOutput,
            None => How::Exited(swept.main.context("a process that has ended could not be reaped")?.exit()),
        };
        Ok(Some(Ended {
            how,
            started_at,
            duration,
            usage: swept.main.map(|main| main.above(floor).usage),
            counts,
            stdout: stdout.map(Capture::into_bytes).unwrap_or_default(),
            stderr: stderr.into_bytes(),
            left_behind: swept.others,
            services,
            deaths: deaths.into_found(),
        }))
    }

    /// Stops the services of a process that does not run.
    fn dismiss(&self, company: Company<'_>, how: How, mut deaths: Deaths) -> Result<Option<Ended>> {
        deaths.before_kill(None);
        let services = company.stop((&self.signals, &self.scratch), &mut deaths)?;
        self.sweep(None, &mut deaths)?;
        self.inherited.restore()?;
        Ok(Some(Ended { services, deaths: deaths.into_found(), ..Ended::never_ran(how) }))
    }

    /// Kills and reaps the process and all descendants, including those that left its process group. With `alone` it
    /// also kills processes that are no descendants, such as ones started through the container's init process.
    fn sweep(&self, main: Option<Pid>, deaths: &mut Deaths) -> Result<Swept> {
        let mut swept = Swept::default();
        let mut strays = BTreeSet::new();
        let give_up = Instant::now() + SWEEP_TIME;
        let main = main.map(|pid| pid.as_raw_nonzero().get());
        loop {
            self.signals.clear();
            loop {
                match usage::reap(None).context("cannot reap")? {
                    Reap::Done(ended) if Some(ended.pid) == main => swept.main = Some(ended),
                    Reap::Done(ended) => {
                        swept.others += usize::from(deaths.is_killed_by_runner(&ended));
                        deaths.reaped(&ended);
                    }
                    Reap::Running => break,
                    Reap::None if !self.alone || processes::strays().is_empty() => {
                        swept.others += strays.len();
                        return Ok(swept);
                    }
                    Reap::None => break,
                }
            }
            let now = Instant::now();
            if now >= give_up {
                log(format_args!("warning: processes of the trial survived SIGKILL and may disturb later trials"));
                return Ok(swept);
            }
            let running = processes::descendants().into_iter().filter(|process| process.state != State::Dead);
            for pid in running.filter_map(|process| Pid::from_raw(process.pid)) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            for pid in if self.alone { processes::strays() } else { Vec::new() } {
                strays.insert(pid.as_raw_nonzero());
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            // A process may fork between the scan and the kill, so that the scan is repeated.
            process::wait(&self.signals, &[], Duration::from_millis(10).min(give_up - now))?;
        }
    }
}

/// Result of a sweep.
#[derive(Debug, Default)]
struct Swept {
    main: Option<Reaped>,
    others: usize,
}

/// Whether this process is in a PID namespace other than the initial one, whose inode number is fixed
/// (`PROC_PID_INIT_INO`).
fn is_in_a_container() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace != Path::new("pid:[4026531836]"))
}
