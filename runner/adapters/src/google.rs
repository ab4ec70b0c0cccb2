//! Google Benchmark's JSON, from `--benchmark_format=json` or `--benchmark_out`.
//!
//! With repetitions a name occurs several times, and each occurrence is a sample. Two benchmarks may also be registered
//! under one name; the indices of the family and of the repetition distinguish them. Aggregates of repetitions are separate
//! benchmarks, called `NAME_median` and the like.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;

/// Numeric fields that are metadata and not measurements.
const NOT_FIGURES: [&str; 6] =
    ["family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let entries = json::list(source, &document, "benchmarks", "write it with --benchmark_format=json")?;
    let context = document.get("context").unwrap_or(&Value::Null);
    let mut report = Report {
        version: context.get("library_version").and_then(Value::as_str).map(str::to_owned),
        build: json::texts(context, &["library_build_type", "executable"]),
        usual_field: Some("real_time"),
        if_none: "benchmarks is empty; check --benchmark_filter",
        if_twice: "register every benchmark under a unique name, such as with ->Name(); repetitions can be told from that \
                   since version 1.5",
        ..Report::new("google-benchmark", source, Whole::Document)
    };
    let mut at: BTreeMap<String, Repeated> = BTreeMap::new();
    let (mut figures, mut runs) = (Figures::default(), Vec::new());
    for (i, entry) in entries.iter().enumerate() {
        let place = format!("benchmarks[{i}]");
        let name = json::text(source, entry, &place, "name")?;
        if let Some(why) = failure(entry) {
            let problem = format!("{} did not run to its end: {}", quoted(name), why);
            return Err(Fault::at_field(&source.name, place, problem));
        }
        let aggregate = entry.get("run_type").and_then(Value::as_str) == Some("aggregate");
        let fields = fields(entry, aggregate);
        let iterations = entry.get("iterations").and_then(Value::as_f64).filter(|_| !aggregate);
        let new = report.benchmarks.len();
        let known = at.get_mut(name).filter(|_| !aggregate);
        let repeated = known.and_then(|known| known.take(entry).then_some(known.number));
        let number = repeated.unwrap_or(new);
        match report.benchmarks.get_mut(number) {
            Some(known) => known.iterations = known.iterations.zip(iterations).map(|(a, b)| a + b),
            None => {
                if aggregate {
                    // Aliases under which the benchmark may be requested.
                    let run = entry.get("run_name").and_then(Value::as_str).unwrap_or_default();
                    if !at.contains_key(run) {
                        let why = "only aggregates of it are there: name one, such as NAME_median, or run without \
                                   --benchmark_report_aggregates_only";
                        report.without.insert(run.into(), why.into());
                    }
                }
                if !aggregate {
                    runs.push(new);
                    at.entry(name.into()).or_insert_with(|| Repeated::new(new, entry));
                }
                let place = place.clone();
                report.benchmarks.push(Benchmark { name: name.into(), place, iterations, ..Benchmark::default() });
            }
        }
        figures.add(number, &mut report.benchmarks[number], fields, &place);
    }
    // If single runs have figures, an unnamed benchmark does not mean one of their aggregates.
    if let [only] = runs.as_slice() {
        report.usual_benchmark = Some(report.benchmarks[*only].name.clone());
    }
    Ok(report)
}

/// Returns the benchmark's failure message, if any. Older versions call it an error, newer ones also a skip.
fn failure(entry: &Value) -> Option<String> {
    let said = |flag: &str, message: &str| {
        let failed = entry.get(flag).is_some_and(|flag| flag.as_bool() != Some(false));
        failed.then(|| quoted(entry.get(message).and_then(Value::as_str).unwrap_or("no reason given")))
    };
    said("error_occurred", "error_message").or_else(|| said("skipped", "skip_message"))
}

/// Returns all numeric figures of the entry. Times have the entry's unit; counters have none.
fn fields(entry: &Value, aggregate: bool) -> Vec<Field> {
    let Value::Object(entries) = entry else { return Vec::new() };
    // A coefficient of variation is a ratio, not a time.
    let share = entry.get("aggregate_unit").and_then(Value::as_str) == Some("percentage");
    let time_unit = entry.get("time_unit").and_then(Value::as_str);
    let none = entry.get("iterations").and_then(Value::as_f64) == Some(0.0);
    let mut fields = Vec::new();
    for (name, value) in entries {
        if NOT_FIGURES.contains(&name.as_str())
            || !(json::is_figure(value) || name == "real_time" || name == "cpu_time")
        {
            continue;
        }
        let unit = match name.as_str() {
            _ if share => Some("1"),
            "real_time" | "cpu_time" => time_unit,
            "bytes_per_second" => Some("By/s"),
            "items_per_second" => Some("1/s"),
            _ => None,
        };
        let number =
            if none { Err("of 0 iterations, so that it has no value".to_owned()) } else { json::number(value) };
        let reading = number.map(|number| match aggregate {
            true => Reading::Summary(number),
            false => Reading::Samples(vec![number]),
        });
        fields.push(Field::of(name, unit, reading));
    }
    fields
}

/// The runs of one name that are repetitions of one benchmark.
struct Repeated {
    /// Number of the benchmark.
    number: usize,
    family: [Option<u64>; 2],
    repetitions: BTreeSet<u64>,
}

impl Repeated {
    fn new(number: usize, entry: &Value) -> Self {
        Self { number, family: family(entry), repetitions: repetition(entry).into_iter().collect() }
    }

    /// Records the entry and returns true if it is a further repetition of the same benchmark.
    fn take(&mut self, entry: &Value) -> bool {
        let first = self.repetitions.is_empty();
        !first && family(entry) == self.family && repetition(entry).is_some_and(|index| self.repetitions.insert(index))
    }
}

/// Returns the indices of a registered benchmark; absent before version 1.5.3.
fn family(entry: &Value) -> [Option<u64>; 2] {
    ["family_index", "per_family_instance_index"].map(|field| entry.get(field).and_then(Value::as_u64))
}

/// Returns the index of a repetition; absent before version 1.5.
fn repetition(entry: &Value) -> Option<u64> {
    entry.get("repetition_index").and_then(Value::as_u64)
}

/// Index of figures by benchmark number and figure name.
#[derive(Default)]
struct Figures(BTreeMap<(usize, String), usize>);

impl Figures {
    /// Appends an entry's figures to those of earlier repetitions.
    fn add(&mut self, number: usize, known: &mut Benchmark, fields: Vec<Field>, place: &str) {
        for field in fields {
            let at = *self.0.entry((number, field.name.clone())).or_insert(known.fields.len());
            let Some(before) = known.fields.get_mut(at) else {
                known.fields.push(field);
                continue;
            };
            if before.unit != field.unit {
                before.reading = Err(format!("{place} has another unit of time than {}", known.place));
                continue;
            }
            match (&mut before.reading, field.reading) {
                (Ok(Reading::Samples(samples)), Ok(Reading::Samples(more))) => samples.extend(more),
                (reading @ Ok(_), Err(problem)) => *reading = Err(format!("{place}: {problem}")),
                _ => {}
            }
        }
    }
}
