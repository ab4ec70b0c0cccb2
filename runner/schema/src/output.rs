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
        /// How the table of format CSV is written; absent: with commas and decimal points.
        pub csv: Option<Csv>,
        /// How the document of format JSON is read.
        pub json: Option<Json>,
    }

    /// How a table is written.
    #[derive(Default)]
    pub struct Csv {
        /// The character between two fields; absent: a comma.
        pub separator: Option<char>,
        /// The character before decimal places; absent: a point.
        pub decimal_mark: Option<char>,
        /// The character between groups of three digits; absent: none.
        pub thousands_mark: Option<char>,
        /// The character that begins a line without data; absent: none.
        pub comment: Option<char>,
        /// Number of the table to read, from 1, if empty lines separate several.
        pub section: Option<u32>,
    }

    /// How a document is read.
    #[derive(Default)]
    pub struct Json {
        /// The path of a value that reports a failure. A trial with such a value is malformed.
        pub error_path: Option<String>,
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
        /// JSONPath of the figure in format JSON.
        pub path: Option<String>,
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
        let error = self.json.as_ref().and_then(|json| json.error_path.as_deref()).unwrap_or("-");
        check::length("json.errorPath", error, 1, 512)?;
        let section = self.csv.as_ref().and_then(|csv| csv.section).unwrap_or(1);
        check::require((1..=1000).contains(&section), "csv.section", || {
            format!("invalid number {section}: allowed are 1 to 1000")
        })?;
        for (name, mark) in self.csv.iter().flat_map(Csv::marks) {
            check::require(mark.is_ascii() && !matches!(mark, '"' | '\r' | '\n'), &format!("csv.{name}"), || {
                format!("invalid character {mark:?}: write one of ASCII that is neither a quote nor a line break")
            })?;
        }
        self.metrics.as_ref().map_or(Ok(()), |metrics| check::list("metrics", metrics, 1, 32))
    }
}

impl Csv {
    /// The characters with a meaning, by the names of their fields.
    fn marks(&self) -> impl Iterator<Item = (&'static str, char)> {
        let marks = [
            ("separator", self.separator),
            ("decimalMark", self.decimal_mark),
            ("thousandsMark", self.thousands_mark),
            ("comment", self.comment),
        ];
        marks.into_iter().filter_map(|(name, mark)| Some((name, mark?)))
    }
}

impl Check for MetricSource {
    fn check(&self) -> Result<(), Violation> {
        check::name("name", &self.name)?;
        check::length("unit", &self.unit, 1, 32)?;
        // "-" passes the length check, as an absent benchmark does.
        check::length("benchmark", self.benchmark.as_deref().unwrap_or("-"), 1, 512)?;
        check::length("field", self.field.as_deref().unwrap_or("-"), 1, 256)?;
        check::length("path", self.path.as_deref().unwrap_or("-"), 1, 512)?;
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
