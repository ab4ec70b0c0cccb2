//! A table with a header: every row is a sample, every column a field. `from.benchmark` may choose rows, as `column=value`.

use std::collections::{BTreeMap, BTreeSet};

use assay_schema::wave::MetricSource;

use crate::fault::{Fault, listed, quoted};
use crate::report::{Benchmark, Field, Reading, Report};
use crate::source::{Lines, Source};

/// What the rows are called when none are chosen.
const ALL: &str = "all rows";
/// No table has more: all of them are named for every choice of rows.
const MOST_COLUMNS: usize = 10_000;

/// Rows that are chosen.
struct Choice<'a> {
    /// By whom, as from.benchmark; absent: all rows.
    name: Option<&'a str>,
    /// In which column they have which value.
    only: Option<(usize, &'a str)>,
    /// Line of the first.
    first: Option<usize>,
    /// The columns that somebody asks for.
    samples: BTreeMap<usize, Result<Vec<f64>, String>>,
}

pub(crate) fn read(source: &Source, wanted: &[MetricSource]) -> Result<Report, Fault> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source.bytes.as_slice());
    let wrong = |error: &csv::Error| {
        let line = error.position().map(|position| Lines::new(&source.bytes).of(begin(&source.bytes, position)));
        let problem = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!(
                    "{len} fields, and the header has {expected_len}: was the output cut, or is a comma not quoted?"
                )
            }
            csv::ErrorKind::Utf8 { .. } => "invalid UTF-8".into(),
            _ => format!("invalid CSV: {error}"),
        };
        Fault { line, ..Fault::whole(&source.name, problem) }
    };
    let header = reader.headers().map_err(|error| wrong(&error))?.clone();
    if header.len() > MOST_COLUMNS {
        let problem = format!("{} columns, and a table has at most {MOST_COLUMNS}: is a sample a row?", header.len());
        return Err(Fault::at_line(&source.name, 1, problem));
    }
    // A byte order mark is not a part of the first name.
    let columns: Vec<String> = header.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect();
    let mut known = BTreeSet::new();
    for name in &columns {
        if !known.insert(name) {
            return Err(Fault::at_line(&source.name, 1, format!("column {} is there twice", quoted(name))));
        }
    }
    let mut choices = choices(source, &columns, wanted);
    let (mut lines, mut rows) = (Lines::new(&source.bytes), 0);
    for row in reader.records() {
        let row = row.map_err(|error| wrong(&error))?;
        let line = row.position().map_or(0, |position| lines.of(begin(&source.bytes, position)));
        rows += 1;
        choices.iter_mut().flatten().for_each(|choice| choice.take(line, &row));
    }

    let mut benchmarks = Vec::new();
    let mut without = BTreeMap::new();
    for mut choice in choices? {
        let name = choice.name.unwrap_or(ALL);
        let Some(first) = choice.first else {
            if choice.name.is_some() {
                without.insert(name.to_owned(), format!("none of the {rows} rows has it"));
            }
            continue;
        };
        let field = |(at, column): (usize, &String)| {
            // What nobody asks for is not looked at.
            let samples = choice.samples.remove(&at).unwrap_or_else(|| Err(String::new()));
            Field::of(column, None, samples.map(Reading::Samples))
        };
        benchmarks.push(Benchmark {
            name: name.into(),
            place: format!("line {first}"),
            fields: columns.iter().enumerate().map(field).collect(),
            ..Benchmark::default()
        });
    }
    Ok(Report {
        tool: "csv",
        source: source.name.clone(),
        usual_benchmark: Some(ALL.into()),
        benchmarks,
        if_none: "no row below the header",
        without,
        ..Report::default()
    })
}

/// The choices of all metrics, each once.
fn choices<'a>(source: &Source, columns: &[String], wanted: &'a [MetricSource]) -> Result<Vec<Choice<'a>>, Fault> {
    let at = |column: &str| columns.iter().position(|name| name == column);
    let choice = |name: Option<&'a str>| -> Result<Choice<'a>, Fault> {
        let only = name.map(|name| {
            let only = name.split_once('=').and_then(|(column, value)| Some((at(column.trim())?, value.trim())));
            only.ok_or_else(|| {
                let problem = format!(
                    "from.benchmark is {}, and should be COLUMN=VALUE with one of the columns {}",
                    quoted(name),
                    listed(columns.iter().map(String::as_str))
                );
                Fault::at_line(&source.name, 1, problem)
            })
        });
        let asked = wanted.iter().filter(|metric| metric.benchmark.as_deref() == name);
        let samples = asked.filter_map(|metric| Some((at(metric.field.as_deref()?)?, Ok(Vec::new()))));
        Ok(Choice { name, only: only.transpose()?, first: None, samples: samples.collect() })
    };
    let names: BTreeSet<Option<&str>> = wanted.iter().map(|metric| metric.benchmark.as_deref()).collect();
    names.into_iter().map(choice).collect()
}

impl Choice<'_> {
    /// Takes the row if it is chosen.
    fn take(&mut self, line: usize, row: &csv::StringRecord) {
        if self.only.is_some_and(|(at, value)| row.get(at) != Some(value)) {
            return;
        }
        self.first.get_or_insert(line);
        for (&at, samples) in &mut self.samples {
            let Ok(before) = samples else { continue };
            let text = row.get(at).unwrap_or_default();
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() => before.push(number),
                _ => *samples = Err(format!("line {line} has {}, which is not a finite number", quoted(text))),
            }
        }
    }
}

/// Where a row begins. The reader's own count of lines is behind where they end with two characters.
fn begin(bytes: &[u8], position: &csv::Position) -> usize {
    let at = usize::try_from(position.byte()).unwrap_or(usize::MAX).min(bytes.len());
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}
