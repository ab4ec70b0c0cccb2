//! Reads recorded output of the real tools (fixtures/, with the tool's version in the name) and its error cases.

use std::fs;
use std::path::{Path, PathBuf};

use assay_adapters::{Source, convert};
use assay_schema::result::{Metric, Reading, Scalar};
use assay_schema::wave::{Format, MetricSource, Output};
use assay_schema::{Check, Result};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("text")
}

/// `name unit benchmark | field | unit of the field`, where `-` stands for an absent value.
fn metric(name: &str, unit: &str, benchmark: &str, field: &str, field_unit: &str) -> MetricSource {
    let given = |text: &str| (text != "-").then(|| text.to_owned());
    MetricSource {
        name: name.into(),
        unit: unit.into(),
        benchmark: given(benchmark),
        field: given(field),
        field_unit: given(field_unit),
        path: None,
    }
}

fn output(format: Format, metrics: &[MetricSource]) -> Output {
    Output { format, path: None, metrics: Some(metrics.to_vec()), csv: None, json: None }
}

fn stdout(bytes: impl Into<Vec<u8>>) -> [Source; 1] {
    [Source { name: "standard output".into(), bytes: bytes.into() }]
}

/// Returns the result, which must also be valid by the schema.
#[track_caller]
fn read(format: Format, bytes: impl Into<Vec<u8>>, metrics: &[MetricSource]) -> Result {
    let result = convert(&output(format, metrics), &stdout(bytes)).unwrap_or_else(|fault| panic!("{fault}"));
    result.check().expect("a result by the schema");
    result
}

#[track_caller]
fn fault(format: Format, bytes: impl Into<Vec<u8>>, metrics: &[MetricSource]) -> String {
    match convert(&output(format, metrics), &stdout(bytes)) {
        Err(fault) => fault.to_string(),
        Ok(result) => panic!("it was read: {result:?}"),
    }
}

#[track_caller]
fn says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

fn samples(metric: &Metric) -> &[f64] {
    match &metric.reading {
        Reading::Samples(samples) => samples,
        other => panic!("no samples: {other:?}"),
    }
}

fn value(metric: &Metric) -> f64 {
    match metric.reading {
        Reading::Value(value) => value,
        ref other => panic!("no value: {other:?}"),
    }
}

fn effective<'a>(result: &'a Result, key: &str) -> &'a str {
    match &result.effective.as_ref().expect("effective")[key] {
        Scalar::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

fn iterations(result: &Result, key: &str) -> f64 {
    result.counters.as_ref().expect("counters")[key].value
}

// --- Go

#[test]
fn every_line_of_a_go_benchmark_is_a_sample() {
    let metrics = [
        metric("latency", "s", "BenchmarkJoin/way=plus", "-", "-"),
        metric("memory", "By", "BenchmarkJoin/way=builder-2", "B/op", "-"),
        metric("allocations", "1", "example.com/join.BenchmarkJoin/way=plus", "allocs/op", "-"),
    ];
    let result = read(Format::GoBench, fixture("go-1.26.8.txt"), &metrics);
    assert_eq!(samples(&result.metrics["latency"]), [890_516.0 / 1e9, 579_611.0 / 1e9, 646_096.0 / 1e9]);
    assert_eq!(samples(&result.metrics["memory"]), [17_912.0; 3]);
    assert_eq!(samples(&result.metrics["allocations"]), [999.0; 3]);
    assert_eq!(iterations(&result, "latency.iterations"), 185.0);
    assert_eq!(effective(&result, "latency.benchmark"), "BenchmarkJoin/way=plus-2");
    assert_eq!(effective(&result, "allocations.unit"), "allocs/op");
    assert_eq!(result.workload.build.expect("build")["goarch"], "amd64");
}

#[test]
fn go_events_are_the_same_lines_in_pieces() {
    let metrics = [metric("latency", "s", "BenchmarkJoin/way=plus", "-", "-")];
    let result = read(Format::GoBench, fixture("go-1.26.8.json"), &metrics);
    assert_eq!(samples(&result.metrics["latency"]), [1_690_158.0 / 1e9, 967_120.0 / 1e9]);
}

#[test]
fn figures_that_a_go_benchmark_reports_itself() {
    let line = "BenchmarkServe-2 \t 10\t 5 ns/op\t 12.5 MB/s\t 1200 rows/s\t 7 p99-ns\t 3 allocs/op\nPASS\n";
    let result = read(
        Format::GoBench,
        line,
        &[
            metric("bandwidth", "By/s", "-", "MB/s", "-"),
            metric("throughput", "rows/s", "-", "rows/s", "-"),
            metric("tail", "s", "-", "p99-ns", "ns"),
        ],
    );
    assert_eq!(samples(&result.metrics["bandwidth"]), [12.5e6]);
    assert_eq!(samples(&result.metrics["throughput"]), [1200.0]);
    assert_eq!(samples(&result.metrics["tail"]), [7.0 / 1e9], "from.unit overrides an unknown unit");
}

#[test]
fn faults_of_go_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "-", "-", "-")];
    let of = |benchmark: &str, field: &str, unit: &str| [metric("latency", unit, benchmark, field, "-")];
    let good = text("go-1.26.8.txt");
    let go = |text: &str, metrics: &[MetricSource]| fault(Format::GoBench, text, metrics);

    says(&go("", &latency), &["standard output is empty", "-test.bench"]);
    says(&go("PASS\n", &latency), &["no benchmark", "check the pattern"]);
    says(&go(&good, &latency), &["2 benchmarks", "way=plus-2", "from.benchmark"]);
    says(&go(&good, &of("BenchmarkSplit", "-", "s")), &["\"BenchmarkSplit\"", "way=plus-2"]);
    says(&go(&good, &of("BenchmarkJoin/way=plus", "MB/s", "By/s")), &["line 5", "\"MB/s\"", "allocs/op"]);
    says(&go(&good, &of("BenchmarkJoin/way=plus", "B/op", "s")), &["line 5.B/op", "it is in B/op", "unit s"]);
    says(
        &go(&good.replace("PASS", "--- FAIL: BenchmarkJoin\nFAIL"), &latency),
        &["line 11", "--- FAIL: BenchmarkJoin"],
    );
    says(&go("panic: boom\n", &latency), &["line 1", "panic: boom"]);
    says(&go("--- SKIP: BenchmarkJoin\nPASS\n", &latency), &["it was skipped"]);
    says(&go("BenchmarkJoin-2 \t 100\t 12", &latency), &["line 1", "middle of a line"]);
    says(&go("BenchmarkJoin-2 \t 100\t 12\n", &latency), &["line 1", "pairs"]);
    says(&go("BenchmarkJoin-2 \t 100\t NaN ns/op\nPASS\n", &latency), &["line 1", "\"NaN\"", "not a finite number"]);
    says(&go("BenchmarkJoin-2 \t 100\t 1 ns/op 2 ns/op\n", &latency), &["ns/op twice"]);
    says(&go("BenchmarkJoin-2 \thello\n", &latency), &["line 1 has no figures", "print"]);
    let threads = "BenchmarkJoin-2 1 5 ns/op\nBenchmarkJoin-4 1 5 ns/op\nPASS\n";
    says(&go(threads, &of("BenchmarkJoin", "-", "s")), &["2 benchmarks", "BenchmarkJoin-4"]);
    let packages = "pkg: a\nBenchmarkJoin 1 5 ns/op\nPASS\npkg: b\nBenchmarkJoin 1 6 ns/op\nPASS\n";
    says(&go(packages, &of("BenchmarkJoin", "-", "s")), &["2 benchmarks", "a.BenchmarkJoin", "b.BenchmarkJoin"]);
    let result = read(Format::GoBench, packages, &of("b.BenchmarkJoin", "-", "s"));
    assert_eq!(samples(&result.metrics["latency"]), [6e-9]);
    let cut = &good[..good.len() - 30];
    says(&go(&format!("{cut} "), &of("BenchmarkJoin/way=builder", "-", "s")), &["middle of a line"]);
    let events = text("go-1.26.8.json");
    says(&go(&events[..events.len() - 20], &latency), &["line 2", "ends in the middle"]);
    let failed = "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"BenchmarkJoin\"}\n";
    says(&go(failed, &latency), &["line 1", "failure of BenchmarkJoin"]);
}

// --- Criterion

/// The folder's files, as the runner collects them.
fn criterion() -> Vec<Source> {
    fn below(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { below(&path, files) } else { files.push(path) }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/criterion-0.8.2");
    let mut files = Vec::new();
    below(&root, &mut files);
    files.sort();
    let source = |path: &PathBuf| Source {
        name: path.strip_prefix(&root).expect("below").display().to_string(),
        bytes: fs::read(path).expect("a file"),
    };
    // base has files of an earlier measurement, which are not read.
    files.iter().map(source).filter(|source| source.name.contains("/new/")).collect()
}

#[test]
fn a_sample_of_criterion_is_a_time_divided_by_its_iterations() {
    let metrics = [
        metric("latency", "s", "find/binary", "-", "ns"),
        metric("slope", "s", "find/binary", "slope", "ns"),
        metric("lookups", "lookups/s", "find/binary", "throughput", "-"),
    ];
    let result = convert(&output(Format::Criterion, &metrics), &criterion()).expect("read");
    result.check().expect("a result by the schema");
    let latency = samples(&result.metrics["latency"]);
    assert_eq!(latency.len(), 20);
    assert_eq!(latency[0], 948_975.0 / 1380.0 / 1e9);
    assert_eq!(value(&result.metrics["slope"]), 703.079_330_656_971_1 / 1e9);
    assert_eq!(effective(&result, "slope.statistic"), "slope");
    assert_eq!(samples(&result.metrics["lookups"])[0], 64.0 / (948_975.0 / 1380.0 / 1e9));
}

#[test]
fn criterion_as_text_has_one_median() {
    let metrics = [metric("latency", "s", "find/linear", "-", "-")];
    let result = read(Format::Criterion, fixture("criterion-0.8.2-bencher.txt"), &metrics);
    assert_eq!(value(&result.metrics["latency"]), 42_928.0 / 1e9);
    assert_eq!(effective(&result, "latency.statistic"), "median");
    let libtest = "running 1 test\ntest copy ... bench:   1,234.56 ns/iter (+/- 7.8) = 81 MB/s\n";
    let result = read(Format::Criterion, libtest, &[metric("rate", "By/s", "copy", "throughput", "-")]);
    assert_eq!(value(&result.metrics["rate"]), 81e6);
}

#[test]
fn faults_of_criterion_say_where_and_what_to_do() {
    let binary = [metric("latency", "s", "find/binary", "-", "ns")];
    let folder = |change: &dyn Fn(&mut Vec<Source>)| {
        let mut files = criterion();
        change(&mut files);
        convert(&output(Format::Criterion, &binary), &files).expect_err("a fault").to_string()
    };
    let replaced = |name: &'static str, from: &'static str, to: &'static str| {
        folder(&|files| {
            let file = files.iter_mut().find(|file| file.name == name).expect("there");
            file.bytes = String::from_utf8_lossy(&file.bytes).replacen(from, to, 1).into_bytes();
        })
    };
    let sample = "find/binary/new/sample.json";
    says(&folder(&|files| files.retain(|file| file.name != sample)), &[sample, "is missing", "did not finish"]);
    says(&folder(&|files| files.retain(|file| !file.name.contains("binary"))), &["\"find/binary\"", "find/linear"]);
    says(&replaced(sample, "1380.0", "0"), &["find/binary/new.sample", "iters[0] is 0"]);
    says(&replaced(sample, "948975.0", "null"), &["times[0]", "found null"]);
    says(&replaced(sample, "948975.0,", ""), &["20 iters and 19 times"]);
    says(&replaced(sample, "]}", ""), &[sample, "line 1", "ends in the middle"]);
    says(&replaced("find/binary/new/benchmark.json", "find/binary", "find/linear"), &["has no figures of"]);

    let text = |text: &str| fault(Format::Criterion, text, &binary);
    says(&text("nothing here\n"), &["no figures", "--output-format bencher"]);
    says(&text("test find/binary ... \n"), &["line 1 has no figure"]);
    says(&text("test find/binary ... bench: fast ns/iter (+/- 1)\n"), &["\"fast\"", "not a finite number"]);
    says(&text("test find/binary ... bench: 12 ns\n"), &["line 1", "N ns/iter"]);
    says(&text("thread 'main' panicked at benches/find.rs:3\n"), &["line 1", "panicked"]);
}

// --- Google Benchmark

#[test]
fn repetitions_of_google_benchmark_are_samples() {
    let metrics = [
        metric("latency", "s", "BM_Vector/65536", "-", "-"),
        metric("cpu", "s", "BM_Vector/65536_median", "cpu_time", "-"),
        metric("rate", "numbers/s", "BM_Vector/65536", "items_per_second", "-"),
    ];
    let result = read(Format::GoogleBenchmark, fixture("google-benchmark-1.7.1.json"), &metrics);
    let latency = samples(&result.metrics["latency"]);
    assert_eq!((latency.len(), latency[0]), (3, 1.660_760_882_489_045_3e4 / 1e9));
    assert_eq!(samples(&result.metrics["rate"])[0], 3.945_913_095_385_084_6e9);
    assert!(value(&result.metrics["cpu"]) > 0.0, "an aggregate is one figure");
    assert_eq!(result.workload.build.expect("build")["library_build_type"], "debug");
}

#[test]
fn an_aggregate_does_not_make_a_single_benchmark_ambiguous() {
    let mut document: serde_json::Value =
        serde_json::from_slice(&fixture("google-benchmark-1.7.1.json")).expect("JSON");
    let benchmarks = document["benchmarks"].as_array_mut().expect("a list");
    benchmarks.retain(|one| one["run_name"] == "BM_List/65536");
    let result = read(Format::GoogleBenchmark, document.to_string(), &[metric("latency", "s", "-", "-", "-")]);
    assert_eq!(effective(&result, "latency.benchmark"), "BM_List/65536");
}

#[test]
fn faults_of_google_benchmark_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "BM_Vector/65536", "-", "-")];
    let good = text("google-benchmark-1.7.1.json");
    let google = |text: &str, metrics: &[MetricSource]| fault(Format::GoogleBenchmark, text, metrics);
    let time = "\"real_time\": 1.6607608824890453e+04";
    says(&google("", &latency), &["is empty", "--benchmark_format=json"]);
    says(&google(&good[..500], &latency), &["ends in the middle"]);
    says(&google("{\"context\": {}}", &latency), &["field benchmarks", "missing"]);
    says(&google("{\"benchmarks\": []}", &latency), &["--benchmark_filter"]);
    says(&google("{\"benchmarks\": 3}", &latency), &["field benchmarks", "found 3"]);
    says(&google(&good.replace(time, "\"real_time\": NaN"), &latency), &["benchmarks[0].real_time", "\"NaN\""]);
    says(&google(&good.replace(time, "\"real_time\": \"fast\""), &latency), &["benchmarks[0].real_time", "\"fast\""]);
    let skipped =
        good.replacen("\"run_type\"", "\"error_occurred\": true, \"error_message\": \"no file\", \"run_type\"", 1);
    says(&google(&skipped, &latency), &["benchmarks[0]", "no file"]);
    let mut aggregates: serde_json::Value = serde_json::from_str(&good).expect("JSON");
    aggregates["benchmarks"].as_array_mut().expect("a list").retain(|one| one["run_type"] == "aggregate");
    says(&google(&aggregates.to_string(), &latency), &["only aggregates", "--benchmark_report_aggregates_only"]);
    says(&google(&good, &[metric("latency", "s", "BM_Vector/65536", "wall", "-")]), &["\"wall\"", "cpu_time"]);
    says(
        &google(&good, &[metric("latency", "s", "BM_Vector/65536", "-", "ms")]),
        &["tool is ns", "is ms", "remove from.unit"],
    );
}

// --- hyperfine

#[test]
fn every_run_of_hyperfine_is_a_sample() {
    let metrics = [
        metric("latency", "s", "gzip -1 -c numbers.txt", "-", "-"),
        metric("memory", "By", "gzip -1 -c numbers.txt", "memory_usage_byte", "-"),
        metric("mean", "ms", "gzip -9 -c numbers.txt", "mean", "-"),
    ];
    let result = read(Format::Hyperfine, fixture("hyperfine-1.20.0.json"), &metrics);
    assert_eq!(
        samples(&result.metrics["latency"]),
        [0.004446973, 0.004157551000000001, 0.004023621000000001, 0.003946586, 0.00390544]
    );
    assert_eq!(samples(&result.metrics["memory"]), [2_965_504.0; 5]);
    assert_eq!(value(&result.metrics["mean"]), 0.013185374000000003 * 1e3);
    assert_eq!(effective(&result, "mean.statistic"), "mean");
}

#[test]
fn faults_of_hyperfine_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "gzip -1 -c numbers.txt", "-", "-")];
    let good = text("hyperfine-1.20.0.json");
    let hyperfine = |text: &str, metrics: &[MetricSource]| fault(Format::Hyperfine, text, metrics);
    says(&hyperfine("Benchmark 1: gzip\n", &latency), &["line 1", "not JSON", "Benchmark 1"]);
    says(&hyperfine("{}", &latency), &["field results", "--export-json"]);
    says(&hyperfine(&good, &[metric("latency", "s", "-", "-", "-")]), &["2 benchmarks", "gzip -9"]);
    says(&hyperfine(&good.replace("gzip -9", "gzip -1"), &latency), &["twice", "results[0]", "results[1]"]);
    says(
        &hyperfine(&good.replacen("        0,", "        1,", 1), &latency),
        &["results[0].exit_codes[0]", "exit code 1"],
    );
    says(&hyperfine(&good.replacen("        0.004446973,", "\"x\",", 1), &latency), &["results[0].times", "[0]"]);
    let short = good.replacen("\"times\"", "\"timings\"", 1);
    says(&hyperfine(&short, &latency), &["no figure \"times\"", "from.field is not given", "mean"]);
}

// --- pytest-benchmark

#[test]
fn every_round_of_pytest_benchmark_is_a_sample() {
    let metrics = [
        metric("latency", "s", "test_lookup[set]", "-", "-"),
        metric("rate", "lookups/s", "test_lookup.py::test_lookup[set]", "ops", "-"),
    ];
    let result = read(Format::PytestBenchmark, fixture("pytest-benchmark-5.3.1.json"), &metrics);
    assert_eq!(samples(&result.metrics["latency"]).len(), 1414);
    assert_eq!(samples(&result.metrics["latency"])[0], 7.145499694161117e-07);
    assert_eq!(value(&result.metrics["rate"]), 1370638.087853208);
    assert_eq!(iterations(&result, "latency.iterations"), 1414.0 * 20.0);
    assert_eq!(result.workload.version, "5.3.1");
}

#[test]
fn faults_of_pytest_benchmark_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "test_lookup[set]", "-", "-")];
    let good = text("pytest-benchmark-5.3.1.json");
    let pytest = |text: &str, metrics: &[MetricSource]| fault(Format::PytestBenchmark, text, metrics);
    says(&pytest("{\"benchmarks\": []}", &latency), &["benchmark fixture"]);
    says(&pytest("[]", &latency), &["field benchmarks", "--benchmark-json"]);
    says(&pytest("{\"benchmarks\": [{\"name\": \"a\"}]}", &latency), &["benchmarks[0].stats", "found null"]);
    says(&pytest("{\"benchmarks\": [{\"name\": 3}]}", &latency), &["benchmarks[0].name", "found 3"]);
    says(&pytest("{\"benchmarks\": [{\"name\": \"a\", \"has_error\": true}]}", &latency), &["has_error", "failed"]);
    let same = good.replace("test_lookup[list]", "test_lookup[set]").replacen("test_lookup.py", "test_other.py", 1);
    says(&pytest(&same, &latency), &["2 benchmarks", "test_other.py::test_lookup[set]"]);
    let many = format!(
        "{{\"benchmarks\": [{{\"name\": \"test_lookup[set]\", \"stats\": {{\"data\": [{}1]}}}}]}}",
        "1,".repeat(assay_adapters::MOST_SAMPLES)
    );
    says(&pytest(&many, &latency), &["100001 samples", "at most 100000"]);
    let none = "{\"benchmarks\": [{\"name\": \"test_lookup[set]\", \"stats\": {\"data\": []}}]}";
    says(&pytest(none, &latency), &["benchmarks[0].data", "no sample"]);
}

// --- k6

#[test]
fn k6_has_figures_that_it_computed() {
    let metrics = [
        metric("latency", "s", "http_req_duration", "p(95)", "-"),
        metric("rate", "requests/s", "http_reqs", "rate", "-"),
        metric("received", "By", "data_received", "count", "-"),
        metric("failed", "1", "http_req_failed", "value", "-"),
    ];
    let result = read(Format::K6, fixture("k6-1.8.1-summary-export.json"), &metrics);
    assert_eq!(value(&result.metrics["latency"]), 2.14904855 / 1e3);
    assert_eq!(effective(&result, "latency.statistic"), "p(95)");
    assert_eq!(value(&result.metrics["received"]), 93400.0);
    assert_eq!(value(&result.metrics["failed"]), 0.0);
    assert!(value(&result.metrics["rate"]) > 100.0);

    let metrics = [metric("latency", "s", "http_req_duration", "med", "-"), metric("ok", "1", "checks", "rate", "-")];
    let result = read(Format::K6, fixture("k6-1.8.1-handle-summary.json"), &metrics);
    assert_eq!(value(&result.metrics["latency"]), 0.858099 / 1e3);
    assert_eq!(value(&result.metrics["ok"]), 1.0, "a share, and not per second");

    let metrics =
        [metric("latency", "s", "http_req_duration", "avg", "-"), metric("ok", "1", "checks_succeeded", "rate", "-")];
    let result = read(Format::K6, fixture("k6-1.8.1-machine-readable.json"), &metrics);
    assert!(value(&result.metrics["latency"]) < 0.01);
    assert_eq!(value(&result.metrics["ok"]), 1.0);
}

#[test]
fn faults_of_k6_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "http_req_duration", "p(95)", "-")];
    let good = text("k6-1.8.1-summary-export.json");
    let k6 = |text: &str, metrics: &[MetricSource]| fault(Format::K6, text, metrics);
    // k6 itself exits with 0 in this case.
    says(&k6(&text("k6-1.8.1-server-gone.json"), &latency), &["metrics.http_req_failed", "every request failed"]);
    let wrong = good.replace("\"fails\": 0,\n            \"value\": 1", "\"fails\": 200,\n            \"value\": 0");
    says(&k6(&wrong, &latency), &["metrics.checks", "every check failed"]);
    says(&k6("{}", &latency), &["field metrics", "--summary-export"]);
    says(&k6("{\"metrics\": {}}", &latency), &["metrics is empty"]);
    says(&k6("{\"metrics\": [1]}", &latency), &["field metrics", "found a list"]);
    says(&k6(&good, &[metric("latency", "s", "http_req_duration", "-", "-")]), &["from.field", "p(95)"]);
    says(&k6(&good, &[metric("latency", "s", "http_req_duration", "p(99)", "-")]), &["\"p(99)\"", "\"p(95)\""]);
    says(&k6(&good, &[metric("latency", "s", "http_reqs", "rate", "-")]), &["metrics.http_reqs.rate", "it is in 1/s"]);
}

// --- JMH

#[test]
fn every_iteration_of_every_fork_of_jmh_is_a_sample() {
    let thousand = "example.Sorting.sort:numbers=1000";
    let metrics = [
        metric("latency", "s", thousand, "-", "-"),
        metric("mean", "us", thousand, "score.mean", "-"),
        metric("slow", "s", thousand, "score.p(99.0)", "-"),
        metric("rate", "By/s", thousand, "gc.alloc.rate", "-"),
        metric("memory", "By", "example.Sorting.sort:numbers=4000", "gc.alloc.rate.norm.mean", "-"),
    ];
    let result = read(Format::Jmh, fixture("jmh-1.37.json"), &metrics);
    assert_eq!(
        samples(&result.metrics["latency"]),
        [
            434.19126288659794 / 1e6,
            1224.9389428571428 / 1e6,
            414.80378245614037 / 1e6,
            380.85658362989324 / 1e6,
            583.8391921568627 / 1e6,
            1447.7085858585858 / 1e6
        ]
    );
    assert_eq!(value(&result.metrics["mean"]), 747.7230583075371);
    assert_eq!(value(&result.metrics["slow"]), 1447.7085858585858 / 1e6);
    assert_eq!(effective(&result, "slow.statistic"), "score.p(99.0)");
    assert_eq!(samples(&result.metrics["rate"])[0], 8.26610529445038 * 1024.0 * 1024.0, "MB/sec of JMH is MiB/s");
    assert!(value(&result.metrics["memory"]) > 16_000.0);
    assert_eq!(result.workload.version, "1.37");
    assert_eq!(result.workload.build.expect("build")["jdkVersion"], "17.0.15");
}

#[test]
fn every_mode_of_jmh_has_its_samples() {
    let rate = [metric("rate", "sorts/s", "-", "-", "-")];
    let result = read(Format::Jmh, fixture("jmh-1.37-throughput.json"), &rate);
    assert_eq!(samples(&result.metrics["rate"]), [0.9562931305011696 * 1e3, 1.0714067570211911 * 1e3]);

    let latency = [metric("latency", "s", "-", "-", "-")];
    let result = read(Format::Jmh, fixture("jmh-1.37-sample-time.json"), &latency);
    let every = samples(&result.metrics["latency"]);
    assert_eq!((every.len(), every[0]), (626, 32.608000000000004 / 1e6), "a value as often as it came");

    let single = [metric("latency", "s", "example.Sorting.sort", "-", "-")];
    let result = read(Format::Jmh, fixture("jmh-1.37-single-shot.json"), &single);
    assert_eq!(samples(&result.metrics["latency"]), [698.897 / 1e6]);
    assert_eq!(effective(&result, "latency.benchmark"), "example.Sorting.sort:numbers=1000");
}

#[test]
fn faults_of_jmh_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "example.Sorting.sort:numbers=1000", "-", "-")];
    let good = text("jmh-1.37.json");
    let jmh = |text: &str, metrics: &[MetricSource]| fault(Format::Jmh, text, metrics);
    // JMH itself exits with 0 in this case.
    says(&jmh(&text("jmh-1.37-failed.json"), &latency), &["no figures", "the list is empty", "-foe true"]);
    says(&jmh("", &latency), &["is empty", "-rf json"]);
    says(&jmh(&good[..4000], &latency), &["ends in the middle"]);
    says(&jmh("{}", &latency), &["found an object", "-rf json"]);
    says(&jmh("[{}]", &latency), &["[0].benchmark", "missing"]);
    says(&jmh("[{\"benchmark\": \"a\", \"mode\": \"avgt\"}]", &latency), &["[0].primaryMetric", "\"a\""]);
    says(&jmh(&good, &[metric("latency", "s", "example.Sorting.sort", "-", "-")]), &["2 benchmarks", "numbers=4000"]);
    let none = good.replacen("434.19126288659794", "\"NaN\"", 1);
    says(&jmh(&none, &latency), &["[0].score", "rawData[0][0]", "\"NaN\""]);
    says(&jmh(&good, &[metric("rate", "1/s", "example.Sorting.sort:numbers=1000", "-", "-")]), &["it is in us/op"]);
    let modes = good.replacen("\"avgt\"", "\"ss\"", 1).replace("\"4000\"", "\"1000\"");
    says(&jmh(&modes, &latency), &["2 benchmarks", "numbers=1000:ss", "numbers=1000:avgt"]);
    let histogram = |times: &str| {
        let metric = format!("{{\"scoreUnit\": \"s/op\", \"rawDataHistogram\": [[[[1, {times}]]]]}}");
        format!("[{{\"benchmark\": \"a\", \"mode\": \"sample\", \"primaryMetric\": {metric}}}]")
    };
    let any = [metric("latency", "s", "-", "-", "-")];
    says(&jmh(&histogram("100001"), &any), &["[0].score", "more than 100000 samples", "score.mean"]);
    says(&jmh(&histogram("18446744073709551615"), &any), &["more than 100000 samples"]);
    says(&jmh(&histogram("-1"), &any), &["rawDataHistogram[0][0][0][1]", "non-negative integer"]);
    says(&jmh(&histogram("1, 2"), &any), &["rawDataHistogram[0][0][0]", "a list of 3"]);
}

// --- BenchmarkDotNet

/// Not recorded: written after BenchmarkDotNet's sources and documentation.
const DOTNET: &str = "benchmarkdotnet-documented.json";

#[test]
fn every_iteration_of_benchmarkdotnet_is_a_sample() {
    let metrics = [
        metric("latency", "s", "Example.Lookups.List(Count: 1000)", "-", "-"),
        metric("mean", "s", "Lookups.Set: Job-A(IterationCount=4) [Count=1000]", "Mean", "-"),
        metric("slow", "s", "Example.Lookups.List(Count: 1000)", "P95", "-"),
        metric("memory", "By", "Example.Lookups.List(Count: 1000)", "BytesAllocatedPerOperation", "-"),
        metric("misses", "misses", "Example.Lookups.List(Count: 1000)", "CacheMisses", "-"),
    ];
    let result = read(Format::BenchmarkDotNet, fixture(DOTNET), &metrics);
    assert_eq!(
        samples(&result.metrics["latency"]),
        [412.5 / 1e9, 409.25 / 1e9, 415.0 / 1e9, 411.75 / 1e9],
        "and no warm-up"
    );
    assert_eq!(value(&result.metrics["mean"]), 9.5 / 1e9);
    assert_eq!(value(&result.metrics["slow"]), 414.625 / 1e9);
    assert_eq!(value(&result.metrics["memory"]), 24.0);
    assert_eq!(value(&result.metrics["misses"]), 7.0);
    assert_eq!(result.workload.version, "0.14.0");
    assert_eq!(result.workload.build.expect("build")["Configuration"], "RELEASE");
}

#[test]
fn faults_of_benchmarkdotnet_say_where_and_what_to_do() {
    let set = "Example.Lookups.Set(Count: 1000)";
    let latency = [metric("latency", "s", set, "-", "-")];
    let good = text(DOTNET);
    let dotnet = |text: &str, metrics: &[MetricSource]| fault(Format::BenchmarkDotNet, text, metrics);
    says(&dotnet("", &latency), &["is empty", "--exporters json"]);
    says(&dotnet(&good[..900], &latency), &["ends in the middle"]);
    says(&dotnet("{}", &latency), &["field Benchmarks", "JSON exporter"]);
    says(&dotnet("{\"Benchmarks\": []}", &latency), &["--filter"]);
    let failed = "{\"Benchmarks\": [{\"FullName\": \"a\", \"Statistics\": null}]}";
    says(&dotnet(failed, &latency), &["Benchmarks[0].Statistics", "found null", "\"a\" failed"]);
    says(&dotnet(&good.replacen("9.5,9.25", "9.5,\"\"", 1), &latency), &["Benchmarks[1].OriginalValues", "[1]"]);
    // null means that it could not be counted, which is not 0.
    let memory = [metric("memory", "By", set, "BytesAllocatedPerOperation", "-")];
    says(&dotnet(&good, &memory), &["no figure \"BytesAllocatedPerOperation\"", "OriginalValues"]);
    let jobs = good.replace("Lookups.Set(", "Lookups.List(");
    says(&dotnet(&jobs, &[metric("latency", "s", "-", "-", "-")]), &["2 benchmarks", "Lookups.Set: Job-A"]);
}

// --- fio

#[test]
fn fio_has_figures_of_each_direction() {
    let metrics = [
        metric("reads", "reads/s", "read4k:read", "-", "-"),
        metric("bandwidth", "By/s", "read4k:read", "bw_bytes", "-"),
        metric("same", "By/s", "read4k:read", "bw", "-"),
        metric("slow", "s", "read4k:read", "clat_ns.percentile.99.000000", "-"),
        metric("latency", "s", "read4k:write", "lat_ns.mean", "-"),
        metric("runtime", "s", "read4k:write", "runtime", "-"),
    ];
    let result = read(Format::Fio, fixture("fio-3.33.json"), &metrics);
    assert_eq!(value(&result.metrics["reads"]), 6427.272727);
    assert_eq!(value(&result.metrics["bandwidth"]), 26_326_109.0);
    assert_eq!(value(&result.metrics["same"]), 25_709.0 * 1024.0, "bw counts KiB");
    assert_eq!(value(&result.metrics["slow"]), 3_981_312.0 / 1e9);
    assert_eq!(effective(&result, "slow.statistic"), "clat_ns.percentile.99.000000");
    assert_eq!(value(&result.metrics["latency"]), 5421.902208 / 1e9);
    assert_eq!(value(&result.metrics["runtime"]), 0.11);
    assert_eq!(iterations(&result, "reads.iterations"), 707.0);
    assert_eq!(result.workload.version, "3.33");
}

#[test]
fn a_job_of_fio_with_one_direction_is_meant_by_its_name() {
    let metrics = [metric("reads", "1/s", "b", "-", "-"), metric("latency", "s", "a", "clat_ns.mean", "-")];
    let result = read(Format::Fio, fixture("fio-3.33-two-jobs.json"), &metrics);
    assert_eq!(value(&result.metrics["reads"]), 8000.0);
    assert_eq!(value(&result.metrics["latency"]), 30_895.081055 / 1e9);
    assert_eq!(effective(&result, "reads.benchmark"), "b:read");
}

#[test]
fn faults_of_fio_say_where_and_what_to_do() {
    let reads = [metric("reads", "1/s", "read4k:read", "-", "-")];
    let good = text("fio-3.33.json");
    let fio = |text: &str, metrics: &[MetricSource]| fault(Format::Fio, text, metrics);
    says(&fio("", &reads), &["is empty", "--output-format=json"]);
    says(&fio("fio-3.33\nStarting 1 process\n", &reads), &["no line begins with {", "--output-format=json"]);
    says(&fio(&good[..3000], &reads), &["ends in the middle"]);
    says(&fio(&text("fio-3.33-normal-and-json.txt"), &reads), &["line ", "part: (groupid=0", "follows the document"]);
    says(&fio(&text("fio-3.33-failed.json"), &reads), &["no job did any I/O", "\"nosuch:read\"", "total_ios is 0"]);
    says(&fio("{}", &reads), &["field jobs", "--output-format=json"]);
    says(&fio("{\"jobs\": [{}]}", &reads), &["jobs[0].jobname", "missing"]);
    let failed = good.replacen("\"error\" : 0", "\"error\" : 28", 1);
    says(&fio(&failed, &reads), &["jobs[0].error", "\"read4k\" ended with error 28"]);
    says(&fio(&good, &[metric("reads", "1/s", "-", "-", "-")]), &["2 benchmarks", "read4k:write"]);
    says(&fio(&good, &[metric("reads", "1/s", "read4k:trim", "-", "-")]), &["\"read4k:trim\"", "total_ios is 0"]);
    says(&fio(&good, &[metric("reads", "1/s", "read4k:read", "IOPS", "-")]), &["jobs[0].read", "no figure \"IOPS\""]);
    says(&fio(&good, &[metric("reads", "s", "read4k:read", "-", "-")]), &["jobs[0].read.iops", "it is in 1/s"]);
    says(&fio(&good.replacen("6427.272727", "-nan", 1), &reads), &["jobs[0].read.iops", "\"-nan\""]);
}

// --- wrk

#[test]
fn wrk_has_figures_that_it_computed() {
    let metrics = [
        metric("rate", "requests/s", "-", "-", "-"),
        metric("received", "By/s", "-", "Transfer/sec", "-"),
        metric("latency", "s", "http://127.0.0.1:18765/", "Latency Avg", "-"),
        metric("slow", "s", "-", "Latency 99%", "-"),
        metric("within", "1", "-", "Latency +/- Stdev", "-"),
        metric("timeouts", "1", "-", "Socket errors timeout", "-"),
    ];
    let result = read(Format::Wrk, fixture("wrk-4.1.0.txt"), &metrics);
    assert_eq!(value(&result.metrics["rate"]), 83.82);
    assert_eq!(value(&result.metrics["received"]), 9.79 * 1024.0, "a size has prefixes of 1024");
    assert_eq!(value(&result.metrics["latency"]), 47.50 / 1e3);
    assert_eq!(value(&result.metrics["slow"]), 108.51 / 1e3);
    assert_eq!(effective(&result, "slow.statistic"), "Latency 99%");
    assert_eq!(value(&result.metrics["within"]), 86.05 / 1e2);
    assert_eq!(value(&result.metrics["timeouts"]), 0.0, "wrk omits the line when the count is zero");
    assert_eq!(iterations(&result, "rate.iterations"), 168.0);

    let metrics = [
        metric("thread", "requests/s", "-", "Req/Sec Avg", "-"),
        metric("latency", "s", "-", "Latency Avg", "-"),
        metric("closed", "errors", "-", "Socket errors read", "-"),
    ];
    let result = read(Format::Wrk, fixture("wrk-4.1.0-socket-errors.txt"), &metrics);
    assert_eq!(value(&result.metrics["thread"]), 40.68 * 1e3, "a count has prefixes of 1000");
    assert_eq!(value(&result.metrics["latency"]), 435.92 / 1e6);
    assert_eq!(value(&result.metrics["closed"]), 4.0);

    let result = read(Format::Wrk, fixture("wrk-4.1.0-script.txt"), &[metric("rate", "1/s", "-", "-", "-")]);
    assert_eq!(value(&result.metrics["rate"]), 91.66, "and the script's output is ignored");
    let minutes = text("wrk-4.1.0.txt").replacen("47.50ms", "1.50m", 1);
    let result = read(Format::Wrk, minutes, &[metric("latency", "s", "-", "Latency Avg", "-")]);
    assert_eq!(value(&result.metrics["latency"]), 90.0);
}

#[test]
fn faults_of_wrk_say_where_and_what_to_do() {
    let rate = [metric("rate", "1/s", "-", "-", "-")];
    let good = text("wrk-4.1.0.txt");
    let wrk = |text: &str, metrics: &[MetricSource]| fault(Format::Wrk, text, metrics);
    says(&wrk("", &rate), &["is empty", "--latency"]);
    says(&wrk("hello\n", &rate), &["Running TIME test @ URL"]);
    says(&wrk(good.trim_end(), &rate), &["a whole line with Transfer/sec"]);
    let refused = "unable to connect to 127.0.0.1:18765 Connection refused\n";
    says(&wrk(refused, &rate), &["line 1", "Connection refused", "check that the server is running"]);
    // wrk itself ends with exit code 0 then.
    says(&wrk(&text("wrk-4.1.0-no-answer.txt"), &rate), &["field requests", "no request was answered"]);
    says(&wrk(&text("wrk-4.1.0-every-answer-404.txt"), &rate), &["Non-2xx or 3xx responses", "every response"]);
    let slow = [metric("slow", "s", "-", "Latency 99%", "-")];
    says(&wrk(&text("wrk-4.1.0-without-latency.txt"), &slow), &["no figure \"Latency 99%\"", "Latency Avg"]);
    says(&wrk(&good.replacen("83.82", "-nan", 1), &rate), &["Requests/sec", "\"-nan\""]);
    says(&wrk(&good.replacen("83.82", "83.82q", 1), &rate), &["Requests/sec", "\"83.82q\"", "\"q\""]);
    says(&wrk(&good, &[metric("rate", "s", "-", "-", "-")]), &["Requests/sec", "it is in 1/s"]);
    let fast = good.replace("127.0.0.1:18765/", "127.0.0.1:18765/fast");
    let by_path = read(Format::Wrk, fast.clone(), &[metric("rate", "requests/s", "/fast", "-", "-")]);
    assert!(effective(&by_path, "rate.benchmark").ends_with("/fast"), "the path of the URL is another name of it");
    assert!(!by_path.effective.as_ref().expect("effective").contains_key("rate.unit"), "a known unit is converted");
    says(&wrk(&fast, &[metric("rate", "requests/s", "/slow", "-", "-")]), &["no figures of \"/slow\""]);
}

// --- sysbench

#[test]
fn sysbench_has_figures_that_it_computed() {
    let metrics = [
        metric("rate", "events/s", "-", "events per second", "-"),
        metric("latency", "s", "-", "avg", "-"),
        metric("slow", "s", "-", "95th percentile", "-"),
        metric("time", "s", "-", "total time", "-"),
        metric("fairness", "events", "-", "events stddev", "-"),
    ];
    let result = read(Format::Sysbench, fixture("sysbench-1.0.20-cpu.txt"), &metrics);
    assert_eq!(value(&result.metrics["rate"]), 10341.69);
    assert_eq!(value(&result.metrics["latency"]), 0.19 / 1e3);
    assert_eq!(value(&result.metrics["slow"]), 0.03 / 1e3);
    assert_eq!(value(&result.metrics["time"]), 2.0030);
    assert_eq!(value(&result.metrics["fairness"]), 1250.0);
    assert_eq!(iterations(&result, "rate.iterations"), 20_738.0);
    assert_eq!(result.workload.version, "1.0.20");

    let metrics = [
        metric("operations", "operations/s", "-", "Total operations per second", "-"),
        metric("bandwidth", "By/s", "-", "transferred per second", "-"),
        metric("written", "By", "-", "transferred", "-"),
    ];
    let result = read(Format::Sysbench, fixture("sysbench-1.0.20-memory.txt"), &metrics);
    assert_eq!(value(&result.metrics["operations"]), 1_578_037.77);
    assert_eq!(value(&result.metrics["bandwidth"]), 1541.05 * 1024.0 * 1024.0);
    assert_eq!(value(&result.metrics["written"]), 1024.0 * 1024.0 * 1024.0);

    let metrics = [metric("reads", "1/s", "-", "reads/s", "-"), metric("read", "By/s", "-", "read, MiB/s", "-")];
    let result = read(Format::Sysbench, fixture("sysbench-1.0.20-fileio.txt"), &metrics);
    assert_eq!(value(&result.metrics["reads"]), 5388.18);
    assert_eq!(value(&result.metrics["read"]), 84.19 * 1024.0 * 1024.0);

    let busy = [metric("busy", "s", "-", "execution time avg", "-")];
    let result = read(Format::Sysbench, fixture("sysbench-1.0.20-mutex.txt"), &busy);
    assert_eq!(value(&result.metrics["busy"]), 1.8331);
}

#[test]
fn faults_of_sysbench_say_where_and_what_to_do() {
    let rate = [metric("rate", "1/s", "-", "events per second", "-")];
    let good = text("sysbench-1.0.20-cpu.txt");
    let sysbench = |text: &str, metrics: &[MetricSource]| fault(Format::Sysbench, text, metrics);
    says(&sysbench("", &rate), &["is empty", "sysbench TEST run"]);
    says(&sysbench("hello\n", &rate), &["no line reads Threads started!"]);
    says(&sysbench(good.trim_end(), &rate), &["Threads fairness", "the output is truncated"]);
    let fatal = "sysbench 1.0.20\n\nFATAL: Cannot find benchmark 'nosuch'\n";
    says(&sysbench(fatal, &rate), &["line 3", "FATAL", "nosuch"]);
    // The last report covers only the time after the checkpoint.
    says(&sysbench(&text("sysbench-1.0.20-threads.txt"), &rate), &["line 13", "--report-checkpoints"]);
    says(&sysbench(&good.replacen("20738", "0", 1), &rate), &["total number of events", "nothing to measure"]);
    says(&sysbench(&good, &[metric("rate", "1/s", "-", "-", "-")]), &["from.field", "\"events per second\""]);
    let disabled = [metric("slow", "s", "-", "percentile stats", "-")];
    says(&sysbench(&text("sysbench-1.0.20-fileio.txt"), &disabled), &["line 40", "\"disabled\"", "finite number"]);
    let twice = good.replacen("min:", "avg:", 1);
    says(&sysbench(&twice, &[metric("latency", "s", "-", "avg", "-")]), &["avg", "duplicate", "line 23"]);
    says(&sysbench(&good, &[metric("rate", "s", "-", "events per second", "-")]), &["it is in 1/s"]);
}

// --- divan

#[test]
fn divan_has_four_statistics_of_a_benchmark() {
    let metrics = [
        metric("latency", "s", "typed::zero::u8", "-", "-"),
        metric("slowest", "s", "collect", "slowest", "-"),
        metric("mean", "s", "reverse::collect", "mean", "-"),
        metric("bandwidth", "By/s", "swap::1000", "median bytes/s", "-"),
        metric("rate", "items/s", "typed::zero::u8", "median items/s", "-"),
        metric("peak", "By", "collect", "median max alloc bytes", "-"),
        metric("allocations", "1", "threads::t=2", "slowest alloc", "-"),
    ];
    let result = read(Format::Divan, fixture("divan-0.1.21.txt"), &metrics);
    assert_eq!(value(&result.metrics["latency"]), 14.08 / 1e9);
    assert_eq!(effective(&result, "latency.statistic"), "median");
    assert_eq!(value(&result.metrics["slowest"]), 8.081 / 1e6);
    assert_eq!(value(&result.metrics["mean"]), 547.7 / 1e9);
    assert_eq!(value(&result.metrics["bandwidth"]), 58.6 * 1e9);
    assert_eq!(value(&result.metrics["rate"]), 7.1 * 1e9);
    assert_eq!(value(&result.metrics["peak"]), 4.0 * 1e3);
    assert_eq!(value(&result.metrics["allocations"]), 1.0);
    assert_eq!(iterations(&result, "latency.iterations"), 2560.0);

    let latency = [metric("latency", "s", "-", "-", "-")];
    let result = read(Format::Divan, fixture("divan-0.1.21-one.txt"), &latency);
    assert_eq!(value(&result.metrics["latency"]), 310.4 / 1e9);
    assert_eq!(effective(&result, "latency.benchmark"), "collect");
    let binary = text("divan-0.1.21.txt").replace("58.6 GB/s ", "58.6 KiB/s");
    let result = read(Format::Divan, binary, &[metric("bandwidth", "By/s", "swap::1000", "median bytes/s", "-")]);
    assert_eq!(value(&result.metrics["bandwidth"]), 58.6 * 1024.0);
    let days = text("divan-0.1.21-one.txt").replace("310.4 ns", "2 d     ");
    assert_eq!(value(&read(Format::Divan, days, &latency).metrics["latency"]), 2.0 * 24.0 * 3600.0);
}

#[test]
fn faults_of_divan_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "collect", "-", "-")];
    let good = text("divan-0.1.21.txt");
    let divan = |text: &str, metrics: &[MetricSource]| fault(Format::Divan, text, metrics);
    says(&divan("", &latency), &["is empty", "--bench"]);
    says(&divan(&text("divan-0.1.21-test.txt"), &latency), &["no table", "--bench"]);
    says(&divan(good.trim_end(), &latency), &["does not end with an empty line", "the output is truncated"]);
    let printed = good.replacen("├─ swap", "hello\n├─ swap", 1);
    says(&divan(&printed, &latency), &["line 9", "\"hello\"", "no benchmark prints"]);
    says(&divan(&good, &[metric("latency", "s", "-", "-", "-")]), &["7 benchmarks", "\"swap::1000\""]);
    let ignored = [metric("latency", "s", "typed::skipped", "-", "-")];
    says(&divan(&good, &ignored), &["ignored in line 30", "--include-ignored"]);
    says(&divan(&good, &[metric("latency", "s", "swap", "-", "-")]), &["\"swap\"", "\"swap::4000\""]);
    says(&divan(&good.replacen("119.4 ns", "119.4 xs", 1), &latency), &["line 2.median", "\"119.4 xs\"", "not a time"]);
    says(&divan(&good.replacen("58.87 GB/s", "58.87 GB/d", 1), &latency), &["line 11", "\"58.87 GB/d\""]);
    says(&divan(&good, &[metric("rate", "1/s", "collect", "-", "-")]), &["line 2.median", "it is in ns"]);
}

// --- Catch2

#[test]
fn catch2_has_a_mean_and_its_bounds() {
    let metrics = [
        metric("latency", "s", "std::sort", "-", "-"),
        metric("low", "s", "sorting/std::sort", "low mean", "-"),
        metric("spread", "ns", "std::stable_sort <1000>", "standard deviation", "-"),
    ];
    let result = read(Format::Catch2, fixture("catch2-2.13.10.xml"), &metrics);
    assert_eq!(value(&result.metrics["latency"]), 17987.5 / 1e9);
    assert_eq!(effective(&result, "latency.statistic"), "mean");
    assert_eq!(value(&result.metrics["low"]), 10717.7 / 1e9);
    assert_eq!(value(&result.metrics["spread"]), 4103.31);
    assert_eq!(iterations(&result, "latency.iterations"), 40.0, "of a sample, times the samples");

    // Version 3 has another element around it, and no groups.
    let third = text("catch2-2.13.10.xml")
        .replace("<Catch name=\"sort\">", "<Catch2TestRun name=\"sort\" rng-seed=\"1\" catch2-version=\"3.5.2\">")
        .replace("</Catch>", "</Catch2TestRun>")
        .replace("  <Group name=\"sort\">\n", "")
        .replace("  </Group>\n", "");
    let result = read(Format::Catch2, third, &metrics[..1]);
    assert_eq!(value(&result.metrics["latency"]), 17987.5 / 1e9);
    assert_eq!(result.workload.version, "3.5.2");
}

#[test]
fn faults_of_catch2_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "std::sort", "-", "-")];
    let good = text("catch2-2.13.10.xml");
    let catch2 = |text: &str, metrics: &[MetricSource]| fault(Format::Catch2, text, metrics);
    says(&catch2("", &latency), &["is empty", "--reporter xml"]);
    says(&catch2("All tests passed\n", &latency), &["line 1", "invalid XML", "--reporter xml"]);
    says(
        &catch2(good.trim_end().trim_end_matches("</Catch>"), &latency),
        &["invalid XML", "check that the output is complete"],
    );
    says(&catch2("<testsuites/>", &latency), &["line 1", "\"testsuites\"", "Catch2TestRun"]);
    says(&catch2("<Catch/>", &latency), &["no BENCHMARK ran", "CATCH_CONFIG_ENABLE_BENCHMARKING"]);
    // Catch2 itself ends with exit code 0 then.
    let thrown = text("catch2-2.13.10-thrown.xml");
    says(&catch2(&thrown, &latency), &["line 6", "BenchmarkResults.failed", "\"throws\"", "boom & <bang>"]);
    let failed = text("catch2-2.13.10-failed.xml");
    says(&catch2(&failed, &latency), &["line 19", "OverallResult", "test case \"wrong\" failed"]);
    // Without an analysis there is no interval: its bounds would be the mean again, and the deviation 0.
    let alone = text("catch2-2.13.10-no-analysis.xml");
    says(&catch2(&alone, &[metric("low", "s", "std::sort", "low mean", "-")]), &["no figure \"low mean\"", "\"mean\""]);
    let same = good.replace("std::stable_sort &lt;1000>", "std::sort");
    says(&catch2(&same, &latency), &["twice", "line 5", "line 11"]);
    let other = "<TestCase name=\"other\"><BenchmarkResults name=\"std::sort\"><mean value=\"2\" ci=\"0.95\"/>\
                 </BenchmarkResults></TestCase><OverallResults";
    let cases = good.replacen("<OverallResults ", &format!("{other} "), 1);
    says(&catch2(&cases, &latency), &["2 benchmarks", "other/std::sort", "sorting/std::sort"]);
    let result = read(Format::Catch2, cases, &[metric("latency", "s", "other/std::sort", "-", "-")]);
    assert_eq!(value(&result.metrics["latency"]), 2.0 / 1e9);
    says(&catch2(&good.replacen("17987.5", "fast", 1), &latency), &["line 5.mean", "attribute value", "\"fast\""]);
    says(&fault(Format::Catch2, b"<Catch>\xff</Catch>".to_vec(), &latency), &["UTF-8"]);
    let entity = "<!DOCTYPE a [<!ENTITY b \"bb\">]><Catch>&b;</Catch>";
    says(&catch2(entity, &latency), &["invalid XML"]);
}

// --- CSV

#[test]
fn every_row_of_a_table_is_a_sample() {
    let metrics =
        [metric("latency", "s", "-", "elapsed (ms)", "ms"), metric("swaps", "1", "round=3", "swaps, at most", "-")];
    let result = read(Format::Csv, fixture("table.csv"), &metrics);
    assert_eq!(samples(&result.metrics["latency"]).len(), 5);
    assert_eq!(samples(&result.metrics["latency"])[0], 0.03387999822734855 / 1e3);
    assert_eq!(samples(&result.metrics["swaps"]), [160_000.0], "one row is chosen");
    let result = read(Format::Csv, "\u{feff}a,b\r\n1,2\r\n3,4\r\n", &[metric("a", "1", "-", "a", "-")]);
    assert_eq!(samples(&result.metrics["a"]), [1.0, 3.0]);
}

#[test]
fn faults_of_a_table_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "-", "elapsed (ms)", "ms")];
    let good = text("table.csv");
    let table = |text: &str, metrics: &[MetricSource]| fault(Format::Csv, text, metrics);
    let first = good.lines().next().expect("a header");
    says(&table(first, &latency), &["the line break of its last row", "truncated"]);
    let header = format!("{first}\n");
    says(&table(&header, &latency), &["no benchmark with a figure", "no row below the header"]);
    says(&table(&good, &[metric("latency", "s", "-", "elapsed", "-")]), &["\"elapsed\"", "\"elapsed (ms)\""]);
    says(&table(&good, &[metric("latency", "s", "-", "-", "-")]), &["from.field", "\"elapsed (ms)\""]);
    says(&table(&good, &[metric("latency", "s", "round=77", "elapsed (ms)", "ms")]), &["none of the 5 rows"]);
    says(&table(&good, &[metric("latency", "s", "run=1", "elapsed (ms)", "ms")]), &["COLUMN=VALUE", "\"round\""]);
    says(&table(&good, &[metric("latency", "s", "-", "algorithm", "-")]), &["line 2", "\"builtin\""]);
    says(&table(&good.replace("0.014742003259016201", "NaN"), &latency), &["line 3", "\"NaN\""]);
    says(
        &table(&good[..good.len() - 10], &[metric("swaps", "1", "-", "swaps, at most", "-")]),
        &["line 6", "3 fields"],
    );
    says(&table(&good.replacen("round", "algorithm", 1), &latency), &["line 1", "twice"]);
    says(&fault(Format::Csv, b"a,b\n\xff,1\n".to_vec(), &latency), &["line 2", "UTF-8"]);
}

// --- all of them

/// Each a figure of 1 s or one request, and more iterations than a number can hold.
#[test]
fn what_is_read_can_be_written_down_however_much_a_tool_has_counted() {
    let digits = format!("1{}", "0".repeat(300));
    let outputs = [
        (
            Format::GoogleBenchmark,
            r#"{"benchmarks": [
                {"name": "x", "repetition_index": 0, "real_time": 1, "time_unit": "s", "iterations": 1e308},
                {"name": "x", "repetition_index": 1, "real_time": 1, "time_unit": "s", "iterations": 1e308}]}"#
                .to_owned(),
        ),
        (
            Format::PytestBenchmark,
            r#"{"benchmarks": [{"name": "x", "stats": {"data": [1], "rounds": 1e308, "iterations": 1e308}}]}"#
                .to_owned(),
        ),
        (
            Format::Catch2,
            r#"<Catch2TestRun><BenchmarkResults name="x" samples="1e300" iterations="1e300">
                <mean value="1e9" lowerBound="1" upperBound="1" ci="0.95"/></BenchmarkResults></Catch2TestRun>"#
                .to_owned(),
        ),
        (
            Format::Wrk,
            format!(
                "Running 1s test @ http://x\n  {digits}P requests in 1.00s, 1.00MB read\nRequests/sec: 1\n\
                 Transfer/sec: 1.00MB\n"
            ),
        ),
    ];
    let criterion = [
        ("benchmark", r#"{"full_id": "x"}"#),
        ("estimates", "{}"),
        ("sample", r#"{"iters": [1e308, 1e308], "times": [1, 1]}"#),
    ]
    .map(|(name, text)| Source { name: format!("x/new/{name}.json"), bytes: text.into() });
    let sources = outputs.into_iter().map(|(format, text)| (format, stdout(text).to_vec()));
    for (format, sources) in sources.chain([(Format::Criterion, criterion.to_vec())]) {
        let unit = if format == Format::Criterion { "ns" } else { "-" };
        let figure = metric("figure", if format == Format::Wrk { "requests/s" } else { "s" }, "-", "-", unit);
        let result =
            convert(&output(format, &[figure]), &sources).unwrap_or_else(|fault| panic!("{format:?}: {fault}"));
        let written = serde_json::to_vec(&result).expect("JSON");
        let again: Result = assay_schema::read(&written).unwrap_or_else(|error| panic!("{format:?}: {error}"));
        assert_eq!(again, result, "{format:?}");
    }
}
