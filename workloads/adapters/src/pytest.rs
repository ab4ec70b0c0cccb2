//! pytest-benchmark's `--benchmark-json`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Report};
use crate::source::Source;
use crate::unit::Unit;

/// Statistics of the times, in seconds.
const TIMES: [&str; 10] = ["min", "max", "mean", "stddev", "median", "iqr", "q1", "q3", "ld15iqr", "hd15iqr"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source)?;
    let entries = json::list(source, &document, "benchmarks", "is it what pytest writes with --benchmark-json?")?;
    let mut benchmarks = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let place = format!("benchmarks[{i}]");
        let name = json::text(source, entry, &place, "name")?;
        let stats = entry.get("stats").unwrap_or(&Value::Null);
        if entry.get("has_error").and_then(Value::as_bool) == Some(true) {
            let problem = format!("{} failed; repair it, figures of a failure mean nothing", quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.has_error"), problem));
        }
        if !stats.is_object() {
            let problem = format!("found {}, and it should hold the figures of {}", json::found(stats), quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.stats"), problem));
        }
        let seconds = || Some(Unit::parse("s"));
        let mut fields = Vec::new();
        if let Some(data) = stats.get("data") {
            fields.push(Field::of("data", seconds(), json::samples(data)));
        }
        for statistic in TIMES {
            if let Some(value) = stats.get(statistic) {
                fields.push(Field::of(statistic, seconds(), json::summary(value)));
            }
        }
        if let Some(rate) = stats.get("ops") {
            fields.push(Field::of("ops", Some(Unit::parse("1/s")), json::summary(rate)));
        }
        if let Some(Value::Object(extra)) = entry.get("extra_info") {
            for (key, value) in extra.iter().filter(|(_, value)| value.is_number()) {
                fields.push(Field::of(&format!("extra_info.{key}"), None, json::summary(value)));
            }
        }
        let count = |field: &str| stats.get(field).and_then(Value::as_f64);
        benchmarks.push(Benchmark {
            name: name.into(),
            aliases: entry.get("fullname").and_then(Value::as_str).map(str::to_owned).into_iter().collect(),
            place,
            fields,
            iterations: count("rounds").zip(count("iterations")).map(|(rounds, each)| rounds * each),
        });
    }
    qualify(&mut benchmarks);
    Ok(Report {
        tool: "pytest-benchmark",
        version: document.get("version").and_then(Value::as_str).map(str::to_owned),
        build: build(&document),
        source: source.name.clone(),
        benchmarks,
        usual_field: Some("data"),
        if_none: "benchmarks is empty; did pytest find a test that uses the benchmark fixture?".into(),
        ..Report::default()
    })
}

/// Gives tests of the same name in several files their full names, by which alone they can be distinguished.
fn qualify(benchmarks: &mut [Benchmark]) {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for one in benchmarks.iter() {
        *count.entry(one.name.clone()).or_default() += 1;
    }
    for one in benchmarks.iter_mut().filter(|one| count[&one.name] > 1) {
        if let Some(full) = one.aliases.pop() {
            let short = std::mem::replace(&mut one.name, full);
            one.aliases.push(short);
        }
    }
}

fn build(document: &Value) -> BTreeMap<String, String> {
    let machine = document.get("machine_info").unwrap_or(&Value::Null);
    let text = |key: &str| machine.get(key).and_then(Value::as_str).map(|text| (key.to_owned(), text.to_owned()));
    ["python_implementation", "python_version", "python_compiler"].into_iter().filter_map(text).collect()
}
