//! Where a result comes from, and what is kept of an output that another tool wrote.

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::read::records;

/// How a workload writes its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// One [`crate::Result`] as JSON.
    AssayResult,
    /// What `go test -bench` prints, as text or as JSON.
    GoBench,
    /// Criterion's folder, or what it prints with `--output-format bencher`.
    Criterion,
    /// Google Benchmark's JSON.
    GoogleBenchmark,
    /// The JSON of hyperfine's `--export-json`.
    Hyperfine,
    /// The JSON of pytest-benchmark's `--benchmark-json`.
    PytestBenchmark,
    /// The JSON of JMH's `-rf json`.
    #[serde(rename = "JMH")]
    Jmh,
    /// The JSON of one of BenchmarkDotNet's JSON exporters.
    BenchmarkDotNet,
    /// The JSON of fio's `--output-format=json`.
    Fio,
    /// What wrk prints at the end, better with `--latency`.
    Wrk,
    /// What sysbench prints at the end.
    Sysbench,
    /// The table that divan prints.
    Divan,
    /// The XML of Catch2's `--reporter xml`.
    Catch2,
    /// k6's summary at the end of a test, as JSON.
    K6,
    /// A table with a header.
    #[serde(rename = "CSV")]
    Csv,
    /// Nothing: the process is measured from outside only.
    None,
}

records! {
    /// Where the result comes from.
    pub struct Output {
        /// How it is written.
        pub format: Format,
        /// What the process writes; absent: standard output. Relative to the trial's own folder, in which it then starts.
        pub path: Option<String>,
        /// Where the metrics are in another tool's output.
        pub metrics: Option<Vec<MetricSource>>,
    }

    /// Where a metric is in another tool's output.
    #[derive(Default)]
    pub struct MetricSource {
        /// The metric's name.
        pub name: String,
        /// Its unit, to which figures are converted.
        pub unit: String,
        /// Name of the benchmark, as the tool writes it; absent: the only one there is.
        pub benchmark: Option<String>,
        /// The tool's name of the figure; absent: the one that the format usually has.
        pub field: Option<String>,
        /// Unit of the figure where the tool does not say.
        pub field_unit: Option<String>,
    }

    /// An output as it was, in so far as it is kept.
    pub struct RawOutput {
        /// `standard output`, or the file's path.
        pub source: String,
        /// How many bytes there were.
        pub bytes: u64,
        /// Of all of them.
        pub digest: String,
        /// As much from the beginning as is kept.
        pub text: String,
    }
}

/// The longest [`RawOutput::text`], in characters.
pub const MOST_TEXT: usize = 1 << 15;

impl Check for Output {
    fn check(&self) -> Result<(), Violation> {
        check::length("path", self.path.as_deref().unwrap_or_default(), 0, 4096)?;
        self.metrics.as_ref().map_or(Ok(()), |metrics| check::list("metrics", metrics, 1, 32))
    }
}

impl Check for MetricSource {
    fn check(&self) -> Result<(), Violation> {
        check::name("name", &self.name)?;
        check::length("unit", &self.unit, 1, 32)?;
        // What is absent is as good as anything of one character.
        check::length("benchmark", self.benchmark.as_deref().unwrap_or("-"), 1, 512)?;
        check::length("field", self.field.as_deref().unwrap_or("-"), 1, 256)?;
        check::length("fieldUnit", self.field_unit.as_deref().unwrap_or("-"), 1, 32)
    }
}

impl Check for RawOutput {
    fn check(&self) -> Result<(), Violation> {
        check::length("source", &self.source, 1, 4096)?;
        check::digest_by("blake3", "digest", &self.digest)?;
        check::length("text", &self.text, 0, MOST_TEXT)
    }
}
