//! Types, schemas and fixtures must agree.

use std::fs;
use std::path::{Path, PathBuf};

use assay_schema::{Attempt, Check, ReadError, Steps, Wave};
use jsonschema::{Draft, Resource, Validator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Clone, Copy)]
enum Kind {
    Wave,
    Attempt,
    Result,
    Steps,
}

impl Kind {
    fn of(path: &Path) -> Self {
        match path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('-').next()) {
            Some("wave") => Self::Wave,
            Some("attempt") => Self::Attempt,
            Some("result") => Self::Result,
            Some("steps") => Self::Steps,
            _ => panic!("{}: the name of a fixture begins with wave-, attempt-, result- or steps-", path.display()),
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Self::Wave => assay_schema::WAVE_SCHEMA,
            Self::Attempt => assay_schema::ATTEMPT_SCHEMA,
            Self::Result => assay_schema::RESULT_SCHEMA,
            Self::Steps => assay_schema::STEPS_SCHEMA,
        }
    }

    /// Parses the text with the Rust type and serializes it again.
    fn round_trip(self, text: &[u8]) -> Result<Value, ReadError> {
        fn through<T: DeserializeOwned + Serialize + Check>(text: &[u8]) -> Result<Value, ReadError> {
            let record: T = assay_schema::read(text)?;
            Ok(serde_json::to_value(&record).expect("a record can always be written"))
        }
        match self {
            Self::Wave => through::<Wave>(text),
            Self::Attempt => through::<Attempt>(text),
            Self::Result => through::<assay_schema::Result>(text),
            Self::Steps => through::<Steps>(text),
        }
    }
}

fn validator(kind: Kind) -> Validator {
    let mut options = jsonschema::options().with_draft(Draft::Draft202012);
    for text in [assay_schema::WAVE_SCHEMA, assay_schema::ATTEMPT_SCHEMA, assay_schema::RESULT_SCHEMA] {
        let schema: Value = serde_json::from_str(text).expect("the schema is JSON");
        let id = schema["$id"].as_str().expect("the schema has an $id").to_owned();
        options = options.with_resource(id, Resource::from_contents(schema).expect("the schema is a resource"));
    }
    let schema: Value = serde_json::from_str(kind.schema()).expect("the schema is JSON");
    options.build(&schema).expect("the schema is valid and refers only to the other two")
}

/// The fixtures of a folder, as documents. A fixture is a whole document, or a base (a valid fixture) with a patch: the operations `add`,
/// `replace` and `remove` of RFC 6902, of which each names a place of an object, or an existing one of an array.
fn fixtures(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect("the folder exists").map(|e| e.expect("entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(|path| (path.clone(), document(&path))).collect()
}

fn document(path: &Path) -> Vec<u8> {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let fixture: Value = serde_json::from_slice(&text).expect("even an invalid fixture is JSON");
    let Some(patch) = fixture.get("patch") else { return text };
    let base = fixture["base"].as_str().expect("the name of a valid fixture");
    let base = path.parent().and_then(Path::parent).expect("fixtures").join("valid").join(format!("{base}.json"));
    let mut whole: Value = serde_json::from_slice(&document(&base)).expect("the base is JSON");
    for operation in patch.as_array().expect("a list of operations") {
        apply(&mut whole, operation).unwrap_or_else(|| panic!("{}: {operation} does not apply", path.display()));
    }
    serde_json::to_vec(&whole).expect("JSON")
}

fn apply(whole: &mut Value, operation: &Value) -> Option<()> {
    let place = operation["path"].as_str()?;
    let (parent, key) = place.rsplit_once('/')?;
    let parent = whole.pointer_mut(parent)?;
    match (operation["op"].as_str()?, parent) {
        ("remove", Value::Object(fields)) => fields.remove(key).map(|_| ()),
        ("add" | "replace", Value::Object(fields)) => {
            fields.insert(key.to_owned(), operation["value"].clone());
            Some(())
        }
        ("replace", Value::Array(items)) => {
            *items.get_mut(key.parse::<usize>().ok()?)? = operation["value"].clone();
            Some(())
        }
        _ => None,
    }
}

/// Gives an attempt every noise reading that the schema has, so that a reading needs no fixture.
fn with_all_readings(attempt: &mut Value) {
    let schema: Value = serde_json::from_str(assay_schema::ATTEMPT_SCHEMA).expect("JSON");
    let Some(during) = attempt.pointer_mut("/noise/during").and_then(Value::as_object_mut) else { return };
    for (name, reading) in schema["$defs"]["noise"]["properties"].as_object().expect("the readings") {
        let value = if reading["type"] == "integer" { json!(3) } else { json!(0.5) };
        during.entry(name.clone()).or_insert(value);
    }
}

/// Normalizes all numbers to floats, because 8 and 8.0 are the same number in JSON.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().expect("a finite number")),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(k, v)| (k, plain(v))).collect()),
        other => other,
    }
}

#[test]
fn type_ids_match_the_schemas() {
    for (schema, written, id) in [
        (assay_schema::WAVE_SCHEMA, json!(assay_schema::wave::SchemaId::default()), "assay.dev/wave/v1alpha1"),
        (assay_schema::ATTEMPT_SCHEMA, json!(assay_schema::attempt::SchemaId::default()), "assay.dev/attempt/v1alpha1"),
        (assay_schema::RESULT_SCHEMA, json!(assay_schema::result::SchemaId::default()), "assay.dev/result/v1alpha1"),
        (assay_schema::STEPS_SCHEMA, json!(assay_schema::steps::SchemaId::default()), "assay.dev/steps/v1alpha1"),
    ] {
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        assert_eq!(schema["properties"]["schema"]["const"], id);
        assert_eq!(written, id);
    }
}

#[test]
fn valid_fixtures_pass_the_schema_and_round_trip_unchanged() {
    for (path, text) in fixtures("valid") {
        let kind = Kind::of(&path);
        let value: Value = serde_json::from_slice(&text).expect("the fixture is JSON");
        let errors: Vec<_> = validator(kind).iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path)).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        let again = kind.round_trip(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(plain(again), plain(value), "{} changed on the way through the types", path.display());
    }
}

#[test]
fn invalid_fixtures_are_rejected_by_schema_and_types() {
    for (path, text) in fixtures("invalid") {
        let kind = Kind::of(&path);
        let value: Value = serde_json::from_slice(&text).expect("even an invalid fixture is JSON");
        assert!(!validator(kind).is_valid(&value), "{}: the schema accepts it", path.display());
        assert!(kind.round_trip(&text).is_err(), "{}: the types accept it", path.display());
    }
}

/// Mutates every field of every valid fixture. The hand-written checks must agree with the schema on each mutant.
#[test]
fn types_and_schema_agree_on_every_mutation() {
    let long = |n: usize| json!("x".repeat(n));
    let replacements: Vec<Value> = vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(7),
        json!(1_u64 << 53),
        json!(""),
        long(33),
        long(64),
        long(65),
        long(254),
        long(401),
        long(513),
        long(1025),
        long(4097),
        long(16_385),
        json!("é".repeat(32)),
        json!([]),
        json!({}),
        json!({"A": 1}),
        json!({"a": "1"}),
        Value::Object((0..257).map(|i| (format!("p{i}"), json!("1"))).collect()),
    ];
    let mut tried = 0;
    for (path, text) in fixtures("valid") {
        let kind = Kind::of(&path);
        let validator = validator(kind);
        let mut original: Value = serde_json::from_slice(&text).expect("the fixture is JSON");
        with_all_readings(&mut original);
        assert!(kind.round_trip(&serde_json::to_vec(&original).expect("JSON")).is_ok(), "{}", path.display());
        let mut pointers = Vec::new();
        collect(&original, String::new(), &mut pointers);
        for pointer in pointers {
            let mut mutants: Vec<Value> = replacements
                .iter()
                .map(|replacement| {
                    let mut mutant = original.clone();
                    *mutant.pointer_mut(&pointer).expect("the pointer was just made") = replacement.clone();
                    mutant
                })
                .collect();
            let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", ""));
            let mut mutant = original.clone();
            if let Some(object) = mutant.pointer_mut(parent).and_then(Value::as_object_mut) {
                object.remove(key);
                mutants.push(mutant);
            }
            let mut mutant = original.clone();
            if let Some(object) = mutant.pointer_mut(&pointer).and_then(Value::as_object_mut) {
                object.insert("surprise".into(), json!(1));
                mutants.push(mutant);
            }
            for mutant in mutants {
                let by_schema = validator.is_valid(&mutant);
                let by_types = kind.round_trip(&serde_json::to_vec(&mutant).expect("JSON"));
                assert_eq!(
                    by_schema,
                    by_types.is_ok(),
                    "{} changed at {pointer}: schema says {by_schema}, types say {by_types:?}",
                    path.display()
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 10_000, "only {tried} mutants");
}

fn collect(value: &Value, at: String, pointers: &mut Vec<String>) {
    match value {
        // The first two entries represent all.
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate().take(2) {
                collect(item, format!("{at}/{i}"), pointers);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                collect(field, format!("{at}/{key}"), pointers);
            }
        }
        _ => {}
    }
    if !at.is_empty() {
        pointers.push(at);
    }
}

#[test]
fn errors_have_position_and_problem() {
    let read = |text: &str| assay_schema::read::<assay_schema::Result>(text.as_bytes()).expect_err("refused");
    let head = r#"{"schema": "assay.dev/result/v1alpha1", "workload": {"name": "w", "version": "1"},"#;

    let error =
        read(&format!("{head}\n \"metrics\": {{\"latency\": {{\"unit\": \"s\", \"samples\": [1, 2, \"fast\"]}}}}}}"));
    assert_eq!((error.line, error.field.as_str()), (Some(2), "metrics.latency.samples[2]"));
    assert!(error.to_string().contains("string \"fast\""), "{error}");

    let error = read(&format!("{head}\n \"metrics\": {{\"latency\": {{\"unit\": \"s\", \"samp"));
    assert!(error.incomplete && error.line == Some(2), "{error:?}");

    let error = read(&format!("{head} \"metrics\": {{\"latency\": {{\"unit\": \"s\", \"value\": 1}}}}}} and more"));
    assert!(error.problem.contains("trailing characters"), "{error:?}");

    let error = read(&format!("{head} \"metrics\": {{\"latency\": {{\"unit\": \"\", \"value\": 1}}}}}}"));
    assert_eq!(error.field, "metrics.latency.unit");
}
