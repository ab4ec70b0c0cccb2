//! What `go test -bench` prints, as text or, with `-json`, as events.
//!
//! A line is a benchmark's name, its iterations and pairs of a figure and a unit. With `-count` a name comes again: every line is
//! one sample. The name ends with `-GOMAXPROCS` unless that is 1.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::report::{Benchmark, Field, Reading, Report};
use crate::source::Source;
use crate::unit::Unit;

/// Keys of the configuration lines that are kept.
const KEYS: [&str; 3] = ["goos", "goarch", "cpu"];

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let lines = if source.bytes.trim_ascii_start().first() == Some(&b'{') { events(source)? } else { text(source) };
    let mut reader =
        Reader { source: &source.name, found: Vec::new(), build: BTreeMap::new(), without: BTreeMap::new() };
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    for line in &lines {
        reader.line(line, packages.entry(line.package.clone()).or_default())?;
    }
    let benchmarks = reader.found.into_iter().map(Found::benchmark).collect();
    Ok(Report {
        tool: "go test -bench",
        version: None,
        build: reader.build,
        source: source.name.clone(),
        benchmarks,
        usual_benchmark: None,
        usual_field: Some("ns/op"),
        if_none: "no line begins with Benchmark and has figures; does the pattern of -test.bench match?".into(),
        without: reader.without,
    })
}

/// One line of the output of a package.
struct Line {
    /// Of the whole output, from 1.
    number: usize,
    package: String,
    text: String,
    /// It ends with a line break.
    whole: bool,
}

fn text(source: &Source) -> Vec<Line> {
    let text = String::from_utf8_lossy(&source.bytes);
    let lines = text.split_inclusive('\n').enumerate();
    let line = |(i, text): (usize, &str)| Line {
        number: i + 1,
        package: String::new(),
        text: text.trim_end().into(),
        whole: text.ends_with('\n'),
    };
    lines.map(line).collect()
}

/// The lines that the events of `-json` are pieces of. A result comes in two: its name, then its figures.
fn events(source: &Source) -> Result<Vec<Line>, Fault> {
    let mut lines: Vec<Line> = Vec::new();
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    for (i, text) in source.bytes.split(|&byte| byte == b'\n').enumerate() {
        let (number, text) = (i + 1, text.trim_ascii());
        if text.is_empty() {
            continue;
        }
        let fault = |problem: String| Fault::at_line(&source.name, number, problem);
        let event: Value = serde_json::from_slice(text).map_err(|error| {
            let shown = quoted(&String::from_utf8_lossy(text));
            if error.is_eof() {
                return fault("the event ends in the middle: was the output cut?".into());
            }
            fault(format!("{shown} is not an event of go test -json: {error}"))
        })?;
        let word = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let package = word("Package");
        match word("Action").as_str() {
            "output" => {
                let pending = open.entry(package.clone()).or_default();
                // Go marks the lines that it wants to be understood.
                pending.push_str(&word("Output").replace('\u{16}', ""));
                let mut begin = 0;
                while let Some(length) = pending[begin..].find('\n') {
                    let text = pending[begin..begin + length].trim_end().to_owned();
                    begin += length + 1;
                    lines.push(Line { number, package: package.clone(), text, whole: true });
                }
                pending.drain(..begin);
            }
            "build-fail" => return Err(fault(format!("{} does not compile", word("ImportPath")))),
            "fail" => {
                let what = [word("Test"), package].into_iter().find(|word| !word.is_empty()).unwrap_or_default();
                return Err(fault(format!(
                    "go test reports that {what} failed: repair it, figures of a failure mean nothing"
                )));
            }
            _ => {}
        }
    }
    let number = lines.last().map_or(1, |line| line.number);
    for (package, text) in open {
        if !text.trim().is_empty() {
            lines.push(Line { number, package, text, whole: false });
        }
    }
    Ok(lines)
}

struct Reader<'a> {
    source: &'a str,
    found: Vec<Found>,
    build: BTreeMap<String, String>,
    without: BTreeMap<String, String>,
}

/// The lines of one name.
struct Found {
    package: String,
    name: String,
    place: String,
    iterations: f64,
    /// Unit, and the figure of every line that has it or why it is none.
    figures: Vec<(String, Result<Vec<f64>, String>)>,
}

impl Reader<'_> {
    fn line(&mut self, line: &Line, package: &mut String) -> Result<(), Fault> {
        let text = line.text.as_str();
        if let Some((key, value)) = text.split_once(": ") {
            if key == "pkg" {
                value.clone_into(package);
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
            return Err(Fault::at_line(
                self.source,
                line.number,
                format!("go test reports {}: repair it, figures of a failure mean nothing", quoted(trimmed)),
            ));
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
            let why =
                format!("line {} has no figures after its name; does the benchmark print something?", line.number);
            self.without.insert(name.into(), why.clone());
            self.without.insert(bare(name).into(), why);
            return Ok(());
        };
        if !line.whole {
            return Err(Fault::at_line(
                self.source,
                line.number,
                format!("{} ends in the middle of a line: was the output cut?", quoted(text)),
            ));
        }
        let words: Vec<&str> = words.collect();
        if words.is_empty() || words.len() % 2 == 1 {
            return Err(Fault::at_line(
                self.source,
                line.number,
                format!("{} should have pairs of a figure and a unit after the iterations", quoted(text)),
            ));
        }
        let at = self.found.iter().position(|one| one.name == name && one.package == *package).unwrap_or_else(|| {
            self.found.push(Found {
                package: package.clone(),
                name: name.into(),
                place: format!("line {}", line.number),
                iterations: 0.0,
                figures: Vec::new(),
            });
            self.found.len() - 1
        });
        let found = &mut self.found[at];
        found.iterations += iterations as f64;
        let mut seen = Vec::new();
        for pair in words.chunks(2) {
            let (figure, unit) = (pair[0], pair[1]);
            if seen.contains(&unit) {
                return Err(Fault::at_line(self.source, line.number, format!("{} has {unit} twice", quoted(name))));
            }
            seen.push(unit);
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
        match self.figures.iter_mut().find(|(known, _)| known == unit) {
            None => self.figures.push((unit.into(), figure.map(|figure| vec![figure]))),
            Some((_, samples)) => match (samples, figure) {
                (Ok(samples), Ok(figure)) => samples.push(figure),
                (samples @ Ok(_), Err(problem)) => *samples = Err(problem),
                (Err(_), _) => {}
            },
        }
    }

    fn benchmark(self) -> Benchmark {
        let mut aliases = vec![bare(&self.name).to_owned()];
        if !self.package.is_empty() {
            aliases.push(format!("{}.{}", self.package, self.name));
            aliases.push(format!("{}.{}", self.package, bare(&self.name)));
        }
        let field = |(unit, samples): (String, Result<Vec<f64>, String>)| {
            Field::of(&unit, Some(Unit::parse(&unit)), samples.map(Reading::Samples))
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

/// The name without the number of threads.
fn bare(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((bare, threads)) if !threads.is_empty() && threads.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => name,
    }
}
