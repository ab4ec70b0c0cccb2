//! `batch-curp-ho run`: one trial, one result.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufWriter};
use std::time::Duration;

use assay_harness::ceiling::loopback_round_trips;
use assay_harness::report::Fact;
use assay_harness::{Digest, Failure, Histogram, Phases, Quantity, Report, Stopwatch, Unit, machine};
use rustix::process::Signal;

use crate::client::quorum::Path;
use crate::command::{Addresses, Class, LEADER, REPLICAS};
use crate::net::now;
use crate::parameters::{Fault, Mode, Parameters};
use crate::process::children::{Process, allowed_cpus};
use crate::process::control;
use crate::process::drive::{Driver, Pace};
use crate::process::load::{Orders, Stream, Summary};
use crate::process::record::{self, Record};
use crate::process::relay::Kept;
use crate::replica::tally::Tally;
use crate::replica::{Status, Usage};
use crate::workload::Mix;
use crate::{ceiling, history};

/// The flags that decide how much memory a trial takes.
const SIZES: &str = "--operations, --keys, --value-size";

/// The session of the script.
const SCRIPT: u32 = 1;
/// Keys of the script, few enough that it reads its own writes.
const SCRIPT_KEYS: u64 = 64;
/// How long replicas have to catch up after the last command.
const CATCH_UP: Duration = Duration::from_secs(20);

/// Everything that was measured in a trial.
#[derive(Debug)]
pub struct Outcome {
    /// All commands, the script's first, then stream after stream.
    pub records: Vec<Record>,
    /// Final statuses of the surviving replicas.
    pub statuses: Vec<Status>,
    /// Usage of the load generators.
    pub load: Vec<Usage>,
    /// When all streams were warm and were started, and when the first had done its last command: nanoseconds of the monotonic clock.
    pub interval: (u64, u64),
    /// Digest of the script's results and final state.
    pub parity: Digest,
    /// Outcome of the fault, if any.
    pub fault: Option<Injected>,
    /// Commands that have an answer and are not executed.
    pub lost: u64,
    /// How late the relays between the replicas were, if there were any: nanoseconds.
    pub relays_late: Tally,
    /// The parts of the trial.
    pub phases: Phases,
}

/// A fault that was injected. Times are nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Injected {
    /// When it happened.
    pub at: u64,
    /// When the replica was let go on, or started again.
    pub ended: Option<u64>,
    /// When it took part again.
    pub back: Option<u64>,
}

impl Outcome {
    /// Nanoseconds after the fault in which no strong command was answered: the longest such time.
    #[must_use]
    pub fn unavailable(&self) -> Option<u64> {
        let fault = self.fault?;
        let strong = self.records.iter().filter(|r| r.request.class == Class::Strong && r.ended > fault.at);
        let mut ends: Vec<u64> = strong.map(|r| r.ended).chain([fault.at]).collect();
        ends.sort_unstable();
        ends.windows(2).map(|pair| pair[1] - pair[0]).max()
    }

    /// The socket calls of a command, over all processes and the whole trial.
    #[must_use]
    pub fn calls(&self) -> ceiling::Calls {
        ceiling::Calls {
            writes: self.each(|usage| usage.writes as f64),
            segments: self.each(|usage| usage.segments as f64),
            reads: self.each(|usage| usage.reads as f64),
            waits: self.each(|usage| usage.waits as f64),
            bytes: self.each(|usage| usage.bytes_sent as f64),
        }
    }

    /// So much for each command, over all processes and the whole trial.
    fn each(&self, of: fn(&Usage) -> f64) -> f64 {
        let usage = self.statuses.iter().map(|status| &status.process).chain(&self.load);
        usage.map(of).sum::<f64>() / self.records.len() as f64
    }

    /// The commands that count: of the load, with their answer within the interval.
    pub fn measured(&self) -> impl Iterator<Item = &Record> {
        let (start, end) = self.interval;
        self.records.iter().filter(move |r| r.id.client != SCRIPT && r.ended > start && r.ended <= end)
    }

    /// Commands per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        let seconds = (self.interval.1 - self.interval.0) as f64 * 1e-9;
        self.measured().count() as f64 / seconds
    }

    /// The median latency of the commands of a class, in seconds.
    #[must_use]
    pub fn median_latency(&self, class: Class) -> Option<f64> {
        let of_class = self.measured().filter(|r| r.request.class == class);
        let mut latencies: Vec<u64> = of_class.map(|r| r.ended - r.intended).collect();
        let middle = latencies.len().checked_sub(1)? / 2;
        Some(*latencies.select_nth_unstable(middle).1 as f64 * 1e-9)
    }
}

/// Runs one trial and reports it.
///
/// # Errors
///
/// When memory is short, the system refuses, a client cannot do its work, or a promise was broken.
pub fn run(parameters: &Parameters) -> Result<Report, Failure> {
    // Before anything is measured, so that a trial is not lost to a wrong name.
    let history = parameters.history.as_ref().map(|path| {
        std::fs::File::create(path).map_err(|error| io::Error::other(format!("--history={}: {error}", path.display())))
    });
    let history = history.transpose()?;
    let outcome = measure(parameters)?;
    if let Some(file) = history {
        history::write(&outcome.records, &mut BufWriter::new(file))?;
    }
    // After a fault the number of lost commands is a metric for gates.
    if outcome.lost > 0 && outcome.fault.is_none() {
        return Err(Failure::error(format_args!("{} commands that had an answer were lost", outcome.lost)));
    }
    report(parameters, &outcome)
}

/// Runs one trial.
///
/// # Errors
///
/// When memory is short, the system refuses, a client cannot do its work, or a promise was broken.
pub fn measure(p: &Parameters) -> Result<Outcome, Failure> {
    machine::check_memory(p.memory_bytes(), SIZES)?;
    let mut phases = Phases::new();
    let watch = Stopwatch::start();
    let mut cluster = start_replicas(p)?;
    let addresses = &cluster.addresses.clone();
    phases.add("startup", watch.seconds());
    let mut parity = Digest::new();
    let (mut records, usage) = phases.time("script", || script(p, addresses, &mut parity))?;
    let scripted = records.len();

    let watch = Stopwatch::start();
    let mut loads = start_loads(p, addresses)?;
    phases.add("connectAndWarmup", watch.seconds());
    let go = now();
    loads.iter_mut().try_for_each(|load| load.tell("go"))?;
    let before = (scripted + p.warmup_operations) as u64;
    let fault = (p.fault != Fault::None).then(|| inject(p, &mut cluster, before)).transpose()?;
    let mut load_usage = vec![usage];
    let mut failed = None;
    for load in &mut loads {
        let summary: Summary = serde_json::from_str(&load.hear()?).map_err(io::Error::other)?;
        records.extend(record::read(summary.records, &mut load.output)?);
        load_usage.push(summary.process);
        failed = failed.or(summary.failed);
    }
    if let Some(message) = failed {
        return Err(Failure::error(message));
    }
    drop(loads);
    let interval = (go, first_end(p, &records[scripted..], go)?);
    let last = records.iter().map(|r| r.ended).max().unwrap_or(go);
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 * 1e-9;
    phases.add("measured", seconds(interval.0, interval.1));
    phases.add("tail", seconds(interval.1, last));

    let (statuses, lost) = phases.time("verify", || verify(p, addresses, &records))?;
    phases.end_iteration();
    let mut relays_late = Tally::default();
    for relay in &mut cluster.relays {
        relay.tell("report")?;
        let kept: Kept = serde_json::from_str(&relay.hear()?).map_err(io::Error::other)?;
        relays_late.merge(&kept.late);
    }
    Ok(Outcome { records, statuses, load: load_usage, interval, parity, fault, lost, relays_late, phases })
}

/// The replicas of a trial.
struct Cluster {
    /// Those that the trial has started: none where it uses others'.
    replicas: Vec<Process>,
    /// Relays between the replicas, if a distance is simulated.
    relays: Vec<Process>,
    /// Where they are.
    addresses: Addresses,
    /// Where each finds the others.
    routes: [Addresses; REPLICAS],
}

fn start_replicas(p: &Parameters) -> Result<Cluster, Failure> {
    if let Some(addresses) = &p.replicas {
        control::begin(addresses, CATCH_UP, |id| p.settings(id))?;
        let routes = [const { String::new() }; REPLICAS].map(|_| addresses.clone());
        return Ok(Cluster { replicas: Vec::new(), relays: Vec::new(), addresses: addresses.clone(), routes });
    }
    let mut replicas = Vec::new();
    for (id, cpus) in (0..REPLICAS as u8).zip(cpus_of_replicas(p, &allowed_cpus()?)?) {
        replicas.push(start_replica(p, id, "127.0.0.1:0", &cpus)?);
    }
    let mut addresses = Addresses::default();
    for (replica, address) in replicas.iter_mut().zip(&mut addresses) {
        *address = replica.expect("listens ")?;
    }
    let mut routes = [&addresses; REPLICAS].map(Clone::clone);
    let mut relays = Vec::new();
    if p.rtt_micros > 0 {
        // Of two replicas the one with the larger number calls.
        for [caller, called] in [[1, 0], [2, 0], [2, 1]] {
            let delay = format!("--delay-micros={}", p.rtt_micros.div_ceil(2));
            let arguments = ["relay".to_owned(), format!("--to={}", addresses[called]), delay];
            let mut relay = Process::start(&format!("the relay from {caller} to {called}"), &arguments, &[])?;
            routes[caller][called] = relay.expect("listens ")?;
            relays.push(relay);
        }
    }
    for (replica, route) in replicas.iter_mut().zip(&routes) {
        replica.tell(&format!("replicas {}", route.join(" ")))?;
    }
    replicas.iter_mut().try_for_each(|replica| replica.expect("ready").map(drop))?;
    Ok(Cluster { replicas, relays, addresses, routes })
}

/// The CPUs of each replica, of those that are allowed; none where they share all of them.
fn cpus_of_replicas(p: &Parameters, allowed: &[usize]) -> Result<[Vec<usize>; REPLICAS], Failure> {
    let mut each = [const { Vec::new() }; REPLICAS];
    if p.replica_cpus == 0 {
        return Ok(each);
    }
    // One more for the load generators.
    let needed = REPLICAS * p.replica_cpus + 1;
    if allowed.len() < needed {
        return Err(Failure::usage(format_args!(
            "--replica-cpus={}: {REPLICAS} replicas and the load generators need {needed} CPUs, and {} are allowed",
            p.replica_cpus,
            allowed.len()
        )));
    }
    each.iter_mut().zip(allowed.chunks(p.replica_cpus)).for_each(|(own, cpus)| own.extend(cpus));
    Ok(each)
}

fn start_replica(p: &Parameters, id: u8, listen: &str, cpus: &[usize]) -> io::Result<Process> {
    let settings = serde_json::to_string(&p.settings(id)).expect("settings are only numbers and names");
    let arguments =
        ["replica".to_owned(), format!("--id={id}"), format!("--listen={listen}"), format!("--settings={settings}")];
    Process::start(&format!("replica {id}"), &arguments, cpus)
}

/// One session with one outstanding command. Its results and final state are identical for all batching rules.
fn script(p: &Parameters, addresses: &Addresses, parity: &mut Digest) -> Result<(Vec<Record>, Usage), Failure> {
    let mut driver = Driver::connect(SCRIPT, p.bound(), p.value_size, addresses, p.message_writes)?;
    let mut mix = Mix::new(p.seed, SCRIPT_KEYS.min(p.keys), 0.5, p.weak_ratio, 50);
    let plan = p.plan(p.script_operations, Pace::Closed { window: 1 });
    driver.drive(&plan, now(), || mix.draw()).map_err(|error| Failure::error(format_args!("the script: {error}")))?;
    let (records, usage) = driver.finish();
    for record in &records {
        let mut found = [0; 16];
        found[..4].copy_from_slice(&record.id.seq.to_le_bytes());
        found[4..8].copy_from_slice(&record.read.seq.to_le_bytes());
        found[8..].copy_from_slice(&record.request.key.to_le_bytes());
        parity.add(&found);
    }
    let mut statuses = Vec::new();
    for address in addresses {
        statuses.push(control::status(address, records.len() as u64, CATCH_UP)?);
    }
    agree(&statuses, records.len() as u64)?;
    parity.add(statuses[0].state.as_bytes());
    Ok((records, usage))
}

fn start_loads(p: &Parameters, addresses: &Addresses) -> Result<Vec<Process>, Failure> {
    let streams = p.streams();
    // The remainder goes to the first streams.
    let share = |all: usize, stream: usize| all / streams + usize::from(stream < all % streams);
    let allowed = allowed_cpus()?;
    let rest = if p.replica_cpus > 0 { &allowed[REPLICAS * p.replica_cpus..] } else { &[] };
    let mut loads = Vec::new();
    for client in 0..p.clients {
        let own = client * p.threads..(client + 1) * p.threads;
        let streams_of_client = own.map(|stream| Stream {
            client: SCRIPT + 1 + stream as u32,
            warmup: share(p.warmup_operations, stream),
            count: share(p.operations, stream),
            seed: p.seed.wrapping_mul(1_000_003).wrapping_add(stream as u64 + 1),
        });
        let (replicas, streams) = (addresses.clone(), streams_of_client.collect());
        let orders = Orders { parameters: p.clone(), replicas, streams };
        let mut load = Process::start(&format!("load generator {client}"), &["load".to_owned()], rest)?;
        load.tell(&serde_json::to_string(&orders).expect("orders are only numbers, text and lists"))?;
        loads.push(load);
    }
    loads.iter_mut().try_for_each(|load| load.expect("warm").map(drop))?;
    Ok(loads)
}

/// Waits until enough commands are executed, then injects the fault.
fn inject(p: &Parameters, cluster: &mut Cluster, scripted: u64) -> Result<Injected, Failure> {
    let Cluster { replicas, addresses, routes, .. } = cluster;
    let patience = Duration::from_secs(p.time_limit_seconds);
    control::status(&addresses[usize::from(LEADER)], scripted + p.fault_after, patience)?;
    let (id, address) = (p.fault_replica, &addresses[usize::from(p.fault_replica)]);
    let replica = &mut replicas[usize::from(id)];
    let at = now();
    match p.fault {
        Fault::Kill | Fault::Restart => replica.end()?,
        _ => replica.signal(Signal::STOP)?,
    }
    if p.fault.is_final() {
        return Ok(Injected { at, ended: None, back: None });
    }
    std::thread::sleep(Duration::from_millis(p.fault_millis));
    let ended = now();
    if p.fault == Fault::Pause {
        replica.signal(Signal::CONT)?;
        return Ok(Injected { at, ended: Some(ended), back: None });
    }
    let cpus = cpus_of_replicas(p, &allowed_cpus()?)?;
    *replica = start_replica(p, id, address, &cpus[usize::from(id)])?;
    replica.expect("listens ")?;
    replica.tell(&format!("replicas {}", routes[usize::from(id)].join(" ")))?;
    replica.expect("ready")?;
    Ok(Injected { at, ended: Some(ended), back: Some(now()) })
}

/// When the first stream had done its last command: until then all of them ran.
fn first_end(p: &Parameters, records: &[Record], go: u64) -> Result<u64, Failure> {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for record in records.iter().filter(|record| record.ended > go) {
        let end = ends.entry(record.id.client).or_default();
        *end = record.ended.max(*end);
    }
    match ends.values().min() {
        Some(end) if ends.len() == p.streams() => Ok(*end),
        _ => Err(Failure::error("a stream did nothing at all: raise --time-limit-seconds")),
    }
}

/// Checks that no command was executed twice and that all surviving replicas agree. Returns their statuses and the
/// number of lost commands.
fn verify(p: &Parameters, addresses: &Addresses, records: &[Record]) -> Result<(Vec<Status>, u64), Failure> {
    let mut newest: HashMap<u32, (u32, u32)> = HashMap::new();
    for record in records {
        let (count, highest) = newest.entry(record.id.client).or_default();
        (*count, *highest) = (*count + 1, record.id.seq.max(*highest));
    }
    if let Some((client, (count, highest))) = newest.iter().find(|(_, (count, highest))| count != highest) {
        return Err(Failure::error(format_args!("client {client} sent {highest} commands and got {count} answers")));
    }
    let commands = records.len() as u64;
    let left = (0..).zip(addresses).filter(|(replica, _)| !(p.fault.is_final() && *replica == p.fault_replica));
    let left: Vec<&String> = left.map(|(_, address)| address).collect();
    let ask = |executed| left.iter().map(|address| control::status(address, executed, CATCH_UP)).collect();
    let statuses: Vec<Status> = match ask(commands) {
        Ok(statuses) => statuses,
        // They do not catch up; their current state is final.
        Err(error) => {
            let statuses: Vec<Status> = ask(0)?;
            let executed = statuses.iter().map(|status| status.executed).max().unwrap_or(0);
            if executed >= commands {
                return Err(error.into());
            }
            return Ok((statuses, commands - executed));
        }
    };
    agree(&statuses, commands)?;
    if let Some(status) = statuses.iter().find(|status| p.fault == Fault::None && status.residue > 0) {
        let Status { replica, residue, .. } = status;
        return Err(Failure::error(format_args!(
            "replica {replica} still holds {residue} things of commands that are done"
        )));
    }
    Ok((statuses, 0))
}

/// All replicas have executed exactly `commands` commands, the same in the same order, and hold the same state.
fn agree(statuses: &[Status], commands: u64) -> Result<(), Failure> {
    let first = &statuses[0];
    for status in statuses {
        let Status { replica, executed, .. } = status;
        if *executed != commands {
            return Err(Failure::error(format_args!("replica {replica} executed {executed} of {commands} commands")));
        }
        if (&status.state, status.history) != (&first.state, first.history) {
            return Err(Failure::error(format_args!("replicas {} and {replica} differ in their state", first.replica)));
        }
    }
    Ok(())
}

fn report(p: &Parameters, outcome: &Outcome) -> Result<Report, Failure> {
    let mut report = Report::new("batch-curp-ho", assay_harness::VERSION);
    report.built();
    effective(p, outcome, &mut report);
    metrics(p, outcome, &mut report);
    counters(outcome, &mut report);
    report.phases(&outcome.phases).parity(&outcome.parity);
    if p.ceilings {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let limit = ceiling::call_rate(cpus, outcome.calls())?;
        // The CPU time of a command's socket calls alone, and of the program's computation.
        let (calls, user) = (cpus as f64 / limit.value, outcome.each(|usage| usage.user_seconds));
        report.value("socketCallsAttainable", Quantity::new(calls / (calls + user), Unit::ONE));
        report.ceiling("socketCalls", limit, Some(outcome.throughput()));
        let trips = outcome.median_latency(Class::Weak).filter(|latency| *latency > 0.0).map(|latency| 1.0 / latency);
        report.ceiling("loopbackRoundTrips", loopback_round_trips()?, trips);
    }
    Ok(report)
}

fn share(part: usize, all: usize) -> Fact {
    Fact::try_from(part as f64 / all.max(1) as f64).expect("a share is a number")
}

fn effective(p: &Parameters, outcome: &Outcome, report: &mut Report) {
    let measured: Vec<&Record> = outcome.measured().collect();
    let count = |wanted: &dyn Fn(&Record) -> bool| measured.iter().filter(|record| wanted(record)).count();
    let weak = count(&|r| r.request.class == Class::Weak);
    let mut by_key: HashMap<u64, usize> = HashMap::new();
    measured.iter().for_each(|record| *by_key.entry(record.request.key).or_default() += 1);
    report
        .effective("mode", if p.mode == Mode::Open { "open" } else { "closed" })
        .effective("flush", p.flush.name())
        .effective("timer", p.timer.name())
        .effective("messageWrites", p.message_writes.name())
        .effective("batchDelayMicrosAsked", p.batch_delay_micros)
        .effective("heap", p.heap.name())
        .effective("descriptorRoutines", p.descriptor_routines as u64)
        .effective("writeLock", p.write_lock.name())
        .effective("idle", p.idle.name())
        .effective("clientLog", if p.client_log { "each" } else { "none" })
        .effective("conflicts", p.conflicts.name())
        .effective("rttMicrosAsked", p.rtt_micros)
        .effective("replicaCpus", p.replica_cpus as u64)
        .effective("nodelay", true)
        .effective("replicas", REPLICAS as u64)
        .effective("leader", u64::from(outcome.statuses[0].ballot % REPLICAS as u32))
        .effective("ballot", u64::from(outcome.statuses[0].ballot))
        .effective("boundReplica", u64::from(p.bound()))
        .effective("streams", p.streams() as u64)
        .effective("weakShare", share(weak, measured.len()))
        .effective("writeShare", share(count(&|r| r.request.put), measured.len()))
        .effective("skew", Fact::try_from(p.skew_percent as f64 / 100.0).expect("a finite number"))
        .effective("hottestKeyShare", share(by_key.values().copied().max().unwrap_or(0), measured.len()))
        .effective("cpus", std::thread::available_parallelism().map_or(1, usize::from) as u64);
    if p.mode == Mode::Closed {
        // As many commands are under way at a time, and as many latencies overlap.
        report.effective("window", p.window as u64).effective("threads", (p.streams() * p.window) as u64);
    }
    if let Some(delay) = tally(outcome, |status| &status.batch_delays).quantile(0.5).map(|ns| ns / 1e3) {
        report.effective("batchDelayMicrosMedian", Fact::try_from(delay).expect("a finite number"));
    }
    if let Some(size) = tally(outcome, |status| &status.batch_sizes).mean() {
        report.effective("batchSizeMean", Fact::try_from(size).expect("a finite number"));
    }
    let (name, replica, after) = (p.fault.name(), p.fault_replica, p.fault_after);
    let fault = match p.fault {
        Fault::None => name.to_owned(),
        _ => format!("{name} of replica {replica} after {after} commands"),
    };
    report.effective("fault", fault);
}

/// Merges a tally of all replicas.
fn tally(outcome: &Outcome, of: impl Fn(&Status) -> &Tally) -> Tally {
    let mut all = Tally::default();
    outcome.statuses.iter().for_each(|status| all.merge(of(status)));
    all
}

fn histogram(tally: &Tally, scale: f64) -> Option<Histogram> {
    let mut histogram = Histogram::new(scale);
    for (value, count) in tally.iter() {
        (0..count).for_each(|_| histogram.record(value * scale));
    }
    (histogram.count() > 0).then_some(histogram)
}

fn metrics(p: &Parameters, outcome: &Outcome, report: &mut Report) {
    report.value("throughput", Quantity::new(outcome.throughput(), Unit::new("ops/s")));
    for (name, class) in [("weakLatency", Class::Weak), ("strongLatency", Class::Strong)] {
        let mut latencies = Histogram::new(1e-9);
        let of_class = outcome.measured().filter(|r| r.request.class == class);
        of_class.for_each(|r| latencies.record((r.ended - r.intended) as f64 * 1e-9));
        if latencies.count() > 0 {
            report.histogram(name, Unit::SECONDS, &latencies);
        }
    }
    if let Some(delays) = histogram(&tally(outcome, |status| &status.batch_delays), 1e-9) {
        report.histogram("batchDelay", Unit::SECONDS, &delays);
    }
    if let Some(sizes) = histogram(&tally(outcome, |status| &status.batch_sizes), 1.0) {
        report.histogram("batchSize", Unit::ONE, &sizes);
    }
    if let Some(late) = histogram(&outcome.relays_late, 1e-9) {
        report.histogram("relayLate", Unit::SECONDS, &late);
    }
    report.value("writesPerCommand", Quantity::new(outcome.calls().writes, Unit::ONE));
    report.value("sleepsPerCommand", Quantity::new(outcome.each(|usage| usage.sleeps as f64), Unit::ONE));
    let user = outcome.each(|usage| usage.user_seconds);
    report.value("userPerCommand", Quantity::new(user, Unit::SECONDS));
    let system = outcome.each(|usage| usage.system_seconds);
    report.value("systemPerCommand", Quantity::new(system, Unit::SECONDS));
    let strong = outcome.measured().filter(|r| r.request.class == Class::Strong).count();
    for (name, paths) in [
        ("fastPathShare", &[Path::Fast][..]),
        ("overtakenShare", &[Path::Overtaken]),
        ("oneRoundTripShare", &[Path::Fast, Path::Overtaken]),
    ] {
        let on_path = outcome.measured().filter(|r| paths.contains(&r.path)).count();
        if strong > 0 {
            report.value(name, Quantity::new(on_path as f64 / strong as f64, Unit::ONE));
        }
    }
    // Over the whole trial, because replicas do not know the measured part.
    let weak = outcome.records.iter().filter(|r| r.request.class == Class::Weak).count();
    if weak > 0 {
        let waits: u64 = outcome.statuses.iter().map(|status| status.weak_waits).sum();
        report.value("weakWaitShare", Quantity::new(waits as f64 / weak as f64, Unit::ONE));
    }
    if outcome.fault.is_some() {
        report.value("lost", Quantity::count(outcome.lost));
    }
    if let Some(unavailable) = outcome.unavailable() {
        report.value("unavailable", Quantity::new(unavailable as f64 * 1e-9, Unit::SECONDS));
    }
    if let Some((ended, back)) = outcome.fault.and_then(|fault| fault.ended.zip(fault.back)) {
        report.value("rejoin", Quantity::new(back.saturating_sub(ended) as f64 * 1e-9, Unit::SECONDS));
    }
    if p.mode == Mode::Open {
        report.value("offeredRate", Quantity::new(p.rate as f64, Unit::new("ops/s")));
        report.value("achievedShare", Quantity::new(outcome.throughput() / p.rate as f64, Unit::ONE));
        let done = outcome.records.iter().filter(|r| r.id.client != SCRIPT).count();
        report.effective("allSent", done == p.operations + p.warmup_operations);
    }
}

fn counters(outcome: &Outcome, report: &mut Report) {
    let sum = |of: fn(&Usage) -> u64| {
        let replicas: u64 = outcome.statuses.iter().map(|status| of(&status.process)).sum();
        replicas + outcome.load.iter().map(of).sum::<u64>()
    };
    let commands = outcome.records.len() as u64;
    let writes = sum(|usage| usage.writes);
    let on_path = |path: Path| outcome.measured().filter(|r| r.path == path).count() as u64;
    let cpu = |all: &mut dyn Iterator<Item = f64>| Quantity::new(all.sum(), Unit::SECONDS);
    report
        .counter("operations", Quantity::count(outcome.measured().count() as u64))
        .counter("commands", Quantity::count(commands))
        .counter("fastPath", Quantity::count(on_path(Path::Fast)))
        .counter("overtakenPath", Quantity::count(on_path(Path::Overtaken)))
        .counter("slowPath", Quantity::count(on_path(Path::Slow)))
        .counter("syncedPath", Quantity::count(on_path(Path::Synced)))
        .counter("weakWaits", Quantity::count(outcome.statuses.iter().map(|status| status.weak_waits).sum()))
        .counter("bytesSent", Quantity::bytes(sum(|usage| usage.bytes_sent)))
        .counter("framesSent", Quantity::count(sum(|usage| usage.frames_sent)))
        .counter("writeCalls", Quantity::count(writes))
        .counter("segments", Quantity::count(sum(|usage| usage.segments)))
        .counter("readCalls", Quantity::count(sum(|usage| usage.reads)))
        .counter("descriptors", Quantity::count(outcome.statuses.iter().map(|status| status.descriptors.0).sum()))
        .counter("collections", Quantity::count(outcome.statuses.iter().map(|status| status.descriptors.1).sum()))
        .counter("routineAnswers", Quantity::count(outcome.statuses.iter().map(|status| status.answers.0).sum()))
        .counter("answersBeyondBound", Quantity::count(outcome.statuses.iter().map(|status| status.answers.1).sum()))
        .counter("waitCalls", Quantity::count(sum(|usage| usage.waits)))
        .counter("writeCallsPerOperation", Quantity::new(writes as f64 / commands as f64, Unit::ONE))
        .counter("replicaCpu", cpu(&mut outcome.statuses.iter().map(|status| status.process.cpu_seconds())))
        .counter("loadCpu", cpu(&mut outcome.load.iter().map(Usage::cpu_seconds)))
        .counter("keysWritten", Quantity::count(outcome.statuses[0].keys));
    if let Some(peak) = outcome.statuses.iter().map(|status| status.process.peak_memory).max() {
        report.counter("replicaPeakMemory", Quantity::bytes(peak));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::Replica;
    use crate::replica::batcher::Flush;
    use crate::replica::witness::Conflicts;

    fn parameters(flags: &[&str]) -> Parameters {
        Parameters::parse(flags.iter().map(|&flag| flag.to_owned())).unwrap()
    }

    #[test]
    fn differing_replicas_are_detected() {
        let status = |executed, state: &str, history| {
            let mut status = Replica::new(1, Flush::Natural, Conflicts::Writes).status();
            (status.executed, status.state, status.history) = (executed, state.to_owned(), history);
            status
        };
        let good = || status(5, "abc", 7);
        assert!(agree(&[good(), good(), good()], 5).is_ok());
        for (bad, part) in [
            (status(4, "abc", 7), "executed 4 of 5 commands"),
            (status(6, "abc", 7), "executed 6 of 5 commands"),
            (status(5, "abd", 7), "differ in their state"),
            (status(5, "abc", 8), "differ in their state"),
        ] {
            let message = agree(&[good(), good(), bad], 5).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn the_need_grows_with_commands_and_with_values_that_can_be_written() {
        let need = |flags: &[&str]| parameters(flags).memory_bytes();
        assert!(need(&["--operations=1000000"]) > need(&[]) + (100 << 20));
        assert!(need(&["--write-ratio=100", "--value-size=4096"]) > need(&["--write-ratio=100"]) + (400 << 20));
        // However many writes there are, they cannot fill more than all keys.
        let few = ["--write-ratio=100", "--value-size=4096", "--keys=10"];
        assert!(need(&few) < need(&["--write-ratio=0", "--value-size=4096"]) + (1 << 20));
        assert!(need(&[]) < 128 << 20, "the document's trial fits into a small pod");
    }
}
