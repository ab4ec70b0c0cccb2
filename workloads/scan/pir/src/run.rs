//! `scan-pir run`: one trial, one result.

use assay_harness::prefetch::InOrder;
use assay_harness::report::Fact;
use assay_harness::simd::{Isa, Path};
use assay_harness::{Digest, Failure, FlagError, Flags, Phases, Quantity, Report, Stopwatch, Unit, ceiling, machine};

use crate::keys::dpf::{Aes, DpfKey, Prg};
use crate::keys::{KeyKind, Keys};
use crate::matrix::{Matrix, Pages};
use crate::scan::{self, Answers, KEYS_PER_QUERY, Method, Plan, Strategy, by_pattern, m4r};
use crate::selection::Selection;
use crate::server::{MAX_BATCH, Refused, Server};
use crate::workload;

/// The timed part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// From a batch's keys to its answers.
    EndToEnd,
    /// The scan, with the selection bits given.
    ScanOnly,
    /// Of `loop`, evaluating the keys: no row is read.
    BitsOnly,
    /// Of `loop`, reading the rows: every row is in every sum, so nothing is selected.
    XorOnly,
    /// Of the strategies that do so beforehand, expanding the keys: no row is read.
    ExpandOnly,
}

assay_harness::choices!(Scope {
    "end-to-end" => EndToEnd,
    "scan-only" => ScanOnly,
    "bits-only" => BitsOnly,
    "xor-only" => XorOnly,
    "expand-only" => ExpandOnly,
});

impl Scope {
    /// Whether it is a part by itself, which answers nothing.
    fn is_part(self) -> bool {
        matches!(self, Self::BitsOnly | Self::XorOnly | Self::ExpandOnly)
    }

    fn reads_rows(self) -> bool {
        !matches!(self, Self::BitsOnly | Self::ExpandOnly)
    }

    /// The reason why the parameters do not include this part.
    fn missing(self, p: &Parameters) -> Option<&'static str> {
        let whole = p.strategy == Strategy::Loop && p.key == KeyKind::Toy && p.delta_entries == 0;
        match self {
            Self::BitsOnly | Self::XorOnly if !whole => {
                Some("only --strategy=loop with --key=toy and --delta-entries=0 is measured in parts")
            }
            Self::ExpandOnly if p.strategy.evaluates_in_scan() || p.delta_entries > 0 => {
                Some("only the strategies that expand keys beforehand have this part, with --delta-entries=0")
            }
            _ => None,
        }
    }
}

/// The parameters of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// Rows of the matrix.
    pub rows: usize,
    /// Bytes of a row.
    pub row_size: usize,
    /// Queries of a batch.
    pub batch_size: usize,
    /// How a batch is answered.
    pub strategy: Strategy,
    /// Kind of the queries' keys.
    pub key: KeyKind,
    /// Pending updates.
    pub delta_entries: usize,
    /// Measured batches.
    pub iterations: usize,
    /// Batches before measuring starts.
    pub warmup_iterations: usize,
    /// Threads that share the rows.
    pub threads: usize,
    /// Instruction set.
    pub path: Path,
    /// How distributed point functions are computed.
    pub aes: Aes,
    /// Who has rows ready that are read in order.
    pub prefetch: InOrder,
    /// Whether the matrix asks for huge pages.
    pub huge_pages: bool,
    /// The timed part.
    pub scope: Scope,
    /// Seed of the matrix; the keys' seed derives from it.
    pub seed: u64,
    /// Whether to measure the machine's limits too.
    pub ceilings: bool,
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
            rows: flags.integer("rows", 262_144, 1..=1 << 26)? as usize,
            row_size: flags.integer("row-size", 256, 64..=4096)? as usize,
            batch_size: flags.integer("batch-size", 1, 1..=MAX_BATCH as u64)? as usize,
            strategy: flags.choice("strategy", Strategy::Loop, &Strategy::CHOICES)?,
            key: flags.choice("key", KeyKind::Toy, &KeyKind::CHOICES)?,
            delta_entries: flags.integer("delta-entries", 0, 0..=100_000)? as usize,
            iterations: flags.integer("iterations", 30, 1..=100_000)? as usize,
            warmup_iterations: flags.integer("warmup-iterations", 3, 0..=10_000)? as usize,
            threads: flags.integer("threads", 1, 1..=64)? as usize,
            path: flags.choice("path", Path::Auto, &Path::CHOICES)?,
            aes: flags.choice("aes", Aes::Auto, &Aes::CHOICES)?,
            prefetch: flags.choice("prefetch", InOrder::Auto, &InOrder::CHOICES)?,
            huge_pages: flags.boolean("huge-pages", true)?,
            scope: flags.choice("scope", Scope::EndToEnd, &Scope::CHOICES)?,
            seed: flags.integer("seed", workload::SEED, 0..=u64::MAX)?,
            ceilings: flags.boolean("ceilings", true)?,
        };
        flags.finish()?;
        if !parameters.row_size.is_multiple_of(64) {
            return Err(FlagError::new("row-size", parameters.row_size, "a row is a multiple of 64 bytes"));
        }
        match parameters.scope.missing(&parameters) {
            Some(fix) => Err(FlagError::new("scope", parameters.scope.name(), fix)),
            None => Ok(parameters),
        }
    }

    /// How many keys a batch has.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.batch_size * KEYS_PER_QUERY
    }

    /// Bytes of the matrix.
    #[must_use]
    pub fn matrix_bytes(&self) -> u64 {
        self.rows as u64 * self.row_size as u64
    }

    /// Bytes the trial will take: the matrix, the bits of all keys, the updates (which a batch copies once), and the answers of every
    /// thread.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let row = self.row_size as u64;
        let selection = Selection::bytes(self.keys(), self.rows) as u64;
        let updates = 2 * self.delta_entries as u64 * (row + 64);
        let answers = (self.threads as u64 + 3) * self.keys() as u64 * row;
        // Huge pages at both ends of the matrix, the program itself, and a stack per thread.
        let overhead = (8 << 20) + (1 << 20) * self.threads as u64;
        self.matrix_bytes() + 2 * selection + updates + answers + overhead
    }
}

/// The flags that decide how much memory a trial takes.
pub(crate) const SIZES: &str = "--rows, --row-size";

/// Passes of the read probe that count.
const READ_PASSES: usize = 8;

/// Runs one trial.
///
/// # Errors
///
/// When the parameters do not fit the machine, or a batch gets no answer, or another one than before.
pub fn run(parameters: &Parameters) -> Result<Report, Failure> {
    // Setup.
    let p = parameters;
    let isa = Isa::select(p.path)?;
    machine::check_memory(p.memory_bytes(), SIZES)?;
    let plan = Plan::new(p.strategy, isa, p.threads)?;
    let plan = plan.with_generator(Prg::select(p.aes, isa)?).with_prefetch(p.prefetch);
    let batch = workload::queries(p.key, p.rows, p.batch_size, p.seed);
    let pages = if p.huge_pages { Pages::Huge } else { Pages::Small };
    let server = Server::new(Matrix::generate(pages, p.rows, p.row_size, p.seed)?, p.key, plan);
    for update in workload::updates(p.delta_entries, p.rows, p.row_size) {
        server.update(update);
    }
    let keys = Keys::parse(p.key, p.rows, batch.iter().flatten().map(Vec::as_slice));
    let keys = keys.map_err(Refused::Key)?;
    let selection = scan::expand(&keys, p.rows, plan);
    let density = selection.density();
    let mut selection = matches!(p.scope, Scope::ScanOnly | Scope::ExpandOnly).then_some(selection);

    // The measured region is one call of this.
    let mut answer = |phases: &mut Phases| -> Result<Answers, Failure> {
        let answers = match (p.scope, &mut selection, &keys) {
            (Scope::BitsOnly, _, Keys::Toy(keys)) => scan::bits_alone(&server.snapshot().matrix, keys, plan, phases),
            (Scope::XorOnly, ..) => scan::sums_alone(&server.snapshot().matrix, p.keys(), plan, phases),
            (Scope::ExpandOnly, Some(selection), _) => {
                scan::expand_alone(&keys, plan, selection, phases);
                Answers::new(0, p.row_size)
            }
            (_, Some(selection), _) => server.answer_given(selection, phases)?.0,
            _ => server.answer(&batch, phases)?.0,
        };
        Ok(std::hint::black_box(answers))
    };

    let mut phases = Phases::new();
    let mut first: Option<Answers> = None;
    for _ in 0..p.warmup_iterations {
        first = Some(answer(&mut phases)?);
    }
    phases.clear();

    // Measurement.
    let mut latencies = Vec::with_capacity(p.iterations);
    let whole = Stopwatch::start();
    for iteration in 0..p.iterations {
        let watch = Stopwatch::start();
        let answers = answer(&mut phases)?;
        latencies.push(watch.seconds());
        phases.end_iteration();
        // Verification, outside an iteration's time but inside the whole: a comparison of a few kilobytes.
        if first.as_ref().is_some_and(|first| *first != answers) {
            return Err(Failure::error(format_args!("iteration {iteration} gave other answers than the first")));
        }
        first.get_or_insert(answers);
    }
    let seconds = whole.seconds();

    // Report.
    let mut digest = Digest::new();
    first.iter().flat_map(Answers::iter).for_each(|answer| digest.add(answer));
    if let (Scope::ExpandOnly, Some(selection)) = (p.scope, &selection) {
        let words = (0..selection.keys()).map(|key| selection.key(key));
        words.for_each(|words| digest.add(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()));
    }
    let mut report = report(p, plan, &server.snapshot().matrix, &latencies, &phases, seconds);
    report.effective("maskDensity", Fact::try_from(density).expect("a share of all bits is a number"));
    report.parity(&digest);
    Ok(report)
}

fn report(p: &Parameters, plan: Plan, matrix: &Matrix, latencies: &[f64], phases: &Phases, seconds: f64) -> Report {
    let batches = p.iterations as u64;
    let queries = batches * p.batch_size as u64;
    let reads = if p.scope.reads_rows() { p.strategy.matrix_reads(p.batch_size) as u64 } else { 0 };
    let bytes_read = batches * reads * p.matrix_bytes();

    let mut report = Report::new("scan-pir", assay_harness::VERSION);
    report.built().build("targetFeatures", compiled_features());
    report
        .effective("strategy", p.strategy.name())
        .effective("key", p.key.name())
        .effective("scope", p.scope.name())
        .effective("scanMethod", plan.method(p.keys(), p.row_size).name())
        .effective("path", plan.isa().name())
        .effective("threads", p.threads as u64)
        .effective("workingSetBytes", p.matrix_bytes())
        .effective("matrixChunks", matrix.chunks() as u64);
    if p.strategy.evaluates_in_scan() {
        report.effective("scanCode", "compiler");
    } else {
        report.effective("scanCode", plan.isa().name()).effective("cpuFeatures", features(plan));
    }
    if let Some(prefetch) = plan.prefetch(p.keys(), p.row_size) {
        report.effective("prefetch", prefetch.name());
    }
    if p.key == KeyKind::Dpf {
        report.effective("aes", plan.generator().name());
    }
    if let Some(bytes) = matrix.huge_page_bytes() {
        report.effective("hugePageBytes", bytes);
    }
    if let Some(bytes) = machine::last_level_cache_bytes() {
        report.effective("llcBytes", bytes);
    }

    // As the document counts: a batch of Q queries counts the matrix Q times, however often it was read.
    let counted = queries * p.matrix_bytes();
    report
        .samples("latency", Unit::SECONDS, latencies)
        .value("latencyPerQuery", Quantity::new(seconds / queries as f64, Unit::new("s")))
        .value("throughput", Quantity::new(queries as f64 / seconds, Unit::new("queries/s")))
        .value("effectiveBandwidth", Quantity::bytes_per_second(counted, seconds))
        .phases(phases)
        .counter("batches", Quantity::count(batches))
        .counter("queries", Quantity::count(queries))
        .counter("bytesRead", Quantity::bytes(bytes_read));
    if p.ceilings {
        ceilings(&mut report, p, plan, matrix, batches as f64 / seconds);
    }
    report
}

/// Adds the limits of a batch and the figures achieved at `rate` batches per second.
fn ceilings(report: &mut Report, p: &Parameters, plan: Plan, matrix: &Matrix, rate: f64) {
    let (keys, threads, bytes) = (p.keys(), p.threads, p.matrix_bytes());
    let parts: Vec<&[u8]> = matrix.parts(0..matrix.rows()).map(|part| part.bytes).collect();
    let read = (p.strategy.matrix_reads(p.batch_size) as u64 * bytes) as f64;
    if p.scope.reads_rows() {
        report.ceiling(
            "readBandwidth",
            ceiling::read_bandwidth(&parts, READ_PASSES, plan.isa(), threads),
            Some(rate * read),
        );
    }
    match plan.method(keys, p.row_size) {
        // Nothing is selected, so nothing is masked.
        _ if p.scope.is_part() => {}
        Method::MaskedXor => {
            let limit = ceiling::masked_xors(plan.scan_isa(), threads);
            report.ceiling("maskedXor", limit, Some(rate * keys as f64 * bytes as f64));
        }
        Method::ByPattern => {
            let loaded = by_pattern::bytes_loaded(bytes, keys);
            report.ceiling("cacheReads", ceiling::cache_reads(plan.isa(), threads), Some(rate * loaded));
        }
        Method::FourRussians => {
            let loaded = m4r::bytes_loaded(bytes, keys);
            report.ceiling("cacheReads", ceiling::cache_reads(plan.isa(), threads), Some(rate * loaded));
        }
        #[cfg(target_arch = "x86_64")]
        Method::BitMatrices => {
            let gfni = plan.gfni().expect("a plan for this method is only made with it");
            let products = scan::gfni::products(bytes, keys);
            report.ceiling("bitMatrixProducts", gfni.product_rate(threads), Some(rate * products));
        }
    }
    if p.key == KeyKind::Dpf && matches!(p.scope, Scope::EndToEnd | Scope::ExpandOnly) {
        let calls = (keys * DpfKey::aes_calls(p.rows)) as f64;
        if let Some(limit) = ceiling::aes_rate_with(plan.generator().instructions(), threads) {
            report.ceiling("aesRate", limit, Some(rate * calls));
        }
    }
}

/// The CPU features that the scan uses beyond the architecture's baseline.
fn features(plan: Plan) -> String {
    let own: &[&str] = match plan.strategy() {
        #[cfg(target_arch = "x86_64")]
        Strategy::FusedGfni => &[scan::gfni::Gfni::FEATURES],
        _ => &[],
    };
    [&[plan.isa().features()], own].concat().join(",")
}

/// Features enabled for the whole program at compile time.
fn compiled_features() -> &'static str {
    if cfg!(target_feature = "avx512f") {
        "avx512f"
    } else if cfg!(target_feature = "avx2") {
        "avx2"
    } else if cfg!(target_feature = "sse2") {
        "sse2"
    } else {
        "baseline"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Parameters, FlagError> {
        Parameters::parse(arguments.iter().map(|&a| a.to_owned()))
    }

    #[test]
    fn every_invalid_parameter_is_reported() {
        for (bad, message) in [
            ("--rows=0", "--rows=0: allowed are integers from 1 to 67108864"),
            ("--rows=many", "--rows=many: allowed are integers from 1 to 67108864"),
            ("--row-size=100", "--row-size=100: a row is a multiple of 64 bytes"),
            ("--row-size=8192", "--row-size=8192: allowed are integers from 64 to 4096"),
            ("--batch-size=33", "--batch-size=33: allowed are integers from 1 to 32"),
            ("--strategy=magic", "--strategy=magic: allowed are loop, fused-naive, fused-tiled, fused-m4r, fused-gfni"),
            ("--key={{workflow.name}}", "--key={{workflow.name}}: allowed are toy, dpf"),
            ("--seed=-1", "--seed=-1: allowed are integers from 0 to 18446744073709551615"),
        ] {
            assert_eq!(parse(&[bad]).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn oversized_trial_is_rejected_before_allocation() {
        let parameters = parse(&["--rows=67108864", "--row-size=4096"]).unwrap();
        if machine::available_memory_bytes().is_some_and(|available| available < parameters.matrix_bytes()) {
            let refused = run(&parameters).unwrap_err();
            assert!(refused.is_usage() && refused.to_string().starts_with(SIZES), "{refused}");
        }
    }
}
