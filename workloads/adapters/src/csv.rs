//! A table with a header: every row is a sample, every column a field. `from.benchmark` may choose rows, as `column=value`.

use assay_schema::wave::MetricSource;

use crate::fault::{Fault, listed, quoted};
use crate::report::{Benchmark, Field, Reading, Report};
use crate::source::Source;

/// What the rows are called when none are chosen.
const ALL: &str = "all rows";

pub(crate) fn read(source: &Source, wanted: &[MetricSource]) -> Result<Report, Fault> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source.bytes.as_slice());
    let wrong = |error: &csv::Error| {
        let line = error.position().map(|position| Lines::new(&source.bytes).of(position));
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
    // A byte order mark is not a part of the first name.
    let columns: Vec<String> = header.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect();
    let mut known = std::collections::BTreeSet::new();
    for name in &columns {
        if !known.insert(name) {
            return Err(Fault::at_line(&source.name, 1, format!("column {} is there twice", quoted(name))));
        }
    }
    let mut lines = Lines::new(&source.bytes);
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| wrong(&error))?;
        rows.push((row.position().map_or(0, |position| lines.of(position)), row));
    }

    let mut choices: Vec<Option<&str>> = wanted.iter().map(|metric| metric.benchmark.as_deref()).collect();
    choices.sort_unstable();
    choices.dedup();
    let mut benchmarks = Vec::new();
    let mut without = std::collections::BTreeMap::new();
    for choice in choices {
        let (name, chosen) = match choice {
            None => (ALL, rows.iter().collect::<Vec<_>>()),
            Some(choice) => {
                let at = choice.split_once('=').and_then(|(column, value)| {
                    Some((columns.iter().position(|name| name == column.trim())?, value.trim()))
                });
                let Some((at, value)) = at else {
                    let problem = format!(
                        "from.benchmark is {}, and should be COLUMN=VALUE with one of the columns {}",
                        quoted(choice),
                        listed(columns.iter().map(String::as_str))
                    );
                    return Err(Fault::at_line(&source.name, 1, problem));
                };
                (choice, rows.iter().filter(|(_, row)| row.get(at) == Some(value)).collect())
            }
        };
        if chosen.is_empty() && choice.is_none() {
            continue;
        }
        if chosen.is_empty() {
            without.insert(name.to_owned(), format!("none of the {} rows has it", rows.len()));
            continue;
        }
        let field = |(at, column): (usize, &String)| {
            let samples = chosen.iter().map(|(line, row)| match row.get(at).unwrap_or_default().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number),
                _ => Err(format!(
                    "line {line} has {}, which is not a finite number",
                    quoted(row.get(at).unwrap_or_default())
                )),
            });
            Field::of(column, None, samples.collect::<Result<_, _>>().map(Reading::Samples))
        };
        benchmarks.push(Benchmark {
            name: name.into(),
            place: format!("line {}", chosen[0].0),
            fields: columns.iter().enumerate().map(field).collect(),
            ..Benchmark::default()
        });
    }
    Ok(Report {
        tool: "csv",
        source: source.name.clone(),
        usual_benchmark: Some(ALL.into()),
        benchmarks,
        if_none: "no row below the header".into(),
        without,
        ..Report::default()
    })
}

/// Counts lines from one row to the next. The reader's own count is behind where lines end with two characters.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// The line of a position, which is not before the last one.
    fn of(&mut self, position: &csv::Position) -> usize {
        let target = usize::try_from(position.byte()).unwrap_or(usize::MAX).min(self.bytes.len());
        let ends = self.bytes[target..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let target = (target + ends).max(self.at);
        self.line += self.bytes[self.at..target].iter().filter(|&&byte| byte == b'\n').count();
        self.at = target;
        self.line
    }
}
