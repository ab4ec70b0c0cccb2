//! Criterion's folder (`target/criterion`), or its output with `--output-format bencher`.
//!
//! In the folder, `BENCHMARK/new/` has the last measurement. `benchmark.json` identifies the benchmark, `sample.json`
//! has the iterations and the time of every sample, and `estimates.json` the statistics. The text format has one median
//! per benchmark, in whole nanoseconds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;

/// Files of a measurement to read.
const FILES: [&str; 3] = ["benchmark.json", "estimates.json", "sample.json"];
/// Unit of measurements in the folder. Criterion does not write it: nanoseconds for its own clock, and anything for
/// another `Measurement` of the program.
const UNSAID: Option<&str> = None;

/// Splits `group/id/new/sample.json` into `group/id/new` and `sample.json`; None for files that are not read.
pub(crate) fn file(name: &str) -> Option<(&str, &str)> {
    let (folder, file) = name.rsplit_once('/')?;
    (FILES.contains(&file) && (folder.ends_with("/new") || folder == "new")).then_some((folder, file))
}

pub(crate) fn folder(sources: &[Source]) -> Result<Report, Fault> {
    let mut measurements: BTreeMap<&str, BTreeMap<&str, &Source>> = BTreeMap::new();
    for source in sources {
        if let Some((folder, file)) = file(&source.name) {
            measurements.entry(folder).or_default().insert(file, source);
        }
    }
    let benchmarks = measurements.iter().map(|(folder, files)| measurement(folder, files)).collect::<Result<_, _>>()?;
    Ok(Report {
        source: "Criterion's folder".into(),
        benchmarks,
        usual_field: Some("sample"),
        if_none: "no subfolder has new/benchmark.json; check that it is the folder in CRITERION_HOME",
        ..Report::new("criterion", &sources[0], Whole::Document)
    })
}

fn measurement(folder: &str, files: &BTreeMap<&str, &Source>) -> Result<Benchmark, Fault> {
    let document = |name: &str| -> Result<Value, Fault> {
        let Some(source) = files.get(name) else {
            return Err(Fault::whole(
                &format!("{folder}/{name}"),
                "is missing: Criterion did not finish this benchmark",
            ));
        };
        if source.bytes.trim_ascii().is_empty() {
            return Err(Fault::whole(&source.name, "is empty: Criterion did not finish this benchmark"));
        }
        json::parse(source, crate::report::ONE_REPORT)
    };
    let about = document("benchmark.json")?;
    let name = json::text(files["benchmark.json"], &about, "", "full_id")?.to_owned();
    let sample = document("sample.json")?;
    let estimates = document("estimates.json")?;

    let times = times(&sample);
    let mut fields = Vec::new();
    for (unit, amount) in throughputs(&about) {
        let rates = times.as_ref().map_err(Clone::clone).map(|(_, times)| {
            // A time of zero gives an infinite rate, which is reported when the rate is requested.
            Reading::Samples(times.iter().map(|time| amount / (time / 1e9)).collect())
        });
        let rates = rates.and_then(|reading| match &reading {
            Reading::Samples(rates) if rates.iter().all(|rate| rate.is_finite()) => Ok(reading),
            _ => Err("a sample took no time, so that it has no throughput".into()),
        });
        let name = if fields.is_empty() { "throughput".to_owned() } else { format!("throughput ({unit})") };
        fields.push(Field::of(&name, Some(unit), rates));
    }
    let iterations = times.as_ref().ok().map(|(iterations, _)| *iterations);
    fields.insert(0, Field::of("sample", UNSAID, times.map(|(_, times)| Reading::Samples(times))));
    for statistic in ["mean", "median", "slope", "std_dev", "median_abs_dev"] {
        let reading = match estimates.get(statistic) {
            None | Some(Value::Null) => continue,
            Some(estimate) => match estimate.get("point_estimate") {
                Some(value) => json::summary(value).map_err(|problem| format!("point_estimate: {problem}")),
                None => Err("point_estimate is missing".into()),
            },
        };
        fields.push(Field::of(statistic, UNSAID, reading));
    }
    Ok(Benchmark { name, place: folder.to_owned(), fields, iterations, ..Benchmark::default() })
}

/// Returns the total number of iterations and the time per iteration of every sample.
fn times(sample: &Value) -> Result<(f64, Vec<f64>), String> {
    let list = |field: &str| match sample.get(field).map(json::samples) {
        Some(Ok(Reading::Samples(samples))) => Ok(samples),
        Some(Err(problem)) => Err(format!("{field}{}{problem}", if problem.starts_with('[') { "" } else { ": " })),
        _ => Err(format!("sample.json has no {field}")),
    };
    let (iterations, times) = (list("iters")?, list("times")?);
    if iterations.len() != times.len() {
        return Err(format!("sample.json has {} iters and {} times", iterations.len(), times.len()));
    }
    if let Some(at) = iterations.iter().position(|&iterations| iterations <= 0.0) {
        return Err(format!("iters[{at}] is {}, so that one iteration has no time", iterations[at]));
    }
    let each: Vec<f64> = iterations.iter().zip(&times).map(|(iterations, time)| time / iterations).collect();
    if each.iter().any(|time| !time.is_finite()) {
        return Err("a time divided by its iterations is not a finite number".into());
    }
    Ok((iterations.iter().sum(), each))
}

/// The work per iteration, as declared by the benchmark.
fn throughputs(about: &Value) -> Vec<(&'static str, f64)> {
    let Some(Value::Object(declared)) = about.get("throughput") else { return Vec::new() };
    let mut out = Vec::new();
    for (kind, amount) in declared {
        match (kind.as_str(), amount) {
            ("Bytes" | "BytesDecimal", amount) => out.extend(amount.as_f64().map(|amount| ("By/s", amount))),
            ("Bits", amount) => out.extend(amount.as_f64().map(|amount| ("By/s", amount / 8.0))),
            ("Elements", amount) => out.extend(amount.as_f64().map(|amount| ("1/s", amount))),
            ("ElementsAndBytes", both) => {
                out.extend(both.get("elements").and_then(Value::as_f64).map(|amount| ("1/s", amount)));
                out.extend(both.get("bytes").and_then(Value::as_f64).map(|amount| ("By/s", amount)));
            }
            _ => {}
        }
    }
    out
}

pub(crate) fn text(source: &Source) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    // A line is a benchmark with all its figures.
    let whole = Whole::Lines { last: "the end of its last line", ended: text.ends_with('\n'), again: None };
    let mut report = Report {
        usual_field: Some("median"),
        if_none: "no line reads test NAME ... bench: N ns/iter; run with --bench --output-format bencher and a pattern \
                  that matches",
        ..Report::new("criterion", source, whole)
    };
    for (i, line) in text.lines().enumerate() {
        let number = i + 1;
        if line.contains("panicked at ") || line.starts_with("test result: FAILED") {
            let problem = format!(
                "the program reports {}, so that its figures are invalid; fix the failure",
                quoted(line.trim())
            );
            return Err(Fault::at_line(&source.name, number, problem));
        }
        let Some(rest) = line.strip_prefix("test ") else { continue };
        let Some((name, figures)) = rest.rsplit_once(" ... bench:") else {
            if let Some((name, _)) = rest.rsplit_once(" ... ") {
                report.without.insert(name.trim().into(), format!("line {number} has no figure after its name"));
            }
            continue;
        };
        report.benchmarks.push(Benchmark {
            name: name.trim().into(),
            place: format!("line {number}"),
            fields: printed(figures).map_err(|problem| Fault::at_line(&source.name, number, problem))?,
            ..Benchmark::default()
        });
    }
    Ok(report)
}

/// Parses `1,234 ns/iter (+/- 56)`, which libtest may extend with ` = 78 MB/s`.
fn printed(figures: &str) -> Result<Vec<Field>, String> {
    let wrong = || format!("{} is not of the form N ns/iter (+/- N)", quoted(figures.trim()));
    let number = |text: &str| match text.replace(',', "").parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("{} is not a finite number", quoted(text))),
    };
    let mut words = figures.split_whitespace();
    let (median, unit) = words.next().zip(words.next()).ok_or_else(wrong)?;
    if !unit.ends_with("/iter") || words.next() != Some("(+/-") {
        return Err(wrong());
    }
    let spread = words.next().and_then(|word| word.strip_suffix(')')).ok_or_else(wrong)?;
    let mut fields = vec![
        Field::of("median", Some(unit), number(median).map(Reading::Summary)),
        Field::of("+/-", Some(unit), number(spread).map(Reading::Summary)),
    ];
    if let (Some("="), Some(rate), Some(unit)) = (words.next(), words.next(), words.next()) {
        fields.push(Field::of("throughput", Some(unit), number(rate).map(Reading::Summary)));
    }
    Ok(fields)
}
