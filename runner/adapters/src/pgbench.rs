//! pgbench's report on standard output.
//!
//! Lines `NAME = FIGURE UNIT` and `NAME: FIGURE` for the run, and with several scripts again for each of them. pgbench does
//! not print samples. A run of which clients were aborted ends with exit code 2 since version 14.

use crate::fault::Fault;
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;
use crate::text;

const PROCESSED: &str = "number of transactions actually processed";
/// Counts of transactions that were not processed, by the end of their names.
const LEFT_OUT: [&str; 2] = ["number of failed transactions", "number of transactions skipped"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut benchmarks: Vec<Benchmark> = Vec::new();
    let (mut version, mut ended, mut again) = (None, false, None);
    // Of how many transactions, if that many were asked for.
    let mut of: Option<f64> = None;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let (number, whole, line) = (i + 1, line.ends_with('\n'), line.trim());
        if let Some(said) = line.strip_prefix("pgbench (") {
            version = said.split([' ', ')']).next().map(str::to_owned);
        }
        if line.starts_with("transaction type:") {
            if benchmarks.is_empty() {
                benchmarks.push(benchmark("pgbench".into(), number));
            } else {
                again = again.or(Some(number));
            }
        }
        if let Some((_, name)) = line.split_once(": ").filter(|(script, _)| script.starts_with("SQL script ")) {
            benchmarks.push(benchmark(name.to_owned(), number));
            continue;
        }
        // The latencies of statements are below.
        if line.starts_with("statement latencies") {
            break;
        }
        let (one, Some(benchmark)) = (benchmarks.len() == 1, benchmarks.last_mut()) else { continue };
        if let Some((_, total)) = line.strip_prefix(PROCESSED).and_then(|rest| rest.split_once('/')).filter(|_| one) {
            of = text::number(total.trim()).ok();
        }
        benchmark.fields.extend(figures(line.trim_start_matches("- ")));
        ended |= one && whole && line.starts_with("tps = ");
    }
    let Some(run) = benchmarks.first_mut() else {
        let problem = "no line reads transaction type; print the report of pgbench";
        return Err(Fault::whole(&source.name, problem));
    };
    let count = |name: &str| match run.fields.iter().find(|field| field.name == name).map(|field| &field.reading) {
        Some(Ok(Reading::Summary(count))) => *count,
        _ => 0.0,
    };
    let processed = count(PROCESSED);
    if processed == 0.0 {
        let problem = "0 transactions, so that there is nothing to measure; see pgbench's standard error";
        return Err(Fault::at_field(&source.name, PROCESSED, problem));
    }
    let left_out: f64 = LEFT_OUT.iter().map(|name| count(name)).sum();
    if let Some(of) = of.filter(|of| processed + left_out < *of) {
        let problem = format!(
            "{processed} of {of}: clients were aborted, so that the figures are invalid; see pgbench's standard error"
        );
        return Err(Fault::at_field(&source.name, PROCESSED, problem));
    }
    run.iterations = Some(processed);
    let whole = Whole::Lines { last: "a whole line with tps", ended: ended && text.ends_with('\n'), again };
    Ok(Report {
        version,
        benchmarks,
        usual_benchmark: Some("pgbench".into()),
        usual_field: Some("tps"),
        if_twice: "give every script a unique file name",
        ..Report::new("pgbench", source, whole)
    })
}

fn benchmark(name: String, line: usize) -> Benchmark {
    Benchmark { name, place: format!("line {line}"), ..Benchmark::default() }
}

/// Parses the figures of a line, under pgbench's names.
fn figures(line: &str) -> Vec<Field> {
    // "7 transactions (46.7% of total, tps = 41.298910)"
    if let Some((_, rate)) = line.split_once(" of total, tps = ") {
        return vec![Field::of("tps", Some("1/s"), text::summary(rate.trim_end_matches(')'), 1.0))];
    }
    if let Some((name, rest)) = line.split_once(" = ") {
        let (figure, unit) = rest.split_once(' ').unwrap_or((rest, ""));
        if name == "tps" {
            // Before version 14 there are two, which differ in the time of the connections.
            let name = if unit.starts_with("(including") { "tps including connections" } else { name };
            return vec![Field::of(name, Some("1/s"), text::summary(figure, 1.0))];
        }
        return vec![match unit.split_whitespace().next() {
            Some(unit @ ("ms" | "s" | "us")) => Field::of(name, Some(unit), text::time(figure, 1.0)),
            _ => Field::of(name, None, text::summary(figure, 1.0)),
        }];
    }
    // "rate limit schedule lag: avg 1.221 (max 3.851) ms"
    if let Some(rest) = line.strip_prefix("rate limit schedule lag: avg ") {
        let words: Vec<&str> = rest.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
        let [mean, "max", most, unit] = words.as_slice() else { return Vec::new() };
        let field = |name: &str, figure: &str| {
            Field::of(&format!("rate limit schedule lag {name}"), Some(unit), text::time(figure, 1.0))
        };
        return vec![field("avg", mean), field("max", most)];
    }
    let Some((name, rest)) = line.split_once(": ") else { return Vec::new() };
    let figure = rest.split([' ', '/']).next().unwrap_or_default();
    let counts = name.starts_with("number of transactions") || LEFT_OUT.contains(&name);
    if counts && name != "number of transactions per client" {
        return vec![Field::of(name, Some("1"), text::summary(figure, 1.0))];
    }
    Vec::new()
}
