//! Executes a block from its first warm-up to its last slot.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::anyhow;
use assay_schema::Attempt;
use assay_schema::attempt::{Environment, Noise, NoiseWindow, Outcome, Resources};
use assay_schema::result::Scalar;
use clap::Args;

use crate::caller::Caller;
use crate::canary::{Canaries, Canary};
use crate::cgroup::Cgroups;
use crate::counters::Counters;
use crate::cpus::CpuSet;
use crate::ended::{Ended, How};
use crate::environment::{self, Planned};
use crate::host::Host;
use crate::images::Images;
use crate::isolation::{Grant, Observed, OtherWorkSeen};
use crate::keeper::{Address, Keeper};
use crate::kernel::{self, Events};
use crate::launch::{Launch, Launcher};
use crate::layout;
use crate::log::log;
use crate::output::Place;
use crate::placed::Copies;
use crate::plan::{Command, Plan, Trial};
use crate::privacy;
use crate::probe::{self, Moment};
use crate::programs::Programs;
use crate::record::{self, Folder, Record};
use crate::requirements;
use crate::roles::{self, Seat, Service};
use crate::room::{Room, Rooms};
use crate::scratch::{Scratch, ScratchArgs};
use crate::steps::{Fault, Kind, Steps};
use crate::stop::Stop;
use crate::usage::{self, Usage};
use crate::verdict::{self, Terms, Verdict};

/// PATH for program lookup if the container sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// If the keeper blocks for longer, the last probe is stale and is repeated.
const STALE: Duration = Duration::from_secs(1);

/// Selects the block and the destination of its attempts.
#[derive(Args)]
pub(crate) struct BlockArgs {
    /// File with the wave, as written by the planner.
    #[arg(long, value_name = "FILE")]
    pub(crate) wave: PathBuf,
    /// The block to run, e.g. w000-b0003.
    #[arg(long, value_name = "ID")]
    pub(crate) block: String,
    /// The keeper, which stores attempts where trials cannot modify them: unix:/absolute/path, or fd:NUMBER for an
    /// inherited connection.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "out", conflicts_with = "out")]
    pub(crate) keeper: Option<Address>,
    /// Folder for attempts, if there is no keeper; trials can write to it. It must not contain attempts of this block.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Kill every other process in the container between trials, not only the trial's descendants. Use it if the
    /// container runs nothing but the block.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Name of the executor, the prefix of every attempt's id. A keeper provides its own.
    #[arg(long, value_name = "NAME", required_unless_present = "keeper")]
    pub(crate) executor: Option<String>,
    /// Seconds for the running trial to finish after SIGTERM, by which the end of a pod is announced. No other trial
    /// starts then. It is less than the grace period of the pod, so that the attempt can still be stored.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) finish_seconds: u32,
    /// File with the lease in force as JSON, {"node": …, "token": …}; recorded instead of the wave's.
    #[arg(long, value_name = "FILE")]
    pub(crate) lease_file: Option<PathBuf>,
    /// File with the steps around trials, or fd:NUMBER for an inherited descriptor.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) steps: Option<String>,
    /// Record counters of the processor and energy of each trial, where the machine has them.
    #[arg(long)]
    pub(crate) counters: bool,
    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,
}

/// Runs the block and continues after failed trials. Returns the overhead of each trial.
pub(crate) fn run(args: &BlockArgs) -> Result<Vec<Duration>, Stop> {
    args.executor.as_deref().map_or(Ok(()), check_executor)?;
    let plan = Plan::read(&args.wave, &args.block, args.lease_file.as_deref()).map_err(Stop::Input)?;
    let steps = Steps::read(args.steps.as_deref()).map_err(Stop::Input)?;
    privacy::hide().map_err(Stop::Runner)?;
    let scratch = Scratch::confine(&args.scratch).map_err(Stop::Runner)?;
    let launcher =
        Launcher::new(args.alone, scratch, Duration::from_secs(args.finish_seconds.into())).map_err(Stop::Runner)?;
    let record = match (&args.keeper, &args.out) {
        (Some(address), _) => Record::Keeper(Keeper::connect(address, &launcher.signals)?),
        (None, Some(out)) => {
            let trials = plan.trials.iter().map(|trial| trial.id.as_str());
            Record::Folder(Folder::open(out, trials).map_err(Stop::Input)?)
        }
        (None, None) => {
            return Err(Stop::Input(anyhow!("--keeper and --out are both missing: set one of them")));
        }
    };
    let executor = match (&record, &args.executor) {
        (Record::Keeper(keeper), None) => keeper.executor.as_str(),
        (_, executor) => executor.as_deref().unwrap_or_default(),
    };
    check_executor(executor)?;
    let executor = executor.to_owned();
    // Frees the parsed wave, because until exec a trial is charged for the runner's memory.
    usage::release_free_memory();

    let mut block = Block::prepare(&plan, &executor, args.alone, record, launcher);
    block.steps = steps;
    block.counted = args.counters;
    if let Some(unmet) = &block.unmet {
        log(format_args!("{} runs no trial: {unmet}", plan.block));
    }
    let done = plan.trials.iter().try_for_each(|trial| block.trial(trial));
    if let Err(Stop::Signal(signal)) = done {
        let (signal, done, all) = (usage::signal_name(signal), block.tally.trials, plan.trials.len());
        log(format_args!("{} stopped by {signal} after {done} of {all} trials; their attempts are stored", plan.block));
    }
    block.record.end(&done, &block.launcher.signals);
    done?;
    block.tally.report(&plan.block);
    Ok(block.tally.overheads)
}

fn check_executor(name: &str) -> Result<(), Stop> {
    if (1..=300).contains(&name.len()) && !name.contains('/') {
        return Ok(());
    }
    Err(Stop::Input(anyhow!(
        "--executor {name:?}: must be 1 to 300 characters without a slash, because an attempt's id is executor/trial"
    )))
}

/// State of a running block.
struct Block<'a> {
    plan: &'a Plan,
    executor: &'a str,
    host: Host,
    cgroups: Cgroups,
    grant: Grant,
    environment: Environment,
    /// The reason why no trial may start.
    unmet: Option<String>,
    canaries: Canaries,
    /// Canaries of cells whose memory footprint is known.
    of_cell: BTreeMap<usize, Canary>,
    /// Probes since the last trial.
    moment: Moment,
    copies: Copies,
    rooms: Rooms,
    images: Images,
    programs: Programs,
    caller: Caller,
    steps: Steps,
    counted: bool,
    /// Earlier counter readings, oldest first.
    history: VecDeque<Counters>,
    record: Record,
    launcher: Launcher,
    tally: Tally,
}

/// Everything needed to start a trial.
struct Staged<'a> {
    program: String,
    argv: Vec<String>,
    /// Assignments of the roles, in role order; empty for a single-process trial.
    seats: Vec<Seat>,
    services: Vec<Service<'a>>,
    /// Digests of the services' programs, then of the program itself.
    digests: Vec<Option<String>>,
}

/// Summary printed at the end of the block.
#[derive(Debug, Default)]
struct Tally {
    trials: usize,
    outcomes: BTreeMap<&'static str, usize>,
    probe: Duration,
    overheads: Vec<Duration>,
}

impl<'a> Block<'a> {
    /// Reads the properties that are constant during the block, and probes the machine.
    fn prepare(plan: &'a Plan, executor: &'a str, alone: bool, record: Record, launcher: Launcher) -> Self {
        let start = Instant::now();
        let host = Host::real();
        let cgroups = Cgroups::find(&host);
        let allowed = CpuSet::allowed();
        let history = VecDeque::from([Counters::read(&host, &cgroups, allowed.as_ref())]);
        let moment = Moment::new(probe::full(&host, &cgroups));
        let grant = Grant::read(&host, &cgroups);
        let node = plan.lease.as_ref().map(|lease| lease.node.clone());
        let caller = Caller::read(plan.inherited.as_ref());
        let mut environment =
            environment::read(&host, &cgroups, allowed.as_ref(), Planned { image: plan.image.clone(), node });
        environment.soft.extend(caller.keys());
        environment.soft.extend(launcher.scratch.keys());
        let isolation = grant.before(allowed.clone());
        let last_level_cache =
            environment::last_level_cache(&host, allowed.as_ref().and_then(CpuSet::first).unwrap_or(0));
        let mut block = Self {
            plan,
            executor,
            unmet: requirements::unmet(&plan.required, &environment, &isolation),
            canaries: Canaries::new(last_level_cache),
            of_cell: BTreeMap::new(),
            grant,
            environment,
            history,
            moment,
            copies: Copies::new(record.folder()),
            rooms: Rooms::new(record.folder(), plan.prepares),
            images: Images::read(&plan.images),
            programs: Programs::default(),
            caller,
            steps: Steps::default(),
            counted: false,
            cgroups,
            host,
            record,
            launcher,
            tally: Tally::default(),
        };
        block.note_programs();
        if alone {
            // Includes the copies made above.
            block.rooms.note_what_is_there(block.record.folder());
        }
        block.tally.probe = start.elapsed();
        block
    }

    /// Records each program's digest before a trial can modify it, and makes the copies for the null arm.
    fn note_programs(&mut self) {
        let plan = self.plan;
        for trial in &plan.trials {
            let command = plan.command(trial);
            let path = variables(command, trial, None).remove("PATH").unwrap_or_default();
            for argv in command.roles.iter().map(|role| &role.argv).chain([&command.argv]) {
                // If a program is unavailable, the trial that needs it reports the reason.
                if let Ok(program) = self.program(command, &argv[0], &path) {
                    self.programs.note(&program, &path);
                }
            }
        }
    }

    /// Runs one trial and records its attempt.
    fn trial(&mut self, trial: &Trial) -> Result<(), Stop> {
        let start = Instant::now();
        self.launcher.check_stop()?;
        let command = self.plan.command(trial);

        let mut before = self.moment.window(self.canary(trial));
        let room = self.rooms.enter(&trial.id, &command.variant());
        let mut env = variables(command, trial, room.as_ref().ok());
        layout::randomise(&mut env, self.plan.layout_seed, &trial.id);
        // A trial that cannot start writes no files, so that its folder does not matter.
        let (staged, place) = match room.as_ref().map_err(|reason| How::from(reason.clone())).and_then(|room| {
            let staged = self.stage(trial, &mut env)?;
            Ok((staged, self.plan.output.place(room.folder(), &command.parameters)?))
        }) {
            Ok((staged, place)) => (Ok(staged), place),
            Err(reason) => (Err(reason), Place::stdout()),
        };
        let staged = staged.map(|staged| Staged { program: place.program(staged.program), ..staged });
        let ended_before = self.record.ended_before(&trial.id).map(str::to_owned);
        let inherited: Vec<Vec<u8>> = self.caller.besides(&env).collect();
        // Before its start is announced: a trial that was not prepared never ran.
        let (prepared_at, mut aside) = (Instant::now(), Duration::ZERO);
        let mut broken = None;
        if staged.is_ok() && ended_before.is_none() {
            match self.steps.around(Kind::Prepare, &self.launcher, (command, &trial.id), (&env, &inherited)) {
                Err(Fault::Broken(reason)) => broken = Some(reason),
                done => done?,
            }
            aside += prepared_at.elapsed();
        }
        let staged = broken.as_ref().map_or(staged, |reason| Err(How::NotStarted(reason.clone())));
        let mut attempt = self.attempt(trial, command, staged.as_ref().ok(), layout::padding(&env));
        if staged.is_ok() && ended_before.is_none() {
            attempt.noise.before = before.clone();
            self.record.start(&attempt, &self.launcher.signals)?;
            if prepared_at.elapsed() > STALE {
                self.moment = Moment::new(probe::short());
                before = self.moment.window(self.canary(trial));
            }
        }
        let events_before = Events::read(&self.cgroups);
        let allowed_before = CpuSet::allowed();
        let counters_before = self.counters(allowed_before.as_ref());
        let ended = match (&staged, &ended_before) {
            (Ok(staged), None) => self
                .launcher
                .run(&Launch {
                    finishes: false,
                    counted: self.counted,
                    program: &staged.program,
                    argv: &staged.argv,
                    env: &env,
                    inherited: &inherited,
                    stdout_is_result: self.plan.output.is_stdout(),
                    folder: place.folder(),
                    timeout: self.plan.timeout,
                    cpus: staged.seats.last().and_then(|seat| seat.cpus.as_ref()),
                    services: &staged.services,
                })
                .inspect_err(|_| {
                    // Without a record of its trial the block ends, and its preparations are undone.
                    if let Err(Fault::Broken(reason)) =
                        self.steps.around(Kind::Conclude, &self.launcher, (command, &trial.id), (&env, &inherited))
                    {
                        log(format_args!("warning: {reason}"));
                    }
                })?,
            (_, Some(reason)) => Ended::never_ran(How::NotStarted(reason.clone())),
            (Err(how), None) => Ended::never_ran(how.clone()),
        };
        let counters_after = self.counters(allowed_before.as_ref());
        let events = Events::read(&self.cgroups).since(&events_before, ended.deaths.clone());
        let allowed_after = CpuSet::allowed();
        self.launcher.inherited.restore_cpus();
        let mut during = counters_after.since(&counters_before, &self.history);
        if ended.how.never_ran() {
            // The trial did not run, so that there are no readings during it.
            during = NoiseWindow { window_seconds: during.window_seconds, ..NoiseWindow::default() };
        }
        let resources = ended.counts.with(ended.usage.as_ref().map_or_else(Resources::default, Usage::resources));
        let resident = ended.usage.as_ref().map(|usage| usage.resident() + roles::memory(&ended.services));
        let after = self.probe_after(trial, &ended, resident);
        let mut concluded = Ok(());
        if staged.is_ok() && ended_before.is_none() {
            let begun = Instant::now();
            concluded = self.steps.around(Kind::Conclude, &self.launcher, (command, &trial.id), (&env, &inherited));
            aside += begun.elapsed();
        }

        let cause = kernel::cause(&events, self.cgroups.memory_limit());
        let mut verdict = verdict::judge(
            &ended,
            &Terms {
                output: &self.plan.output,
                place: &place,
                parity_required: self.plan.parity_required,
                timeout: self.plan.timeout,
                kernel: cause.as_deref(),
            },
        );
        if let Some(reason) = ended_before {
            let message = format!("not retried, because it terminated an earlier execution of this block: {reason}");
            verdict = Verdict::unhappy(Outcome::Failed, message);
        }
        let other_work = OtherWorkSeen::of(&during, counters_after.sees_cpus());
        self.history.extend([counters_before, counters_after]);
        Counters::trim(&mut self.history);
        let isolation = self.grant.judge(&Observed { allowed_before, allowed_after, during: &during, other_work });
        let succeeded = verdict.outcome == Outcome::Succeeded;
        let roles =
            staged.as_ref().ok().filter(|staged| !staged.seats.is_empty()).map(|staged| {
                roles::record(&self.plan.roles, &staged.seats, &staged.digests, &ended.services, succeeded)
            });
        let attempt = Attempt {
            started_at: time(ended.started_at),
            duration_seconds: ended.duration.as_secs_f64(),
            outcome: verdict.outcome,
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            message: verdict.message.clone(),
            left_behind: Some(ended.left_behind as u64).filter(|&count| count > 0),
            stderr_tail: Some(String::from_utf8_lossy(&ended.stderr).into_owned()).filter(|tail| !tail.is_empty()),
            result: verdict.result.clone(),
            isolation,
            noise: Noise { before, during, after },
            resources,
            output: verdict.output.clone().or_else(|| self.plan.output.evidence(&ended, &place)),
            // Without a process there is nothing that the counters could be of.
            kernel: Some(events).filter(|_| !ended.how.never_ran() || cause.is_some()),
            roles,
            ..attempt
        };
        let mut attempt = self.caller.hide(attempt);
        if let Some(problem) = record::too_large(&attempt) {
            let outcome = if cause.is_some() { Outcome::Failed } else { Outcome::Malformed };
            let problem = cause.map_or(problem.clone(), |cause| format!("{cause}: {problem}"));
            verdict = Verdict { exit_code: verdict.exit_code, ..Verdict::unhappy(outcome, problem) };
            (attempt.outcome, attempt.message, attempt.result) = (outcome, verdict.message.clone(), None);
        }
        if let Ok(room) = room {
            self.rooms.leave(room, &trial.id, &command.variant()).map_err(Stop::Runner)?;
        }
        self.record.write(&attempt, &self.launcher.signals)?;
        self.tally.add(start.elapsed().saturating_sub(ended.duration + aside), attempt.outcome);
        progress(trial, &attempt, &ended);
        concluded?;
        broken.map_or(Ok(()), |reason| Err(Stop::Setup(reason)))
    }

    /// The attempt as known before its trial starts. It is also the final record if the runner dies during the trial.
    fn attempt(
        &self,
        trial: &Trial,
        command: &Command,
        staged: Option<&Staged<'_>>,
        padding: Option<usize>,
    ) -> Attempt {
        Attempt {
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
            build: command.build.clone(),
            warmup: trial.warmup,
            lease: self.plan.lease.clone(),
            started_at: time(SystemTime::now()),
            duration_seconds: 0.0,
            outcome: Outcome::Failed,
            exit_code: None,
            signal: None,
            message: Some("the runner died before it reported the end of the trial".to_owned()),
            left_behind: None,
            ended_execution: None,
            stderr_tail: None,
            argv: command.argv.clone(),
            parameters: command.parameters.clone(),
            result: None,
            environment: self.environment_of(command, staged, padding),
            isolation: self.grant.before(CpuSet::allowed()),
            noise: Noise::default(),
            resources: Resources::default(),
            output: None,
            kernel: None,
            roles: None,
            kept: None,
        }
    }

    /// Returns the canary for a trial.
    fn canary(&self, trial: &Trial) -> Canary {
        self.of_cell.get(&trial.cell).copied().unwrap_or_else(|| self.canaries.memory())
    }

    /// Resolves the programs of a trial, or returns the reason why it may not start. Adds the variables that roles and
    /// programs need.
    fn stage(&mut self, trial: &Trial, env: &mut BTreeMap<String, String>) -> Result<Staged<'a>, How> {
        if let Some(unmet) = &self.unmet {
            return Err(unmet.clone().into());
        }
        let plan = self.plan;
        let command = plan.command(trial);
        let seats = roles::seats(&plan.roles, CpuSet::allowed().as_ref())?;
        env.extend(roles::variables(&plan.roles, &seats));
        let image = self.images.get(command.image);
        env.extend(image.map(|image| ("ASSAY_ROOT".to_owned(), image.root.display().to_string())));
        let path = env.get("PATH").cloned().unwrap_or_default();
        let argv = |argv: &[String], ports: &[usize]| roles::with_ports(argv, ports, &plan.roles, &seats);

        let (mut services, mut digests) = (Vec::new(), Vec::new());
        for (i, role) in command.roles.iter().enumerate() {
            let program = self.program(command, &role.argv[0], &path)?;
            digests.push(self.programs.check(&program, &path)?);
            let argv = argv(&role.argv, role.ports.as_deref().unwrap_or_default());
            services.push(Service { role: &plan.roles[i], program, argv, seat: seats[i].clone() });
        }
        let program = self.program(command, &command.argv[0], &path)?;
        digests.push(self.programs.check(&program, &path)?);
        Ok(Staged { program, argv: argv(&command.argv, &command.ports), seats, services, digests })
    }

    /// Returns the path of a trial's program: in its arm's image, or in a copy for the null arm.
    fn program(&mut self, command: &Command, name: &str, path: &str) -> Result<String, How> {
        let program =
            self.images.program(command.image, name).map_err(|how| how.of(&format!("arm {}", command.arm)))?;
        if command.null { Ok(self.copies.of(&program, path)?) } else { Ok(program) }
    }

    /// Probes after a trial with a canary of the trial's observed memory footprint.
    fn probe_after(&mut self, trial: &Trial, ended: &Ended, resident: Option<u64>) -> NoiseWindow {
        if ended.how.never_ran() {
            return NoiseWindow::default();
        }
        if let Some(resident) = resident {
            // Chosen once per cell and block, so that all its readings are comparable.
            self.of_cell.entry(trial.cell).or_insert_with(|| self.canaries.standing_for(resident));
        }
        self.moment = Moment::new(probe::short());
        self.moment.window(self.canary(trial))
    }

    /// Returns the block's environment with the keys of this trial.
    fn environment_of(&self, command: &Command, staged: Option<&Staged<'_>>, padding: Option<usize>) -> Environment {
        let mut environment = self.environment.clone();
        let mut add =
            |key: &str, value: Option<Scalar>| environment.soft.extend(value.map(|value| (key.to_owned(), value)));
        add(environment::LAYOUT_PAD_BYTES, padding.map(|bytes| Scalar::from(bytes as u64)));
        if let Some(image) = self.images.get(command.image) {
            add(environment::IMAGE, Some(image.reference.clone().into()));
            add(environment::IMAGE_FILES_DIGEST, image.copied.clone().ok().map(Scalar::from));
        }
        if let Some(staged) = staged {
            add(environment::NULL_PROGRAM, command.null.then(|| staged.program.clone().into()));
            add(environment::PROGRAM_DIGEST, staged.digests.last().cloned().flatten().map(Scalar::from));
            add(environment::ROLE_CPUS, roles::describe(&self.plan.roles, &staged.seats).map(Scalar::from));
        }
        environment
    }

    fn counters(&self, allowed: Option<&CpuSet>) -> Counters {
        Counters::read(&self.host, &self.cgroups, allowed)
    }
}

impl Tally {
    fn add(&mut self, overhead: Duration, outcome: Outcome) {
        self.trials += 1;
        *self.outcomes.entry(word(outcome)).or_default() += 1;
        self.overheads.push(overhead);
    }

    fn report(&self, block: &str) {
        let outcomes: Vec<String> = self.outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let (overhead, most) = (self.overheads.iter().sum::<Duration>(), self.overheads.iter().max());
        log(format_args!(
            "{block} done: {} trials ({}); overhead {:.1} ms per trial (at most {:.1}), {:.1} ms before the first",
            self.trials,
            outcomes.join(", "),
            millis(overhead) / self.trials.max(1) as f64,
            millis(most.copied().unwrap_or_default()),
            millis(self.probe),
        ));
    }
}

/// Builds a trial's complete environment: the cell's variables and the required ones.
fn variables(command: &Command, trial: &Trial, room: Option<&Room>) -> BTreeMap<String, String> {
    let inherited =
        |name: &str, otherwise: &str| (name.to_owned(), std::env::var(name).unwrap_or_else(|_| otherwise.to_owned()));
    let mut variables = BTreeMap::from([inherited("PATH", DEFAULT_PATH), inherited("HOME", "/")]);
    variables.extend(room.into_iter().flat_map(Room::variables));
    variables.extend(command.env.clone());
    variables.insert("ASSAY_TRIAL".to_owned(), trial.id.clone());
    variables.insert("ASSAY_WARMUP".to_owned(), trial.warmup.to_string());
    variables
}

fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_nanos(at).to_string()
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

/// Logs one line per trial.
fn progress(trial: &Trial, attempt: &Attempt, ended: &Ended) {
    let (block, slot) = trial.id.rsplit_once('-').unwrap_or(("", &trial.id));
    let message = attempt.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
    let left = match ended.left_behind {
        n if n > 0 && attempt.outcome != Outcome::TimedOut => {
            format!(" (killed {n} processes of the trial that were still running)")
        }
        _ => String::new(),
    };
    log(format_args!(
        "{block} {slot}/{} {} {} {} {:.3} s{left}{message}",
        trial.of,
        attempt.arm,
        attempt.point,
        word(attempt.outcome),
        attempt.duration_seconds,
    ));
}
