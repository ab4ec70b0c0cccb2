//! Location of a trial's result, parsing of it, and retention of raw output.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, ensure};
use assay_adapters::Source;
use assay_schema::output::{Format, MOST_TEXT, MetricSource, RawOutput};

use crate::ended::{Ended, STDOUT_LIMIT};
use crate::words;

/// Name of standard output as a source.
const STDOUT: &str = "standard output";
/// Limit on files per result.
const MOST_FILES: usize = 3000;
/// Limit on folder depth.
const DEEPEST: usize = 16;
/// Limit on retained sources per attempt.
const MOST_KEPT: usize = 64;

/// Output settings of the plan.
#[derive(Debug)]
pub(crate) struct Output {
    how: assay_schema::output::Output,
}

/// Location of one trial's result.
#[derive(Debug)]
pub(crate) struct Place {
    /// The trial's working directory.
    folder: Option<PathBuf>,
    /// The file or folder with the result; absent: standard output.
    path: Option<PathBuf>,
    /// The metrics in the output of another tool, with the benchmarks of this trial.
    metrics: Option<Vec<MetricSource>>,
}

impl Output {
    pub(crate) fn new(mut how: assay_schema::output::Output) -> Result<Self> {
        how.path = how.path.filter(|path| !path.is_empty());
        let output = Self { how };
        ensure!(
            output.how.metrics.is_some() || !output.is_a_tools(),
            "field workload.output.metrics: missing, and {:?} requires a mapping of figures to metrics",
            output.how.format
        );
        if let Some(path) = output.how.path.as_ref().map(Path::new).filter(|path| path.is_relative()) {
            let below = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            ensure!(below, "field workload.output.path: {} does not stay below the trial's folder", path.display());
        }
        Ok(output)
    }

    /// Whether the format is another tool's, whose output may contain error messages.
    pub(crate) fn is_a_tools(&self) -> bool {
        !matches!(self.how.format, Format::AssayResult | Format::None)
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.how.path.is_none() && self.how.format != Format::None
    }

    /// Prepares the place for a trial's result and removes an earlier one. A relative path is below `room`, the trial's
    /// folder. `parameters` replace `$(name)` in the names of benchmarks. The error is the reason why the trial cannot
    /// start.
    pub(crate) fn place(&self, room: &Path, parameters: &BTreeMap<String, String>) -> Result<Place, String> {
        let metrics = self.how.metrics.clone().map(|metrics| {
            let named = |one: MetricSource| MetricSource {
                benchmark: one.benchmark.map(|name| substituted(&name, parameters)),
                ..one
            };
            metrics.into_iter().map(named).collect()
        });
        let Some(path) = self.how.path.as_ref().map(Path::new) else { return Ok(Place { metrics, ..Place::stdout() }) };
        if path.is_absolute() {
            words::clear_output(path)?;
            return Ok(Place { folder: None, path: Some(path.to_owned()), metrics });
        }
        let folder = room.join("work");
        let path = folder.join(path);
        // Programs create their file, but not its parent folders.
        match path.parent().map(fs::create_dir_all) {
            Some(Err(error)) => Err(format!("cannot make the folder for {}: {error}", path.display())),
            _ => Ok(Place { folder: Some(folder), path: Some(path), metrics }),
        }
    }

    /// Returns the raw output, or the reason why it is missing.
    fn sources(&self, ended: &Ended, place: &Place) -> Result<Vec<Source>, String> {
        let Some(path) = &place.path else {
            return Ok(vec![Source { name: STDOUT.into(), bytes: ended.stdout.clone() }]);
        };
        // The trial's folder no longer exists when the message is read, so that the message has the relative path.
        let name = self.how.path.clone().unwrap_or_default();
        let folder = self.how.format == Format::Criterion && fs::symlink_metadata(path).is_ok_and(|file| file.is_dir());
        if folder {
            return folder_sources(path, &name);
        }
        match read_file(path, STDOUT_LIMIT) {
            Ok(bytes) => Ok(vec![Source { name, bytes }]),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("the process exited with code 0 but did not write {name}"))
            }
            Err(error) => Err(format!("cannot read the result from {name}: {error}")),
        }
    }

    /// Parses the result of a successful process; None for the format `None`.
    pub(crate) fn result(
        &self,
        ended: &Ended,
        place: &Place,
        parity_required: bool,
    ) -> (Result<Option<assay_schema::Result>, String>, Option<Vec<RawOutput>>) {
        if self.how.format == Format::None {
            return (Ok(None), None);
        }
        let sources = match self.sources(ended, place) {
            Ok(sources) => sources,
            Err(problem) => return (Err(problem), None),
        };
        if self.how.format == Format::AssayResult {
            return (words::parse(&sources[0].bytes, &sources[0].name, parity_required).map(Some), None);
        }
        let how = assay_schema::output::Output { metrics: place.metrics.clone(), ..self.how.clone() };
        let result = assay_adapters::convert(&how, &sources).map_err(|fault| fault.to_string());
        let result = result.and_then(|result| match parity_required {
            true => Err(format!("{:?} has no parity digest, and the workload requires one", self.how.format)),
            false => Ok(result),
        });
        (result.map(Some), keep(&sources))
    }

    /// Returns the raw output of a failed process to retain, because tools print their error messages there.
    pub(crate) fn evidence(&self, ended: &Ended, place: &Place) -> Option<Vec<RawOutput>> {
        if !self.is_a_tools() {
            return None;
        }
        keep(&self.sources(ended, place).unwrap_or_default())
    }
}

/// Replaces every `$(name)` of a parameter by its value. Values are not searched for further names.
fn substituted(text: &str, parameters: &BTreeMap<String, String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("$(") {
        out.push_str(before);
        match after.split_once(')').and_then(|(name, behind)| Some((parameters.get(name)?, behind))) {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push_str("$(");
                rest = after;
            }
        }
    }
    out + rest
}

impl Place {
    /// The place of a result on standard output.
    pub(crate) const fn stdout() -> Self {
        Self { folder: None, path: None, metrics: None }
    }

    /// The trial's working directory, if it differs from the runner's.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Makes a relative program path valid from the working directory.
    pub(crate) fn program(&self, program: String) -> String {
        let moved = self.folder.is_some() && program.contains('/') && Path::new(&program).is_relative();
        match std::env::current_dir() {
            Ok(here) if moved => here.join(program).display().to_string(),
            _ => program,
        }
    }
}

/// Returns a random name that no earlier trial could predict.
pub(crate) fn own_name() -> String {
    format!("{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish())
}

/// Returns the relevant files of Criterion's folder, in order. Symbolic links are not followed.
fn folder_sources(root: &Path, name: &str) -> Result<Vec<Source>, String> {
    let (mut sources, mut bytes) = (Vec::new(), 0);
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let unreadable = |error: io::Error| format!("cannot read {name}: {error}");
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let path = entry.path();
            if kind.is_dir() && depth < DEEPEST {
                open.push((path, depth + 1));
                continue;
            }
            let below = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if !kind.is_file() || !assay_adapters::is_criterion_file(&below) {
                continue;
            }
            let text = read_file(&path, STDOUT_LIMIT - bytes)
                .map_err(|error| format!("cannot read {name}/{below}: {error}"))?;
            bytes += text.len();
            sources.push(Source { name: below, bytes: text });
            if sources.len() > MOST_FILES {
                return Err(format!(
                    "{name} has more than {MOST_FILES} files of measurements: run fewer benchmarks at once"
                ));
            }
        }
    }
    if sources.is_empty() {
        return Err(format!(
            "no measurement is below {name}: check that CRITERION_HOME names it and that the pattern matches"
        ));
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(sources)
}

fn read_file(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    // Non-blocking, because a FIFO without a writer would block the runner, and without following links, which may lead
    // outside of the trial's folder.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut text)?;
    if text.len() > limit {
        return Err(io::Error::other(format!("it is more than {STDOUT_LIMIT} bytes")));
    }
    Ok(text)
}

/// Returns the first characters of each source with the digest of the complete text.
fn keep(sources: &[Source]) -> Option<Vec<RawOutput>> {
    let mut room = MOST_TEXT;
    let mut kept = Vec::new();
    for source in sources.iter().filter(|source| !source.bytes.is_empty()).take(MOST_KEPT) {
        // A character has at least one byte.
        let text = String::from_utf8_lossy(&source.bytes[..source.bytes.len().min(4 * room)]);
        let text: String = text.chars().take(room).collect();
        room -= text.chars().count();
        kept.push(RawOutput {
            source: source.name.chars().take(4096).collect(),
            bytes: source.bytes.len() as u64,
            digest: format!("blake3:{}", blake3::hash(&source.bytes).to_hex()),
            text,
        });
    }
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended::How;

    fn output(format: Format, path: Option<&str>) -> Output {
        let metric =
            assay_schema::output::MetricSource { name: "latency".into(), unit: "s".into(), ..Default::default() };
        let how = assay_schema::output::Output {
            format,
            path: path.map(str::to_owned),
            metrics: Some(vec![metric]),
            csv: None,
            json: None,
        };
        Output::new(how).expect("a good plan")
    }

    fn printed(text: &str) -> Ended {
        let mut ended = Ended::never_ran(How::NotStarted(String::new()));
        ended.stdout = text.into();
        ended
    }

    #[test]
    fn tool_output_is_converted_and_retained() {
        let output = output(Format::GoBench, None);
        let place = output.place(Path::new("/nowhere"), &BTreeMap::new()).expect("a place");
        let text = "BenchmarkJoin 1 5 ns/op\nPASS\n";
        let (result, raw) = output.result(&printed(text), &place, false);
        assert!(result.expect("read").expect("a result").metrics.contains_key("latency"));
        let raw = raw.expect("kept");
        assert_eq!((raw[0].source.as_str(), raw[0].text.as_str(), raw[0].bytes), (STDOUT, text, 29));
        let (result, _) = output.result(&printed(text), &place, true);
        assert!(result.expect_err("refused").contains("parity"));
        let (result, raw) = output.result(&printed("FAIL\n"), &place, false);
        assert!(result.expect_err("refused").contains("line 1"));
        assert_eq!(raw.expect("kept")[0].text, "FAIL\n", "even if it is invalid");
    }

    #[test]
    fn benchmark_of_an_arm_is_that_of_its_parameters() {
        let mut output = output(Format::GoBench, None);
        output.how.metrics.as_mut().expect("a metric")[0].benchmark = Some("Benchmark$(kind)/$(size)-$(other)".into());
        let name = |pairs: &[(&str, &str)]| {
            let parameters = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            let place = output.place(Path::new("/nowhere"), &parameters).expect("a place");
            let text = "BenchmarkOld/8-$(other) 1 5 ns/op\nBenchmark$(size)/8-$(other) 1 6 ns/op\nPASS\n";
            output.result(&printed(text), &place, false).0.map(|result| {
                let effective = result.expect("a result").effective.expect("its sources");
                serde_json::to_value(&effective["latency.benchmark"]).expect("a text")
            })
        };
        assert_eq!(name(&[("kind", "Old"), ("size", "8")]).expect("read"), "BenchmarkOld/8-$(other)");
        let nested = name(&[("kind", "$(size)"), ("size", "8")]).expect("read");
        assert_eq!(nested, "Benchmark$(size)/8-$(other)", "a value is not searched for names");
        let missing = name(&[("kind", "New"), ("size", "8")]).expect_err("absent");
        assert!(missing.contains(r#"no figures of "BenchmarkNew/8-$(other)""#), "{missing}");
    }

    #[test]
    fn relative_path_is_below_the_trial_folder() {
        let output = output(Format::Hyperfine, Some("a/result.json"));
        let room = tempfile::tempdir().expect("a folder");
        let place = output.place(room.path(), &BTreeMap::new()).expect("a place");
        let folder = place.folder().expect("a folder").to_owned();
        assert!(place.program("./tool".into()).starts_with('/') && place.program("tool".into()) == "tool");
        let (result, raw) = output.result(&printed(""), &place, false);
        assert!(result.expect_err("nothing there").contains("did not write a/result.json") && raw.is_none());
        fs::write(folder.join("a/result.json"), r#"{"results": [{"command": "x", "times": [1.5]}]}"#).expect("written");
        let (result, raw) = output.result(&printed(""), &place, false);
        result.expect("a result");
        assert_eq!(raw.expect("kept")[0].source, "a/result.json");
        assert!(folder.starts_with(room.path()));
    }

    #[test]
    fn absolute_path_is_cleared_and_working_directory_unchanged() {
        let temporary = tempfile::tempdir().expect("a folder");
        let file = temporary.path().join("result.csv");
        fs::write(&file, "of an earlier trial").expect("written");
        let output = output(Format::Csv, file.to_str());
        let place = output.place(Path::new("/nowhere"), &BTreeMap::new()).expect("a place");
        assert!(place.folder().is_none() && !file.exists());
        assert_eq!(place.program("./tool".into()), "./tool");
    }

    #[test]
    fn criterion_folder_is_read_without_following_links() {
        let temporary = tempfile::tempdir().expect("a folder");
        let new = temporary.path().join("group/id/new");
        fs::create_dir_all(&new).expect("made");
        fs::create_dir_all(temporary.path().join("group/id/base")).expect("made");
        for file in ["benchmark.json", "sample.json", "tukey.json"] {
            fs::write(new.join(file), "{}").expect("written");
            fs::write(temporary.path().join("group/id/base").join(file), "{}").expect("written");
        }
        std::os::unix::fs::symlink(temporary.path(), temporary.path().join("group/loop")).expect("linked");
        std::os::unix::fs::symlink("/proc/version", new.join("estimates.json")).expect("linked");
        let sources = folder_sources(temporary.path(), "criterion").expect("read");
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        assert_eq!(names, ["group/id/new/benchmark.json", "group/id/new/sample.json"]);
        let empty = tempfile::tempdir().expect("a folder");
        assert!(
            folder_sources(empty.path(), "criterion")
                .expect_err("refused")
                .contains("no measurement is below criterion")
        );
    }

    #[test]
    fn retained_output_fits_into_an_attempt() {
        let source = |bytes: Vec<u8>| Source { name: "a".into(), bytes };
        let raw = keep(&[source("é".repeat(MOST_TEXT - 1).into()), source(vec![0xff; 9]), source(b"z".to_vec())])
            .expect("kept");
        assert_eq!(raw[0].text.chars().count(), MOST_TEXT - 1);
        assert_eq!((raw[1].text.as_str(), raw[1].bytes, raw[2].text.as_str()), ("\u{fffd}", 9, ""));
        use assay_schema::Check;
        raw.iter().try_for_each(RawOutput::check).expect("within the schema");
    }

    #[test]
    fn invalid_output_settings_are_rejected() {
        let how = |format, path: &str| assay_schema::output::Output {
            format,
            path: Some(path.into()),
            metrics: None,
            csv: None,
            json: None,
        };
        let problem = |how| Output::new(how).expect_err("refused").to_string();
        assert!(problem(how(Format::K6, "a")).contains("workload.output.metrics"));
        assert!(problem(how(Format::AssayResult, "../a")).contains("workload.output.path"));
    }
}
