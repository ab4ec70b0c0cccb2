//! A noisy neighbour of known strength, for tests of noise detection.
//!
//! ```text
//! assay-neighbour --kind cpu    --cpus 1   --seconds 30
//! assay-neighbour --kind memory --cpus 0   --seconds 30 --bytes 268435456
//! assay-neighbour --kind disk   --cpus 0-1 --seconds 30 --bytes 67108864 --folder /tmp
//! assay-neighbour --kind memory --seconds 2 --rest 2 --rounds 100
//! ```
//!
//! One thread per CPU, each bound to its own; without `--cpus` one for each CPU that it may use, bound to none. It ends after the
//! given time, or when the process that started it does. It prints `ready` once every thread is at work, and at the end of each
//! round the amount of work and its times, in seconds since 1970.

mod cpus;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::sched_setaffinity;

/// What to disturb others with, where, and for how long.
#[derive(Parser)]
struct Cli {
    /// What to use up.
    #[arg(long)]
    kind: Kind,
    /// CPUs to use, as the kernel lists them, e.g. 0-1,4: one thread on each. Without it, as many threads as there are CPUs.
    #[arg(long, value_parser = cpus::parse)]
    cpus: Option<cpus::List>,
    /// How long a round is, at most an hour.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Seconds of rest before each round.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    rest: u64,
    /// How many rounds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rounds: u64,
    /// Memory to read, or file to write, for each CPU.
    #[arg(long, default_value_t = 256 << 20, value_parser = clap::value_parser!(u64).range(4096..=4 << 30))]
    bytes: u64,
    /// Where disk writes its files.
    #[arg(long, default_value = ".")]
    folder: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Arithmetic, all the time.
    Cpu,
    /// Reads and writes over memory, as fast as it goes.
    Memory,
    /// Writes to a file, each forced to the disk.
    Disk,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-neighbour: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    // The first process of a container has no parent, and ends with its container.
    if let Some(parent) = getppid() {
        set_parent_process_death_signal(Some(Signal::KILL)).context("cannot die with the parent")?;
        // Between start and request the parent may have gone.
        ensure!(getppid() == Some(parent), "the process that started this has ended");
    }
    let threads: Vec<Option<usize>> = match &cli.cpus {
        Some(list) => list.0.iter().copied().map(Some).collect(),
        None => vec![None; std::thread::available_parallelism().context("cannot count CPUs")?.get()],
    };
    for _ in 0..cli.rounds {
        std::thread::sleep(Duration::from_secs(cli.rest));
        let from = seconds_since_1970();
        let done = round(cli, &threads)?;
        let unit = match cli.kind {
            Kind::Cpu => "rounds of arithmetic",
            Kind::Memory => "bytes of memory",
            Kind::Disk => "bytes to disk",
        };
        println!("{done} {unit} from {from:.3} to {:.3}", seconds_since_1970());
    }
    Ok(())
}

fn seconds_since_1970() -> f64 {
    // A clock before 1970 has no use here.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Works on every thread for the time of a round, and returns how much was done.
fn round(cli: &Cli, cpus: &[Option<usize>]) -> Result<u64> {
    let ready = Barrier::new(cpus.len() + 1);
    let until = Instant::now() + Duration::from_secs(cli.seconds);
    let done: Result<Vec<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(number, &cpu)| {
                let ready = &ready;
                scope.spawn(move || {
                    let prepared = cpu.map_or(Ok(()), bind).and_then(|()| Work::prepare(cli, number));
                    ready.wait();
                    prepared?.until(until)
                })
            })
            .collect();
        ready.wait();
        println!("ready");
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked"))).collect()
    });
    Ok(done?.iter().sum())
}

fn bind(cpu: usize) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Work of one thread.
enum Work {
    Cpu,
    Memory(Vec<u64>),
    Disk { file: File, bytes: u64 },
}

/// Written at once by disk.
const CHUNK: usize = 1 << 20;

impl Work {
    fn prepare(cli: &Cli, thread: usize) -> Result<Self> {
        Ok(match cli.kind {
            Kind::Cpu => Self::Cpu,
            Kind::Memory => Self::Memory(vec![1; usize::try_from(cli.bytes)? / size_of::<u64>()]),
            Kind::Disk => {
                let path = cli.folder.join(format!(".assay-neighbour-{}-{thread}", std::process::id()));
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                let file = file.with_context(|| format!("cannot write {}", path.display()))?;
                // The file lives as long as it is open, however this ends.
                std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                Self::Disk { file, bytes: cli.bytes }
            }
        })
    }

    /// How much was done when the time was over.
    fn until(mut self, until: Instant) -> Result<u64> {
        let mut done = 0;
        while Instant::now() < until {
            done += self.round()?;
        }
        Ok(done)
    }

    fn round(&mut self) -> Result<u64> {
        match self {
            Self::Cpu => {
                let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
                for _ in 0..100_000 {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                }
                black_box(x);
                Ok(1)
            }
            Self::Memory(words) => {
                for word in words.iter_mut() {
                    *word = word.wrapping_add(1);
                }
                black_box(&words);
                Ok((words.len() * size_of::<u64>()) as u64)
            }
            Self::Disk { file, bytes } => {
                let chunk = vec![0xA5; CHUNK.min(usize::try_from(*bytes)?)];
                file.write_all(&chunk).context("cannot write")?;
                file.sync_data().context("cannot force to the disk")?;
                if file.stream_position().context("cannot tell the position")? >= *bytes {
                    file.rewind().context("cannot go back to the start")?;
                }
                Ok(chunk.len() as u64)
            }
        }
    }
}
