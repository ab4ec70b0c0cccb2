//! A table with a header. Every row is a sample and every column a field. `from.benchmark` selects rows, as
//! `column=value`. Rows that differ in a text are figures of different things, so that one has to say which are meant.

use std::collections::{BTreeMap, BTreeSet};

use assay_schema::output::Csv;
use assay_schema::wave::MetricSource;
use csv::StringRecord;

use crate::fault::{Fault, listed, quoted};
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::{Lines, Source};

/// Name of the selection without a filter.
const ALL: &str = "all rows";
/// The `from.benchmark` that takes all rows, although they differ in a text.
const EVERY: &str = "*";
/// Limit on columns, because every selection of rows lists all of them.
const MOST_COLUMNS: usize = 10_000;

/// A selection of rows.
struct Choice<'a> {
    /// The from.benchmark that made it; absent: all rows.
    name: Option<&'a str>,
    /// The column and the value that selected rows have in it.
    only: Option<(usize, &'a str)>,
    /// Line of the first selected row, and the row.
    first: Option<(usize, StringRecord)>,
    /// The columns of that row with a text.
    texts: Vec<usize>,
    /// The first column whose text differs between two selected rows, with the second text.
    differs: Option<(usize, String)>,
    /// The requested columns.
    samples: BTreeMap<usize, Result<Vec<f64>, String>>,
}

pub(crate) fn read(source: &Source, wanted: &[MetricSource], how: &Csv) -> Result<Report, Fault> {
    check(how)?;
    // A byte order mark is not part of the first name.
    let bytes = source.bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&source.bytes);
    let mut builder = csv::ReaderBuilder::new();
    builder.trim(csv::Trim::All).has_headers(false).flexible(true);
    builder.delimiter(byte(how.separator.unwrap_or(','))).comment(how.comment.map(byte));
    let (mut rows, mut lines) = (builder.from_reader(bytes).into_records(), Lines::new(bytes));
    let mut next = || {
        let row = rows.next()?;
        let place = |position: &csv::Position| begin(bytes, position, how.comment.map(byte));
        Some(match row {
            Ok(row) => {
                let (at, blank) = row.position().map_or((0, false), place);
                Ok((lines.of(at), blank, row))
            }
            Err(error) => {
                let line = error.position().map(|position| lines.of(place(position).0));
                let problem = match error.kind() {
                    csv::ErrorKind::Utf8 { .. } => "invalid UTF-8".into(),
                    _ => format!("invalid CSV: {error}"),
                };
                Err(Fault { line, ..Fault::whole(&source.name, problem) })
            }
        })
    };

    let wanted_section = how.section.unwrap_or(1);
    let (mut section, mut header) = (0, None);
    let mut table: Option<Table> = None;
    while let Some(row) = next() {
        let (line, blank, row) = row?;
        let fault = |problem: String| Fault::at_line(&source.name, line, problem);
        if section == 0 || blank {
            section += 1;
            if section == 2 && how.section.is_none() {
                return Err(fault(
                    "an empty line, below which another table begins: write the number of the one to read in \
                     output.csv.section, from 1"
                        .into(),
                ));
            }
            if section == wanted_section {
                table = Some(Table::new(source, line, &row, wanted, how)?);
                header = Some(row);
            }
            continue;
        }
        let (true, Some(table), Some(header)) = (section == wanted_section, &mut table, &header) else { continue };
        if row.len() != header.len() {
            return Err(fault(format!(
                "{} fields, and the header has {}: check that the output is complete, that separators in a text are \
                 quoted, and output.csv.separator",
                row.len(),
                header.len()
            )));
        }
        if row.iter().eq(header.iter()) {
            return Err(fault(format!(
                "the header again, which begins a second report; {}",
                crate::report::ONE_REPORT
            )));
        }
        table.take(line, &row, how);
    }
    let Some(table) = table else {
        let problem = format!("has {section} tables, and output.csv.section is {wanted_section}");
        return Err(Fault::whole(&source.name, problem));
    };
    let whole = Whole::Lines { last: "the line break of its last row", ended: bytes.ends_with(b"\n"), again: None };
    table.report(source, whole)
}

/// Rejects settings that contradict each other.
fn check(how: &Csv) -> Result<(), Fault> {
    let decimal = how.decimal_mark.unwrap_or('.');
    if how.thousands_mark == Some(decimal) {
        let problem = format!("output.csv.thousandsMark and output.csv.decimalMark are both {decimal:?}: change one");
        return Err(Fault::whole("", problem));
    }
    Ok(())
}

/// The character as a byte; the schema allows ASCII only.
fn byte(mark: char) -> u8 {
    u8::try_from(mark).unwrap_or(b',')
}

/// One table of the output.
struct Table<'a> {
    columns: Vec<String>,
    choices: Vec<Choice<'a>>,
    rows: usize,
}

impl<'a> Table<'a> {
    fn new(
        source: &Source,
        line: usize,
        header: &StringRecord,
        wanted: &'a [MetricSource],
        how: &Csv,
    ) -> Result<Self, Fault> {
        let fault = |problem: String| Fault::at_line(&source.name, line, problem);
        if header.len() > MOST_COLUMNS {
            let found = header.len();
            return Err(fault(format!(
                "{found} columns, but at most {MOST_COLUMNS} are allowed; write one sample per row"
            )));
        }
        let columns: Vec<String> = header.iter().map(str::to_owned).collect();
        let mut known = BTreeSet::new();
        for name in &columns {
            if !known.insert(name) {
                return Err(fault(format!("column {} is there twice: give every column a unique name", quoted(name))));
            }
        }
        let other = [';', '\t', '|', ','].into_iter().find(|mark| columns[0].contains(*mark));
        if let (1, None, Some(other)) = (columns.len(), how.separator, other) {
            return Err(fault(format!(
                "one column {}: if {other:?} separates columns, write it in output.csv.separator",
                quoted(&columns[0])
            )));
        }
        let at = |column: &str| columns.iter().position(|name| name == column);
        let choice = |name: Option<&'a str>| -> Result<Choice<'a>, Fault> {
            let only = name.filter(|name| *name != EVERY).map(|name| {
                let only = name.split_once('=').and_then(|(column, value)| Some((at(column.trim())?, value.trim())));
                only.ok_or_else(|| {
                    fault(format!(
                        "from.benchmark is {}, and should be COLUMN=VALUE with one of the columns {}",
                        quoted(name),
                        listed(columns.iter().map(String::as_str))
                    ))
                })
            });
            let asked = wanted.iter().filter(|metric| metric.benchmark.as_deref() == name);
            let samples = asked.filter_map(|metric| Some((at(metric.field.as_deref()?)?, Ok(Vec::new()))));
            Ok(Choice {
                name,
                only: only.transpose()?,
                first: None,
                texts: Vec::new(),
                differs: None,
                samples: samples.collect(),
            })
        };
        let names: BTreeSet<Option<&str>> = wanted.iter().map(|metric| metric.benchmark.as_deref()).collect();
        let choices = names.into_iter().map(choice).collect::<Result<_, _>>()?;
        Ok(Self { columns, choices, rows: 0 })
    }

    fn take(&mut self, line: usize, row: &StringRecord, how: &Csv) {
        self.rows += 1;
        self.choices.iter_mut().for_each(|choice| choice.take(line, row, how));
    }

    fn report(self, source: &Source, whole: Whole) -> Result<Report, Fault> {
        let mut report = Report {
            usual_benchmark: Some(ALL.into()),
            if_none: "no row below the header",
            ..Report::new("csv", source, whole)
        };
        for mut choice in self.choices {
            let name = choice.name.unwrap_or(ALL);
            let Some((line, first)) = &choice.first else {
                if choice.name.is_some() {
                    report.without.insert(name.to_owned(), format!("none of the {} rows has it", self.rows));
                }
                continue;
            };
            if let Some((at, second)) = choice.differs.filter(|_| choice.name != Some(EVERY)) {
                let column = &self.columns[at];
                let problem = format!(
                    "its rows differ in column {}, such as {} and {}: select rows in from.benchmark, such as {}, or write \
                     {EVERY:?} there if they are samples of one thing",
                    quoted(column),
                    quoted(&first[at]),
                    quoted(&second),
                    quoted(&format!("{column}={}", &first[at])),
                );
                return Err(Fault::at_line(&source.name, *line, problem));
            }
            let field = |(at, column): (usize, &String)| {
                // Columns that were not requested are not parsed.
                let samples = choice.samples.remove(&at).unwrap_or_else(|| Err(String::new()));
                Field::of(column, None, samples.map(Reading::Samples))
            };
            report.benchmarks.push(Benchmark {
                name: name.into(),
                place: format!("line {line}"),
                fields: self.columns.iter().enumerate().map(field).collect(),
                ..Benchmark::default()
            });
        }
        Ok(report)
    }
}

impl Choice<'_> {
    /// Records the row if it is selected.
    fn take(&mut self, line: usize, row: &StringRecord, how: &Csv) {
        if self.only.is_some_and(|(at, value)| row.get(at) != Some(value)) {
            return;
        }
        let is_text = |at: usize| {
            let text = row.get(at).unwrap_or_default();
            !text.is_empty() && figure(text, how).is_err() && text.parse::<f64>().is_err()
        };
        match &self.first {
            None => {
                self.texts = (0..row.len()).filter(|at| is_text(*at)).collect();
                self.first = Some((line, row.clone()));
            }
            Some((_, first)) if self.differs.is_none() => {
                let differs = self.texts.iter().find(|&&at| first.get(at) != row.get(at) && is_text(at));
                self.differs = differs.map(|&at| (at, row[at].to_owned()));
            }
            Some(_) => {}
        }
        for (&at, samples) in &mut self.samples {
            let Ok(before) = samples else { continue };
            match figure(row.get(at).unwrap_or_default(), how) {
                Ok(number) => before.push(number),
                Err(problem) => *samples = Err(format!("line {line} has {problem}")),
            }
        }
    }
}

/// Parses a number as the settings write it.
fn figure(text: &str, how: &Csv) -> Result<f64, String> {
    let decimal = how.decimal_mark.unwrap_or('.');
    let parsed = ungrouped(text, how.thousands_mark, decimal)
        .filter(|digits| decimal == '.' || !digits.contains('.'))
        .and_then(|digits| digits.replace(decimal, ".").parse::<f64>().ok());
    match parsed {
        Some(number) if number.is_finite() => Ok(number),
        _ => {
            let written = text.chars().all(|c| c.is_ascii_digit() || ".,'-+ \u{a0}\u{202f}".contains(c));
            let hint = if written && text.chars().any(|c| c.is_ascii_digit()) {
                "; check output.csv.decimalMark and output.csv.thousandsMark"
            } else {
                ""
            };
            Err(format!("{}, which is not a finite number{hint}", quoted(text)))
        }
    }
}

/// Removes the marks between groups of three digits; None if the digits are grouped in another way.
fn ungrouped(text: &str, mark: Option<char>, decimal: char) -> Option<String> {
    let Some(mark) = mark.filter(|mark| text.contains(*mark)) else { return Some(text.to_owned()) };
    let (whole, rest) = text.split_at(text.find(decimal).unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with(['-', '+'])));
    let groups: Vec<&str> = digits.split(mark).collect();
    let grouped = groups.iter().enumerate().all(|(i, group)| {
        let length = if i == 0 { 1..=3 } else { 3..=3 };
        length.contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit())
    });
    (grouped && !rest.contains(mark)).then(|| format!("{sign}{}{rest}", groups.concat()))
}

/// Returns the position at which a row begins, and whether an empty line is above it. The csv reader's position of a row
/// is before the empty lines and comments above it, and its line count is wrong for CRLF line breaks.
fn begin(bytes: &[u8], position: &csv::Position, comment: Option<u8>) -> (usize, bool) {
    let mut at = usize::try_from(position.byte()).unwrap_or(usize::MAX).min(bytes.len());
    // The rest of a CRLF above.
    if at > 0 && bytes[at - 1] == b'\r' && bytes.get(at) == Some(&b'\n') {
        at += 1;
    }
    let mut blank = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\r' | b'\n' => {
                blank = true;
                at += if bytes[at..].starts_with(b"\r\n") { 2 } else { 1 };
            }
            byte if Some(byte) == comment => {
                at += bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len() - at, |length| length + 1);
            }
            _ => break,
        }
    }
    (at, blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_marks_only() {
        let how = |decimal: Option<char>, thousands: Option<char>| Csv {
            decimal_mark: decimal,
            thousands_mark: thousands,
            ..Csv::default()
        };
        for (text, decimal, thousands, want) in [
            ("1452.33", None, None, Some(1452.33)),
            ("1,452.33", None, Some(','), Some(1452.33)),
            ("-1,234,567", None, Some(','), Some(-1_234_567.0)),
            ("1e-3", None, Some(','), Some(1e-3)),
            ("12,345678", Some(','), None, Some(12.345678)),
            ("1.234.567,5", Some(','), Some('.'), Some(1_234_567.5)),
            ("1\u{202f}234,5", Some(','), Some('\u{202f}'), Some(1234.5)),
            ("1,452.33", None, None, None),
            ("12,345678", None, None, None),
            // Another locale's number, which would be wrong by 1000.
            ("1,45", None, Some(','), None),
            ("12.5", Some(','), None, None),
            ("1.452", Some(','), None, None),
            ("0.5,123", None, Some(','), None),
            (",123", None, Some(','), None),
            ("1,,234", None, Some(','), None),
            ("NaN", None, None, None),
            ("", None, None, None),
        ] {
            assert_eq!(figure(text, &how(decimal, thousands)).ok(), want, "{text} {decimal:?} {thousands:?}");
        }
    }
}
