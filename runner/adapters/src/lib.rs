//! Adapters that convert other benchmark tools' output to a [`Result`], or to a [`Fault`] with position and suggested
//! action.
//!
//! Each tool has a module that parses its output into a common list of benchmarks with all figures under the tool's own
//! names. The module [`select`] is the only place that selects metrics from it and converts units.
//!
//! The crate is pure. It reads no file, starts no program and uses no clock.

mod aiperf;
mod catch2;
mod criterion;
mod csv;
mod declared;
mod divan;
mod document;
mod dotnet;
mod fault;
mod fio;
mod google;
mod gotest;
mod hyperfine;
mod jmh;
mod json;
mod k6;
mod pgbench;
mod pytest;
mod report;
mod select;
mod source;
mod sysbench;
mod text;
mod unit;
mod wrk;

use assay_schema::Result;
use assay_schema::wave::{Format, Output};

pub use fault::Fault;
pub use select::MOST_SAMPLES;
pub use source::Source;

/// Reports whether a file of Criterion's folder, named by its relative path, is read.
pub fn is_criterion_file(name: &str) -> bool {
    criterion::file(name).is_some()
}

/// Converts the output of a tool to a result.
///
/// There is exactly one source, except for Criterion's folder, which may have many. [`Format::AssayResult`] needs no
/// adapter.
pub fn convert(output: &Output, sources: &[Source]) -> std::result::Result<Result, Fault> {
    let wanted = output.metrics.as_deref().unwrap_or_default();
    let (report, must) = match (output.format, sources) {
        (Format::AssayResult | Format::None, _) => {
            return Err(Fault::whole("", "an AssayResult is read as it is, without an adapter"));
        }
        (_, []) => return Err(Fault::whole("", "the tool wrote nothing at all")),
        (Format::Criterion, [first, ..]) if is_criterion_file(&first.name) => {
            return select::metrics(&criterion::folder(sources)?, wanted);
        }
        (_, [_, second, ..]) => {
            return Err(Fault::whole(&second.name, "is one file too many: only Criterion's output is a folder"));
        }
        (Format::GoBench, [only]) => (gotest::read(only), "run with -test.bench and a pattern that matches"),
        (Format::Criterion, [only]) => (
            criterion::text(only),
            "run with --bench, and print with --output-format bencher or name its folder in output.path",
        ),
        (Format::GoogleBenchmark, [only]) => {
            (google::read(only), "run with --benchmark_format=json, or write with --benchmark_out")
        }
        (Format::Hyperfine, [only]) => (hyperfine::read(only), "write with --export-json"),
        (Format::Jmh, [only]) => (jmh::read(only), "write with -rf json -rff FILE"),
        (Format::BenchmarkDotNet, [only]) => (dotnet::read(only), "write with --exporters json"),
        (Format::Fio, [only]) => (fio::read(only), "print with --output-format=json, or write that with --output=FILE"),
        (Format::Wrk, [only]) => (wrk::read(only), "print wrk's report, better with --latency"),
        (Format::Sysbench, [only]) => (sysbench::read(only), "print the report of sysbench TEST run"),
        (Format::Divan, [only]) => (divan::read(only), "run with --bench and a filter that matches"),
        (Format::Catch2, [only]) => (catch2::read(only), "run with --reporter xml"),
        (Format::PytestBenchmark, [only]) => (pytest::read(only), "write with --benchmark-json"),
        (Format::K6, [only]) => (k6::read(only), "write with --summary-export, or from handleSummary"),
        (Format::Csv, [only]) => {
            let how = output.csv.clone().unwrap_or_default();
            (csv::read(only, wanted, &how), "print a line with the columns' names and one per sample")
        }
        (Format::Json, [only]) => {
            let how = output.json.clone().unwrap_or_default();
            (document::read(only, wanted, &how), "print one JSON document")
        }
        (Format::Iperf3, [only]) => (declared::IPERF3.read(only), "print with --json"),
        (Format::Vegeta, [only]) => (declared::VEGETA.read(only), "write with vegeta report -type=json"),
        (Format::Oha, [only]) => (declared::OHA.read(only), "print with --no-tui --output-format json"),
        (Format::AIPerf, [only]) => (aiperf::read(only), "write profile_export_aiperf.json"),
        (Format::Pgbench, [only]) => (pgbench::read(only), "print the report of pgbench"),
    };
    // An empty output is reported here, before any reader's own error.
    if sources[0].bytes.trim_ascii().is_empty() {
        return Err(Fault::whole(&sources[0].name, format!("is empty: the program must {must}")));
    }
    select::metrics(&report?, wanted)
}
