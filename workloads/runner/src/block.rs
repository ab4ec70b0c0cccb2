//! Runs a block from its first warm-up to its last slot.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use assay_schema::Attempt;
use assay_schema::attempt::{Environment, Noise, NoiseWindow, Outcome, Resources};

use crate::cgroup::Cgroups;
use crate::counters::{Counters, OtherWork};
use crate::cpus::CpuSet;
use crate::environment;
use crate::host::Host;
use crate::isolation::{Grant, Observed, OtherWorkSeen};
use crate::launch::{Ended, How, Launch, Launcher};
use crate::plan::{Plan, Trial};
use crate::probe;
use crate::record::Folder;
use crate::usage::{self, Usage};
use crate::verdict::{self, Terms, Verdict};
use crate::{BlockArgs, Stop};

/// Where programs are looked for when the container does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the block. Trials may fail; the block goes on.
pub(crate) fn run(args: &BlockArgs) -> Result<(), Stop> {
    if args.executor.is_empty() || args.executor.len() > 300 || args.executor.contains('/') {
        return Err(Stop::Input(anyhow!(
            "--executor {:?}: 1 to 300 characters without a slash, since an attempt's id is executor/trial",
            args.executor
        )));
    }
    let plan = Plan::read(&args.wave, &args.block, args.lease_file.as_deref()).map_err(Stop::Input)?;
    let folder = Folder::open(&args.out, plan.trials.iter().map(|trial| trial.id.as_str())).map_err(Stop::Input)?;
    let launcher = Launcher::new().map_err(Stop::Runner)?;
    // Of a large wave little is needed, and until exec a trial counts the runner's memory as its own.
    usage::release_free_memory();

    let mut block = Block::prepare(&plan, &args.executor, folder, launcher);
    let done = plan.trials.iter().try_for_each(|trial| block.trial(trial));
    if let Err(Stop::Signal(signal)) = done {
        let (signal, done, all) = (usage::signal_name(signal), block.tally.trials, plan.trials.len());
        crate::log(format_args!(
            "{} stopped by {signal} after {done} of {all} trials; their attempts are kept",
            plan.block
        ));
    }
    done?;
    block.tally.report(&plan.block);
    Ok(())
}

/// A block under way.
struct Block<'a> {
    plan: &'a Plan,
    executor: &'a str,
    host: Host,
    cgroups: Cgroups,
    grant: Grant,
    environment: Environment,
    before: NoiseWindow,
    /// When the share of other work was last known, and what it was.
    last_seen: (Counters, Option<OtherWork>),
    folder: Folder,
    launcher: Launcher,
    tally: Tally,
}

/// What is said at the end of the block.
#[derive(Debug, Default)]
struct Tally {
    trials: usize,
    outcomes: BTreeMap<&'static str, usize>,
    probe: Duration,
    overhead: Duration,
    overhead_most: Duration,
}

impl<'a> Block<'a> {
    /// Reads what stays the same during the block, and probes the machine.
    fn prepare(plan: &'a Plan, executor: &'a str, folder: Folder, launcher: Launcher) -> Self {
        let start = Instant::now();
        let host = Host::real();
        let cgroups = Cgroups::find(&host);
        let allowed = CpuSet::allowed();
        let before = probe::full(&host, &cgroups);
        Self {
            plan,
            executor,
            grant: Grant::read(&host, &cgroups),
            environment: environment::read(&host, &cgroups, allowed.as_ref(), plan),
            last_seen: (Counters::read(&host, &cgroups, allowed.as_ref()), None),
            before,
            cgroups,
            host,
            folder,
            launcher,
            tally: Tally { probe: start.elapsed(), ..Tally::default() },
        }
    }

    /// Runs one trial and writes its attempt.
    fn trial(&mut self, trial: &Trial) -> Result<(), Stop> {
        let start = Instant::now();
        self.launcher.check_stop()?;
        let command = self.plan.command(trial);
        let output = self.plan.output.as_deref();

        let cleared = verdict::clear_output(output);
        let floor = reset_peak_memory(&self.host);
        let kills_before = self.cgroups.out_of_memory_kills();
        let allowed_before = CpuSet::allowed();
        let counters_before = self.counters(allowed_before.as_ref());
        let ended = match cleared {
            Ok(()) => self.launcher.run(&Launch {
                argv: &command.argv,
                env: &variables(&command.env, trial),
                stdout_is_result: output.is_none(),
                timeout: self.plan.timeout,
            })?,
            Err(reason) => Ended::not_started(reason),
        };
        let counters_after = self.counters(allowed_before.as_ref());
        let allowed_after = CpuSet::allowed();
        let mut during = counters_after.since(&counters_before);
        if matches!(ended.how, How::NotStarted(_)) {
            // Nothing ran, so there is nothing to say about what else did.
            during = NoiseWindow { window_seconds: during.window_seconds, ..NoiseWindow::default() };
        }

        let verdict = verdict::judge(
            &ended,
            &Terms {
                output,
                parity_required: self.plan.parity_required,
                timeout: self.plan.timeout,
                out_of_memory: self.cgroups.out_of_memory_kills() > kills_before,
                memory_limit: self.cgroups.memory_limit(),
            },
        );
        let other_work = self.other_work(&counters_before, &counters_after);
        let isolation = self.grant.judge(&Observed { allowed_before, allowed_after, during: &during, other_work });
        let attempt = Attempt {
            schema: Default::default(),
            id: format!("{}/{}", self.executor, trial.id),
            trial: trial.id.clone(),
            run: self.plan.run.clone(),
            experiment: self.plan.experiment.clone(),
            wave: self.plan.wave,
            block: self.plan.block.clone(),
            slot: trial.slot as u64,
            point: command.point.clone(),
            arm: command.arm.clone(),
            warmup: trial.warmup,
            lease: self.plan.lease.clone(),
            started_at: humantime::format_rfc3339_nanos(ended.started_at).to_string(),
            duration_seconds: ended.duration.as_secs_f64(),
            outcome: verdict.outcome.unwrap_or(Outcome::Failed),
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            message: verdict.message.clone(),
            stderr_tail: stderr_tail(&ended),
            argv: command.argv.clone(),
            parameters: command.parameters.clone(),
            result: verdict.result.clone(),
            environment: self.environment.clone(),
            isolation,
            noise: Noise { before: self.before.clone(), during, after: probe::short() },
            resources: ended.usage.as_ref().map_or_else(Resources::default, |usage: &Usage| usage.resources(floor)),
        };
        self.folder.write(&attempt).map_err(Stop::Runner)?;
        self.tally.add(start.elapsed().saturating_sub(ended.duration), attempt.outcome);
        progress(trial, &attempt, &ended, &verdict);
        Ok(())
    }

    /// Other work during the trial, or if that was too short for the counters over the shortest time around it that is not.
    fn other_work(&mut self, before: &Counters, after: &Counters) -> OtherWorkSeen {
        let of_trial = || Some(("during the trial", after.other_work_since(before)?));
        let since_last = || Some(("in and shortly before the trial", after.other_work_since(&self.last_seen.0)?));
        if let Some((when, other)) = of_trial().or_else(since_last) {
            self.last_seen = (after.clone(), Some(other));
            return OtherWorkSeen::Over(when, other);
        }
        match self.last_seen.1 {
            Some(other) => OtherWorkSeen::Over("shortly before the trial", other),
            None if after.sees_cpus() => OtherWorkSeen::TooSoon,
            None => OtherWorkSeen::Unreadable,
        }
    }

    fn counters(&self, allowed: Option<&CpuSet>) -> Counters {
        Counters::read(&self.host, &self.cgroups, allowed)
    }
}

impl Tally {
    fn add(&mut self, overhead: Duration, outcome: Outcome) {
        self.trials += 1;
        *self.outcomes.entry(word(outcome)).or_default() += 1;
        self.overhead += overhead;
        self.overhead_most = self.overhead_most.max(overhead);
    }

    fn report(&self, block: &str) {
        let outcomes: Vec<String> = self.outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        crate::log(format_args!(
            "{block} done: {} trials ({}); overhead {:.1} ms per trial (at most {:.1}), {:.1} ms before the first",
            self.trials,
            outcomes.join(", "),
            millis(self.overhead) / self.trials.max(1) as f64,
            millis(self.overhead_most),
            millis(self.probe),
        ));
    }
}

/// The whole environment of a trial: the cell's, and what no program can do without.
fn variables(cell: &BTreeMap<String, String>, trial: &Trial) -> BTreeMap<String, String> {
    let inherited = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let mut variables = BTreeMap::from([
        ("PATH".to_owned(), inherited("PATH", DEFAULT_PATH)),
        ("HOME".to_owned(), inherited("HOME", "/")),
    ]);
    variables.extend(cell.clone());
    variables.insert("ASSAY_TRIAL".to_owned(), trial.id.clone());
    variables.insert("ASSAY_WARMUP".to_owned(), trial.warmup.to_string());
    variables
}

/// Forgets the runner's own peak memory and returns what is left of it, below which a trial's peak cannot be seen.
fn reset_peak_memory(host: &Host) -> Option<u64> {
    // Where the kernel refuses, the peak so far is the floor.
    let _ = fs::write(host.path("/proc/self/clear_refs"), "5");
    let status = host.text("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn stderr_tail(ended: &Ended) -> Option<String> {
    let text = String::from_utf8_lossy(&ended.stderr);
    (!text.is_empty()).then(|| text.into_owned())
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed out",
        Outcome::Malformed => "malformed",
        Outcome::NotStarted => "not started",
    }
}

/// One line per trial, for whoever watches.
fn progress(trial: &Trial, attempt: &Attempt, ended: &Ended, verdict: &Verdict) {
    let (block, slot) = trial.id.rsplit_once('-').unwrap_or(("", &trial.id));
    let message = verdict.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
    let left = match ended.left_behind {
        n if n > 0 && attempt.outcome != Outcome::TimedOut => format!(" (killed {n} processes it left behind)"),
        _ => String::new(),
    };
    crate::log(format_args!(
        "{block} {slot}/{} {} {} {} {:.3} s{left}{message}",
        trial.of,
        attempt.arm,
        attempt.point,
        word(attempt.outcome),
        attempt.duration_seconds,
    ));
}
