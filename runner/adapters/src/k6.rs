//! k6's end-of-test summary, from `--summary-export`, `handleSummary` or the newer machine-readable format.
//!
//! k6 does not export samples. Its percentiles are statistics of one trial and are never merged; trials are only
//! compared by them.

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::json;
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    let mut benchmarks = Vec::new();
    match (document.get("metrics"), document.pointer("/results/metrics")) {
        (Some(Value::Object(metrics)), _) => {
            for (name, metric) in metrics {
                // handleSummary puts the figures into `values`; --summary-export writes them next to other fields.
                let apart = metric.get("values").and_then(Value::as_object);
                let contains = metric.get("contains").and_then(Value::as_str);
                let figures = apart.or(metric.as_object());
                let place = if apart.is_some() { format!("metrics.{name}.values") } else { format!("metrics.{name}") };
                benchmarks.extend(figures.map(|figures| benchmark(name, &place, figures, contains)));
            }
        }
        (None, Some(Value::Array(metrics))) => {
            // Checks are in a separate list, but are metrics too.
            let checks = document.pointer("/results/checks/metrics").and_then(Value::as_array).into_iter().flatten();
            let named = |list: &str, i: usize| format!("results.{list}[{i}]");
            let checks = checks.enumerate().map(|(i, metric)| (named("checks.metrics", i), metric));
            let metrics = metrics.iter().enumerate().map(|(i, metric)| (named("metrics", i), metric));
            for (place, metric) in metrics.chain(checks) {
                let name = json::text(source, metric, &place, "name")?;
                let contains = metric.get("contains").and_then(Value::as_str);
                let figures = metric.get("values").and_then(Value::as_object);
                benchmarks
                    .extend(figures.map(|figures| benchmark(name, &format!("{place}.values"), figures, contains)));
            }
        }
        (Some(other), _) => {
            let problem = format!("found {}, not an object with k6's metrics", json::found(other));
            return Err(Fault::at_field(&source.name, "metrics", problem));
        }
        (None, _) => {
            let problem = "missing; write the summary with --summary-export or handleSummary";
            return Err(Fault::at_field(&source.name, "metrics", problem));
        }
    }
    all_failed(source, &benchmarks)?;
    Ok(Report {
        benchmarks,
        if_none: "metrics is empty; the script must make a request",
        ..Report::new("k6", source, Whole::Document)
    })
}

fn benchmark(name: &str, place: &str, figures: &Map<String, Value>, contains: Option<&str>) -> Benchmark {
    let unit = unit(name, contains);
    let per_second = unit.map(|unit| format!("{unit}/s"));
    // The value of a metric that counts how many observations met a condition is a ratio.
    let share = figures.contains_key("passes") || figures.contains_key("matches");
    let unobserved = is_unobserved(figures);
    let field = |(figure, value): (&String, &Value)| {
        let unit = match figure.as_str() {
            "passes" | "fails" | "matches" | "total" => Some("1"),
            "rate" | "value" if share => Some("1"),
            "rate" => per_second.as_deref(),
            _ => unit,
        };
        // Thresholds are in the same object and are not figures.
        let reading = match unobserved {
            true => Err("k6 made no observation of it, so that it has no value".to_owned()),
            false => json::summary(value),
        };
        json::is_figure(value).then(|| Field::of(figure, unit, reading))
    };
    let fields = figures.iter().filter_map(field).collect();
    Benchmark { name: name.into(), place: place.into(), fields, ..Benchmark::default() }
}

/// Times that k6 measures itself, in milliseconds (k6, metrics/builtin.go and the browser module's metrics). Metrics of a
/// script cannot have these names with another unit.
const TIMES: [&str; 20] = [
    "http_req_duration",
    "http_req_blocked",
    "http_req_connecting",
    "http_req_looking_up",
    "http_req_tls_handshaking",
    "http_req_sending",
    "http_req_waiting",
    "http_req_receiving",
    "iteration_duration",
    "group_duration",
    "grpc_req_duration",
    "ws_connecting",
    "ws_ping",
    "ws_session_duration",
    "browser_http_req_duration",
    "browser_web_vital_fcp",
    "browser_web_vital_fid",
    "browser_web_vital_inp",
    "browser_web_vital_lcp",
    "browser_web_vital_ttfb",
];

/// Returns the unit of a metric's values: the one declared in the summary, else the documented one of k6's own metrics.
/// Custom metrics of a script have none.
fn unit(name: &str, contains: Option<&str>) -> Option<&'static str> {
    let own = name.split('{').next().unwrap_or(name);
    Some(match (contains, own) {
        (Some("time"), _) => "ms",
        (Some("data"), _) => "B",
        (_, "data_sent" | "data_received" | "browser_data_sent" | "browser_data_received") => "B",
        (_, "http_reqs" | "iterations" | "dropped_iterations" | "vus" | "vus_max" | "browser_web_vital_cls") => "1",
        (_, own) if TIMES.contains(&own) => "ms",
        _ => return None,
    })
}

/// Reports whether k6 computed the figures of no observation, which are all 0. It does so for metrics with a threshold.
fn is_unobserved(figures: &Map<String, Value>) -> bool {
    let zero = |name: &str| figures.get(name).is_none_or(|value| value.as_f64() == Some(0.0));
    let is_trend = figures.contains_key("avg") || figures.contains_key("med");
    match figures.get("count") {
        Some(count) if is_trend => count.as_f64() == Some(0.0),
        _ if is_trend => figures.values().filter(|value| value.is_number()).all(|value| value.as_f64() == Some(0.0)),
        _ => figures.contains_key("passes") && figures.contains_key("fails") && zero("passes") && zero("fails"),
    }
}

/// Rejects a test in which everything failed. k6 exits with 0, and the figures would be those of fast failures.
fn all_failed(source: &Source, benchmarks: &[Benchmark]) -> Result<(), Fault> {
    let figure = |metric: &str, figures: &[&str]| {
        let found = benchmarks.iter().find(|one| one.name == metric)?;
        let field = found.fields.iter().find(|field| figures.contains(&field.name.as_str()))?;
        match field.reading {
            Ok(Reading::Summary(value)) => Some((found.place.clone(), value)),
            _ => None,
        }
    };
    // The ratio is named differently by version.
    if let Some((place, 1.0)) = figure("http_req_failed", &["value", "rate"]) {
        let problem = "every request failed, so that the figures are invalid; check that the server is running";
        return Err(Fault::at_field(&source.name, place, problem));
    }
    let some_checks = figure("checks", &["fails"]).is_some_and(|(_, fails)| fails > 0.0);
    let none_passed = figure("checks", &["value", "rate"]).filter(|(_, share)| some_checks && *share == 0.0);
    if let Some((place, _)) =
        none_passed.or_else(|| figure("checks_failed", &["rate"]).filter(|(_, share)| *share == 1.0))
    {
        return Err(Fault::at_field(&source.name, place, "every check failed, so that the figures are invalid"));
    }
    Ok(())
}
