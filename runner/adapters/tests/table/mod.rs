//! The table of adapters by classes of misreading: cells/FORMAT.json has for each class outputs that are refused or read
//! correctly, or the place in the tool's source or documentation that excludes the class.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use assay_adapters::{Source, convert};
use assay_schema::output::{Csv, Json};
use assay_schema::result::Reading;
use assay_schema::wave::{Format, MetricSource, Output};
use serde::Deserialize;

/// The classes, each with the question that its cells answer.
pub(crate) const CLASSES: [(&str, &str); 8] = [
    ("duplicate", "can two figures of one name become one?"),
    ("several", "is the first of several reports taken?"),
    ("unit", "is a unit assumed?"),
    ("truncated", "is an output accepted that ends early?"),
    ("absent", "is a figure without a measurement read as 0?"),
    ("nan", "does a figure that no metric asks for, and that is no number, invalidate the output?"),
    ("bins", "are the bins of a histogram taken for the resolution of a clock?"),
    ("advice", "does the advice of a message lead to a figure?"),
];

/// One check of a cell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    /// Name of the fixture.
    input: Option<String>,
    /// The output itself, or what precedes the fixture's.
    #[serde(default, deserialize_with = "lines")]
    text: Option<String>,
    /// Replacements in the output.
    #[serde(default)]
    replace: Vec<(String, String)>,
    /// Number of bytes to remove at the end.
    cut: Option<usize>,
    /// Appends the output to itself.
    #[serde(default)]
    twice: bool,
    /// The source of an output that was not recorded.
    documented: Option<String>,
    #[serde(default)]
    metric: Metric,
    csv: Option<Csv>,
    json: Option<Json>,
    /// Words of the message.
    refused: Option<Vec<String>>,
    /// The value, or the first sample.
    reads: Option<f64>,
    /// Number of samples.
    samples: Option<usize>,
    /// Width of the bins.
    bin: Option<f64>,
    /// The same output or another one, read after the message's advice.
    then: Option<Box<Check>>,
    /// Why the class cannot occur.
    excluded: Option<String>,
    /// The place in the tool's source or documentation that shows it.
    source: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Metric {
    unit: Option<String>,
    benchmark: Option<String>,
    field: Option<String>,
    path: Option<String>,
    field_unit: Option<String>,
}

/// Returns a line for every cell that is open, and the number of all cells.
pub(crate) fn open_cells() -> (Vec<String>, usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let formats = Format::ALL.iter().filter(|format| !matches!(format, Format::AssayResult | Format::None));
    let (mut open, mut all) = (Vec::new(), 0);
    for &format in formats {
        let name = serde_json::to_value(format).expect("a name");
        let name = name.as_str().expect("a text");
        let text = fs::read(root.join(format!("cells/{name}.json"))).unwrap_or_else(|_| b"{}".to_vec());
        let cells: BTreeMap<String, Vec<Check>> =
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("cells/{name}.json: {error}"));
        if let Some(unknown) = cells.keys().find(|class| CLASSES.iter().all(|(known, _)| known != class)) {
            panic!("cells/{name}.json: unknown class {unknown}");
        }
        for (class, question) in CLASSES {
            all += 1;
            let checks = cells.get(class).map(Vec::as_slice).unwrap_or_default();
            if checks.is_empty() {
                open.push(format!("{name}, {class}: {question}"));
            }
            for (i, check) in checks.iter().enumerate() {
                if let Err(problem) = check.run(root, format, &[]) {
                    open.push(format!("{name}, {class}[{i}]: {problem}"));
                    break;
                }
            }
        }
    }
    (open, all)
}

impl Check {
    fn run(&self, root: &Path, format: Format, before: &[u8]) -> Result<(), String> {
        if let Some(excluded) = &self.excluded {
            let said = |text: Option<&String>| text.is_some_and(|text| text.len() > 10);
            return match said(Some(excluded)) && said(self.source.as_ref()) {
                true => Ok(()),
                false => Err("excluded needs a reason, and source a place".into()),
            };
        }
        let bytes = self.output(root, before)?;
        let given = |field: &Option<String>| field.clone();
        let metric = MetricSource {
            name: "figure".into(),
            unit: self.metric.unit.clone().unwrap_or_else(|| "s".into()),
            benchmark: given(&self.metric.benchmark),
            field: given(&self.metric.field),
            path: given(&self.metric.path),
            field_unit: given(&self.metric.field_unit),
        };
        let output =
            Output { format, path: None, metrics: Some(vec![metric]), csv: self.csv.clone(), json: self.json.clone() };
        let sources = match self.input.as_deref().map(|name| root.join("fixtures").join(name)) {
            Some(folder) if folder.is_dir() => files(&folder, &self.replace),
            _ => vec![Source { name: "standard output".into(), bytes: bytes.clone() }],
        };
        match (convert(&output, &sources), &self.refused) {
            (Ok(result), None) => {
                let figure = &result.metrics["figure"];
                let (first, count) = match &figure.reading {
                    Reading::Value(value) => (*value, None),
                    Reading::Samples(samples) => (samples[0], Some(samples.len())),
                    Reading::Histogram(_) => return Err("no adapter makes a histogram".into()),
                };
                let want = self.reads.ok_or("neither refused nor reads is given")?;
                let near = (first - want).abs() <= 1e-12 * want.abs();
                let counted = self.samples.is_none_or(|samples| count == Some(samples));
                match near && counted && self.bin == figure.bin {
                    true => Ok(()),
                    false => Err(format!("read {figure:?}")),
                }
            }
            (Ok(result), Some(_)) => Err(format!("was read: {:?}", result.metrics["figure"])),
            (Err(fault), None) => Err(format!("was refused: {fault}")),
            (Err(fault), Some(words)) => {
                let message = fault.to_string();
                match words.iter().find(|word| !message.contains(*word)) {
                    Some(word) => Err(format!("{word:?} is not in {message:?}")),
                    None => self.then.as_ref().map_or(Ok(()), |then| then.run(root, format, &bytes)),
                }
            }
        }
    }

    fn output(&self, root: &Path, before: &[u8]) -> Result<Vec<u8>, String> {
        let mut bytes = self.text.clone().unwrap_or_default().into_bytes();
        match &self.input {
            Some(name) if root.join("fixtures").join(name).is_dir() => return Ok(Vec::new()),
            Some(name) => {
                bytes.extend(fs::read(root.join("fixtures").join(name)).map_err(|error| format!("{name}: {error}"))?)
            }
            None if self.text.is_none() => bytes = before.to_vec(),
            None if self.documented.is_none() && self.text.as_ref().is_some_and(|text| text.len() > 400) => {
                return Err("a long text needs the source in documented".into());
            }
            None => {}
        }
        for (from, to) in &self.replace {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if !text.contains(from.as_str()) {
                return Err(format!("{from:?} is not in the output"));
            }
            bytes = text.replacen(from.as_str(), to, 1).into_bytes();
        }
        bytes.truncate(bytes.len().saturating_sub(self.cut.unwrap_or(0)));
        if self.twice {
            bytes.extend(bytes.clone());
        }
        Ok(bytes)
    }
}

/// The files that the runner collects of Criterion's folder, with replacements in those that have the text.
fn files(root: &Path, replace: &[(String, String)]) -> Vec<Source> {
    let (mut open, mut sources) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root).expect("below").display().to_string();
            if path.is_dir() {
                open.push(path);
            } else if assay_adapters::is_criterion_file(&name) {
                let mut text = fs::read_to_string(&path).expect("a file");
                replace.iter().for_each(|(from, to)| text = text.replace(from.as_str(), to));
                sources.push(Source { name, bytes: text.into_bytes() });
            }
        }
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    sources
}

/// Reads a text, or a list of its parts.
fn lines<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        One(String),
        Parts(Vec<String>),
    }
    Ok(Some(match Text::deserialize(from)? {
        Text::One(text) => text,
        Text::Parts(parts) => parts.concat(),
    }))
}
