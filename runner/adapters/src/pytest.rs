//! pytest-benchmark's `--benchmark-json`.

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Report, Whole};
use crate::source::Source;

/// Statistics in seconds.
const TIMES: [&str; 10] = ["min", "max", "mean", "stddev", "median", "iqr", "q1", "q3", "ld15iqr", "hd15iqr"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let entries = json::list(source, &document, "benchmarks", "write it with pytest --benchmark-json")?;
    let machine = document.get("machine_info").unwrap_or(&Value::Null);
    let mut report = Report {
        version: document.get("version").and_then(Value::as_str).map(str::to_owned),
        build: json::texts(machine, &["python_implementation", "python_version", "python_compiler"]),
        usual_field: Some("data"),
        if_none: "benchmarks is empty; pytest must find a test that uses the benchmark fixture",
        ..Report::new("pytest-benchmark", source, Whole::Document)
    };
    for (i, entry) in entries.iter().enumerate() {
        let place = format!("benchmarks[{i}]");
        let name = json::text(source, entry, &place, "name")?;
        let stats = entry.get("stats").unwrap_or(&Value::Null);
        if entry.get("has_error").and_then(Value::as_bool) == Some(true) {
            let problem = format!("{} failed, so that its figures are invalid; fix the test", quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.has_error"), problem));
        }
        if !stats.is_object() {
            let problem = format!("found {}, and it should hold the figures of {}", json::found(stats), quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.stats"), problem));
        }
        let mut fields = Vec::new();
        if let Some(data) = stats.get("data") {
            fields.push(Field::of("data", Some("s"), json::samples(data)));
        }
        for statistic in TIMES {
            if let Some(value) = stats.get(statistic) {
                fields.push(Field::of(statistic, Some("s"), json::summary(value)));
            }
        }
        if let Some(rate) = stats.get("ops") {
            fields.push(Field::of("ops", Some("1/s"), json::summary(rate)));
        }
        if let Some(Value::Object(extra)) = entry.get("extra_info") {
            for (key, value) in extra.iter().filter(|(_, value)| json::is_figure(value)) {
                fields.push(Field::of(&format!("extra_info.{key}"), None, json::summary(value)));
            }
        }
        let count = |field: &str| stats.get(field).and_then(Value::as_f64);
        report.benchmarks.push(Benchmark {
            name: name.into(),
            aliases: entry.get("fullname").and_then(Value::as_str).map(str::to_owned).into_iter().collect(),
            place,
            fields,
            iterations: count("rounds").zip(count("iterations")).map(|(rounds, each)| rounds * each),
        });
    }
    // Tests of the same name in several files get their full names.
    report.distinguish();
    Ok(report)
}
