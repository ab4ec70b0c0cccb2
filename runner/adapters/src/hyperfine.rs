//! hyperfine's `--export-json`.

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Report};
use crate::source::Source;

/// Statistics that hyperfine computes, in seconds.
const STATISTICS: [&str; 7] = ["mean", "stddev", "median", "user", "system", "min", "max"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source)?;
    let results = json::list(source, &document, "results", "is it what hyperfine writes with --export-json?")?;
    let mut benchmarks = Vec::new();
    for (i, result) in results.iter().enumerate() {
        let place = format!("results[{i}]");
        let name = json::text(source, result, &place, "command")?;
        if let Some((at, code)) = failed_run(result) {
            let problem = format!(
                "{} ended with {code} in this run: a command that fails measures nothing, with --ignore-failure too",
                quoted(name)
            );
            return Err(Fault::at_field(&source.name, format!("{place}.exit_codes[{at}]"), problem));
        }
        let mut fields = Vec::new();
        if let Some(times) = result.get("times") {
            fields.push(Field::of("times", Some("s"), json::samples(times)));
        }
        for statistic in STATISTICS {
            // Of a single run there is no deviation.
            if let Some(value) = result.get(statistic).filter(|value| !value.is_null()) {
                fields.push(Field::of(statistic, Some("s"), json::summary(value)));
            }
        }
        if let Some(memory) = result.get("memory_usage_byte") {
            fields.push(Field::of("memory_usage_byte", Some("By"), json::samples(memory)));
        }
        benchmarks.push(Benchmark { name: name.into(), place, fields, ..Benchmark::default() });
    }
    Ok(Report {
        tool: "hyperfine",
        source: source.name.clone(),
        benchmarks,
        usual_field: Some("times"),
        if_none: "results is empty; was hyperfine given a command?",
        ..Report::default()
    })
}

/// The first run that did not succeed, and how it ended.
fn failed_run(result: &Value) -> Option<(usize, String)> {
    let codes = result.get("exit_codes")?.as_array()?;
    let at = codes.iter().position(|code| code.as_i64() != Some(0))?;
    let code = match &codes[at] {
        Value::Null => "a signal".to_owned(),
        code => format!("exit code {code}"),
    };
    Some((at, code))
}
