//! BenchmarkDotNet's JSON, from any of its JSON exporters.
//!
//! `Statistics` covers the workload measurements in nanoseconds per operation; `OriginalValues` are these measurements,
//! one per iteration. `Statistics` is null for a failed benchmark.

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Report, Whole};
use crate::source::Source;

/// Statistics with a unit of time.
const TIMES: [&str; 8] = ["Mean", "Median", "Min", "Max", "Q1", "Q3", "StandardDeviation", "StandardError"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let entries = json::list(source, &document, "Benchmarks", "write it with a JSON exporter of BenchmarkDotNet")?;
    let host = document.get("HostEnvironmentInfo").unwrap_or(&Value::Null);
    let mut report = Report {
        version: host.get("BenchmarkDotNetVersion").and_then(Value::as_str).map(str::to_owned),
        build: json::texts(host, &["RuntimeVersion", "Architecture", "Configuration"]),
        usual_field: Some("OriginalValues"),
        if_none: "Benchmarks is empty; check --filter",
        ..Report::new("benchmarkdotnet", source, Whole::Document)
    };
    for (i, entry) in entries.iter().enumerate() {
        let place = format!("Benchmarks[{i}]");
        let name = json::text(source, entry, &place, "FullName")?;
        let Some(Value::Object(statistics)) = entry.get("Statistics") else {
            let found = entry.get("Statistics").map_or_else(|| "nothing".to_owned(), json::found);
            let problem = format!("found {found}: {} failed and has no figures; see its output", quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.Statistics"), problem));
        };
        let mut fields = Vec::new();
        // Old versions such as 0.9 omit the values.
        if let Some(values) = statistics.get("OriginalValues") {
            fields.push(Field::of("OriginalValues", Some("ns"), json::samples(values)));
        }
        for statistic in TIMES {
            if let Some(value) = statistics.get(statistic) {
                fields.push(Field::of(statistic, Some("ns"), json::summary(value)));
            }
        }
        if let Some(Value::Object(percentiles)) = statistics.get("Percentiles") {
            fields.extend(percentiles.iter().map(|(name, value)| Field::of(name, Some("ns"), json::summary(value))));
        }
        fields.extend(memory(entry));
        fields.extend(metrics(entry));
        // Only this text distinguishes the jobs of a benchmark.
        let shown = entry.get("DisplayInfo").and_then(Value::as_str).map(str::to_owned);
        let aliases = shown.into_iter().collect();
        report.benchmarks.push(Benchmark { name: name.into(), aliases, place, fields, ..Benchmark::default() });
    }
    report.distinguish();
    Ok(report)
}

/// Figures of the memory diagnoser. It writes null, not zero, if it could not count.
fn memory(entry: &Value) -> Vec<Field> {
    let Some(Value::Object(memory)) = entry.get("Memory") else { return Vec::new() };
    let figure = |(name, value): (&String, &Value)| {
        let unit = if name.starts_with("Bytes") { "By" } else { "1" };
        (!value.is_null()).then(|| Field::of(name, Some(unit), json::summary(value)))
    };
    memory.iter().filter_map(figure).collect()
}

/// Figures of other diagnosers, such as hardware counters, by column name.
fn metrics(entry: &Value) -> Vec<Field> {
    let Some(Value::Array(metrics)) = entry.get("Metrics") else { return Vec::new() };
    let figure = |metric: &Value| {
        let descriptor = metric.get("Descriptor")?;
        let name = descriptor.get("Id").and_then(Value::as_str)?;
        let unit = descriptor.get("Unit").and_then(Value::as_str).filter(|unit| !unit.is_empty());
        Some(Field::of(name, unit, json::summary(metric.get("Value")?)))
    };
    metrics.iter().filter_map(figure).collect()
}
