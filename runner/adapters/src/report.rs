//! The common form of all tools' output.

use std::collections::BTreeMap;

use crate::fault::Fault;
use crate::source::Source;
use crate::unit::Unit;

/// Advice for an output with several documents.
pub(crate) const ONE_REPORT: &str = "run the tool once per trial, so that it writes one report";

/// Maximum length of a benchmark's name in from.benchmark (wave.schema.json); figures have shorter names.
const LONGEST_NAME: usize = 512;
/// Limit on benchmarks per output.
const MOST_BENCHMARKS: usize = 10_000;

/// Evidence that an output is one whole report. Every adapter has to state it.
#[derive(Debug)]
pub(crate) enum Whole {
    /// The parser accepts one complete document only.
    Document,
    /// Text that ends with a certain line.
    Lines {
        /// The line that ends a report.
        last: &'static str,
        /// Whether it was found after all figures.
        ended: bool,
        /// The line at which a second report begins, if any.
        again: Option<usize>,
    },
}

/// The content of an output.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tool: &'static str,
    /// The tool's version, if reported.
    pub(crate) version: Option<String>,
    /// Metadata about the program and the machine, as reported by the tool.
    pub(crate) build: BTreeMap<String, String>,
    /// Name of the output in messages.
    pub(crate) source: String,
    pub(crate) benchmarks: Vec<Benchmark>,
    /// Benchmark used if none is named; absent: the only one.
    pub(crate) usual_benchmark: Option<String>,
    /// Field used if none is named.
    pub(crate) usual_field: Option<&'static str>,
    /// Message if there is no benchmark.
    pub(crate) if_none: &'static str,
    /// Advice if several benchmarks have one name.
    pub(crate) if_twice: &'static str,
    /// Benchmarks without a figure, with the reason.
    pub(crate) without: BTreeMap<String, String>,
    /// Whether the output is one whole report.
    pub(crate) whole: Whole,
}

/// One benchmark with all its figures.
#[derive(Debug, Default)]
pub(crate) struct Benchmark {
    /// Its name as the tool writes it.
    pub(crate) name: String,
    /// Other accepted names.
    pub(crate) aliases: Vec<String>,
    /// Position for messages: `line 7`, or `benchmarks[3]`.
    pub(crate) place: String,
    pub(crate) fields: Vec<Field>,
    /// Number of iterations behind its figures.
    pub(crate) iterations: Option<f64>,
}

/// One figure of a benchmark.
#[derive(Debug)]
pub(crate) struct Field {
    /// The tool's name of the figure.
    pub(crate) name: String,
    /// Absent if the tool reports none. A metric of time or size then has to name it in `from.unit`.
    pub(crate) unit: Option<Unit>,
    /// The measured values, or an error that matters only if the figure is requested.
    pub(crate) reading: Result<Reading, String>,
    /// Width of the tool's histogram bins relative to the values, if it takes the figure from a histogram.
    pub(crate) bin: Option<f64>,
}

/// Measured values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    /// One value per repetition, in order.
    Samples(Vec<f64>),
    /// Values with their counts.
    Counted(Vec<(f64, usize)>),
    /// A statistic computed by the tool, named by its field.
    Summary(f64),
}

impl Report {
    /// Makes an empty report of a tool's output.
    pub(crate) fn new(tool: &'static str, source: &Source, whole: Whole) -> Self {
        Self {
            tool,
            whole,
            source: source.name.clone(),
            version: None,
            build: BTreeMap::new(),
            benchmarks: Vec::new(),
            usual_benchmark: None,
            usual_field: None,
            if_none: "",
            if_twice: "give every benchmark a unique name",
            without: BTreeMap::new(),
        }
    }

    /// Rejects an output that is not one whole report.
    pub(crate) fn check_whole(&self) -> Result<(), Fault> {
        match self.whole {
            Whole::Lines { again: Some(line), .. } => {
                let problem = format!("a second report begins here; {}", ONE_REPORT);
                Err(Fault::at_line(&self.source, line, problem))
            }
            Whole::Lines { ended: false, last, .. } => {
                Err(Fault::whole(&self.source, format!("ends before {last}; the output is truncated")))
            }
            _ => Ok(()),
        }
    }

    /// Renames benchmarks of the same name to their first alias, so that each can be selected.
    pub(crate) fn distinguish(&mut self) {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for one in &self.benchmarks {
            *times.entry(one.name.clone()).or_default() += 1;
        }
        for one in &mut self.benchmarks {
            if times[&one.name] > 1
                && let Some(alias) = one.aliases.first_mut()
            {
                std::mem::swap(&mut one.name, alias);
            }
        }
    }
}

impl Field {
    /// Makes a field; `unit` is as the tool writes it.
    pub(crate) fn of(name: &str, unit: Option<&str>, reading: Result<Reading, String>) -> Self {
        Self { name: joined("", [name]), unit: unit.map(Unit::parse), reading, bin: None }
    }

    /// Sets the width of the tool's histogram bins, relative to the values.
    pub(crate) fn binned(self, bin: f64) -> Self {
        Self { bin: Some(bin), ..self }
    }
}

/// Joins parts to a name, truncated to the longest name that can be requested. Truncation bounds memory, because a part
/// that is written once may prefix every other name.
pub(crate) fn joined<'a>(separator: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    let (mut name, mut room) = (String::new(), LONGEST_NAME);
    for (i, part) in parts.into_iter().enumerate() {
        for piece in [if i == 0 { "" } else { separator }, part] {
            if let Some((end, _)) = piece.char_indices().nth(room) {
                name.push_str(&piece[..end]);
                name.push('…');
                return name;
            }
            name.push_str(piece);
            room -= piece.chars().count();
        }
    }
    name
}

/// Rejects a benchmark beyond the limit, for formats in which one takes more memory than its text.
pub(crate) fn one_more(known: usize) -> Result<(), String> {
    if known < MOST_BENCHMARKS {
        return Ok(());
    }
    Err(format!("more than {MOST_BENCHMARKS} benchmarks: run fewer at once"))
}
