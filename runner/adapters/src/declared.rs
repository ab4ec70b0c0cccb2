//! Tools that write one JSON document with their figures at fixed places. A tool is declared here as data.

use serde_json::Value;

use crate::fault::Fault;
use crate::json;
use crate::report::{Benchmark, Field, Report, Whole};
use crate::source::Source;

/// One tool.
pub(crate) struct Tool {
    name: &'static str,
    /// JSON Pointer of the object with the figures, which are named by their path in it.
    figures: &'static str,
    /// Advice if the document does not have it.
    written_with: &'static str,
    /// JSON Pointer of the tool's version.
    version: &'static str,
    /// Conditions under which the figures are invalid, each with its advice.
    failures: &'static [(&'static str, Failure, &'static str)],
    /// JSON Pointer of the number of iterations.
    iterations: &'static str,
    usual: Option<&'static str>,
    /// Objects without figures.
    skips: &'static [&'static str],
    /// Units by the beginning or the end of a figure's path, the first that matches.
    units: &'static [(At, &'static str)],
    /// Figures that are 0 where there was no measurement: by the end of their path, the figure beside them that is 0 then.
    /// Without one they are never measured there.
    unmeasured: &'static [(&'static str, Option<&'static str>)],
}

/// A condition under which the figures are invalid.
enum Failure {
    /// The value is there, and not null.
    There,
    /// The value is missing or 0.
    Zero,
}

enum At {
    Begin(&'static str),
    End(&'static str),
}
use At::{Begin, End};

/// iperf3, without `--json-stream` (iperf3, iperf_api.c).
pub(crate) const IPERF3: Tool = Tool {
    name: "iperf3",
    figures: "/end",
    written_with: "print with --json, without --json-stream",
    version: "/start/version",
    failures: &[("/error", Failure::There, "iperf3 reports an error, with exit code 0 too; check the server")],
    iterations: "",
    usual: None,
    skips: &[],
    units: &[
        (End("bits_per_second"), "bit/s"),
        (End("bytes"), "By"),
        (End("_ms"), "ms"),
        (End("start"), "s"),
        (End("end"), "s"),
        (End("seconds"), "s"),
        (End("_percent"), "%"),
        (Begin("cpu_utilization_percent."), "%"),
        (End("retransmits"), "1"),
        (End("packets"), "1"),
    ],
    // The sender of UDP knows neither losses nor jitter, and writes 0.
    unmeasured: &[
        ("sum_sent.jitter_ms", None),
        ("sum_sent.lost_packets", None),
        ("sum_sent.lost_percent", None),
        ("jitter_ms", Some("packets")),
        ("lost_percent", Some("packets")),
        ("bits_per_second", Some("bytes")),
    ],
};

/// vegeta (vegeta, lib/metrics.go).
pub(crate) const VEGETA: Tool = Tool {
    name: "vegeta",
    figures: "",
    written_with: "write with vegeta report -type=json",
    version: "",
    failures: &[
        ("/requests", Failure::Zero, "no request was sent"),
        ("/success", Failure::Zero, "no request succeeded; check that the server is running"),
    ],
    iterations: "/requests",
    usual: Some("latencies.mean"),
    skips: &[],
    units: &[
        (Begin("latencies."), "ns"),
        (Begin("duration"), "ns"),
        (Begin("wait"), "ns"),
        (Begin("bytes_"), "By"),
        (Begin("rate"), "1/s"),
        (Begin("throughput"), "1/s"),
        (Begin("success"), "1"),
        (Begin("requests"), "1"),
        (Begin("status_codes."), "1"),
    ],
    unmeasured: &[],
};

/// oha (oha, src/printer.rs, print_json).
pub(crate) const OHA: Tool = Tool {
    name: "oha",
    figures: "",
    written_with: "print with --no-tui --output-format json",
    version: "",
    failures: &[("/summary/successRate", Failure::Zero, "no request succeeded; check that the server is running")],
    iterations: "",
    usual: Some("summary.requestsPerSec"),
    skips: &[
        "responseTimeHistogram",
        "firstByteHistogram",
        "responseTimeHistogramSuccessful",
        "responseTimeHistogramNotSuccessful",
    ],
    units: &[
        (End("equestsPerSec"), "1/s"),
        (End("requests_per_sec"), "1/s"),
        (Begin("rps."), "1/s"),
        (End("uccessRate"), "1"),
        (End("success_rate"), "1"),
        (End("sizePerSec"), "By/s"),
        (End("totalData"), "By"),
        (End("sizePerRequest"), "By"),
        (Begin("metrics.latency_ms."), "ms"),
        (Begin("statusCodeDistribution."), "1"),
        (Begin("errorDistribution."), "1"),
        (Begin("summary."), "s"),
        (Begin("latencyPercentiles"), "s"),
        (Begin("firstBytePercentiles"), "s"),
        (Begin("details."), "s"),
    ],
    unmeasured: &[],
};

impl Tool {
    pub(crate) fn read(&self, source: &Source) -> Result<Report, Fault> {
        let document = json::parse(source, crate::report::ONE_REPORT)?;
        for (pointer, failure, advice) in self.failures {
            let problem = match (failure, document.pointer(pointer)) {
                (Failure::There, None | Some(Value::Null)) => continue,
                (Failure::Zero, None) => format!("missing: {}", self.written_with),
                (Failure::Zero, Some(value)) if value.as_f64().is_some_and(|number| number > 0.0) => continue,
                (_, Some(value)) => format!("found {}, so that the figures are invalid: {advice}", json::found(value)),
            };
            return Err(Fault::at_field(&source.name, dotted(pointer), problem));
        }
        let Some(Value::Object(figures)) = document.pointer(self.figures) else {
            let problem = format!("missing: {}", self.written_with);
            let place = if self.figures.is_empty() { "document".into() } else { dotted(self.figures) };
            return Err(Fault::at_field(&source.name, place, problem));
        };
        let mut fields = Vec::new();
        let skips = |path: &str| self.skips.contains(&path);
        json::flatten("", figures, &skips, &|path, value| self.field(path, value, &document), &mut fields);
        let place = if self.figures.is_empty() { "document".to_owned() } else { dotted(self.figures) };
        let version = document.pointer(self.version).and_then(Value::as_str);
        Ok(Report {
            version: version
                .map(|text| text.trim_start_matches(self.name).trim_start_matches("iperf").trim().to_owned()),
            benchmarks: vec![Benchmark {
                name: self.name.into(),
                place,
                fields,
                iterations: document.pointer(self.iterations).and_then(Value::as_f64),
                ..Benchmark::default()
            }],
            usual_field: self.usual,
            ..Report::new(self.name, source, Whole::Document)
        })
    }

    fn field(&self, path: &str, value: &Value, document: &Value) -> Field {
        let matches = |at: &At| match at {
            Begin(begin) => path.starts_with(begin),
            End(end) => path.ends_with(end),
        };
        let unit = self.units.iter().find(|(at, _)| matches(at)).map(|(_, unit)| *unit);
        let is_zero = |beside: &str| {
            let path = path.rsplit_once('.').map_or(beside.to_owned(), |(above, _)| format!("{above}.{beside}"));
            let pointer = format!("{}/{}", self.figures, path.replace('.', "/"));
            document.pointer(&pointer).and_then(Value::as_f64) == Some(0.0)
        };
        let none = self.unmeasured.iter().find(|(end, beside)| path.ends_with(end) && beside.is_none_or(is_zero));
        let reading = match none {
            None => json::summary(value),
            Some((_, None)) => Err(format!("{} does not measure it on this side", self.name)),
            Some((_, Some(beside))) => Err(format!("{beside} is 0, so that it has no value")),
        };
        Field::of(path, unit, reading)
    }
}

/// Writes a JSON Pointer as a field of a message.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}
