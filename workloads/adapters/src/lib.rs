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
pub use unit::Unit;

/// Whether a file of Criterion's folder, named by its path below it, is one that is read.
pub fn is_criterion_file(name: &str) -> bool {
    criterion::file(name).is_some()
}

/// Turns the output of a tool into a result.
///
/// There is one source, but for Criterion's folder, of which there may be many. An [`Format::AssayResult`] needs no adapter.
pub fn convert(output: &Output, sources: &[Source]) -> std::result::Result<Result, Fault> {
    let report = match (output.format, sources) {
        (Format::AssayResult | Format::None, _) => {
            return Err(Fault::whole("", "an AssayResult is read as it is, without an adapter"));
        }
        (_, []) => return Err(Fault::whole("", "the tool wrote nothing at all")),
        (Format::Criterion, [first, ..]) if is_criterion_file(&first.name) => criterion::folder(sources),
        (_, [_, second, ..]) => {
            return Err(Fault::whole(&second.name, "is one file too many: only Criterion's output is a folder"));
        }
        (_, [only]) if only.bytes.trim_ascii().is_empty() => {
            return Err(Fault::whole(&only.name, empty(output)));
        }
        (Format::GoBench, [only]) => gotest::read(only),
        (Format::Criterion, [only]) => criterion::text(only),
        (Format::GoogleBenchmark, [only]) => google::read(only),
        (Format::Hyperfine, [only]) => hyperfine::read(only),
        (Format::Jmh, [only]) => jmh::read(only),
        (Format::BenchmarkDotNet, [only]) => dotnet::read(only),
        (Format::Fio, [only]) => fio::read(only),
        (Format::Wrk, [only]) => wrk::read(only),
        (Format::Sysbench, [only]) => sysbench::read(only),
        (Format::Divan, [only]) => divan::read(only),
        (Format::Catch2, [only]) => catch2::read(only),
        (Format::PytestBenchmark, [only]) => pytest::read(only),
        (Format::K6, [only]) => k6::read(only),
        (Format::Csv, [only]) => csv::read(only, &output.metrics.clone().unwrap_or_default()),
    }?;
    select::metrics(&report, output.metrics.as_deref().unwrap_or_default())
}

/// What to do about output that is empty.
fn empty(output: &Output) -> String {
    let must = match output.format {
        Format::AssayResult | Format::None => "print a result",
        Format::GoBench => "run with -test.bench and a pattern that matches",
        Format::Criterion => {
            "run with --bench, and print with --output-format bencher or name its folder in output.path"
        }
        Format::GoogleBenchmark => "run with --benchmark_format=json, or write with --benchmark_out",
        Format::Hyperfine => "write with --export-json",
        Format::PytestBenchmark => "write with --benchmark-json",
        Format::Jmh => "write with -rf json -rff FILE",
        Format::BenchmarkDotNet => "write with --exporters json",
        Format::Fio => "print with --output-format=json, or write that with --output=FILE",
        Format::Wrk => "print wrk's report, better with --latency",
        Format::Sysbench => "print the report of sysbench TEST run",
        Format::Divan => "run with --bench and a filter that matches",
        Format::Catch2 => "run with --reporter xml",
        Format::K6 => "write with --summary-export, or from handleSummary",
        Format::Csv => "print a line with the columns' names and one per sample",
    };
    format!("is empty: the program must {must}")
}
