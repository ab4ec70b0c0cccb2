//! Catch2's XML, from `--reporter xml` of a test program with benchmarks.
//!
//! None of Catch2's reports contains samples. It computes the mean and the standard deviation, each with the bounds of
//! its bootstrap interval, in nanoseconds (Catch2, docs/benchmarks.md). A benchmark is inside a test case or one of its
//! sections.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use crate::fault::{Fault, quoted};
use crate::report::ONE_REPORT;
use crate::report::{Benchmark, Field, Reading, Report, Whole, joined, one_more};
use crate::source::{Lines, Source};
use crate::text;

/// Elements with a figure, and their names in Catch2's other reports.
const STATISTICS: [(&str, &str); 2] = [("mean", "mean"), ("standardDeviation", "standard deviation")];

/// Limit on attributes per element, above any that Catch2 writes. The parser compares all pairs of an element's
/// attributes.
const MOST_ATTRIBUTES: usize = 32;
/// Limit on nesting, above the depth of any benchmark element.
const DEEPEST: usize = 64;

pub(crate) fn read(source: &Source) -> Result<Report, Fault> {
    let text = std::str::from_utf8(&source.bytes)
        .map_err(|error| Fault::whole(&source.name, format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    let asks = "run with --reporter xml and check that the output is complete";
    if let Some((at, _)) = text.match_indices("<?xml ").nth(1) {
        let line = Lines::new(&source.bytes).of(at);
        return Err(Fault::at_line(&source.name, line, format!("a second document begins here; {ONE_REPORT}")));
    }
    if let Some((at, problem)) = strange(text) {
        let line = Lines::new(&source.bytes).of(at);
        return Err(Fault::at_line(&source.name, line, format!("{problem}, which Catch2 does not write; {asks}")));
    }
    let document = Document::parse(text).map_err(|error| {
        let problem = format!("invalid XML: {error}; {asks}");
        Fault::at_line(&source.name, usize::try_from(error.pos().row).unwrap_or(usize::MAX), problem)
    })?;
    let root = document.root_element();
    let line = |node: Node| Lines::new(&source.bytes).of(node.range().start);
    let name = root.tag_name().name();
    // The element was renamed in version 3.
    if !["Catch", "Catch2TestRun"].contains(&name) {
        let problem =
            format!("invalid element {}: allowed are Catch (version 2) and Catch2TestRun (version 3)", quoted(name));
        return Err(Fault::at_line(&source.name, line(root), problem));
    }
    if let Some(failed) = root.descendants().find(|node| is_failure(*node)) {
        let case = failed.ancestors().find(|node| node.has_tag_name("TestCase"));
        let case = case.and_then(|node| node.attribute("name")).unwrap_or_default();
        let problem = format!("test case {} failed, so that its figures are invalid; fix the test", quoted(case));
        return Err(Fault { field: place(failed), ..Fault::at_line(&source.name, line(failed), problem) });
    }
    let mut report = Report {
        version: root.attribute("catch2-version").map(str::to_owned),
        build: BTreeMap::from([("program".to_owned(), root.attribute("name").unwrap_or_default().to_owned())]),
        usual_field: Some("mean"),
        if_none: "no BENCHMARK ran: does the test specification match, and is a version 2 compiled with \
                  CATCH_CONFIG_ENABLE_BENCHMARKING?",
        ..Report::new("catch2", source, Whole::Document)
    };
    let mut lines = Lines::new(&source.bytes);
    for node in root.descendants().filter(|node| node.has_tag_name("BenchmarkResults")) {
        let number = lines.of(node.range().start);
        let name = node.attribute("name").unwrap_or_default();
        if let Some(failed) = node.children().find(|child| child.has_tag_name("failed")) {
            let said = quoted(failed.attribute("message").unwrap_or("no reason given"));
            let problem = format!("{} did not run to its end: {said}", quoted(name));
            return Err(Fault { field: place(failed), ..Fault::at_line(&source.name, line(failed), problem) });
        }
        one_more(report.benchmarks.len()).map_err(|problem| Fault::at_line(&source.name, number, problem))?;
        report.benchmarks.push(Benchmark {
            name: name.into(),
            aliases: vec![path(node)],
            place: format!("line {number}"),
            fields: fields(node),
            iterations: iterations(node),
        });
    }
    report.distinguish();
    Ok(report)
}

/// Reports whether a node records a failed assertion. A test case that may fail has an OverallResult of success.
fn is_failure(node: Node) -> bool {
    node.has_tag_name("OverallResult") && node.attribute("success") == Some("false")
}

/// Returns position and reason of the first construct on which the parser would need more than linear time or memory.
fn strange(text: &str) -> Option<(usize, String)> {
    // Attribute values cannot contain this character.
    for (at, _) in text.match_indices('<') {
        let tag = &text[at + 1..];
        if tag.starts_with(['!', '?', '/']) {
            continue;
        }
        let (mut quote, mut attributes) = (None, 0);
        for (i, byte) in tag.bytes().enumerate() {
            match (quote, byte) {
                (_, b'<') | (None, b'>') => break,
                (Some(open), _) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => {
                    attributes += 1;
                    let name =
                        tag[..i].trim_end().rsplit([' ', '\t', '\r', '\n', '"', '\'']).next().unwrap_or_default();
                    if name.starts_with("xmlns") {
                        return Some((at, "a namespace".into()));
                    }
                    if attributes > MOST_ATTRIBUTES {
                        return Some((at, format!("an element with more than {MOST_ATTRIBUTES} attributes")));
                    }
                }
                (None, _) => {}
            }
        }
    }
    None
}

/// Names the element and its ancestors for a message.
fn place(node: Node) -> String {
    let mut names: Vec<&str> = node.ancestors().filter(Node::is_element).map(|node| node.tag_name().name()).collect();
    names.reverse();
    names.join(".")
}

/// The benchmark's name prefixed with its test case and sections, which distinguishes benchmarks of the same name.
fn path(node: Node) -> String {
    let holds = |node: &Node| ["TestCase", "Section", "BenchmarkResults"].contains(&node.tag_name().name());
    let holders = node.ancestors().take(DEEPEST).filter(holds);
    let names: Vec<&str> = holders.filter_map(|node| node.attribute("name")).collect();
    joined("/", names.into_iter().rev())
}

/// The figures that Catch2 computed. Without an analysis it reports a mean only, with no interval and a deviation of
/// zero.
fn fields(node: Node) -> Vec<Field> {
    let mut fields = Vec::new();
    for child in node.children().filter(Node::is_element) {
        let Some((_, name)) = STATISTICS.iter().find(|(tag, _)| child.has_tag_name(*tag)) else { continue };
        let analyzed = child.attribute("ci").and_then(|ci| text::number(ci).ok()) != Some(0.0);
        if *name != "mean" && !analyzed {
            continue;
        }
        let parts = [("value", ""), ("lowerBound", "low "), ("upperBound", "high ")];
        for (attribute, prefix) in parts.iter().filter(|(attribute, _)| analyzed || *attribute == "value") {
            fields.push(Field::of(&format!("{prefix}{name}"), Some("ns"), figure(child, attribute)));
        }
    }
    fields
}

fn figure(node: Node, attribute: &str) -> Result<Reading, String> {
    let text = node.attribute(attribute).ok_or_else(|| format!("attribute {attribute} is missing"))?;
    text::summary(text, 1.0).map_err(|problem| format!("attribute {attribute}: {problem}"))
}

/// The total number of iterations: those per sample times the number of samples.
fn iterations(node: Node) -> Option<f64> {
    let number = |name: &str| node.attribute(name).and_then(|text| text::number(text).ok());
    number("samples").zip(number("iterations")).map(|(samples, each)| samples * each)
}
