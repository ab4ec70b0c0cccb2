//! The JSON of AIPerf (`profile_export_aiperf.json`) and of its predecessor GenAI-Perf (`profile_export_genai_perf.json`).
//!
//! Every metric is an object with its unit and its statistics, which are of one trial (AIPerf, docs/reference/
//! json-export-schema.md; GenAI-Perf, export_data/json_exporter.py).

use serde_json::Value;

use crate::fault::Fault;
use crate::json;
use crate::report::{Benchmark, Field, Report, Whole};
use crate::source::Source;

/// Objects that describe the run or the machine, or requests that do not count.
const NOT_METRICS: [&str; 5] = ["input_config", "run_info", "telemetry_data", "telemetry_stats", "warmup_metrics"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let asks = "name profile_export_aiperf.json or profile_export_genai_perf.json in output.path";
    let Value::Object(entries) = &document else {
        return Err(Fault::whole(&source.name, format!("found {}, not an object: {asks}", json::found(&document))));
    };
    if document.get("was_cancelled").is_some_and(|value| value.as_bool() != Some(false)) {
        let problem = "the run was cancelled, so that its figures are invalid";
        return Err(Fault::at_field(&source.name, "was_cancelled", problem));
    }
    let mut report = Report {
        version: document.get("aiperf_version").and_then(Value::as_str).map(str::to_owned),
        usual_field: Some("avg"),
        if_none: "no metric with a unit; name profile_export_aiperf.json or profile_export_genai_perf.json in output.path",
        ..Report::new("aiperf", source, Whole::Document)
    };
    for (name, metric) in entries.iter().filter(|(name, _)| !NOT_METRICS.contains(&name.as_str())) {
        let Value::Object(figures) = metric else { continue };
        let unit = metric.get("unit").and_then(Value::as_str);
        let count = metric.get("count").and_then(Value::as_f64);
        let field = |(statistic, value): (&String, &Value)| {
            let unit = if statistic == "count" { Some("1") } else { unit };
            let reading = match count {
                Some(0.0) if statistic != "count" => Err("of 0 records, so that it has no value".to_owned()),
                _ => json::summary(value),
            };
            json::is_figure(value).then(|| Field::of(statistic, unit, reading))
        };
        let fields: Vec<Field> = figures.iter().filter_map(field).collect();
        if fields.is_empty() {
            continue;
        }
        report.benchmarks.push(Benchmark {
            name: name.clone(),
            place: name.clone(),
            fields,
            iterations: count,
            ..Benchmark::default()
        });
    }
    if !entries.contains_key("input_config") && report.benchmarks.is_empty() {
        return Err(Fault::whole(&source.name, format!("has no metric with a unit: {asks}")));
    }
    Ok(report)
}
