//! Reads what other benchmark tools write: bytes in, a [`Result`] out, or a [`Fault`] that says where and what to do.
//!
//! Every tool has a module that turns its output into the same list of benchmarks, each with all its figures under the tool's
//! own names. What of it becomes a metric, and in which unit, is decided in one place, [`select`], for all of them.
//!
//! Nothing here reads a file, runs a program or knows a clock.

mod catch2;
mod criterion;
mod csv;
mod divan;
mod dotnet;
mod fault;
mod fio;
mod google;
mod gotest;
mod hyperfine;
mod jmh;
mod json;
mod k6;
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

/// Whether a file of Criterion's folder, named by its path below it, is one that is read.
pub fn is_criterion_file(name: &str) -> bool {
    criterion::file(name).is_some()
}

/// Turns the output of a tool into a result.
///
/// There is one source, but for Criterion's folder, of which there may be many. An [`Format::AssayResult`] needs no adapter.
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
        (Format::Csv, [only]) => (csv::read(only, wanted), "print a line with the columns' names and one per sample"),
    };
    // What a reader says of nothing is no matter.
    if sources[0].bytes.trim_ascii().is_empty() {
        return Err(Fault::whole(&sources[0].name, format!("is empty: the program must {must}")));
    }
    select::metrics(&report?, wanted)
}
