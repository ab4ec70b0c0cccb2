//! Selects metrics from a tool's report.

use std::collections::BTreeMap;

use assay_schema::Result as Outcome;
use assay_schema::result::{Metric, Quantity, Reading as Measured, Scalar, Workload};
use assay_schema::wave::MetricSource;

use crate::fault::{Fault, listed, quoted};
use crate::report::{Benchmark, Field, Reading, Report, joined};
use crate::unit::Unit;

/// Maximum number of samples per metric of a result.
pub const MOST_SAMPLES: usize = 100_000;

/// Builds the result with the requested metrics. `effective` records the benchmark, field and foreign unit of each.
pub(crate) fn metrics(report: &Report, wanted: &[MetricSource]) -> Result<Outcome, Fault> {
    report.check_whole()?;
    if wanted.is_empty() {
        return Err(Fault::whole("", "no metric is requested: name at least one in template.metrics"));
    }
    let (mut metrics, mut counters, mut effective) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for metric in wanted {
        let benchmark = benchmark(report, metric)?;
        let field = field(report, benchmark, metric)?;
        let at =
            |problem: String| Fault::at_field(&report.source, format!("{}.{}", benchmark.place, field.name), problem);
        let reading = field.reading.clone().map_err(at)?;
        let unit = Unit::parse(&metric.unit);
        let from = source_unit(field, metric).map_err(at)?;
        let convert = |value: f64| match from.convert(value, &unit) {
            Some(converted) if converted.is_finite() => Ok(converted),
            Some(_) => Err(format!("{value} {from} is too much for a number in {unit}")),
            None => Err(format!(
                "it is in {from} and metric {} has unit {unit}, which measures something else: correct \
                 template.metrics[].unit, or name another field in from.field",
                metric.name
            )),
        };
        let all = |samples: Vec<f64>| {
            count(&samples, benchmark, field)?;
            samples.into_iter().map(convert).collect::<Result<_, _>>().map(Measured::Samples)
        };
        let measured = match reading {
            Reading::Summary(value) => {
                effective.insert(format!("{}.statistic", metric.name), Scalar::Text(field.name.clone()));
                Measured::Value(convert(value).map_err(at)?)
            }
            Reading::Samples(samples) => all(samples).map_err(at)?,
            Reading::Counted(pairs) => {
                let repeated = pairs.into_iter().flat_map(|(value, times)| std::iter::repeat_n(value, times));
                all(repeated.collect()).map_err(at)?
            }
        };
        effective.insert(format!("{}.benchmark", metric.name), Scalar::Text(joined("", [benchmark.name.as_str()])));
        effective.insert(format!("{}.field", metric.name), Scalar::Text(field.name.clone()));
        // Known units are converted; the scale of a foreign one is that of the tool.
        if let Some(unit) = field.unit.as_ref().filter(|unit| unit.is_foreign()) {
            effective.insert(format!("{}.unit", metric.name), Scalar::Text(unit.to_string()));
        }
        // Sums and products of the tool's counts can overflow to infinity, which JSON cannot represent.
        if let Some(iterations) = benchmark.iterations.filter(|iterations| iterations.is_finite()) {
            counters.insert(format!("{}.iterations", metric.name), Quantity { unit: "1".into(), value: iterations });
        }
        metrics.insert(metric.name.clone(), Metric { unit: metric.unit.clone(), reading: measured, bin: field.bin });
    }
    Ok(Outcome {
        schema: Default::default(),
        workload: Workload {
            name: report.tool.into(),
            version: shortened(report.version.as_deref().unwrap_or("unreported"), 63),
            build: (!report.build.is_empty()).then(|| {
                report.build.iter().take(32).map(|(key, value)| (key.clone(), shortened(value, 1024))).collect()
            }),
        },
        effective: Some(effective),
        metrics,
        phases: None,
        counters: (!counters.is_empty()).then_some(counters),
        parity: None,
        ceilings: None,
    })
}

fn benchmark<'a>(report: &'a Report, metric: &MetricSource) -> Result<&'a Benchmark, Fault> {
    let names = || report.benchmarks.iter().map(|benchmark| benchmark.name.as_str());
    let fault = |problem| Fault::whole(&report.source, problem);
    let usual = || report.benchmarks.iter().find(|one| report.usual_benchmark.as_ref() == Some(&one.name));
    if let (None, Some(usual)) = (&metric.benchmark, usual()) {
        return Ok(usual);
    }
    let Some(name) = &metric.benchmark else {
        return match report.benchmarks.as_slice() {
            [only] => Ok(only),
            [] => Err(fault(format!("has no benchmark with a figure: {}{}", report.if_none, empty_handed(report)))),
            many => Err(fault(format!(
                "has {} benchmarks, {}, and metric {} does not say which: name it in from.benchmark, or let the program \
                 run only one",
                many.len(),
                listed(names()),
                metric.name
            ))),
        };
    };
    let mut matching: Vec<&Benchmark> = report.benchmarks.iter().filter(|one| one.name == *name).collect();
    if matching.is_empty() {
        matching = report.benchmarks.iter().filter(|one| one.aliases.contains(name)).collect();
    }
    match matching.as_slice() {
        [only] => Ok(only),
        [] => {
            let why = report.without.get(name).map(|why| format!(": {why}")).unwrap_or_default();
            let has = match report.benchmarks.len() {
                0 => format!("it has none: {}{}", report.if_none, empty_handed(report)),
                _ => format!("it has {}", listed(names())),
            };
            Err(fault(format!(
                "has no figures of {}, which metric {} asks for in from.benchmark{why}; {has}",
                quoted(name),
                metric.name
            )))
        }
        [first, second, ..] if first.name == second.name => Err(fault(format!(
            "has {} twice, as {} and {}: {}",
            quoted(&first.name),
            first.place,
            second.place,
            report.if_twice
        ))),
        many => Err(fault(format!(
            "has {} benchmarks that {} of metric {} may mean: write one of {}",
            many.len(),
            quoted(name),
            metric.name,
            listed(many.iter().map(|one| one.name.as_str()))
        ))),
    }
}

/// Lists benchmarks without figures, for a message.
fn empty_handed(report: &Report) -> String {
    report.without.iter().next().map(|(name, why)| format!("; {}: {why}", quoted(name))).unwrap_or_default()
}

fn field<'a>(report: &Report, benchmark: &'a Benchmark, metric: &MetricSource) -> Result<&'a Field, Fault> {
    let place = || Fault::at_field(&report.source, benchmark.place.clone(), String::new());
    let has = || listed(benchmark.fields.iter().map(|field| field.name.as_str()));
    let Some(name) = metric.path.as_deref().or(metric.field.as_deref()).or(report.usual_field) else {
        let problem = format!("metric {} does not name a figure: write from.field; allowed are {}", metric.name, has());
        return Err(Fault { problem, ..place() });
    };
    let mut named = benchmark.fields.iter().filter(|field| field.name == name);
    let first = named.next();
    if named.next().is_some() {
        let problem = format!("{} has figure {} twice: give each a unique name", quoted(&benchmark.name), quoted(name));
        return Err(Fault { problem, ..place() });
    }
    first.ok_or_else(|| {
        let asks = if metric.field.is_some() { "asks for in from.field" } else { "takes, as from.field is not given" };
        let problem = format!(
            "{} has no figure {}, which metric {} {asks}; it has {}",
            quoted(&benchmark.name),
            quoted(name),
            metric.name,
            has()
        );
        Fault { problem, ..place() }
    })
}

/// Returns the unit of a field: the tool's, else the template's, else the metric's own.
fn source_unit(field: &Field, metric: &MetricSource) -> Result<Unit, String> {
    let told = metric.field_unit.as_deref().map(Unit::parse);
    match (&field.unit, told) {
        (Some(unit), None) => Ok(unit.clone()),
        (None, None) => {
            let unit = Unit::parse(&metric.unit);
            if unit.has_scale() {
                return Err(format!(
                    "the tool reports no unit, and metric {} has unit {unit}: write the figure's unit in from.unit, such as \
                     from: {{unit: {unit}}}",
                    metric.name
                ));
            }
            Ok(unit)
        }
        (None, Some(told)) => Ok(told),
        // The tool's unit is not known here.
        (Some(unit), Some(told)) if unit.is_foreign() => Ok(told),
        (Some(unit), Some(told)) if unit.convert(1.0, &told) == Some(1.0) => Ok(told),
        (Some(unit), Some(told)) => Err(format!(
            "the unit of the tool is {unit} and from.unit of metric {} is {told}: remove from.unit",
            metric.name
        )),
    }
}

fn count(samples: &[f64], benchmark: &Benchmark, field: &Field) -> Result<(), String> {
    match samples.len() {
        0 => Err(format!("{} has no sample of {}", quoted(&benchmark.name), field.name)),
        1..=MOST_SAMPLES => Ok(()),
        n => Err(format!(
            "{n} samples, and a trial keeps at most {MOST_SAMPLES}: let it run for a shorter time, or take one of the \
             tool's own statistics in from.field"
        )),
    }
}

/// Truncates the text to a limit of the result's format.
fn shortened(text: &str, most: usize) -> String {
    let text = if text.is_empty() { "unreported" } else { text };
    text.chars().take(most).collect()
}
