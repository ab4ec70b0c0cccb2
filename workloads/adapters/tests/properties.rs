//! Whatever the bytes are, an adapter answers; and a figure that a tool writes is the figure that is read.

use std::fs;
use std::path::Path;

use assay_adapters::{Source, convert};
use assay_schema::Check;
use assay_schema::result::Reading;
use assay_schema::wave::{Format, MetricSource, Output};
use proptest::prelude::*;

const FORMATS: [(Format, &str); 7] = [
    (Format::GoBench, "go-1.26.8.txt"),
    (Format::GoBench, "go-1.26.8.json"),
    (Format::Criterion, "criterion-0.8.2-bencher.txt"),
    (Format::GoogleBenchmark, "google-benchmark-1.7.1.json"),
    (Format::Hyperfine, "hyperfine-1.20.0.json"),
    (Format::K6, "k6-1.8.1-summary-export.json"),
    (Format::Csv, "table.csv"),
];

fn output(format: Format, benchmark: Option<&str>, field: Option<&str>, unit: &str) -> Output {
    let metric = MetricSource {
        name: "figure".into(),
        unit: unit.into(),
        benchmark: benchmark.map(str::to_owned),
        field: field.map(str::to_owned),
        field_unit: None,
    };
    Output { format, path: None, metrics: Some(vec![metric]) }
}

/// Reads and does not mind what comes out, but for a result that breaks the schema or a message that says nothing.
fn any_answer(format: Format, name: &str, bytes: Vec<u8>) {
    let sources = [Source { name: name.into(), bytes }];
    for (benchmark, field) in
        [(None, None), (Some("a=1"), Some("mean")), (Some("BenchmarkJoin/way=plus"), Some("p(95)"))]
    {
        for unit in ["s", "By", "rows/s"] {
            match convert(&output(format, benchmark, field, unit), &sources) {
                Ok(result) => result.check().expect("a result by the schema"),
                Err(fault) => assert!(fault.to_string().len() > 10, "{fault}"),
            }
        }
    }
}

/// Writes one figure as the tool would, and reads it.
fn through(format: Format, text: String, benchmark: Option<&str>, field: Option<&str>, unit: &str) -> f64 {
    let sources = [Source { name: "standard output".into(), bytes: text.into_bytes() }];
    let result = convert(&output(format, benchmark, field, unit), &sources).expect("a good output");
    match &result.metrics["figure"].reading {
        Reading::Value(value) => *value,
        Reading::Samples(samples) => samples[0],
        Reading::Histogram(_) => panic!("no adapter makes a histogram"),
    }
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        -1e12..1e12f64,
        proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL,
        (0u64..1 << 53).prop_map(|whole| whole as f64),
    ]
    .prop_map(|figure| if figure.is_finite() { figure } else { 0.5 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400), folder in any::<bool>()) {
        for (format, _) in FORMATS {
            any_answer(format, if folder { "a/new/sample.json" } else { "standard output" }, bytes.clone());
        }
        any_answer(Format::PytestBenchmark, "result.json", bytes);
    }

    #[test]
    fn a_damaged_output_gets_an_answer(which in 0..FORMATS.len(), at in any::<prop::sample::Index>(),
                                       cut in any::<bool>(), byte in any::<u8>()) {
        let (format, name) = FORMATS[which];
        let mut bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).expect("a fixture");
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        any_answer(format, "standard output", bytes);
    }

    #[test]
    fn figures_survive(figure in figure()) {
        let go = format!("BenchmarkX-2 \t 100\t {figure:?} ns/op\t {figure:?} rows\n");
        prop_assert_eq!(through(Format::GoBench, go.clone(), None, Some("rows"), "rows"), figure);
        prop_assert_eq!(through(Format::GoBench, go, None, None, "s"), figure / 1e9);
        let json = serde_json::to_string(&figure).expect("a number");
        let hyperfine = format!(r#"{{"results": [{{"command": "x", "times": [{json}]}}]}}"#);
        prop_assert_eq!(through(Format::Hyperfine, hyperfine, None, None, "s"), figure);
        let google = format!(r#"{{"benchmarks": [{{"name": "x", "real_time": {json}, "time_unit": "us"}}]}}"#);
        prop_assert_eq!(through(Format::GoogleBenchmark, google, None, None, "s"), figure / 1e6);
        let pytest = format!(r#"{{"benchmarks": [{{"name": "x", "stats": {{"data": [{json}]}}}}]}}"#);
        prop_assert_eq!(through(Format::PytestBenchmark, pytest, None, None, "s"), figure);
        let k6 = format!(r#"{{"metrics": {{"http_req_duration": {{"med": {json}}}}}}}"#);
        prop_assert_eq!(through(Format::K6, k6, None, Some("med"), "s"), figure / 1e3);
        let csv = format!("a,b\n{figure:?},1\n");
        prop_assert_eq!(through(Format::Csv, csv, None, Some("a"), "s"), figure);
    }
}
