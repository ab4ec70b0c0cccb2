//! Parameters of a trial, their bounds and the trial's memory use.

use std::path::PathBuf;

use assay_harness::{FlagError, Flags};
use serde::{Deserialize, Serialize};

use crate::command::{Addresses, LEADER, MAX_VALUE, MIN_VALUE, REPLICAS};
use crate::net::Idle;
use crate::process::drive::{BACKLOG, Pace, Plan};
use crate::process::record::Record;
use crate::process::replica::{Settings, TimerKind, Writes};
use crate::process::routines::WriteLock;
use crate::replica::batcher::Flush;
use crate::replica::heap::Heap;
use crate::replica::witness::Conflicts;
use crate::workload::Spacing;

/// Whether clients wait for answers before they send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// They do: the next command goes out when one comes back.
    Closed,
    /// Open loop: commands are sent at a fixed rate.
    Open,
}

/// Rule by which batches are sent; the delay is a separate parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlushKind {
    /// After every message.
    Immediate,
    /// When the input is empty.
    Natural,
    /// After the delay.
    Timed,
}

assay_harness::choices!(FlushKind { "immediate" => Immediate, "natural" => Natural, "timed" => Timed });

impl FlushKind {
    /// The rule by which batches are sent; only timed ones have a delay, in microseconds.
    #[must_use]
    pub fn rule(self, delay: u64) -> Flush {
        match self {
            Self::Immediate => Flush::Immediate,
            Self::Natural => Flush::Natural,
            Self::Timed => Flush::timed(delay),
        }
    }
}

/// Fault of a replica during the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is killed.
    Kill,
    /// It is stopped: its connections stay, and nothing comes any more.
    Stop,
    /// It is stopped, and goes on later.
    Pause,
    /// Killed, and restarted later without its state.
    Restart,
}

assay_harness::choices!(Fault {
    "none" => None,
    "kill" => Kill,
    "stop" => Stop,
    "pause" => Pause,
    "restart" => Restart,
});

impl Fault {
    /// Whether the replica is gone for good.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Kill | Self::Stop)
    }
}

/// The addresses of all replicas, with commas between them.
///
/// # Errors
///
/// When there are more or fewer, or one of them is no host with a port.
pub fn addresses(flags: &mut Flags, name: &'static str) -> Result<Option<Addresses>, FlagError> {
    let Some(text) = flags.optional(name) else { return Ok(None) };
    let whole = |address: &str| {
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
        matches!(port, Some(Ok(1..)))
    };
    let all: Vec<String> = text.split(',').map(str::to_owned).collect();
    let all = Some(all).filter(|all| all.iter().all(|address| whole(address))).and_then(|all| all.try_into().ok());
    let allowed = format_args!("{REPLICAS} addresses such as host:7000, with commas between them").to_string();
    all.map(Some).ok_or_else(|| FlagError::new(name, text, allowed))
}

/// The parameters of a trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parameters {
    /// Closed or open loop.
    pub mode: Mode,
    /// Measured commands, over all streams.
    pub operations: usize,
    /// Commands before them, over all streams.
    pub warmup_operations: usize,
    /// Load-generating processes.
    pub clients: usize,
    /// Streams of each.
    pub threads: usize,
    /// Commands without an answer per stream, in a closed loop.
    pub window: usize,
    /// Commands per second over all streams, in an open loop.
    pub rate: u64,
    /// How arrivals are spread in an open loop.
    pub arrivals: Spacing,
    /// Weak commands, in percent.
    pub weak_ratio: u64,
    /// Writes, in percent.
    pub write_ratio: u64,
    /// How unevenly keys are asked for: the exponent times 100.
    pub skew_percent: u64,
    /// How many keys there are.
    pub keys: u64,
    /// Bytes of a value.
    pub value_size: usize,
    /// Whether weak commands are answered by the leader; else by follower 1.
    pub bound_to_leader: bool,
    /// When batches are sent.
    pub flush: FlushKind,
    /// The delay of timed batches, in microseconds.
    pub batch_delay_micros: u64,
    /// How timed batches wait.
    pub timer: TimerKind,
    /// When other messages are sent.
    pub message_writes: Writes,
    /// Which strong commands conflict.
    pub conflicts: Conflicts,
    /// Treatment of descriptors of executed commands.
    pub heap: Heap,
    /// How many commands may have a routine that writes their answers, at each replica.
    pub descriptor_routines: usize,
    /// Lock that serializes the writes of a replica.
    pub write_lock: WriteLock,
    /// Behaviour of idle replicas and clients.
    pub idle: Idle,
    /// Whether clients log two lines for each command.
    pub client_log: bool,
    /// Milliseconds of a leader's silence after which it is taken for lost.
    pub suspect_after_millis: u64,
    /// Where the replicas are, if a trial does not start them.
    pub replicas: Option<Addresses>,
    /// CPUs that each replica has for itself; with 0 all processes share those that there are.
    pub replica_cpus: usize,
    /// Added round-trip time between two replicas in microseconds.
    pub rtt_micros: u64,
    /// Microseconds that one replica sleeps whenever something has come.
    pub slow_micros: u64,
    /// Which one.
    pub slow_replica: u8,
    /// Commands of the script whose outcome is the parity digest.
    pub script_operations: usize,
    /// Fault of a replica.
    pub fault: Fault,
    /// To which.
    pub fault_replica: u8,
    /// After how many commands.
    pub fault_after: u64,
    /// Milliseconds after which a replica is back.
    pub fault_millis: u64,
    /// Seconds for the load.
    pub time_limit_seconds: u64,
    /// Milliseconds for one command.
    pub operation_timeout_millis: u64,
    /// Seed of the streams.
    pub seed: u64,
    /// Whether to measure the machine's limits too.
    pub ceilings: bool,
    /// Where to write the history of all commands.
    pub history: Option<PathBuf>,
}

/// The largest number of commands: their records are kept in memory, twice for a moment.
const OPERATIONS: u64 = 4_000_000;

impl Parameters {
    /// Reads the parameters. Those that are not given have the values of the document's program, except that batches and messages are
    /// sent as this project proposes.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds, or two of them contradict each other.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let history = flags.text("history").map(PathBuf::from);
        if history.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err(FlagError::new("history", "\"\"", "the name of a file is needed"));
        }
        let parameters = Self {
            mode: flags.choice("mode", Mode::Closed, &[("closed", Mode::Closed), ("open", Mode::Open)])?,
            operations: flags.integer("operations", 40_000, 1..=OPERATIONS)? as usize,
            warmup_operations: flags.integer("warmup-operations", 4000, 0..=1_000_000)? as usize,
            clients: flags.integer("clients", 2, 1..=16)? as usize,
            threads: flags.integer("threads", 2, 1..=16)? as usize,
            window: flags.integer("window", 15, 1..=1024)? as usize,
            rate: flags.integer("rate", 20_000, 1..=1_000_000)?,
            arrivals: flags.choice("arrivals", Spacing::Poisson, &Spacing::CHOICES)?,
            weak_ratio: flags.integer("weak-ratio", 50, 0..=100)?,
            write_ratio: flags.integer("write-ratio", 10, 0..=100)?,
            skew_percent: flags.integer("skew-percent", 101, 0..=300)?,
            keys: flags.integer("keys", 1_000_000, 1..=16_000_000)?,
            value_size: flags.integer("value-size", 100, MIN_VALUE as u64..=MAX_VALUE as u64)? as usize,
            bound_to_leader: flags.choice("bound-replica", false, &[("leader", true), ("follower", false)])?,
            flush: flags.choice("flush", FlushKind::Natural, &FlushKind::CHOICES)?,
            batch_delay_micros: flags.integer("batch-delay-micros", 0, 0..=100_000)?,
            timer: flags.choice("timer", TimerKind::Precise, &TimerKind::CHOICES)?,
            message_writes: flags.choice("message-writes", Writes::Coalesced, &Writes::CHOICES)?,
            script_operations: flags.integer("script-operations", 500, 1..=100_000)? as usize,
            conflicts: flags.choice("conflicts", Conflicts::Writes, &Conflicts::CHOICES)?,
            heap: flags.choice("heap", Heap::Bounded, &Heap::CHOICES)?,
            descriptor_routines: flags.integer("descriptor-routines", 0, 0..=100_000)? as usize,
            write_lock: flags.choice("write-lock", WriteLock::Connection, &WriteLock::CHOICES)?,
            idle: flags.choice("idle", Idle::Sleep, &Idle::CHOICES)?,
            client_log: flags.choice("client-log", false, &[("none", false), ("each", true)])?,
            suspect_after_millis: flags.integer("suspect-after-millis", 1000, 10..=60_000)?,
            replicas: addresses(&mut flags, "replicas")?,
            replica_cpus: flags.integer("replica-cpus", 0, 0..=64)? as usize,
            rtt_micros: flags.integer("rtt-micros", 0, 0..=1_000_000)?,
            slow_micros: flags.integer("slow-micros", 0, 0..=1_000_000)?,
            slow_replica: flags.integer("slow-replica", 2, 0..=REPLICAS as u64 - 1)? as u8,
            fault: flags.choice("fault", Fault::None, &Fault::CHOICES)?,
            fault_replica: flags.integer("fault-replica", 2, 0..=REPLICAS as u64 - 1)? as u8,
            fault_after: flags.integer("fault-after", 0, 0..=OPERATIONS)?,
            fault_millis: flags.integer("fault-millis", 200, 1..=60_000)?,
            time_limit_seconds: flags.integer("time-limit-seconds", 60, 1..=600)?,
            operation_timeout_millis: flags.integer("operation-timeout-millis", 10_000, 10..=60_000)?,
            seed: flags.integer("seed", 31, 0..=u64::MAX)?,
            ceilings: flags.boolean("ceilings", true)?,
            history,
        };
        flags.finish()?;
        parameters.check()?;
        Ok(parameters)
    }

    fn check(&self) -> Result<(), FlagError> {
        if self.batch_delay_micros > 0 && self.flush != FlushKind::Timed {
            return Err(FlagError::new("batch-delay-micros", self.batch_delay_micros, "a delay needs --flush=timed"));
        }
        if self.descriptor_routines > 0 && self.message_writes == Writes::Coalesced {
            let allowed = "routines write answers one by one: that needs --message-writes=each";
            return Err(FlagError::new("descriptor-routines", self.descriptor_routines, allowed));
        }
        let streams = self.streams();
        if self.operations < streams {
            let allowed = format_args!("{streams} streams need at least one command each").to_string();
            return Err(FlagError::new("operations", self.operations, allowed));
        }
        if self.fault != Fault::None && self.fault_after as usize >= self.operations {
            let allowed = "a fault comes before the last of --operations";
            return Err(FlagError::new("fault-after", self.fault_after, allowed));
        }
        let here = |name, is_set: bool, found: String| match &self.replicas {
            Some(_) if is_set => Err(FlagError::new(name, found, "that needs replicas that the trial starts itself")),
            _ => Ok(()),
        };
        here("fault", self.fault != Fault::None, self.fault.name().to_owned())?;
        here("replica-cpus", self.replica_cpus > 0, self.replica_cpus.to_string())?;
        here("rtt-micros", self.rtt_micros > 0, self.rtt_micros.to_string())?;
        Ok(())
    }

    /// How many streams of commands there are.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.clients * self.threads
    }

    /// Plan of a session: number of commands and pace.
    #[must_use]
    pub fn plan(&self, count: usize, pace: Pace) -> Plan {
        let time_limit = self.time_limit_seconds * 1_000_000_000;
        Plan { count, pace, time_limit, operation_timeout: self.operation_timeout_millis * 1_000_000 }
    }

    /// How a replica is to do its work.
    #[must_use]
    pub fn settings(&self, id: u8) -> Settings {
        Settings {
            heap: self.heap,
            conflicts: self.conflicts,
            suspect_after: self.suspect_after_millis * 1_000_000,
            slow: if id == self.slow_replica { self.slow_micros * 1000 } else { 0 },
            flush: self.flush.rule(self.batch_delay_micros),
            timer: self.timer,
            writes: self.message_writes,
            routines: self.descriptor_routines,
            write_lock: self.write_lock,
            idle: self.idle,
        }
    }

    /// The replica that answers weak commands.
    #[must_use]
    pub fn bound(&self) -> u8 {
        if self.bound_to_leader { LEADER } else { LEADER + 1 }
    }

    /// Upper bound of the memory of all processes in bytes: the records of all commands in the load generator and its
    /// parent, three copies of the state, and the programs.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        /// A cell of the state beside its value, the map's slack included.
        const CELL: u64 = 160;
        /// A process with its buffers.
        const PROCESS: u64 = 8 << 20;
        let commands = (self.operations + self.warmup_operations) as u64;
        let records = 2 * commands * size_of::<Record>() as u64;
        let written = (commands * self.write_ratio / 100 + self.script_operations as u64 + 1000).min(self.keys);
        let state = REPLICAS as u64 * written * (CELL + self.value_size as u64);
        let in_flight = match self.mode {
            Mode::Closed => self.window,
            Mode::Open => BACKLOG,
        };
        let in_flight = (self.streams() * in_flight) as u64 * (CELL + self.value_size as u64) * REPLICAS as u64;
        let descriptors =
            if self.heap == Heap::Bounded { 0 } else { REPLICAS as u64 * commands * (CELL + self.value_size as u64) };
        records + state + in_flight + descriptors + (REPLICAS + 1 + self.clients) as u64 * PROCESS
    }
}
