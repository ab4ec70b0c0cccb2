//! The table that divan prints.
//!
//! divan writes for people only: a tree of names, and beside it the fastest, slowest, median and mean time of an iteration, with
//! four significant digits. Below a benchmark come its throughputs, and what its allocations counted and measured. Every table ends
//! with an empty line.

use crate::fault::{Fault, quoted};
use crate::report::{Benchmark, Field, Reading, Report, joined, one_more};
use crate::source::Source;
use crate::text;

const COLUMNS: [&str; 6] = ["fastest", "slowest", "median", "mean", "samples", "iters"];
/// Columns that are statistics of a figure.
const STATISTICS: usize = 4;
/// Where a name begins, the last of its parent or not.
const BRANCHES: [&str; 2] = ["├─ ", "╰─ "];
/// No heading of allocations is longer: it is a part of the name of every figure below it.
const LONGEST_HEADING: usize = 32;
/// A throughput as it is written, what it counts and its unit.
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

/// One table, as far as it is read.
struct Table {
    program: String,
    /// Names from the program to where the reading is.
    path: Vec<String>,
    /// What the rows below count: allocations of a kind.
    counts: Option<String>,
}

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut report = Report {
        tool: "divan",
        source: source.name.clone(),
        usual_field: Some("median"),
        if_none: "no table with the columns fastest, slowest, median and mean; run with --bench and a filter that \
                  matches",
        ..Report::default()
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
            let problem =
                format!("{} is not a row of the table: was the output cut, or does a benchmark print?", quoted(line));
            return Err(Fault::at_line(&source.name, number, problem));
        };
        row(reading, &cells, number, &mut report).map_err(|problem| Fault::at_line(&source.name, number, problem))?;
    }
    if table.is_some() {
        let problem = "the table has no end, which is an empty line: was the output cut?";
        return Err(Fault::at_line(&source.name, last, problem));
    }
    report.distinguish();
    Ok(report)
}

/// The columns of a line. The tree on their left has bars of its own.
fn cells(line: &str) -> Option<[&str; COLUMNS.len()]> {
    let mut cells: Vec<&str> = line.rsplitn(COLUMNS.len(), '│').collect();
    cells.reverse();
    cells.try_into().ok()
}

/// Begins a table, if the columns are a table's headings.
fn heading(cells: &[&str; COLUMNS.len()]) -> Option<Table> {
    let program = cells[0].trim_end().strip_suffix(COLUMNS[0])?;
    let named = cells[1..].iter().zip(&COLUMNS[1..]).all(|(cell, name)| cell.trim() == *name);
    named.then(|| Table { program: program.trim().to_owned(), path: Vec::new(), counts: None })
}

fn row(table: &mut Table, cells: &[&str; COLUMNS.len()], number: usize, report: &mut Report) -> Result<(), String> {
    let branch = BRANCHES.iter().filter_map(|branch| Some((cells[0].find(branch)?, branch.len()))).min();
    let Some((at, length)) = branch else {
        let Some(benchmark) = report.benchmarks.last_mut() else {
            return Err(format!("{} is of no benchmark", quoted(cells[0].trim())));
        };
        return below(table, cells, benchmark);
    };
    let rest = cells[0][at + length..].trim_end();
    // Two blanks at least are between a name and a figure.
    let (name, first) = rest.rsplit_once("  ").unwrap_or((rest, ""));
    // A level of the tree is three characters wide.
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
                iterations: Some(text::number(cells[COLUMNS.len() - 1].trim())?),
            });
        }
    }
    Ok(())
}

/// A row below a benchmark: a throughput, a heading of allocations, their count or their size.
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

/// The number with the prefix of its unit applied.
fn scaled(number: &str, written: &str, unit: &str) -> Result<Reading, String> {
    let prefix = written.strip_suffix(unit);
    match PREFIXES.iter().find(|(known, _)| prefix == Some(*known)) {
        Some((_, times)) => text::summary(number, *times),
        None => Err(format!("found the unit {}, which is not {unit} with a known prefix", quoted(written))),
    }
}

/// A time such as `8.081 µs`. divan's `m` is a minute, and `d` a day.
fn time(name: &str, figure: &str) -> Field {
    let (number, unit) = figure.split_once(' ').unwrap_or((figure, ""));
    let (unit, times) = match unit {
        "ps" | "ns" | "\u{b5}s" | "\u{3bc}s" | "ms" | "s" | "h" => (unit, 1.0),
        "m" => ("min", 1.0),
        "d" => ("h", 24.0),
        _ => return Field::of(name, None, Err(format!("found {}, not a time", quoted(figure)))),
    };
    Field::of(name, Some(unit), text::summary(number, times))
}
