//! JMH's JSON, from `-rf json`.
//!
//! A benchmark is identified by name, mode and parameters, so that one name can occur several times. The primary metric
//! and every secondary one, such as a profiler's, has its unit and its raw data: a list per fork with a figure per
//! iteration. In sample mode the raw data is a histogram per iteration, a list of pairs of a value and its count.

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Reading, Report, Whole, joined};
use crate::select::MOST_SAMPLES;
use crate::source::Source;

/// Width of the bins of sample mode, relative to the value: they keep ten bits of it (JMH, SampleBuffer, PRECISION_BITS).
const BIN: f64 = 1.0 / 512.0;

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let Value::Array(entries) = &document else {
        let problem = format!("found {}, not a list of benchmarks; write it with -rf json", json::found(&document));
        return Err(Fault::whole(&source.name, problem));
    };
    let mut report = Report {
        usual_field: Some("score"),
        if_none: "the list is empty; check for exceptions in JMH's output (or run with -foe true) and \
                  check the pattern",
        ..Report::new("jmh", source, Whole::Document)
    };
    for (i, entry) in entries.iter().enumerate() {
        let place = format!("[{i}]");
        let name = json::text(source, entry, &place, "benchmark")?;
        let mode = json::text(source, entry, &place, "mode")?;
        if let Some(version) = entry.get("jmhVersion").and_then(Value::as_str) {
            report.version = Some(version.to_owned());
        }
        report.build.extend(json::texts(entry, &["jdkVersion", "vmName", "vmVersion"]));
        let Some(primary) = entry.get("primaryMetric").filter(|metric| metric.is_object()) else {
            let problem = format!("{} has no primaryMetric with figures", quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.primaryMetric"), problem));
        };
        let parameters = parameters(entry);
        let full = if parameters.is_empty() { name.to_owned() } else { format!("{name}:{parameters}") };
        // A name with two modes is two benchmarks, distinguished by the first alias.
        let aliases = vec![format!("{full}:{mode}"), name.to_owned(), format!("{name}:{mode}")];
        let mut fields = metric("score", primary);
        if let Some(Value::Object(secondary)) = entry.get("secondaryMetrics") {
            fields.extend(secondary.iter().flat_map(|(name, figures)| metric(name, figures)));
        }
        report.benchmarks.push(Benchmark { name: full, aliases, place, fields, ..Benchmark::default() });
    }
    report.distinguish();
    Ok(report)
}

/// Returns `numbers=1000,way=plus`, sorted by name.
fn parameters(entry: &Value) -> String {
    let Some(Value::Object(parameters)) = entry.get("params") else { return String::new() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    parameters.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(",")
}

/// Returns the samples of a metric and JMH's statistics of them.
fn metric(name: &str, figures: &Value) -> Vec<Field> {
    let (unit, times) = figures.get("scoreUnit").and_then(Value::as_str).map(unit).unzip();
    let times = times.unwrap_or(1.0);
    let raw = match (figures.get("rawData"), figures.get("rawDataHistogram")) {
        (Some(raw), _) => forks(raw, times).map_err(|problem| format!("rawData{problem}")),
        (None, Some(raw)) => histograms(raw, times).map_err(|problem| format!("rawDataHistogram{problem}")),
        (None, None) => Err("has no rawData; write it with -rf json".into()),
    };
    // In sample mode JMH counts values in bins.
    let binned = |field: Field| match figures.get("rawData") {
        Some(_) => field,
        None => field.binned(BIN),
    };
    let mut fields = vec![binned(Field::of(name, unit, raw))];
    let computed = |name: String, value: &Value| {
        let reading = json::number(value).map(|number| Reading::Summary(number * times));
        Field::of(&name, unit, reading)
    };
    if let Some(score) = figures.get("score") {
        fields.push(computed(joined("", [name, ".mean"]), score));
    }
    if let Some(Value::Object(percentiles)) = figures.get("scorePercentiles") {
        let name = |p: &str| joined("", [name, ".p(", p, ")"]);
        let percentile = |(p, value): (&String, &Value)| binned(computed(name(p), value));
        fields.extend(percentiles.iter().map(percentile));
    }
    fields
}

/// Returns the unit of a score and its factor. JMH has its own names of times (`day`, `hr`), also in rates. A megabyte
/// per second of its profilers is 1024 times 1024 bytes (JMH, GCProfiler).
fn unit(text: &str) -> (&str, f64) {
    const DAY: f64 = 24.0;
    if let Some(per) = text.strip_prefix("ops/") {
        let rate = match per {
            "ns" => Some(1e9),
            "us" => Some(1e6),
            "ms" => Some(1e3),
            "s" => Some(1.0),
            "min" => Some(1.0 / 60.0),
            "hr" => Some(1.0 / 3600.0),
            "day" => Some(1.0 / (DAY * 3600.0)),
            _ => None,
        };
        if let Some(times) = rate {
            return ("1/s", times);
        }
    }
    match text {
        "hr/op" => ("h", 1.0),
        "day/op" => ("h", DAY),
        "MB/sec" => ("MiB/s", 1.0),
        _ => (text, 1.0),
    }
}

/// All figures of all forks, in order, multiplied by `scale`.
fn forks(raw: &Value, scale: f64) -> Result<Reading, String> {
    let mut samples = Vec::new();
    for (fork, figures) in list(raw, "")?.iter().enumerate() {
        for (i, figure) in list(figures, &format!("[{fork}]"))?.iter().enumerate() {
            samples.push(scale * json::number(figure).map_err(|problem| format!("[{fork}][{i}]: {problem}"))?);
        }
    }
    Ok(Reading::Samples(samples))
}

/// All values of all histograms with their counts, multiplied by `scale`. They are expanded only for requested metrics.
fn histograms(raw: &Value, scale: f64) -> Result<Reading, String> {
    let (mut samples, mut count) = (Vec::new(), 0);
    for (fork, iterations) in list(raw, "")?.iter().enumerate() {
        for (i, pairs) in list(iterations, &format!("[{fork}]"))?.iter().enumerate() {
            let place = format!("[{fork}][{i}]");
            for (j, pair) in list(pairs, &place)?.iter().enumerate() {
                let place = format!("{place}[{j}]");
                let [value, times] = list(pair, &place)? else {
                    return Err(format!("{place}: found {}, not a pair of value and count", json::found(pair)));
                };
                let value = json::number(value).map_err(|problem| format!("{place}[0]: {problem}"))?;
                let times = times.as_u64().and_then(|times| usize::try_from(times).ok());
                let times = times.ok_or_else(|| format!("{place}[1]: not a non-negative integer"))?;
                if times > MOST_SAMPLES || count + times > MOST_SAMPLES {
                    return Err(format!(
                        ": more than {MOST_SAMPLES} samples, and a trial keeps no more: let it run for a shorter time, or \
                         take score.mean or a percentile such as score.p(99.0) in from.field"
                    ));
                }
                count += times;
                samples.push((scale * value, times));
            }
        }
    }
    Ok(Reading::Counted(samples))
}

fn list<'a>(value: &'a Value, place: &str) -> Result<&'a [Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{place}: found {}, not a list", json::found(value)))
}
