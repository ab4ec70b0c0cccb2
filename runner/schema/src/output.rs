//! Output formats of workloads and the raw output that is retained of other tools.

use crate::check::{self, Check, Violation};
pub use crate::generated::Format;
use crate::read::records;

records! {
    /// Where to read the result.
    pub struct Output {
        /// The format.
        pub format: Format,
        /// Path of the file that the process writes, relative to the trial's own folder, which becomes its working
        /// directory; absent: standard output.
        pub path: Option<String>,
        /// How to find the metrics in another tool's output.
        pub metrics: Option<Vec<MetricSource>>,
    }

    /// Location of a metric in another tool's output.
    #[derive(Default)]
    pub struct MetricSource {
        /// The metric's name.
        pub name: String,
        /// The metric's unit; figures are converted to it.
        pub unit: String,
        /// Name of the benchmark as the tool prints it, with `$(name)` for the value of a parameter; absent if there is
        /// only one.
        pub benchmark: Option<String>,
        /// The tool's name of the figure; absent: the default of the format.
        pub field: Option<String>,
        /// Unit of the figure, if the tool does not report one.
        pub field_unit: Option<String>,
    }

    /// A retained raw output.
    pub struct RawOutput {
        /// `standard output`, or the file's path.
        pub source: String,
        /// Size of the output in bytes.
        pub bytes: u64,
        /// Digest of the complete output.
        pub digest: String,
        /// The output's first [`MOST_TEXT`] characters.
        pub text: String,
    }
}

/// Maximum length of [`RawOutput::text`] in characters.
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
        // "-" passes the length check, as an absent benchmark does.
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
