//! A table with a header. Every row is a sample and every column a field. `from.benchmark` may select rows, as
//! `column=value`.

use std::collections::{BTreeMap, BTreeSet};

use assay_schema::wave::MetricSource;

use crate::fault::{Fault, listed, quoted};
use crate::report::{Benchmark, Field, Reading, Report};
use crate::source::{Lines, Source};

/// Name of the selection without a filter.
const ALL: &str = "all rows";
/// Limit on columns, because every selection of rows lists all of them.
const MOST_COLUMNS: usize = 10_000;

/// A selection of rows.
struct Choice<'a> {
    /// The from.benchmark that made it; absent: all rows.
    name: Option<&'a str>,
    /// The column and the value that selected rows have in it.
    only: Option<(usize, &'a str)>,
    /// Line of the first selected row.
    first: Option<usize>,
    /// The requested columns.
    samples: BTreeMap<usize, Result<Vec<f64>, String>>,
}

pub(crate) fn read(source: &Source, wanted: &[MetricSource]) -> Result<Report, Fault> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source.bytes.as_slice());
    let wrong = |error: &csv::Error| {
        let line = error.position().map(|position| Lines::new(&source.bytes).of(begin(&source.bytes, position)));
        let problem = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!(
                    "{len} fields, and the header has {expected_len}: check that the output is complete and that commas are quoted"
                )
            }
            csv::ErrorKind::Utf8 { .. } => "invalid UTF-8".into(),
            _ => format!("invalid CSV: {error}"),
        };
        Fault { line, ..Fault::whole(&source.name, problem) }
    };
    let header = reader.headers().map_err(|error| wrong(&error))?.clone();
    if header.len() > MOST_COLUMNS {
        let problem =
            format!("{} columns, but at most {MOST_COLUMNS} are allowed; write one sample per row", header.len());
        return Err(Fault::at_line(&source.name, 1, problem));
    }
    // A byte order mark is not part of the first name.
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
            // Columns that were not requested are not parsed.
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

/// Returns the distinct selections of all metrics.
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
    /// Records the row if it is selected.
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

/// Returns the line on which a row begins. The csv reader's line count is wrong for CRLF line breaks.
fn begin(bytes: &[u8], position: &csv::Position) -> usize {
    let at = usize::try_from(position.byte()).unwrap_or(usize::MAX).min(bytes.len());
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}
