//! Reads what the real tools wrote (fixtures/, with the tool's version in the name), and every way in which that can go wrong.

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

/// `name unit benchmark | field | unit of the field`, where `-` stands for what is not given.
fn metric(name: &str, unit: &str, benchmark: &str, field: &str, field_unit: &str) -> MetricSource {
    let given = |text: &str| (text != "-").then(|| text.to_owned());
    MetricSource {
        name: name.into(),
        unit: unit.into(),
        benchmark: given(benchmark),
        field: given(field),
        field_unit: given(field_unit),
    }
}

fn output(format: Format, metrics: &[MetricSource]) -> Output {
    Output { format, path: None, metrics: Some(metrics.to_vec()) }
}

fn stdout(bytes: impl Into<Vec<u8>>) -> [Source; 1] {
    [Source { name: "standard output".into(), bytes: bytes.into() }]
}

/// The result, which must be one by the schema too.
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
    let line = "BenchmarkServe-2 \t 10\t 5 ns/op\t 12.5 MB/s\t 1200 rows/s\t 7 p99-ns\t 3 allocs/op\n";
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
    assert_eq!(samples(&result.metrics["tail"]), [7.0 / 1e9], "a unit that is not known here is what from.unit says");
}

#[test]
fn faults_of_go_say_where_and_what_to_do() {
    let latency = [metric("latency", "s", "-", "-", "-")];
    let of = |benchmark: &str, field: &str, unit: &str| [metric("latency", unit, benchmark, field, "-")];
    let good = text("go-1.26.8.txt");
    let go = |text: &str, metrics: &[MetricSource]| fault(Format::GoBench, text, metrics);

    says(&go("", &latency), &["standard output is empty", "-test.bench"]);
    says(&go("PASS\n", &latency), &["no benchmark", "does the pattern"]);
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
    says(&go("BenchmarkJoin-2 \t 100\t NaN ns/op\n", &latency), &["line 1", "\"NaN\"", "not a finite number"]);
    says(&go("BenchmarkJoin-2 \t 100\t 1 ns/op 2 ns/op\n", &latency), &["ns/op twice"]);
    says(&go("BenchmarkJoin-2 \thello\n", &latency), &["line 1 has no figures", "print"]);
    let threads = "BenchmarkJoin-2 1 5 ns/op\nBenchmarkJoin-4 1 5 ns/op\n";
    says(&go(threads, &of("BenchmarkJoin", "-", "s")), &["2 benchmarks", "BenchmarkJoin-4"]);
    let packages = "pkg: a\nBenchmarkJoin 1 5 ns/op\npkg: b\nBenchmarkJoin 1 6 ns/op\n";
    says(&go(packages, &of("BenchmarkJoin", "-", "s")), &["twice", "line 2", "line 4"]);
    let result = read(Format::GoBench, packages, &of("b.BenchmarkJoin", "-", "s"));
    assert_eq!(samples(&result.metrics["latency"]), [6e-9]);
    let cut = &good[..good.len() - 30];
    says(&go(&format!("{cut} "), &of("BenchmarkJoin/way=builder", "-", "s")), &["middle of a line"]);
    let events = text("go-1.26.8.json");
    says(&go(&events[..events.len() - 20], &latency), &["line 2", "ends in the middle"]);
    let failed = "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"BenchmarkJoin\"}\n";
    says(&go(failed, &latency), &["line 1", "BenchmarkJoin failed"]);
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
    // Files of an earlier measurement lie in base; they are there and not looked at.
    files.iter().map(source).filter(|source| source.name.contains("/new/")).collect()
}

#[test]
fn a_sample_of_criterion_is_a_time_divided_by_its_iterations() {
    let metrics = [
        metric("latency", "s", "find/binary", "-", "-"),
        metric("slope", "s", "find/binary", "slope", "-"),
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
    let binary = [metric("latency", "s", "find/binary", "-", "-")];
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
    says(&google(&good.replace(time, "\"real_time\": NaN"), &latency), &["NaN", "has to be a number"]);
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
    // k6 itself ends with exit code 0 then.
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
    says(&table(first, &latency), &["no benchmark with a figure", "no row below the header"]);
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
