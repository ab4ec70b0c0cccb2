//! sysbench's final report.
//!
//! A report has sections of lines `NAME: FIGURE` that depend on the test; all reports end with thread fairness. Figures
//! are sysbench's statistics, with latencies to two decimals of a millisecond. Interval reports are ignored.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::fault::{Fault, quoted};
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;
use crate::text;

/// Section heading with the unit of the latencies.
const LATENCY: &str = "Latency (ms)";
/// Width of the bins from which sysbench takes its percentile, relative to the value: 1024 for 1 µs to 100 s, of equal
/// ratio (sysbench, src/sb_logger.c, OPER_LOG_GRANULARITY).
const BIN: f64 = 0.0182;
/// Number of events; an event depends on the test.
const EVENTS: &str = "total number of events";

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut version = None;
    let mut started = None;
    let mut section = "";
    let mut fields: Vec<Field> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    let (mut complete, mut again) = (false, None);
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let (number, whole, line) = (i + 1, line.ends_with('\n'), line.trim());
        if line.starts_with("FATAL:") || line.starts_with("ALERT:") {
            let problem =
                format!("sysbench reports {}, so that the figures are invalid; fix the failure", quoted(line));
            return Err(Fault::at_line(&source.name, number, problem));
        }
        if line.contains("Checkpoint report") {
            let problem =
                "a checkpoint, so that the last report covers only a part of the run; remove --report-checkpoints";
            return Err(Fault::at_line(&source.name, number, problem));
        }
        if started.is_none() {
            if let Some(said) = line.strip_prefix("sysbench ") {
                version = said.split_whitespace().next().map(str::to_owned);
            }
            started = (line == "Threads started!").then_some(number);
            continue;
        }
        if line == "Threads started!" {
            again = again.or(Some(number));
        }
        // An interval report, which begins with the time in brackets.
        if line.starts_with('[') {
            continue;
        }
        if let Some(heading) = line.strip_suffix(':') {
            section = heading;
            continue;
        }
        for mut field in figures(section, line) {
            field.reading = field.reading.map_err(|problem| format!("line {number}: {problem}"));
            match at.entry(field.name.clone()) {
                Entry::Occupied(known) => {
                    fields[*known.get()].reading = Err(format!("duplicate, again in line {number}"));
                }
                Entry::Vacant(new) => {
                    new.insert(fields.len());
                    fields.push(field);
                }
            }
        }
        complete |= whole && section == "Threads fairness" && line.starts_with("execution time");
    }
    let Some(started) = started else {
        let problem = "no line reads Threads started!; print the report of sysbench TEST run";
        return Err(Fault::whole(&source.name, problem));
    };
    let last = "a whole line with the execution time below Threads fairness";
    let whole = Whole::Lines { last, ended: complete, again };
    if !complete || again.is_some() {
        return Ok(Report::new("sysbench", source, whole));
    }
    let events = fields.iter().find(|field| field.name == EVENTS).map(|field| &field.reading);
    let iterations = match events {
        Some(Ok(Reading::Summary(0.0))) => {
            let problem = "0 events, so that there is nothing to measure; increase --time";
            return Err(Fault::at_field(&source.name, EVENTS, problem));
        }
        Some(Ok(Reading::Summary(events))) => Some(*events),
        _ => None,
    };
    Ok(Report {
        version,
        benchmarks: vec![Benchmark {
            // The report does not name the test.
            name: "sysbench".into(),
            place: format!("line {started}"),
            fields,
            iterations,
            ..Benchmark::default()
        }],
        ..Report::new("sysbench", source, whole)
    })
}

/// Parses the figures of a line, under sysbench's names.
fn figures(section: &str, line: &str) -> Vec<Field> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let [amount, unit, "transferred", rate, _] = words.as_slice() {
        return vec![
            field("transferred", unit, amount),
            field("transferred per second", &format!("{unit}/s"), rate.trim_start_matches('(')),
        ];
    }
    let Some((name, figure)) = line.split_once(':') else { return Vec::new() };
    let (name, figure) = (name.trim(), figure.trim());
    if let Some((of, (mean, deviation))) = name.strip_suffix(" (avg/stddev)").zip(figure.split_once('/')) {
        let unit = if of == "execution time" { "s" } else { "1" };
        return vec![field(&format!("{of} avg"), unit, mean), field(&format!("{of} stddev"), unit, deviation)];
    }
    // A count followed by its rate in brackets.
    if let Some((count, rate)) = figure.split_once('(') {
        let rate = rate.split_whitespace().next().unwrap_or_default();
        return vec![field(name, "1", count.trim()), field(&format!("{name} per second"), "1/s", rate)];
    }
    if section == LATENCY {
        let field = Field::of(name, Some("ms"), text::time(figure, 1.0));
        return vec![if name.ends_with(" percentile") { field.binned(BIN) } else { field }];
    }
    if let Some(seconds) = figure.strip_suffix('s') {
        return vec![field(name, "s", seconds)];
    }
    let rate = ["/s", "per second", "(eps)"].iter().any(|ending| name.ends_with(ending));
    let unit = match name.rsplit_once(", ") {
        Some((_, unit)) if rate => unit,
        _ if rate => "1/s",
        _ => "1",
    };
    vec![field(name, unit, figure)]
}

fn field(name: &str, unit: &str, figure: &str) -> Field {
    Field::of(name, Some(unit), text::summary(figure, 1.0))
}
