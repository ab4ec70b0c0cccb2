//! fio's JSON, from `--output-format=json` or `json+`.
//!
//! A job has figures per direction (`read`, `write`, `trim`). Directions without I/O are all zero and are skipped. fio
//! does not export samples here. All figures are its own statistics, in units that its documentation fixes per field
//! (fio, "JSON output").

use serde_json::{Map, Value};

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Report, Whole};
use crate::source::Source;

/// Width of the bins from which fio takes its percentiles, relative to the value: it keeps six bits after the first (fio,
/// stat.h, FIO_IO_U_PLAT_BITS).
const BIN: f64 = 1.0 / 64.0;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let several = "run without --status-interval, so that fio writes one report at the end";
    let document = json::parse(&object(source)?, several)?;
    let jobs = json::list(source, &document, "jobs", "write it with fio --output-format=json")?;
    let version = document.get("fio version").and_then(Value::as_str);
    let mut report = Report {
        version: version.map(|text| text.trim_start_matches("fio-").to_owned()),
        usual_field: Some("iops"),
        if_twice: "add --group_reporting, which makes one job of those that --numjobs starts, or give every job a unique name",
        if_none: "no job did any I/O; see fio's standard error",
        ..Report::new("fio", source, Whole::Document)
    };
    for (i, job) in jobs.iter().enumerate() {
        let place = format!("jobs[{i}]");
        let name = json::text(source, job, &place, "jobname")?;
        if let Some(error) = job.get("error").filter(|error| error.as_i64() != Some(0)) {
            let error = json::found(error);
            let problem = format!("job {} ended with error {error}; see fio's standard error", quoted(name));
            return Err(Fault::at_field(&source.name, format!("{place}.error"), problem));
        }
        let first = report.benchmarks.len();
        for direction in DIRECTIONS {
            let Some(Value::Object(figures)) = job.get(direction) else { continue };
            let full = format!("{name}:{direction}");
            if figures.get("total_ios").and_then(Value::as_u64) == Some(0) {
                report.without.insert(full, format!("{place}.{direction}.total_ios is 0"));
                continue;
            }
            let fields = fields(figures);
            let iterations = figures.get("total_ios").and_then(Value::as_f64);
            let place = format!("{place}.{direction}");
            report.benchmarks.push(Benchmark { name: full, aliases: Vec::new(), place, fields, iterations });
        }
        // A job with a single direction may be named without it.
        if let [only] = &mut report.benchmarks[first..] {
            only.aliases.push(name.to_owned());
        }
    }
    Ok(report)
}

/// Returns the source from the first line that begins an object. Before it, fio prints warnings about jobs that precede
/// `--output-format` on the command line. They are blanked, not removed, so that errors have the right line number.
fn object(source: &Source) -> Result<Source, Fault> {
    let mut begin = 0;
    for line in source.bytes.split_inclusive(|&byte| byte == b'\n') {
        if line.first() == Some(&b'{') {
            let (above, object) = source.bytes.split_at(begin);
            let blank = above.iter().map(|&byte| if byte == b'\n' { byte } else { b' ' });
            return Ok(Source { name: source.name.clone(), bytes: blank.chain(object.iter().copied()).collect() });
        }
        begin += line.len();
    }
    let problem = "no line begins with {: write it with fio --output-format=json";
    Err(Fault::whole(&source.name, problem))
}

/// Makes a field for every figure of a direction. The bins of json+ are skipped, because they are a histogram.
fn fields(figures: &Map<String, Value>) -> Vec<Field> {
    let mut fields = Vec::new();
    let skips = |path: &str| path == "bins" || path.ends_with(".bins");
    json::flatten("", figures, &skips, &|path, value| field(path, value, figures), &mut fields);
    fields
}

/// Makes one field. fio writes 0 for a statistic of no samples, whose number is in another field.
fn field(path: &str, value: &Value, figures: &Map<String, Value>) -> Field {
    let (of, figure) = path.split_once('.').unwrap_or(("", path));
    let count = match figure {
        "bw_min" | "bw_max" | "bw_agg" | "bw_mean" | "bw_dev" => Some("bw_samples".to_owned()),
        "iops_min" | "iops_max" | "iops_mean" | "iops_stddev" => Some("iops_samples".to_owned()),
        "N" => None,
        _ if of.ends_with("_ns") => Some(format!("{of}.N")),
        _ => None,
    };
    let none = count.filter(|count| {
        let at = format!("/{}", count.replace('.', "/"));
        let found = at.split('/').skip(1).try_fold(None, |at: Option<&Value>, key| {
            Some(Some(at.map_or_else(|| figures.get(key), |at| at.get(key))?))
        });
        found.flatten().and_then(Value::as_f64) == Some(0.0)
    });
    let reading = match none {
        Some(count) => {
            Err(format!("fio took no sample of it ({count} is 0), so that it has no value; let the job run longer"))
        }
        None => json::summary(value),
    };
    let field = Field::of(path, unit(path), reading);
    if figure.starts_with("percentile.") { field.binned(BIN) } else { field }
}

/// Returns fio's documented unit of a field. `bw` is in KiB, although the output has no unit.
fn unit(path: &str) -> Option<&'static str> {
    let (of, figure) = path.split_once('.').unwrap_or(("", path));
    Some(match (of, figure) {
        (_, "N") => "1",
        (of, _) if of.ends_with("_ns") => "ns",
        (_, "io_bytes") => "By",
        (_, "io_kbytes") => "KiB",
        (_, "bw_bytes") => "By/s",
        (_, "bw" | "bw_min" | "bw_max" | "bw_mean" | "bw_dev") => "KiB/s",
        (_, "bw_agg") => "%",
        (_, "iops" | "iops_min" | "iops_max" | "iops_mean" | "iops_stddev") => "1/s",
        (_, "runtime") => "ms",
        (_, "total_ios" | "short_ios" | "drop_ios" | "bw_samples" | "iops_samples") => "1",
        _ => return None,
    })
}
