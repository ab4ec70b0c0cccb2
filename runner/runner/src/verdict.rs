//! Derives an attempt's outcome and message from an exited process.

use std::time::Duration;

use assay_schema::attempt::Outcome;
use assay_schema::output::RawOutput;

use crate::ended::{Ended, How, STDOUT_LIMIT};
use crate::output::{Output, Place};
use crate::usage::{self, Exit};
use crate::words::{last_words, shortened};

/// Maximum length of an attempt's `message` in characters.
const MESSAGE_LENGTH: usize = 4096;
/// The outcome of a trial.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) exit_code: Option<i64>,
    pub(crate) signal: Option<i64>,
    pub(crate) message: Option<String>,
    pub(crate) result: Option<assay_schema::Result>,
    /// Raw output of another tool.
    pub(crate) output: Option<Vec<RawOutput>>,
}

/// Inputs of the verdict besides the process.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) output: &'a Output,
    /// The place of this trial's result.
    pub(crate) place: &'a Place,
    pub(crate) parity_required: bool,
    pub(crate) timeout: Duration,
    /// The reason why the events of the kernel make the trial no success.
    pub(crate) kernel: Option<&'a str>,
}

/// Derives the outcome of an exited process. A trial that the kernel disturbed is Failed, also at its time limit, because
/// the time would count as a lower bound of its figure.
pub(crate) fn judge(ended: &Ended, terms: &Terms<'_>) -> Verdict {
    let verdict = by_exit(ended, terms);
    let Some(cause) = terms.kernel else { return verdict };
    let how = verdict.message.as_deref().unwrap_or("the process exited with code 0 and a result, which does not count");
    let outcome = if verdict.outcome == Outcome::NotStarted { Outcome::NotStarted } else { Outcome::Failed };
    let Verdict { message, .. } = Verdict::unhappy(outcome, format!("{cause}: {how}"));
    Verdict { outcome, message, result: None, ..verdict }
}

/// Derives the outcome without the events of the kernel.
fn by_exit(ended: &Ended, terms: &Terms<'_>) -> Verdict {
    match &ended.how {
        How::NotStarted(reason) => Verdict::unhappy(Outcome::NotStarted, reason.clone()),
        How::CannotStart(reason) => Verdict::unhappy(Outcome::Failed, reason.clone()),
        How::Deserted(reason) => Verdict::unhappy(Outcome::Failed, reason.clone()),
        How::ReachedLimit(reason) => {
            Verdict::unhappy(Outcome::Failed, format!("{reason}{}", last_words(&ended.stderr)))
        }
        How::TimedOut => {
            let others = match ended.left_behind {
                0 => String::new(),
                1 => ", with 1 descendant process".to_owned(),
                n => format!(", with {n} descendant processes"),
            };
            let limit = terms.timeout.as_secs_f64();
            let message = format!("killed after the timeout of {limit} s{others}{}", last_words(&ended.stderr));
            Verdict { signal: Some(i64::from(libc::SIGKILL)), ..Verdict::unhappy(Outcome::TimedOut, message) }
        }
        How::TooMuchOutput => Verdict::unhappy(
            Outcome::Malformed,
            format!(
                "standard output is more than {STDOUT_LIMIT} bytes, the maximum size of a result, so that the process was killed"
            ),
        ),
        How::Exited(Exit::Code(0)) => {
            let (result, output) = terms.output.result(ended, terms.place, terms.parity_required);
            match result {
                Ok(result) => Verdict { exit_code: Some(0), result, output, ..Verdict::new(Outcome::Succeeded, None) },
                Err(message) => Verdict { exit_code: Some(0), output, ..Verdict::unhappy(Outcome::Malformed, message) },
            }
        }
        How::Exited(Exit::Code(code)) => {
            let mut words = last_words(&ended.stderr);
            if words.is_empty() && terms.output.is_a_tools() {
                words = last_words(&ended.stdout);
            }
            let message = format!("the process exited with code {code}{words}");
            Verdict { exit_code: Some(i64::from(*code)), ..Verdict::unhappy(Outcome::Failed, message) }
        }
        How::Exited(Exit::Signal(signal)) => {
            let name = usage::signal_name(*signal);
            let message =
                format!("the process was terminated by signal {signal} ({name}){}", last_words(&ended.stderr));
            Verdict { signal: Some(i64::from(*signal)), ..Verdict::unhappy(Outcome::Failed, message) }
        }
    }
}

impl Verdict {
    fn new(outcome: Outcome, message: Option<String>) -> Self {
        Self { outcome, exit_code: None, signal: None, message, result: None, output: None }
    }

    pub(crate) fn unhappy(outcome: Outcome, message: String) -> Self {
        Self::new(outcome, Some(shortened(&message, MESSAGE_LENGTH - 1)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::time::SystemTime;

    use super::*;

    fn ended(how: How, stdout: &str, stderr: &str) -> Ended {
        Ended {
            how,
            started_at: SystemTime::UNIX_EPOCH,
            duration: Duration::from_millis(1),
            counts: crate::pmu::Counts::default(),
            usage: None,
            stdout: stdout.into(),
            stderr: stderr.into(),
            left_behind: 0,
            services: Vec::new(),
            deaths: Vec::new(),
        }
    }

    fn output(path: Option<&str>) -> Output {
        let how = assay_schema::output::Output {
            format: assay_schema::output::Format::AssayResult,
            path: path.map(str::to_owned),
            metrics: None,
            csv: None,
            json: None,
        };
        Output::new(how).expect("a good plan")
    }

    fn terms() -> Terms<'static> {
        static STDOUT: OnceLock<Output> = OnceLock::new();
        static HERE: Place = Place::stdout();
        Terms {
            output: STDOUT.get_or_init(|| output(None)),
            place: &HERE,
            parity_required: false,
            timeout: Duration::from_millis(1500),
            kernel: None,
        }
    }

    const RESULT: &str = r#"{"schema": "assay.dev/result/v1alpha1", "workload": {"name": "w", "version": "1"},
        "metrics": {"latency": {"unit": "s", "value": 1.5}}}"#;

    #[track_caller]
    fn assert_verdict(verdict: &Verdict, outcome: Outcome, words: &[&str]) {
        assert_eq!(verdict.outcome, outcome);
        let message = verdict.message.as_deref().unwrap_or("");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }

    #[test]
    fn result_with_exit_code_0_succeeds() {
        let verdict = judge(&ended(How::Exited(Exit::Code(0)), RESULT, "chatter"), &terms());
        assert_verdict(&verdict, Outcome::Succeeded, &[]);
        assert!(verdict.message.is_none() && verdict.result.is_some());
    }

    #[test]
    fn result_is_read_from_a_file() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("result.json");
        let output = output(file.to_str());
        let place =
            output.place(std::path::Path::new("/nowhere"), &std::collections::BTreeMap::new()).expect("a place");
        let terms = Terms { output: &output, place: &place, ..terms() };
        let exited = || ended(How::Exited(Exit::Code(0)), "not looked at", "");
        assert_verdict(&judge(&exited(), &terms), Outcome::Malformed, &["did not write", "result.json"]);
        std::fs::write(&file, RESULT).expect("written");
        assert_verdict(&judge(&exited(), &terms), Outcome::Succeeded, &[]);
    }

    #[test]
    fn format_none_succeeds_by_exit_code() {
        let silent = assay_schema::output::Format::None;
        let output = Output::new(assay_schema::output::Output {
            format: silent,
            path: None,
            metrics: None,
            csv: None,
            json: None,
        });
        let output = output.expect("a good plan");
        assert!(!output.is_stdout(), "its output is not a result");
        let terms = Terms { output: &output, ..terms() };
        let verdict = judge(&ended(How::Exited(Exit::Code(0)), "", "chatter"), &terms);
        assert_verdict(&verdict, Outcome::Succeeded, &[]);
        assert!(verdict.result.is_none() && verdict.output.is_none());
        let verdict = judge(&ended(How::Exited(Exit::Code(2)), "", "no such file"), &terms);
        assert_verdict(&verdict, Outcome::Failed, &["code 2", "no such file"]);
    }

    #[test]
    fn result_of_a_failed_process_is_ignored() {
        let verdict = judge(&ended(How::Exited(Exit::Code(3)), RESULT, "one\ncannot open data set\n\n"), &terms());
        assert_verdict(&verdict, Outcome::Failed, &["code 3", "cannot open data set"]);
        assert!(verdict.result.is_none());
    }

    #[test]
    fn kernel_event_fails_every_outcome_but_a_missing_start() {
        let cause = "the kernel killed a process of this trial (out of memory)";
        let terms = Terms { kernel: Some(cause), ..terms() };
        for (how, stdout, outcome, words) in [
            (How::Exited(Exit::Code(0)), RESULT, Outcome::Failed, "code 0 and a result, which does not count"),
            (How::Exited(Exit::Code(0)), "", Outcome::Failed, "standard output is empty"),
            (How::Exited(Exit::Code(3)), RESULT, Outcome::Failed, "code 3"),
            (How::Exited(Exit::Signal(9)), "", Outcome::Failed, "SIGKILL"),
            (How::TimedOut, RESULT, Outcome::Failed, "timeout of 1.5 s"),
            (How::TooMuchOutput, "", Outcome::Failed, "maximum size"),
            (How::Deserted("role a exited".to_owned()), RESULT, Outcome::Failed, "role a exited"),
            (How::NotStarted("cannot start /a".to_owned()), "", Outcome::NotStarted, "cannot start /a"),
        ] {
            let verdict = judge(&ended(how, stdout, ""), &terms);
            assert_verdict(&verdict, outcome, &[&format!("{cause}: "), words]);
            assert!(verdict.result.is_none(), "{verdict:?}");
        }
    }

    #[test]
    fn malformed_result_is_reported_with_position() {
        let judge = |stdout: &str| judge(&ended(How::Exited(Exit::Code(0)), stdout, ""), &terms());
        assert_verdict(&judge(" \n"), Outcome::Malformed, &["standard output is empty"]);
        assert_verdict(&judge(&RESULT[..90]), Outcome::Malformed, &["ends in the middle", "line 2"]);
        assert_verdict(&judge("elapsed: 3 s"), Outcome::Malformed, &["line 1, column 1", "near \"elapsed: 3 s\""]);
        assert_verdict(&judge(&RESULT.replace("1.5", "\"x\"")), Outcome::Malformed, &["metrics.latency", "line 2"]);
        assert_verdict(&judge(&RESULT.replace("\"s\"", "\"\"")), Outcome::Malformed, &["metrics.latency.unit"]);
        assert_verdict(&judge(&format!("{RESULT}\nbye")), Outcome::Malformed, &["trailing characters", "line 3"]);
    }

    #[test]
    fn missing_required_parity_digest_is_malformed() {
        let terms = Terms { parity_required: true, ..terms() };
        let verdict = judge(&ended(How::Exited(Exit::Code(0)), RESULT, ""), &terms);
        assert_verdict(&verdict, Outcome::Malformed, &["parity", "missing"]);
    }

    #[test]
    fn message_is_truncated_to_the_limit() {
        let verdict = Verdict::unhappy(Outcome::Failed, "é".repeat(5000));
        assert_eq!(verdict.message.expect("a message").chars().count(), MESSAGE_LENGTH);
    }
}
