//! hyperfine's `--export-json`.

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;

/// Statistics in seconds.
const STATISTICS: [&str; 7] = ["mean", "stddev", "median", "user", "system", "min", "max"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let results = json::list(source, &document, "results", "write it with hyperfine --export-json")?;
    let mut benchmarks = Vec::new();
    for (i, result) in results.iter().enumerate() {
        let place = format!("results[{i}]");
        let name = json::text(source, result, &place, "command")?;
        if let Some((at, code)) = failed_run(result) {
            let problem = format!(
                "{} ended with {code} in this run; a failing command gives no valid time, even with --ignore-failure",
                quoted(name)
            );
            return Err(Fault::at_field(&source.name, format!("{place}.exit_codes[{at}]"), problem));
        }
        let mut fields = Vec::new();
        if let Some(times) = result.get("times") {
            fields.push(Field::of("times", Some("s"), json::samples(times)));
        }
        for statistic in STATISTICS {
            // A single run has no standard deviation.
            if let Some(value) = result.get(statistic).filter(|value| !value.is_null()) {
                fields.push(Field::of(statistic, Some("s"), json::summary(value)));
            }
        }
        if let Some(memory) = result.get("memory_usage_byte") {
            // Every process uses memory. Where the system does not report it, hyperfine writes 0.
            let used = json::samples(memory).and_then(|samples| match &samples {
                Reading::Samples(each) if each.contains(&0.0) => Err("0, so that it was not measured".to_owned()),
                _ => Ok(samples),
            });
            fields.push(Field::of("memory_usage_byte", Some("By"), used));
        }
        benchmarks.push(Benchmark { name: name.into(), place, fields, ..Benchmark::default() });
    }
    Ok(Report {
        benchmarks,
        usual_field: Some("times"),
        if_none: "results is empty; give hyperfine a command",
        if_twice: "give each command a unique --command-name",
        ..Report::new("hyperfine", source, Whole::Document)
    })
}

/// Returns the first failed run and how it ended.
fn failed_run(result: &Value) -> Option<(usize, String)> {
    let codes = result.get("exit_codes")?.as_array()?;
    let at = codes.iter().position(|code| code.as_i64() != Some(0))?;
    let code = match &codes[at] {
        Value::Null => "a signal".to_owned(),
        code => format!("exit code {code}"),
    };
    Some((at, code))
}
