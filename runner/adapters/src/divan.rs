//! The table printed by divan.
//!
//! divan has no machine-readable format. It prints a tree of names with the fastest, slowest, median and mean time of
//! an iteration, to four significant digits. Below a benchmark follow its throughputs and its allocation statistics.
//! Every table ends with an empty line.

use crate::fault::{Fault, quoted};
use crate::report::{Benchmark, Field, Reading, Report, Whole, joined, one_more};
use crate::source::Source;
use crate::text;

const COLUMNS: [&str; 6] = ["fastest", "slowest", "median", "mean", "samples", "iters"];
/// Number of statistics columns per figure.
const STATISTICS: usize = 4;
/// Tree branches before a name: with a following sibling, or the last child.
const BRANCHES: [&str; 2] = ["├─ ", "╰─ "];
/// Limit on the length of an allocation heading, because it becomes part of the name of every figure below it.
const LONGEST_HEADING: usize = 32;
/// Throughput suffixes with the quantity they count and its unit.
const RATES: [(&str, &str, &str); 4] =
    [("B/s", "bytes/s", "By/s"), ("char/s", "chars/s", "1/s"), ("item/s", "items/s", "1/s"), ("Hz", "cycles/s", "1/s")];
const KI: f64 = 1024.0;
const PREFIXES: [(&str, f64); 11] = [
    ("", 1.0),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("Ki", KI),
    ("Mi", KI * KI),
    ("Gi", KI * KI * KI),
    ("Ti", KI * KI * KI * KI),
    ("Pi", KI * KI * KI * KI * KI),
];

/// Parser state of one table.
struct Table {
    program: String,
    /// Names from the program to the current benchmark.
    path: Vec<String>,
    /// The kind of allocation that the following rows count.
    counts: Option<String>,
}

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut report = Report {
        usual_field: Some("median"),
        if_none: "no table with the columns fastest, slowest, median and mean; run with --bench and a filter that \
                  matches",
        ..Report::new("divan", source, Whole::Document)
    };
    let mut table: Option<Table> = None;
    let mut last = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let (number, line) = (i + 1, line.trim_end());
        last = number;
        let cells = cells(line);
        let Some(reading) = &mut table else {
            table = cells.and_then(|cells| heading(&cells));
            continue;
        };
        if line.is_empty() {
            table = None;
            continue;
        }
        let Some(cells) = cells else {
            let problem = format!(
                "{} is not a row of the table: check that the output is complete and that no benchmark prints to standard output",
                quoted(line)
            );
            return Err(Fault::at_line(&source.name, number, problem));
        };
        row(reading, &cells, number, &mut report).map_err(|problem| Fault::at_line(&source.name, number, problem))?;
    }
    if table.is_some() {
        let problem = "the table does not end with an empty line; the output is truncated";
        return Err(Fault::at_line(&source.name, last, problem));
    }
    report.distinguish();
    Ok(report)
}

/// Splits a line into columns. The tree on the left contains bars too.
fn cells(line: &str) -> Option<[&str; COLUMNS.len()]> {
    let mut cells: Vec<&str> = line.rsplitn(COLUMNS.len(), '│').collect();
    cells.reverse();
    cells.try_into().ok()
}

/// Starts a table if the columns are a table's headings.
fn heading(cells: &[&str; COLUMNS.len()]) -> Option<Table> {
    let program = cells[0].trim_end().strip_suffix(COLUMNS[0])?;
    let named = cells[1..].iter().zip(&COLUMNS[1..]).all(|(cell, name)| cell.trim() == *name);
    named.then(|| Table { program: program.trim().to_owned(), path: Vec::new(), counts: None })
}

fn row(table: &mut Table, cells: &[&str; COLUMNS.len()], number: usize, report: &mut Report) -> Result<(), String> {
    let branch = BRANCHES.iter().filter_map(|branch| Some((cells[0].find(branch)?, branch.len()))).min();
    let Some((at, length)) = branch else {
        let Some(benchmark) = report.benchmarks.last_mut() else {
            return Err(format!("{} belongs to no benchmark", quoted(cells[0].trim())));
        };
        return below(table, cells, benchmark);
    };
    let rest = cells[0][at + length..].trim_end();
    // At least two spaces separate a name from a figure.
    let (name, first) = rest.rsplit_once("  ").unwrap_or((rest, ""));
    // A tree level is three characters wide.
    table.path.truncate(cells[0][..at].chars().count() / 3);
    table.path.push(name.trim().to_owned());
    table.counts = None;
    let path = || table.path.iter().map(String::as_str);
    let name = joined("::", path());
    one_more(report.benchmarks.len() + report.without.len())?;
    match first {
        "" => {}
        "(ignored)" => {
            let why = format!("it is ignored in line {number}: run with --include-ignored");
            report.without.insert(name, why);
        }
        first => {
            let alias = joined("::", std::iter::once(table.program.as_str()).chain(path()));
            let figures = std::iter::once(first).chain(cells[1..].iter().map(|cell| cell.trim()));
            let fields = COLUMNS.iter().zip(figures).take(STATISTICS).map(|(column, figure)| time(column, figure));
            report.benchmarks.push(Benchmark {
                name,
                aliases: vec![alias],
                place: format!("line {number}"),
                fields: fields.collect(),
                iterations: text::number(cells[COLUMNS.len() - 1].trim()).ok(),
            });
        }
    }
    Ok(())
}

/// Parses a row below a benchmark: a throughput, an allocation heading, a count or a size.
fn below(table: &mut Table, cells: &[&str; COLUMNS.len()], benchmark: &mut Benchmark) -> Result<(), String> {
    let first = cells[0].trim_matches([' ', '│']);
    let figures = || {
        let figures = std::iter::once(first).chain(cells[1..].iter().map(|cell| cell.trim()));
        COLUMNS.iter().zip(figures).take(STATISTICS)
    };
    if let Some(counts) = first.strip_suffix(':').filter(|counts| counts.len() <= LONGEST_HEADING) {
        table.counts = Some(counts.to_owned());
        return Ok(());
    }
    if let Some(counts) = &table.counts {
        for (column, figure) in figures() {
            let field = match figure.split_once(' ') {
                None => Field::of(&format!("{column} {counts}"), Some("1"), text::summary(figure, 1.0)),
                Some((size, unit)) => {
                    Field::of(&format!("{column} {counts} bytes"), Some("By"), scaled(size, unit, "B"))
                }
            };
            benchmark.fields.push(field);
        }
        return Ok(());
    }
    for (column, figure) in figures() {
        let (rate, written) = figure.split_once(' ').unwrap_or((figure, ""));
        let Some((suffix, of, unit)) = RATES.iter().find(|(suffix, ..)| written.ends_with(suffix)) else {
            return Err(format!("found {}, not a throughput or an allocation", quoted(figure)));
        };
        let field = Field::of(&format!("{column} {of}"), Some(unit), scaled(rate, written, suffix));
        benchmark.fields.push(field);
    }
    Ok(())
}

/// Parses a number and applies the prefix of its unit.
fn scaled(number: &str, written: &str, unit: &str) -> Result<Reading, String> {
    let prefix = written.strip_suffix(unit);
    match PREFIXES.iter().find(|(known, _)| prefix == Some(*known)) {
        Some((_, times)) => text::summary(number, *times),
        None => Err(format!("found the unit {}, which is not {unit} with a known prefix", quoted(written))),
    }
}

/// Parses a time such as `8.081 µs`. In divan's output `m` is a minute and `d` a day.
fn time(name: &str, figure: &str) -> Field {
    let (number, unit) = figure.split_once(' ').unwrap_or((figure, ""));
    let (unit, times) = match unit {
        "ps" | "ns" | "\u{b5}s" | "\u{3bc}s" | "ms" | "s" | "h" => (unit, 1.0),
        "m" => ("min", 1.0),
        "d" => ("h", 24.0),
        _ => return Field::of(name, None, Err(format!("found {}, not a time", quoted(figure)))),
    };
    Field::of(name, Some(unit), text::time(number, times))
}
