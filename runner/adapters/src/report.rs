//! What all tools report, in one form.

use std::collections::BTreeMap;

use crate::unit::Unit;

/// As many characters as the name of a benchmark may have that is asked for (wave.schema.json); that of a figure has fewer.
const LONGEST_NAME: usize = 512;
/// More than any program measures at once.
const MOST_BENCHMARKS: usize = 10_000;

/// Everything in an output.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tool: &'static str,
    /// The tool's version, where it says so.
    pub(crate) version: Option<String>,
    /// What the tool says about the program and the machine.
    pub(crate) build: BTreeMap<String, String>,
    /// What to call the output in a message.
    pub(crate) source: String,
    pub(crate) benchmarks: Vec<Benchmark>,
    /// The benchmark that is meant when none is named; absent: the only one there is.
    pub(crate) usual_benchmark: Option<String>,
    /// The field that is meant when none is named.
    pub(crate) usual_field: Option<&'static str>,
    /// What to say when there is no benchmark.
    pub(crate) if_none: &'static str,
    /// Benchmarks that are there without a figure, and why.
    pub(crate) without: BTreeMap<String, String>,
}

/// One benchmark with everything that is known of it.
#[derive(Debug, Default)]
pub(crate) struct Benchmark {
    /// Its name as the tool writes it.
    pub(crate) name: String,
    /// Other names by which it may be asked for.
    pub(crate) aliases: Vec<String>,
    /// Where it is, for a message: `line 7`, or `benchmarks[3]`.
    pub(crate) place: String,
    pub(crate) fields: Vec<Field>,
    /// How many iterations its figures come from.
    pub(crate) iterations: Option<f64>,
}

/// One figure of a benchmark.
#[derive(Debug)]
pub(crate) struct Field {
    /// The tool's own name for it.
    pub(crate) name: String,
    /// Absent when the tool does not say.
    pub(crate) unit: Option<Unit>,
    /// What was measured, or what is wrong with it: only of interest if it is asked for.
    pub(crate) reading: Result<Reading, String>,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    /// One figure per repetition, in order.
    Samples(Vec<f64>),
    /// The same where a figure comes as often as is said beside it.
    Counted(Vec<(f64, usize)>),
    /// One figure that the tool has computed. Its field's name is that of the statistic.
    Summary(f64),
}

impl Report {
    /// Names by their first alias those that have one name, so that each can be asked for.
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
    /// The unit is as the tool writes it, where it does.
    pub(crate) fn of(name: &str, unit: Option<&str>, reading: Result<Reading, String>) -> Self {
        Self { name: joined("", [name]), unit: unit.map(Unit::parse), reading }
    }
}

/// A name out of its parts. Of one that is too long to be asked for there is the beginning only: a part that is written once may come
/// before every other.
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

/// Refuses a benchmark more than there may be, where one takes more room than its text.
pub(crate) fn one_more(known: usize) -> Result<(), String> {
    if known < MOST_BENCHMARKS {
        return Ok(());
    }
    Err(format!("more than {MOST_BENCHMARKS} benchmarks: run fewer at once"))
}
