//! Reports of the harness conform to the schema.

use assay_harness::report::Fact;
use assay_harness::{Digest, Histogram, Phases, Quantity, Report, Unit};
use serde_json::Value;

fn full_report() -> Report {
    let mut phases = Phases::new();
    phases.time("scan", || ());
    phases.end_iteration();
    let mut histogram = Histogram::new(1e-9);
    histogram.record(0.25);
    let mut digest = Digest::new();
    digest.add(b"an answer");

    let mut report = Report::new("kernel", "0.1.0");
    report
        .build("profile", "release")
        .effective("path", "avx512")
        .effective("threads", 2)
        .effective("hugePages", true)
        .effective("density", Fact::try_from(0.5).unwrap())
        .samples("latency", Unit::SECONDS, &[0.25, 0.5])
        .histogram("pause", Unit::SECONDS, &histogram)
        .value("throughput", Quantity::new(4.0, Unit::new("queries/s")))
        .phases(&phases)
        .counter("bytesRead", Quantity::bytes(64))
        .parity(&digest)
        .ceiling("readBandwidth", Quantity::bytes_per_second(10, 1.0), Some(7.5))
        .ceiling("aesRate", Quantity::new(1e9, Unit::new("blocks/s")), None);
    report
}

#[test]
fn full_report_conforms_to_the_schema() {
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let json: Value = serde_json::from_str(&full_report().to_json().unwrap()).unwrap();
    let problems: Vec<String> = validator.iter_errors(&json).map(|e| format!("{}: {e}", e.instance_path)).collect();
    assert!(problems.is_empty(), "{problems:#?}\n{json:#}");
}

#[test]
fn absent_fields_are_omitted() {
    let mut report = Report::new("kernel", "0.1.0");
    report.value("throughput", Quantity::count(1));
    let json: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["metrics", "schema", "workload"]);
    assert!(json["workload"].get("build").is_none());
}

#[test]
fn ceiling_without_achievement_has_no_share() {
    let json: Value = serde_json::from_str(&full_report().to_json().unwrap()).unwrap();
    assert!(json["ceilings"][1].get("achieved").is_none());
    assert!(json["metrics"].get("aesRateShare").is_none());
    assert_eq!(json["metrics"]["readBandwidthShare"], serde_json::json!({"unit": "1", "value": 0.75}));
}

#[test]
fn non_finite_figures_are_rejected() {
    for value in [f64::NAN, f64::INFINITY] {
        let mut report = full_report();
        report.value("speed", Quantity::new(value, Unit::ONE));
        assert_eq!(report.to_json().unwrap_err().field, "metrics.speed");
    }
}

#[test]
fn report_without_metrics_or_with_an_invalid_name_is_rejected() {
    assert!(Report::new("kernel", "0.1.0").to_json().is_err());
    let mut report = full_report();
    report.value("Bad name", Quantity::count(1));
    assert!(report.to_json().is_err());
}
