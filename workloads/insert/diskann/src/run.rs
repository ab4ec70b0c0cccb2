//! `insert-diskann run`: one trial, one result.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use assay_harness::ceiling::arithmetic_rate;
use assay_harness::machine::PeakMemory;
use assay_harness::report::Fact;
use assay_harness::{Digest, Failure, FlagError, Flags, Phases, Quantity, Report, Stopwatch, Unit, machine};

use crate::ceiling;
use crate::crash::Crash;
use crate::dataset::Data;
use crate::distance::Distance;
use crate::estimate::mean;
use crate::exact::{self, K};
use crate::findings::Summary;
use crate::index::{Editable, Index, NodeCache, Searcher, Stored, Work};
use crate::options::{Options, SIZE};
use crate::prepare::{Cache, Origin};
use crate::sqlite::{self, Effective, Synchronous};
use crate::start::Start;
use crate::strategy::LayoutKind;
use crate::system::{self, Traffic};
use crate::verify;

/// The measured operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A vector is added.
    Insert,
    /// The oldest vector is replaced.
    Update,
    /// The oldest vector is deleted.
    Delete,
}

assay_harness::choices!(Operation { "insert" => Insert, "update" => Update, "delete" => Delete });

/// The parameters of a trial.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// Layout and settings of the index.
    pub options: Options,
    /// Vectors in the index at the start.
    pub size: usize,
    /// The measured operation.
    pub operation: Operation,
    /// Measured inserts, or other operations.
    pub inserts: usize,
    /// Inserts, or other operations, before measuring starts.
    pub warmup_inserts: usize,
    /// Threads that search the index meanwhile.
    pub searchers: usize,
    /// Candidates that the walk of a query keeps.
    pub search_list: usize,
    /// Queries by which the recall is measured.
    pub queries: usize,
    /// Whether to measure the machine's limits too.
    pub ceilings: bool,
    /// Where prepared indexes are kept.
    pub cache: Option<PathBuf>,
}

impl Parameters {
    /// Reads the parameters; those that are not given have the document's values.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let parameters = Self {
            options: Options::take(&mut flags)?,
            size: flags.integer("size", 10_000, SIZE)? as usize,
            operation: flags.choice("operation", Operation::Insert, &Operation::CHOICES)?,
            inserts: flags.integer("inserts", 100, 1..=100_000)? as usize,
            warmup_inserts: flags.integer("warmup-inserts", 10, 0..=10_000)? as usize,
            searchers: flags.integer("searchers", 0, 0..=64)? as usize,
            search_list: flags.integer("search-list", 64, K as u64..=2000)? as usize,
            queries: flags.integer("queries", 100, 10..=10_000)? as usize,
            ceilings: flags.boolean("ceilings", true)?,
            cache: flags.optional("cache").map(PathBuf::from),
        };
        flags.finish()?;
        parameters.check()?;
        Ok(parameters)
    }

    /// Rejects inconsistent parameters.
    fn check(&self) -> Result<(), FlagError> {
        let (o, operation) = (&self.options, self.operation.name());
        let is_ours = o.strategy.layout() == LayoutKind::Compact;
        if self.operation != Operation::Insert && !is_ours {
            let allowed = "insert is allowed, or --strategy=ours: from the other strategies nothing can be deleted";
            return Err(FlagError::new("operation", operation, allowed));
        }
        let least = match self.operation {
            Operation::Insert => 0,
            // One to replace.
            Operation::Update => 1,
            // The remaining vectors must have neighbours.
            Operation::Delete => self.operations() + K,
        };
        let least = least.max(usize::from(self.searchers > 0));
        if self.size < least {
            let allowed =
                format!("{least} or more is allowed with as many of --operation={operation}, or with --searchers");
            return Err(FlagError::new("size", self.size, allowed));
        }
        if self.searchers > 0 {
            let refused = |allowed: &str| Err(FlagError::new("searchers", self.searchers, allowed));
            if !is_ours {
                return refused(
                    "0 is allowed, or --strategy=ours: the others cannot be searched while they are written",
                );
            }
            if o.memory_budget_kib > 0 || o.factors.node_cache == NodeCache::None {
                return refused(
                    "allowed is 0 with --memory-budget-kib or --node-cache=none, because searches need the whole graph in memory",
                );
            }
            if o.factors.start != Start::Medoid {
                return refused("0 is allowed, or --random-start=medoid: where searches in other threads begin");
            }
        }
        Ok(())
    }

    /// Operations in all.
    fn operations(&self) -> usize {
        self.warmup_inserts + self.inserts
    }

    /// Vectors that are inserted.
    fn inserted(&self) -> usize {
        if self.operation == Operation::Delete { 0 } else { self.operations() }
    }

    /// Vectors that are deleted, the oldest first.
    fn deleted(&self) -> usize {
        if self.operation == Operation::Insert { 0 } else { self.operations() }
    }

    /// All vectors that are ever in the index.
    fn vectors(&self) -> usize {
        self.size + self.inserted()
    }

    /// Memory of the trial in bytes: the vectors twice (stored and for the check), the queries, the index, and SQLite.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let o = &self.options;
        let vectors = self.vectors() as u64;
        let vector = 4 * o.dims as u64;
        let kept = match (o.strategy.layout(), o.factors.node_cache) {
            (LayoutKind::Compact, _) if o.memory_budget_kib > 0 => o.memory_budget_kib << 10,
            (LayoutKind::Compact, _) => vectors * (vector + 220) * if self.searchers > 0 { 2 } else { 1 },
            (LayoutKind::Blocks, NodeCache::PerBatch) => vectors * (o.block_size as u64 + 64),
            // A walk has every block in its hands that it visits.
            (LayoutKind::Blocks, NodeCache::None) => 4 * o.insert_list as u64 * o.block_size as u64,
        };
        let sqlite = (u64::from(o.tuning.cache_kib) << 10) + o.tuning.mmap_bytes.min(vectors * o.node_bytes());
        2 * vectors * (vector + 140) + self.queries as u64 * vector + kept + sqlite + (16 << 20)
    }

    /// Bytes of memory that making the index takes beyond that.
    #[must_use]
    pub fn making_bytes(&self) -> u64 {
        match self.options.strategy.layout() {
            LayoutKind::Blocks => self.size as u64 * (self.options.block_size as u64 + 64),
            LayoutKind::Compact => self.size as u64 * (4 * self.options.dims as u64 + 160),
        }
    }

    /// Bytes on disk: the prepared index, the copy, and its log.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        (self.size + self.vectors()) as u64 * self.options.node_bytes() + (64 << 20)
    }
}

/// The flags that decide how much room a trial takes.
pub(crate) const SIZES: &str = "--size, --inserts, --dims, --block-size";

/// Results of a trial.
struct Measured {
    latencies: Vec<f64>,
    phases: Phases,
    seconds: f64,
    work: Work,
    distances: u64,
    traffic: Option<(Traffic, Traffic)>,
    /// Queries that other threads answered meanwhile.
    searches: u64,
    /// Queries per second that they answered afterwards, by themselves.
    alone: f64,
}

/// Runs one trial.
///
/// # Errors
///
/// If the parameters do not fit the machine, the index is inconsistent, or its recall is invalid.
pub fn run(parameters: &Parameters) -> Result<Report, Failure> {
    // Setup.
    let p = parameters;
    let distance = p.options.distance()?;
    machine::check_memory(p.memory_bytes(), SIZES)?;
    let cache = Cache::open(p.cache.clone())?;
    let of = format!("disk in --cache={}", cache.folder().display());
    machine::check_room(p.disk_bytes(), system::free_bytes(cache.folder()).ok(), &of, SIZES)?;
    let data = Data::generate(p.options.dataset, p.options.dims, p.options.seed, p.size, p.inserted(), p.queries);
    let making = || machine::check_memory(p.memory_bytes() + p.making_bytes(), SIZES);
    let (prepared, origin) = cache.prepare(&p.options, p.size, &data.vectors, making)?;
    if let Origin::Remade(why) = &origin {
        eprintln!("insert-diskann: {}: {why}; it was made anew", prepared.display());
    }
    let copy = cache.copy(&prepared)?;
    let connection = sqlite::open(&copy.index(), &p.options.tuning, false)?;
    let sqlite = sqlite::effective(&connection)?;
    let memory = PeakMemory::start();
    let opening = Stopwatch::start();
    let mut index = p.options.open(&connection, distance, Crash::default())?;
    let open_seconds = opening.seconds();

    // Measurement.
    let measured = measure(p, index.as_mut(), &data)?;
    let index_memory = index.memory_bytes() + sqlite::cache_bytes(&connection)?;
    let peak_memory = memory.and_then(PeakMemory::growth);
    let index_file = sqlite::file_bytes(&connection)?;

    // Verification.
    let work = index.work();
    let summary = verify::check(&connection)?;
    let expected = (data.len() - p.deleted()) as u64;
    if summary.nodes != expected || index.live() != expected {
        let found = summary.nodes;
        return Err(Failure::error(format_args!("the index holds {found} vectors and not {expected}")));
    }
    let judged = judge(index.as_mut(), &data, p.deleted(), p.search_list)?;

    // Report.
    let mut report = report(p, &measured, &sqlite, &summary, distance);
    if let Some(peak) = peak_memory {
        report.value("peakMemory", Quantity::bytes(peak));
    }
    report
        .effective("openSeconds", fact(open_seconds))
        .value("indexMemory", Quantity::bytes(index_memory))
        .value("indexFile", Quantity::bytes(index_file))
        .effective("preparedIndex", origin.to_string())
        .effective("fileSystem", system::file_system(cache.folder()).unwrap_or_else(|_| "unknown".to_owned()))
        .value("recall", Quantity::new(judged.recall, Unit::ONE))
        .value("recallAtLeast", Quantity::new(mean(&judged.recalls).low, Unit::ONE))
        .samples("queryLatency", Unit::SECONDS, &judged.latencies)
        .effective("controlRecall", fact(judged.control))
        .effective("nodeCacheHitShare", fact(share(work.cache_hits, work.cache_hits + work.node_reads)))
        .parity(&judged.digest);
    if p.ceilings {
        let rate = |count: u64| Some(count as f64 / measured.seconds).filter(|rate| *rate > 0.0);
        let reads = rate(measured.work.node_reads);
        let there = p.deleted() as u64 + 1..index.last_id() + 1;
        if let Some(limit) = ceiling::point_reads(&connection, p.options.strategy.layout(), there)? {
            report.ceiling("pointReads", limit, reads);
        }
        // A coordinate is one subtraction and one multiply-add. Codes are compared with other instructions.
        let operations =
            rate(2 * p.options.dims as u64 * measured.distances).filter(|_| p.options.memory_budget_kib == 0);
        if let Some(arithmetic) = arithmetic_rate() {
            report.ceiling("arithmetic", arithmetic, operations);
        }
        // Only synchronous commits are comparable with the disk's limit.
        let commits = rate(measured.work.commits).filter(|_| p.options.tuning.synchronous == Synchronous::Full);
        drop(index);
        report.ceiling("syncs", ceiling::syncs(copy.index().parent().unwrap_or(cache.folder()))?, commits);
    }
    Ok(report)
}

/// Sets a flag on drop.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks one query after the other until it is told to stop, and counts the answers.
fn keep_searching(
    searcher: &mut dyn Searcher,
    data: &Data,
    list: usize,
    stop: &AtomicBool,
    answered: &AtomicU64,
) -> Result<(), Failure> {
    for query in data.queries().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if searcher.search(query, K, list)?.is_empty() {
            return Err(Failure::error("a search beside the inserts found nothing"));
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn measure(p: &Parameters, index: &mut dyn Index, data: &Data) -> Result<Measured, Failure> {
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut searchers = Vec::with_capacity(p.searchers);
    for _ in 0..p.searchers {
        searchers.push(
            editable(index)?.searcher()?.ok_or_else(|| Failure::error("the index cannot be searched meanwhile"))?,
        );
    }
    thread::scope(|scope| {
        let ends = SetAtEnd(&stop);
        let start = |mut searcher: Box<dyn Searcher>| {
            let (stop, answered) = (&stop, &answered);
            scope.spawn(move || keep_searching(searcher.as_mut(), data, p.search_list, stop, answered))
        };
        let threads: Vec<_> = searchers.into_iter().map(start).collect();
        let measured = measure_beside(p, index, data, &answered);
        drop(ends);
        for thread in threads {
            thread.join().map_err(|_| Failure::error("a thread that searched panicked"))??;
        }
        measured
    })
}

/// An index as one that can be edited.
fn editable(index: &mut dyn Index) -> Result<&mut (dyn Editable + '_), Failure> {
    index.editable().ok_or_else(|| Failure::error("nothing can be deleted from this index"))
}

/// One operation, the `at`th from zero: returns once it is done, and committed if its transaction is full.
fn operate(p: &Parameters, index: &mut dyn Index, data: &Data, at: usize, phases: &mut Phases) -> Result<(), Failure> {
    let oldest = at as u64 + 1;
    let was_there = match p.operation {
        Operation::Insert => index.insert(data.vector(p.size + at), phases).map(|_| true)?,
        Operation::Update => editable(index)?.update(oldest, data.vector(p.size + at), phases)?.is_some(),
        Operation::Delete => editable(index)?.delete(oldest, phases)?,
    };
    if was_there { Ok(()) } else { Err(Failure::error(format_args!("vector {oldest} was not there"))) }
}

/// Measures while other threads search and count their results in `answered`.
fn measure_beside(
    p: &Parameters,
    index: &mut dyn Index,
    data: &Data,
    answered: &AtomicU64,
) -> Result<Measured, Failure> {
    let mut phases = Phases::new();
    for at in 0..p.warmup_inserts {
        operate(p, index, data, at, &mut phases)?;
    }
    index.commit(&mut phases)?;
    phases.clear();

    let (work, distances, traffic) = (index.work(), index.meter().count(), Traffic::now());
    let mut latencies = Vec::with_capacity(p.inserts);
    let before = answered.load(Ordering::Relaxed);
    let whole = Stopwatch::start();
    for at in p.warmup_inserts..p.operations() {
        let watch = Stopwatch::start();
        operate(p, index, data, at, &mut phases)?;
        if at + 1 == p.operations() {
            // Pending work of the last transaction is part of the last insert.
            index.commit(&mut phases)?;
        }
        latencies.push(watch.seconds());
        phases.end_iteration();
    }
    let seconds = whole.seconds();
    let searches = answered.load(Ordering::Relaxed) - before;
    Ok(Measured {
        latencies,
        phases,
        seconds,
        work: index.work().since(&work),
        distances: index.meter().count() - distances,
        traffic: traffic.zip(Traffic::now()),
        searches,
        alone: if p.searchers > 0 { searches_alone(seconds, answered) } else { 0.0 },
    })
}

/// Queries per second that other threads answer while nothing is inserted, for as long as the inserts took.
fn searches_alone(seconds: f64, answered: &AtomicU64) -> f64 {
    const LEAST: f64 = 0.02;
    let (before, watch) = (answered.load(Ordering::Relaxed), Stopwatch::start());
    thread::sleep(Duration::from_secs_f64(seconds.max(LEAST)));
    (answered.load(Ordering::Relaxed) - before) as f64 / watch.seconds()
}

/// How good the index is that came out.
struct Judged {
    recall: f64,
    control: f64,
    /// Recall of every query.
    recalls: Vec<f64>,
    /// Seconds of every query.
    latencies: Vec<f64>,
    digest: Digest,
}

/// Compares search results with the truth, and stored vectors with the inserted ones except the first `deleted`.
fn judge(index: &mut dyn Index, data: &Data, deleted: usize, search_list: usize) -> Result<Judged, Failure> {
    let vectors = || (1..).zip(data.vectors.chunks_exact(data.dims)).skip(deleted);
    let queries: Vec<&[f32]> = data.queries().collect();
    let truth: Vec<Vec<u64>> = queries.iter().map(|query| exact::nearest(query, vectors(), K)).collect();

    let mut digest = Digest::new();
    let mut stored: Vec<Stored> = Vec::with_capacity(data.len());
    index.each_stored(&mut |one| stored.push(one))?;
    for one in &stored {
        digest.add(&[&one.id.to_le_bytes()[..], bytemuck::cast_slice(&one.vector)].concat());
    }
    let control = exact::control(&stored, &queries);
    // The vectors before this had one length, and so have these; how many there are of each is part of the point.
    for ids in &control {
        digest.add(bytemuck::cast_slice(ids));
    }
    let control = exact::recall(&truth, &control).unwrap_or(0.0);
    if control != 1.0 {
        return Err(Failure::error(format_args!(
            "exact search in the stored vectors has a recall of {control} and not 1: no recall of this trial can be trusted"
        )));
    }

    let mut latencies = Vec::with_capacity(queries.len());
    let mut found = Vec::with_capacity(queries.len());
    for query in &queries {
        let watch = Stopwatch::start();
        found.push(index.search(query, K, search_list)?);
        latencies.push(watch.seconds());
    }
    let one = |(truth, found): (&Vec<u64>, &Vec<u64>)| {
        exact::recall(std::slice::from_ref(truth), std::slice::from_ref(found)).unwrap_or(0.0)
    };
    let recalls = truth.iter().zip(&found).map(one).collect();
    let recall = exact::recall(&truth, &found).unwrap_or(0.0);
    Ok(Judged { recall, control, recalls, latencies, digest })
}

fn report(p: &Parameters, measured: &Measured, sqlite: &Effective, summary: &Summary, distance: Distance) -> Report {
    let o = &p.options;
    let (work, inserts) = (&measured.work, p.inserts as f64);
    let mut report = Report::new("insert-diskann", assay_harness::VERSION);
    report.built().build("sqlite", rusqlite::version());
    report
        .effective("strategy", o.strategy.name())
        .effective("layout", summary.layout)
        .effective("randomStart", o.factors.start.name())
        .effective("nodeCache", o.factors.node_cache.name())
        .effective("backEdges", o.factors.back_edges.name())
        .effective("path", distance.name())
        .effective("dataset", o.dataset.name())
        .effective("operation", p.operation.name())
        .effective("searchers", p.searchers as u64)
        .effective("mostEdges", summary.most_edges)
        .effective("meanEdges", fact(share(summary.edges, summary.nodes)))
        .effective("logRecords", summary.log_records)
        .effective("pageSize", sqlite.page_size)
        .effective("mmapBytes", sqlite.mmap_bytes)
        .effective("cacheKib", sqlite.cache_kib)
        .effective("synchronous", sqlite.synchronous)
        .effective("journalMode", sqlite.journal.as_str())
        .effective("lockingMode", sqlite.locking.as_str())
        .effective("checkpointPages", sqlite.checkpoint_pages)
        .effective("insertsPerCommit", fact(share(work.inserts, work.commits)))
        .effective("visitedPerInsert", fact(work.visited as f64 / inserts))
        .effective("distancesPerInsert", fact(measured.distances as f64 / inserts))
        .effective("nodeWritesPerInsert", fact(work.node_writes as f64 / inserts))
        .effective("backEdgeAcceptance", fact(share(work.back_edges_accepted, work.back_edges_proposed)));
    if o.strategy.layout() == LayoutKind::Compact {
        report.effective("foldEvery", o.fold_every);
    }
    if o.memory_budget_kib > 0 {
        report.effective("memoryBudgetKib", o.memory_budget_kib);
    }
    if p.operation != Operation::Insert {
        report
            .effective("consolidatePercent", o.consolidate_percent)
            .counter("deletes", Quantity::count(work.deletes))
            .counter("consolidations", Quantity::count(work.consolidations));
    }
    if p.searchers > 0 {
        let rate = measured.searches as f64 / measured.seconds;
        report.value("searchThroughput", Quantity::new(rate, Unit::new("searches/s")));
        if measured.alone > 0.0 {
            report.value("searchesKept", Quantity::new(rate / measured.alone, Unit::ONE));
        }
    }
    report
        .samples("latency", Unit::SECONDS, &measured.latencies)
        .value("timePerInsert", Quantity::new(measured.seconds / inserts, Unit::SECONDS))
        .value("throughput", Quantity::new(inserts / measured.seconds, Unit::new("inserts/s")))
        .phases(&measured.phases)
        .counter("inserts", Quantity::count(work.inserts))
        .counter("commits", Quantity::count(work.commits))
        .counter("nodesVisited", Quantity::count(work.visited))
        .counter("nodeReads", Quantity::count(work.node_reads))
        .counter("nodeCacheHits", Quantity::count(work.cache_hits))
        .counter("nodeWrites", Quantity::count(work.node_writes))
        .counter("folds", Quantity::count(work.folds))
        .counter("distances", Quantity::count(measured.distances));
    if let Some((before, after)) = measured.traffic {
        report
            .counter("bytesWritten", Quantity::bytes(after.written - before.written))
            .counter("writeCalls", Quantity::count(after.writes - before.writes))
            .counter("bytesRead", Quantity::bytes(after.read - before.read))
            .counter("readCalls", Quantity::count(after.reads - before.reads));
    }
    report
}

/// A share, zero of nothing.
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn fact(number: f64) -> Fact {
    Fact::try_from(number).expect("counts over counts that are not zero, and seconds, are numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Kind;
    use crate::distance::Meter;
    use crate::error::Result;

    /// An exact index whose ids are shifted by a constant.
    struct Shifted<'a>(&'a Data, u64);

    impl Index for Shifted<'_> {
        fn insert(&mut self, _: &[f32], _: &mut Phases) -> Result<u64> {
            Ok(0)
        }

        fn commit(&mut self, _: &mut Phases) -> Result<()> {
            Ok(())
        }

        fn search(&mut self, query: &[f32], k: usize, _: usize) -> Result<Vec<u64>> {
            Ok(exact::nearest(query, (1..).zip(self.0.vectors.chunks_exact(self.0.dims)), k))
        }

        fn each_stored(&mut self, each: &mut dyn FnMut(Stored)) -> Result<()> {
            let vectors = (1 + self.1..).zip(self.0.vectors.chunks_exact(self.0.dims));
            vectors.for_each(|(id, vector)| each(Stored { id, vector: vector.to_vec() }));
            Ok(())
        }

        fn last_id(&self) -> u64 {
            self.0.len() as u64
        }

        fn work(&self) -> Work {
            Work::default()
        }

        fn meter(&self) -> Meter {
            Meter::new(Distance::SCALAR)
        }

        fn finish(&mut self) -> Result<()> {
            Ok(())
        }

        fn memory_bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn trial_with_a_failed_control_fails() {
        let data = Data::generate(Kind::Uniform, 4, 42, 50, 0, 10);
        let judged = judge(&mut Shifted(&data, 0), &data, 0, 64).unwrap();
        assert_eq!((judged.recall, judged.control, judged.recalls.len()), (1.0, 1.0, 10));
        let failure = judge(&mut Shifted(&data, 1), &data, 0, 64).err().unwrap();
        assert!(failure.to_string().contains("no recall of this trial can be trusted") && !failure.is_usage());
    }

    #[test]
    fn memory_estimate_grows_with_the_trial() {
        let parse = |flags: &[&str]| Parameters::parse(flags.iter().map(|&flag| flag.to_owned())).unwrap();
        let (small, large) = (parse(&["--size=1000"]), parse(&["--size=100000"]));
        assert!(large.making_bytes() > 100_000 * 16_384 && large.disk_bytes() > 2 * 100_000 * 16_384);
        assert!(small.making_bytes() < large.making_bytes() && small.memory_bytes() < large.memory_bytes());
        let cached = parse(&["--size=100000", "--node-cache=per-batch"]);
        assert!(cached.memory_bytes() > large.memory_bytes() + 100_000 * 15_000);
    }
}
