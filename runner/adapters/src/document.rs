//! JSON of any program. `from.path` is a JSONPath (RFC 9535): one that selects a single value is a figure of the trial, and
//! one with a wildcard, a slice, a filter or a descendant selects samples.

use std::collections::BTreeSet;

use assay_schema::output::Json;
use assay_schema::wave::MetricSource;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::fault::{Fault, quoted};
use crate::json;
use crate::report::{Benchmark, Field, Reading, Report, Whole};
use crate::source::Source;

pub(crate) fn read(source: &Source, wanted: &[MetricSource], how: &Json) -> Result<Report, Fault> {
    let document = json::parse(source, crate::report::ONE_REPORT)?;
    if let Some(path) = &how.error_path {
        let is_set = |value: &&Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            value => json::is_figure(value) || value.as_object().is_some_and(|entries| !entries.is_empty()),
        };
        if let Some(error) = parsed(path)?.query(&document).iter().copied().find(is_set) {
            let problem =
                format!("the program reports a failure, {}, so that its figures are invalid", json::found(error));
            return Err(Fault::at_field(&source.name, path, problem));
        }
    }
    let paths: BTreeSet<&str> = wanted.iter().filter_map(|metric| metric.path.as_deref()).collect();
    let fields = paths.into_iter().map(|path| Ok(Field::of(path, None, reading(path, &document, parsed(path)?))));
    Ok(Report {
        benchmarks: vec![Benchmark {
            name: "document".into(),
            place: "document".into(),
            fields: fields.collect::<Result<_, Fault>>()?,
            ..Benchmark::default()
        }],
        ..Report::new("json", source, Whole::Document)
    })
}

fn parsed(path: &str) -> Result<JsonPath, Fault> {
    JsonPath::parse(path)
        .map_err(|error| Fault::whole("", format!("invalid JSONPath {} in from.path: {error}", quoted(path))))
}

fn reading(path: &str, document: &Value, query: JsonPath) -> Result<Reading, String> {
    let nodes = query.query_located(document);
    if !is_singular(path) {
        let number = |node: serde_json_path::LocatedNode| {
            json::number(node.node()).map_err(|problem| format!("{}: {problem}", node.location()))
        };
        return nodes.into_iter().map(number).collect::<Result<_, _>>().map(Reading::Samples);
    }
    match nodes.into_iter().next().map(|node| node.node()) {
        Some(Value::Array(items)) => {
            Err(format!("found a list of {}: append [*] to from.path, so that its items are samples", items.len()))
        }
        Some(value) => json::summary(value),
        None => Err("selects nothing in the document: correct from.path".into()),
    }
}

/// Reports whether a path selects at most one value (RFC 9535, 2.3.5.1): names and indices only.
fn is_singular(path: &str) -> bool {
    let (mut quote, mut escaped, mut last) = (None, false, ' ');
    for c in path.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if matches!(c, '*' | ':' | '?' | ',') || (c == '.' && last == '.') => return false,
            None => {}
        }
        last = c;
    }
    true
}
