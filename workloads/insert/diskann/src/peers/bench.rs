//! `insert-diskann peers`: figures of ours beside those of other indexes.
//!
//! Every arm begins with the same vectors. In each round every arm inserts the same next ones, one by one, and then asks the same queries;
//! `assay_harness::figures` says how arms take turns. Ours writes to its file with `synchronous=normal`, each insert a transaction of its
//! own; the others are as [`PEERS`] says. Searching is compared at equal recall: each arm has the smallest list that finds the wanted share
//! of the true neighbours.
//!
//! | figure | what |
//! |---|---|
//! | `diskann.insert10k.over_PEER` | time of an insert of ours over that of the peer, in the same rounds |
//! | `diskann.search.qps_over_PEER` | queries per second of ours over those of the peer, at equal recall |
//! | `diskann.peers.ARM.insert_us`, `.search_us` | time of an insert, and of a query at that recall |
//! | `diskann.peers.ARM.recall10` | recall with a list of 64 |
//! | `diskann.peers.ARM.search_list`, `.search_recall10` | the smallest list with the wanted recall, and the recall it has |
//! | `diskann.peers.ARM.memory_bytes` | by how much its process grew while it built the index and took the inserts |

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use assay_harness::figures::{Estimate, Printer, Times, WARMUP_ROUNDS, take_turns};
use assay_harness::{Failure, FlagError, Flags};

use super::data;
use crate::dataset::{self, Data, Kind};
use crate::estimate::mean;
use crate::exact::K;

/// The peers: how an arm is called, how its search is called, and whether `--peers` starts it (or this program).
///
/// | peer | how it is set |
/// |---|---|
/// | `faiss_hnsw` | `IndexHNSWFlat` of 16 neighbours, `efConstruction` 128, in memory |
/// | `usearch` | 16 neighbours, `expansion_add` 128, 32-bit floats, in memory |
/// | `sqlite_vec` | a `vec0` table in a file, WAL, `synchronous=normal`, a transaction per insert; its search is exact |
/// | `hnsw_rs` | 16 neighbours, a list of 128, in memory |
const PEERS: [(&str, &str, bool); 4] = [
    ("faiss_hnsw", "faiss", true),
    ("usearch", "usearch", true),
    ("sqlite_vec", "sqlite_vec", true),
    ("hnsw_rs", "hnsw_rs", false),
];

/// Lists that are tried, from the smallest.
const LISTS: [usize; 15] = [10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512];
/// The list at which every arm's recall is shown.
const LIST: usize = 64;

/// The flags of `peers`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Vectors that an index begins with.
    size: usize,
    rounds: usize,
    round_inserts: usize,
    queries: usize,
    /// Where prepared indexes are kept.
    cache: Option<PathBuf>,
    dims: usize,
    insert_list: usize,
    recall: f64,
    dataset: Kind,
    peers: Option<String>,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let settings = Self {
            size: flags.integer("size", 10_000, 100..=1_000_000)? as usize,
            rounds: flags.integer("rounds", 20, 6..=10_000)? as usize,
            round_inserts: flags.integer("round-inserts", 128, 1..=10_000)? as usize,
            queries: flags.integer("queries", 200, 10..=10_000)? as usize,
            cache: flags.optional("cache").map(PathBuf::from),
            dims: flags.integer("dims", 128, 2..=4096)? as usize,
            insert_list: flags.integer("insert-list", 128, K as u64..=2000)? as usize,
            recall: flags.integer("recall-percent", 95, 1..=100)? as f64 / 100.0,
            dataset: flags.choice("dataset", Kind::Clustered, &Kind::CHOICES)?,
            peers: flags.optional("peers"),
        };
        flags.finish()?;
        Ok(settings)
    }
}

/// A process that answers.
struct Arm {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Drop for Arm {
    fn drop(&mut self) {
        // Its input ends, and so does it; one that does not is not waited for.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Arm {
    /// Starts it, and waits until its index is built.
    fn start(name: &'static str, mut command: Command) -> Result<Self, Failure> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| Failure::error(format_args!("{name}: {command:?}: {error}")))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| Failure::error(format_args!("{name} has no standard output")))?;
        let mut arm = Self { name, child, input, answers: BufReader::new(output).lines() };
        match arm.line()?.as_str() {
            "ready" => Ok(arm),
            other => Err(Failure::error(format_args!("{name} says {other:?} and not that it is ready"))),
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let line = self.answers.next();
        line.ok_or_else(|| Failure::error(format_args!("{} ended", self.name)))?.map_err(Failure::from)
    }

    /// What it answers to a line: at least one number.
    fn ask(&mut self, line: &str) -> Result<Vec<f64>, Failure> {
        let gone = || Failure::error(format_args!("{} ended", self.name));
        let input = self.input.as_mut().ok_or_else(gone)?;
        writeln!(input, "{line}")?;
        let answer = self.line()?;
        let numbers: Result<Vec<f64>, _> = answer.split(' ').map(str::parse).collect();
        numbers
            .ok()
            .filter(|numbers| numbers.iter().all(|number| number.is_finite() && *number >= 0.0))
            .ok_or_else(|| Failure::error(format_args!("{}: {line}: {answer:?} are no numbers", self.name)))
    }

    /// Seconds of all queries, and the recall of each.
    fn search(&mut self, list: usize, queries: usize) -> Result<(f64, Vec<f64>), Failure> {
        let mut numbers = self.ask(&format!("search {list}"))?;
        let recalls = numbers.split_off(1);
        if recalls.len() != queries || recalls.iter().any(|recall| *recall > 1.0) {
            let found = recalls.len();
            return Err(Failure::error(format_args!("{}: {found} recalls for {queries} queries", self.name)));
        }
        Ok((numbers[0], recalls))
    }
}

/// A folder that goes when this does.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Measures all figures and prints each as one line of JSON. `program` is this program.
///
/// # Errors
///
/// When an arm cannot be started, says what no arm says, or ends.
pub fn bench(s: &Settings, program: &Path, out: &mut Printer<'_>) -> Result<(), Failure> {
    let inserts = (WARMUP_ROUNDS + s.rounds) * s.round_inserts;
    let folder = Folder(std::env::temp_dir().join(format!("insert-diskann-peers-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0)?;
    out.progress(format_args!("{} vectors, {}", s.size, s.dataset.name()));
    let data = Data::generate(s.dataset, s.dims, dataset::SEED, s.size, inserts, s.queries);
    data::write(&folder.0, &data, s.size)?;
    let given = format!("--data={}", folder.0.display());

    let mut arms = Vec::new();
    for (name, _, external) in [("ours", "", false)].into_iter().chain(PEERS) {
        let mut command = match (external, &s.peers) {
            (true, None) => continue,
            (true, Some(peers)) => {
                let mut words = peers.split_whitespace();
                let mut command = Command::new(words.next().unwrap_or_default());
                command.args(words).arg(name);
                command
            }
            (false, _) => {
                let mut command = Command::new(program);
                let kind = if name == "ours" { "strategy" } else { name };
                command.args(["arm", "--strategy=ours", &format!("--arm={kind}")]);
                command.args([format!("--dims={}", s.dims), format!("--insert-list={}", s.insert_list)]);
                command.args([format!("--dataset={}", s.dataset.name()), format!("--fold-every={}", s.round_inserts)]);
                command.args(s.cache.iter().map(|cache| format!("--cache={}", cache.display())));
                command
            }
        };
        if name == "hnsw_rs" && !cfg!(feature = "peer") {
            continue;
        }
        command.arg(&given);
        out.progress(format_args!("{name} builds its index"));
        arms.push(Arm::start(name, command)?);
    }

    out.progress(format_args!("{} rounds of {} inserts", s.rounds, s.round_inserts));
    let line = format!("insert {}", s.round_inserts);
    let times = take_turns(s.rounds, arms.len(), |arm| Ok::<f64, Failure>(arms[arm].ask(&line)?[0]))?;
    let us = |times: &Times, arm: usize, of: usize| times.median(arm, 1e6 / of as f64);
    for (at, arm) in arms.iter_mut().enumerate() {
        let name = arm.name;
        if at > 0 {
            out.print(format_args!("diskann.insert10k.over_{name}"), "x", times.ratio(0, at))?;
        }
        out.print(format_args!("diskann.peers.{name}.insert_us"), "us", us(&times, at, s.round_inserts))?;
        out.print(format_args!("diskann.peers.{name}.memory_bytes"), "By", one(arm.ask("memory")?[0]))?;
        out.print(format_args!("diskann.peers.{name}.recall10"), "1", mean(&arm.search(LIST, s.queries)?.1))?;
    }

    out.progress(format_args!("queries at a recall of {}", s.recall));
    let mut able = Vec::new();
    for (at, arm) in arms.iter_mut().enumerate() {
        for list in LISTS {
            let recall = mean(&arm.search(list, s.queries)?.1);
            if recall.value >= s.recall {
                able.push((at, list, recall));
                break;
            }
        }
        if able.last().is_none_or(|(last, ..)| *last != at) {
            out.progress(format_args!("{} does not get there with a list of {}", arm.name, LISTS[LISTS.len() - 1]));
        }
    }
    let times = take_turns(s.rounds, able.len(), |turn| {
        let (arm, list, _) = able[turn];
        Ok::<f64, Failure>(arms[arm].search(list, s.queries)?.0)
    })?;
    for (turn, (at, list, recall)) in able.iter().enumerate() {
        let name = arms[*at].name;
        let ours_is_able = able[0].0 == 0;
        if let Some((_, search, _)) = PEERS.iter().find(|(peer, ..)| *peer == name).filter(|_| ours_is_able) {
            out.print(format_args!("diskann.search.qps_over_{search}"), "x", times.ratio(turn, 0))?;
        }
        out.print(format_args!("diskann.peers.{name}.search_us"), "us", us(&times, turn, s.queries))?;
        out.print(format_args!("diskann.peers.{name}.search_list"), "1", one(*list as f64))?;
        out.print(format_args!("diskann.peers.{name}.search_recall10"), "1", *recall)?;
    }
    Ok(())
}

/// A figure that is read once.
fn one(value: f64) -> Estimate {
    Estimate { value, low: value, high: value, samples: 1 }
}
