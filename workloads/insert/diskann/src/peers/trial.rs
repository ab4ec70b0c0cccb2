//! `insert-diskann peer`: one trial of ours or of another vector index, which runs in a separate process.
//!
//! Every index begins with the same vectors, inserts the same next ones sequentially, and gets the same queries. Ours
//! writes to its file with `synchronous=normal` and one transaction per insert unless configured otherwise; [`PEERS`]
//! lists the others' settings. Searches are measured at equal recall: each index uses the smallest list that reaches
//! the wanted recall, and has no query time if none does.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use assay_harness::{Digest, Failure, FlagError, Flags, Quantity, Report, Unit};

use super::data;
use crate::dataset::{self, Data, Kind};
use crate::estimate::mean;
use crate::exact::K;
use crate::options::{FOLD_EVERY, TRANSACTION_SIZE};
use crate::sqlite::Locking;

/// The indexes: the first and the last are served by this program, the others by another.
///
/// | peer | how it is set |
/// |---|---|
/// | `faiss-hnsw` | `IndexHNSWFlat` of 16 neighbours, `efConstruction` as `--insert-list` says, in memory |
/// | `usearch` | 16 neighbours, `expansion_add` as `--insert-list` says, 32-bit floats, in memory |
/// | `sqlite-vec` | a `vec0` table in a file, WAL, `synchronous=normal`, a transaction per insert; its search is exact, without a list |
/// | `hnsw-rs` | 16 neighbours, `ef_construction` as `--insert-list` says, in memory |
const PEERS: [&str; 5] = [OURS, "faiss-hnsw", "usearch", "sqlite-vec", HNSW_RS];

const OURS: &str = "ours";
const HNSW_RS: &str = "hnsw-rs";

/// Lists that are tried, from the smallest.
const LISTS: [usize; 15] = [10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512];
/// The list at which every index's recall is shown.
const LIST: usize = 64;
/// The program that serves the others: beside this one, or in a folder of `PATH`.
const SERVER: &str = "diskann-peers";

/// The parameters of a trial.
#[derive(Debug, Clone)]
pub struct Parameters {
    peer: &'static str,
    /// Vectors that the index begins with.
    size: usize,
    warmup_inserts: usize,
    inserts: usize,
    queries: usize,
    /// How often all queries are asked at the list that was found.
    passes: usize,
    dims: usize,
    /// Candidates that an insert keeps.
    insert_list: usize,
    /// Records after which ours folds its log.
    fold_every: u64,
    /// Inserts of a transaction of ours.
    transaction_size: u64,
    /// Who else may use the file of ours.
    locking: Locking,
    recall: f64,
    dataset: Kind,
    /// The command that serves the others.
    server: Option<String>,
    /// Where prepared indexes are kept.
    cache: Option<PathBuf>,
}

impl Parameters {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let parameters = Self {
            peer: flags.choice("peer", OURS, &PEERS.map(|peer| (peer, peer)))?,
            size: flags.integer("size", 10_000, 100..=1_000_000)? as usize,
            warmup_inserts: flags.integer("warmup-inserts", 256, 0..=100_000)? as usize,
            inserts: flags.integer("inserts", 1024, 1..=100_000)? as usize,
            queries: flags.integer("queries", 200, 10..=10_000)? as usize,
            passes: flags.integer("passes", 5, 1..=1000)? as usize,
            dims: flags.integer("dims", 128, 2..=4096)? as usize,
            insert_list: flags.integer("insert-list", 128, K as u64..=2000)? as usize,
            fold_every: flags.integer("fold-every", 128, FOLD_EVERY)?,
            transaction_size: flags.integer("transaction-size", 1, TRANSACTION_SIZE)?,
            locking: flags.choice("locking-mode", Locking::Normal, &Locking::CHOICES)?,
            recall: flags.integer("recall-percent", 95, 1..=100)? as f64 / 100.0,
            dataset: flags.choice("dataset", Kind::Clustered, &Kind::CHOICES)?,
            server: flags.optional("server"),
            cache: flags.optional("cache").map(PathBuf::from),
        };
        flags.finish()?;
        Ok(parameters)
    }

    /// The process of the index, which reads `data`.
    fn command(&self, data: &Path) -> Result<Command, Failure> {
        let mut command = match (self.peer, &self.server) {
            (OURS | HNSW_RS, _) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["arm", "--strategy=ours", &format!("--arm={}", self.peer)]);
                command.args([format!("--dims={}", self.dims), format!("--dataset={}", self.dataset.name())]);
                command.arg(format!("--fold-every={}", self.fold_every));
                command.arg(format!("--transaction-size={}", self.transaction_size));
                command.arg(format!("--locking-mode={}", self.locking.name()));
                command.args(self.cache.iter().map(|cache| format!("--cache={}", cache.display())));
                command
            }
            (peer, Some(server)) => {
                let mut words = server.split_whitespace();
                let mut command = Command::new(words.next().unwrap_or_default());
                command.args(words).arg(peer);
                command
            }
            (peer, None) => {
                let beside = std::env::current_exe()?.with_file_name(SERVER);
                let mut command = Command::new(if beside.is_file() { beside } else { SERVER.into() });
                command.arg(peer);
                command
            }
        };
        command.arg(format!("--data={}", data.display())).arg(format!("--insert-list={}", self.insert_list));
        Ok(command)
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

    /// Sends a line and returns the answer, at least one number.
    fn ask(&mut self, line: &str) -> Result<Vec<f64>, Failure> {
        let gone = || Failure::error(format_args!("{} ended", self.name));
        let input = self.input.as_mut().ok_or_else(gone)?;
        writeln!(input, "{line}")?;
        let answer = self.line()?;
        let numbers: Result<Vec<f64>, _> = answer.split(' ').map(str::parse).collect();
        numbers
            .ok()
            .filter(|numbers| numbers.iter().all(|number| number.is_finite() && *number >= 0.0))
            .ok_or_else(|| Failure::error(format_args!("{}: {line}: {answer:?} are not numbers", self.name)))
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

/// Runs one trial.
///
/// # Errors
///
/// If the index cannot be started, gives an invalid answer, or exits.
pub fn run(p: &Parameters) -> Result<Report, Failure> {
    let folder = Folder(std::env::temp_dir().join(format!("insert-diskann-peer-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0)?;
    let inserted = p.warmup_inserts + p.inserts;
    let data = Data::generate(p.dataset, p.dims, dataset::SEED, p.size, inserted, p.queries);
    data::write(&folder.0, &data, p.size)?;
    let mut arm = Arm::start(p.peer, p.command(&folder.0)?)?;

    if p.warmup_inserts > 0 {
        arm.ask(&format!("insert {}", p.warmup_inserts))?;
    }
    let seconds = arm.ask(&format!("insert {}", p.inserts))?[0];
    let memory = arm.ask("memory")?[0];
    let recall = mean(&arm.search(LIST, p.queries)?.1);

    let mut report = Report::new("insert-diskann", assay_harness::VERSION);
    report
        .built()
        .effective("peer", p.peer)
        .effective("dataset", p.dataset.name())
        .effective("insertList", p.insert_list as u64)
        .value("timePerInsert", Quantity::new(seconds / p.inserts as f64, Unit::SECONDS))
        .value("processMemory", Quantity::new(memory, Unit::BYTES))
        .value("recall", Quantity::new(recall.value, Unit::ONE))
        .value("recallAtLeast", Quantity::new(recall.low, Unit::ONE));
    for list in LISTS {
        let recall = mean(&arm.search(list, p.queries)?.1);
        if recall.value < p.recall {
            continue;
        }
        let mut pass = || Ok(arm.search(list, p.queries)?.0 / p.queries as f64);
        let samples: Vec<f64> = (0..p.passes).map(|_| pass()).collect::<Result<_, Failure>>()?;
        report
            .samples("timePerQuery", Unit::SECONDS, &samples)
            .value("searchList", Quantity::new(list as f64, Unit::ONE))
            .value("searchRecall", Quantity::new(recall.value, Unit::ONE));
        break;
    }
    // The digest covers the common inputs of all indexes: vectors and queries.
    let mut digest = Digest::new();
    for vector in data.vectors.chunks_exact(data.dims).chain(data.queries()) {
        digest.add(bytemuck::cast_slice(vector));
    }
    report.parity(&digest);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::arm;

    #[test]
    fn index_options_reach_the_arms_process() {
        let flags = [
            "--insert-list=16",
            "--fold-every=2048",
            "--transaction-size=64",
            "--locking-mode=exclusive",
            "--dims=8",
            "--dataset=uneven",
        ];
        let parse = |peer: &str| {
            let flags = flags.iter().map(ToString::to_string);
            Parameters::parse(flags.chain([format!("--peer={peer}"), "--server=python3 peers.py".to_owned()])).unwrap()
        };
        let arguments = |peer: &str| -> Vec<String> {
            let command = parse(peer).command(Path::new("/data")).unwrap();
            command.get_args().map(|argument| argument.to_str().unwrap().to_owned()).collect()
        };
        let ours = arguments(OURS);
        assert_eq!(ours[0], "arm");
        let options = arm::Parameters::parse(ours[1..].iter().cloned()).unwrap().options;
        assert_eq!((options.insert_list, options.fold_every, options.dims), (16, 2048, 8));
        assert_eq!(options.transaction_size, 64);
        assert_eq!((options.tuning.locking, options.dataset.name()), (Locking::Exclusive, "uneven"));
        for served in ["faiss-hnsw", "usearch", "sqlite-vec"] {
            assert_eq!(arguments(served), ["peers.py", served, "--data=/data", "--insert-list=16"]);
        }
    }
}
