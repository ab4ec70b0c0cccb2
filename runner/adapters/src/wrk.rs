//! wrk's final report, preferably with `--latency`.
//!
//! wrk does not export samples; its figures are statistics with two decimals. A prefix is decimal in a count and binary
//! in a size, and `m` is a minute (wrk, src/units.c). Script output after the last line of the report is ignored.

use crate::fault::{Fault, quoted};
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;
use crate::text;

/// Columns of the thread table.
const COLUMNS: [&str; 4] = ["Avg", "Stdev", "Max", "+/- Stdev"];
/// Suffixes of numbers, each with its unit and factor.
const SUFFIXES: [(&str, &str, f64); 18] = [
    ("", "1", 1.0),
    ("k", "1", 1e3),
    ("M", "1", 1e6),
    ("G", "1", 1e9),
    ("T", "1", 1e12),
    ("P", "1", 1e15),
    ("%", "%", 1.0),
    ("us", "us", 1.0),
    ("ms", "ms", 1.0),
    ("s", "s", 1.0),
    ("m", "min", 1.0),
    ("h", "h", 1.0),
    ("B", "By", 1.0),
    ("KB", "KiB", 1.0),
    ("MB", "MiB", 1.0),
    ("GB", "GiB", 1.0),
    ("TB", "GiB", 1024.0),
    ("PB", "GiB", 1024.0 * 1024.0),
];
/// Suffixes of times.
const TIMES: [&str; 5] = ["us", "ms", "s", "m", "h"];
/// Error lines, which wrk omits when the count is zero.
const ERRORS: [&str; 5] = [
    "Socket errors connect",
    "Socket errors read",
    "Socket errors write",
    "Socket errors timeout",
    "Non-2xx or 3xx responses",
];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut target: Option<(usize, String)> = None;
    let mut fields: Vec<Field> = Vec::new();
    let (mut complete, mut again) = (false, None);
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let (number, whole, line) = (i + 1, line.ends_with('\n'), line.trim());
        if line.starts_with("unable to ") {
            let problem = format!("wrk reports {}; check that the server is running", quoted(line));
            return Err(Fault::at_line(&source.name, number, problem));
        }
        let begins = line.strip_prefix("Running ").and_then(|line| line.split_once(" test @ "));
        match (begins, &target) {
            (Some((_, url)), None) => target = Some((number, url.to_owned())),
            (Some(_), Some(_)) => again = again.or(Some(number)),
            // A script may print anything below the report.
            (None, Some(_)) if !complete => {
                fields.extend(figures(line));
                complete = whole && line.starts_with("Transfer/sec:");
            }
            (None, _) => {}
        }
    }
    let Some((line, url)) = target else {
        let problem = "no line reads Running TIME test @ URL; print wrk's report";
        return Err(Fault::whole(&source.name, problem));
    };
    let whole = Whole::Lines { last: "a whole line with Transfer/sec", ended: complete, again };
    if !complete {
        return Ok(Report::new("wrk", source, whole));
    }
    for name in ERRORS {
        if !fields.iter().any(|field| field.name == name) {
            fields.push(Field::of(name, Some("1"), Ok(Reading::Summary(0.0))));
        }
    }
    let requests = refused(source, &fields)?;
    Ok(Report {
        benchmarks: vec![Benchmark {
            // The port of a server that the trial starts is not known before.
            aliases: url
                .split_once("://")
                .and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].into()))
                .into_iter()
                .collect(),
            name: url,
            place: format!("line {line}"),
            fields,
            iterations: Some(requests),
        }],
        usual_field: Some("Requests/sec"),
        ..Report::new("wrk", source, whole)
    })
}

/// Returns the number of requests; an error if all of them failed, because wrk exits with 0 in that case.
fn refused(source: &Source, fields: &[Field]) -> Result<f64, Fault> {
    let figure = |name: &str| {
        let field = fields.iter().find(|field| field.name == name);
        match field.map(|field| &field.reading) {
            Some(Ok(Reading::Summary(value))) => Ok(*value),
            Some(Err(problem)) => Err(Fault::at_field(&source.name, name, problem.clone())),
            _ => Err(Fault::at_field(&source.name, name, "missing; print wrk's report")),
        }
    };
    let requests = figure("requests")?;
    if requests == 0.0 {
        let problem = "0: no request was answered; check that the server is running";
        return Err(Fault::at_field(&source.name, "requests", problem));
    }
    let name = "Non-2xx or 3xx responses";
    if figure(name)? >= requests {
        let problem = "every response was an error, so that the figures are invalid; check the URL";
        return Err(Fault::at_field(&source.name, name, problem));
    }
    Ok(requests)
}

/// Parses the figures of a line; none for lines without figures.
fn figures(line: &str) -> Vec<Field> {
    let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
    match words.as_slice() {
        [of @ ("Latency" | "Req/Sec"), figures @ ..] if figures.len() == COLUMNS.len() => {
            let per = if *of == "Req/Sec" { "/s" } else { "" };
            // wrk divides by the number of samples for this column only.
            let none = figures[COLUMNS.len() - 1].contains("nan");
            let column = |(column, word): (&&str, &&str)| {
                let field = field(&format!("{of} {column}"), word, per);
                let why =
                    || format!("wrk took no sample of {of}, so that {} has no value; let it run longer", quoted(word));
                if none { Field { reading: Err(why()), ..field } } else { field }
            };
            COLUMNS.iter().zip(figures).map(column).collect()
        }
        [share, latency] if share.ends_with('%') => vec![field(&format!("Latency {share}"), latency, "")],
        [requests, "requests", "in", runtime, size, "read"] => {
            vec![field("requests", requests, ""), field("runtime", runtime, ""), field("read", size, "")]
        }
        ["Socket", "errors:", errors @ ..] => {
            let pair = |pair: &[&str]| field(&format!("Socket errors {}", pair[0]), pair[1], "");
            errors.chunks_exact(2).map(pair).collect()
        }
        ["Non-2xx", "or", "3xx", "responses:", count] => vec![field("Non-2xx or 3xx responses", count, "")],
        [name @ ("Requests/sec:" | "Transfer/sec:"), rate] => vec![field(name.trim_end_matches(':'), rate, "/s")],
        _ => Vec::new(),
    }
}

/// Parses a figure with wrk's unit: `1.58ms`, `40.68k`, `19.63KB`, `94.08%`.
fn field(name: &str, word: &str, per: &str) -> Field {
    let digits = word.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(word.len());
    // Non-numbers such as -nan% are a single word.
    let (number, suffix) = if word.contains("nan") { (word, "") } else { word.split_at(digits) };
    match SUFFIXES.iter().find(|(written, ..)| *written == suffix) {
        Some((written, unit, times)) => {
            // A share of samples is dimensionless, also in a row of rates.
            let unit = if *written == "%" { (*unit).to_owned() } else { format!("{unit}{per}") };
            let reading =
                if TIMES.contains(written) { text::time(number, *times) } else { text::summary(number, *times) };
            Field::of(name, Some(&unit), reading)
        }
        None => {
            let problem = format!("found {}, whose unit {} is not one of wrk's", quoted(word), quoted(suffix));
            Field::of(name, None, Err(problem))
        }
    }
}
