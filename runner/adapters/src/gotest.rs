//! Output of `go test -bench`, as text or, with `-json`, as events.
//!
//! A line has a benchmark's name, its iterations and pairs of a figure and a unit. With `-count` a name occurs several
//! times, and each line is a sample. The name ends with `-GOMAXPROCS` unless that is 1. A line `PASS` ends the report of a
//! package.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::report::{Benchmark, Field, Reading, Report, Whole, joined, one_more};
use crate::source::Source;

/// Configuration keys that are recorded.
const KEYS: [&str; 3] = ["goos", "goarch", "cpu"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let mut reader = Reader { source: &source.name, ..Reader::default() };
    if source.bytes.trim_ascii_start().first() == Some(&b'{') {
        events(source, &mut reader)?;
    } else {
        text(source, &mut reader)?;
    }
    let mut packages = vec![""; reader.packages.len()];
    reader.packages.iter().for_each(|(name, &number)| packages[number] = name);
    let benchmarks = reader.found.into_iter().map(|found| found.benchmark(&packages)).collect();
    let last = "PASS, which go test prints below the benchmarks of a package";
    let whole = Whole::Lines { last, ended: reader.open.is_empty(), again: reader.again };
    let mut report = Report {
        build: reader.build,
        benchmarks,
        usual_field: Some("ns/op"),
        if_none: "no line begins with Benchmark and has figures; check the pattern of -test.bench",
        without: reader.without,
        ..Report::new("go test -bench", source, whole)
    };
    // Benchmarks of the same name in several packages get the names of their packages.
    report.distinguish();
    Ok(report)
}

/// One line of a package's output.
struct Line<'a> {
    /// Line number in the whole output, from 1.
    number: usize,
    text: &'a str,
    /// Whether it ends with a line break.
    whole: bool,
}

fn text(source: &Source, reader: &mut Reader) -> Result<(), Fault> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut package = reader.package("");
    for (i, text) in text.split_inclusive('\n').enumerate() {
        let line = Line { number: i + 1, text: text.trim_end(), whole: text.ends_with('\n') };
        reader.line(&line, &mut package)?;
    }
    Ok(())
}

/// Reassembles lines from the events of `-json`. A result comes in two events: its name, then its figures.
fn events(source: &Source, reader: &mut Reader) -> Result<(), Fault> {
    /// Output of a package.
    struct Printed {
        /// The incomplete last line.
        open: String,
        /// The package named by the last pkg line.
        package: usize,
    }
    let unnamed = reader.package("");
    let mut printed: BTreeMap<String, Printed> = BTreeMap::new();
    // A failure reported by an event takes precedence over one reported by a line.
    let (mut read, mut last) = (Ok(()), 1);
    for (i, text) in source.bytes.split(|&byte| byte == b'\n').enumerate() {
        let (number, text) = (i + 1, text.trim_ascii());
        if text.is_empty() {
            continue;
        }
        let fault = |problem: String| Fault::at_line(&source.name, number, problem);
        let event: Value = serde_json::from_slice(text).map_err(|error| {
            let shown = quoted(&String::from_utf8_lossy(text));
            if error.is_eof() {
                return fault("the event ends in the middle; the output is truncated".into());
            }
            fault(format!("{shown} is not an event of go test -json: {error}"))
        })?;
        let word = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let package = word("Package");
        match word("Action").as_str() {
            "output" => {
                let printed =
                    printed.entry(package).or_insert_with(|| Printed { open: String::new(), package: unnamed });
                let (mut begin, mut seen) = (0, printed.open.len());
                // Go marks lines for its own parser with this character.
                printed.open.push_str(&word("Output").replace('\u{16}', ""));
                while let Some(length) = printed.open[seen..].find('\n') {
                    let end = seen + length;
                    let line = Line { number, text: printed.open[begin..end].trim_end(), whole: true };
                    if read.is_ok() {
                        read = reader.line(&line, &mut printed.package);
                    }
                    last = number;
                    (begin, seen) = (end + 1, end + 1);
                }
                printed.open.drain(..begin);
            }
            "build-fail" => return Err(fault(format!("{} does not compile", word("ImportPath")))),
            "fail" => {
                let what = [word("Test"), package].into_iter().find(|word| !word.is_empty()).unwrap_or_default();
                return Err(fault(format!(
                    "go test reports a failure of {what}, so that its figures are invalid; fix the failure"
                )));
            }
            _ => {}
        }
    }
    read?;
    for mut printed in printed.into_values().filter(|printed| !printed.open.trim().is_empty()) {
        let line = Line { number: last, text: &printed.open, whole: false };
        reader.line(&line, &mut printed.package)?;
    }
    Ok(())
}

#[derive(Default)]
struct Reader<'a> {
    source: &'a str,
    /// Package numbers by name. Numbers save memory, because names can be long and repeat on every line.
    packages: BTreeMap<String, usize>,
    found: Vec<Found>,
    /// Index into `found` by package number and benchmark name.
    at: BTreeMap<(usize, String), usize>,
    build: BTreeMap<String, String>,
    without: BTreeMap<String, String>,
    /// Packages with figures and without PASS below them.
    open: BTreeSet<usize>,
    /// Packages with PASS below their figures.
    ended: BTreeSet<usize>,
    /// Line at which a package's second report begins.
    again: Option<usize>,
}

/// The lines of one benchmark.
struct Found {
    package: usize,
    name: String,
    place: String,
    iterations: f64,
    /// Units, each with the figures of all lines that have it, or the error.
    figures: Vec<(String, Result<Vec<f64>, String>)>,
    /// Index into `figures` by unit.
    at: BTreeMap<String, usize>,
}

impl Reader<'_> {
    /// Returns the number of a package.
    fn package(&mut self, name: &str) -> usize {
        let next = self.packages.len();
        *self.packages.entry(name.to_owned()).or_insert(next)
    }

    /// Notes a line of a package whose report has ended.
    fn begins_again(&mut self, package: usize, line: usize) {
        if self.ended.contains(&package) {
            self.again.get_or_insert(line);
        }
    }

    fn line(&mut self, line: &Line, package: &mut usize) -> Result<(), Fault> {
        let (text, source) = (line.text, self.source);
        let fault = |problem: String| Fault::at_line(source, line.number, problem);
        if let Some((key, value)) = text.split_once(": ") {
            if key == "pkg" {
                *package = self.package(value);
                self.begins_again(*package, line.number);
            } else if KEYS.contains(&key) {
                self.build.insert(key.into(), value.trim().into());
            }
        }
        let trimmed = text.trim_start();
        let failed = text == "FAIL"
            || text.starts_with("FAIL\t")
            || trimmed.starts_with("--- FAIL: ")
            || text.starts_with("panic: ")
            || text.starts_with("fatal error: ");
        if failed {
            let reports = quoted(trimmed);
            return Err(fault(format!("go test reports {reports}, so that its figures are invalid; fix the failure")));
        }
        if text == "PASS" && self.open.remove(package) {
            self.ended.insert(*package);
        }
        if let Some(name) = trimmed.strip_prefix("--- SKIP: ") {
            let name = name.split_whitespace().next().unwrap_or_default();
            self.without.insert(name.into(), "it was skipped".into());
        }
        if !text.starts_with("Benchmark") {
            return Ok(());
        }
        let mut words = text.split_whitespace();
        let (Some(name), Some(iterations)) = (words.next(), words.next()) else { return Ok(()) };
        let Ok(iterations) = iterations.parse::<u64>() else {
            let why = format!(
                "line {} has no figures after its name; the benchmark must not print to standard output",
                line.number
            );
            self.without.insert(name.into(), why.clone());
            self.without.insert(bare(name).into(), why);
            return Ok(());
        };
        if !line.whole {
            return Err(fault(format!("{} ends in the middle of a line; the output is truncated", quoted(text))));
        }
        let words: Vec<&str> = words.collect();
        if words.is_empty() || words.len() % 2 == 1 {
            let found = quoted(text);
            return Err(fault(format!("{found} should have pairs of a figure and a unit after the iterations")));
        }
        self.begins_again(*package, line.number);
        self.open.insert(*package);
        let next = self.found.len();
        let at = *self.at.entry((*package, name.to_owned())).or_insert(next);
        if at == next {
            one_more(next).map_err(fault)?;
            self.found.push(Found {
                package: *package,
                name: name.into(),
                place: format!("line {}", line.number),
                iterations: 0.0,
                figures: Vec::new(),
                at: BTreeMap::new(),
            });
        }
        let found = &mut self.found[at];
        found.iterations += iterations as f64;
        let mut seen = BTreeSet::new();
        for pair in words.chunks(2) {
            let (figure, unit) = (pair[0], pair[1]);
            if !seen.insert(unit) {
                return Err(fault(format!("{} has {unit} twice", quoted(name))));
            }
            found.add(unit, figure, line.number);
        }
        Ok(())
    }
}

impl Found {
    fn add(&mut self, unit: &str, figure: &str, line: usize) {
        let figure = match figure.parse::<f64>() {
            Ok(figure) if figure.is_finite() => Ok(figure),
            _ => Err(format!("line {line} has {}, which is not a finite number", quoted(figure))),
        };
        let Some(&at) = self.at.get(unit) else {
            self.at.insert(unit.into(), self.figures.len());
            self.figures.push((unit.into(), figure.map(|figure| vec![figure])));
            return;
        };
        match (&mut self.figures[at].1, figure) {
            (Ok(samples), Ok(figure)) => samples.push(figure),
            (samples @ Ok(_), Err(problem)) => *samples = Err(problem),
            (Err(_), _) => {}
        }
    }

    fn benchmark(self, packages: &[&str]) -> Benchmark {
        let (package, bare) = (packages[self.package], bare(&self.name));
        let mut aliases = Vec::new();
        if !package.is_empty() {
            aliases.push(joined(".", [package, self.name.as_str()]));
            aliases.push(joined(".", [package, bare]));
        }
        aliases.push(bare.to_owned());
        let field = |(unit, samples): (String, Result<Vec<f64>, String>)| {
            Field::of(&unit, Some(&unit), samples.map(Reading::Samples))
        };
        Benchmark {
            aliases,
            place: self.place,
            fields: self.figures.into_iter().map(field).collect(),
            iterations: Some(self.iterations),
            name: self.name,
        }
    }
}

/// Strips the GOMAXPROCS suffix from a name.
fn bare(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((bare, threads)) if !threads.is_empty() && threads.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => name,
    }
}
