//! Variables of the caller's environment that trials inherit, in a comparison of command lines on this machine.
//!
//! Their values may be secrets, and ledgers are published. An attempt has one digest over all names and values, and the
//! values that the wave lists as recorded. In texts that trials print, the other values are replaced by their names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use assay_schema::Attempt;
use assay_schema::attempt::Outcome;
use assay_schema::result::Scalar;
use assay_schema::wave::Inherited;
use serde_json::Value;

use crate::environment::INHERITED_ENVIRONMENT;

/// The prefix of the soft keys of recorded values.
const RECORDED: &str = "env.";
/// Longer values are not recorded.
const LONGEST_RECORDED: usize = 256;
/// Shorter values occur in texts by chance, and secrets are longer.
const SHORTEST_HIDDEN: usize = 6;

/// The inherited variables with their values.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    variables: BTreeMap<String, OsString>,
    recorded: Vec<String>,
    /// Values to hide with their names, the longest first, so that a value that contains another one is replaced whole.
    hidden: Vec<(String, String)>,
    declared: bool,
}

impl Caller {
    /// Reads the variables that the wave names from this process's environment; absent ones are left out.
    pub(crate) fn read(inherited: Option<&Inherited>) -> Self {
        Self::of(inherited, |name| std::env::var_os(name))
    }

    fn of(inherited: Option<&Inherited>, value: impl Fn(&str) -> Option<OsString>) -> Self {
        let Some(inherited) = inherited else { return Self::default() };
        let named = inherited.names.iter().filter_map(|name| Some((name.clone(), value(name)?)));
        let variables: BTreeMap<String, OsString> = named.collect();
        let hides = |name: &String, value: &str| {
            !inherited.recorded.contains(name) && !HARMLESS.contains(&name.as_str()) && value.len() >= SHORTEST_HIDDEN
        };
        let texts = variables.iter().filter_map(|(name, value)| Some((name.clone(), value.to_str()?.to_owned())));
        let mut hidden: Vec<(String, String)> = texts.filter(|(name, value)| hides(name, value)).collect();
        hidden.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Self { variables, recorded: inherited.recorded.clone(), hidden, declared: true }
    }

    /// Returns the variables that a trial's own variables do not replace, as `NAME=value`.
    pub(crate) fn besides(&self, own: &BTreeMap<String, String>) -> impl Iterator<Item = Vec<u8>> {
        let further = self.variables.iter().filter(|(name, _)| !own.contains_key(*name));
        further.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
    }

    /// Returns the soft keys of an attempt.
    pub(crate) fn keys(&self) -> Vec<(String, Scalar)> {
        if !self.declared {
            return Vec::new();
        }
        let mut hash = blake3::Hasher::new();
        for (name, value) in &self.variables {
            // Lengths separate the texts unambiguously.
            for text in [name.as_bytes(), value.as_bytes()] {
                hash.update(&(text.len() as u64).to_le_bytes()).update(text);
            }
        }
        let digest = format!("{} variables, blake3:{}", self.variables.len(), hash.finalize().to_hex());
        let recorded = self.recorded.iter().filter_map(|name| {
            let value = self.variables.get(name)?.to_str()?;
            (value.len() <= LONGEST_RECORDED).then(|| (format!("{RECORDED}{name}"), value.to_owned().into()))
        });
        std::iter::once((INHERITED_ENVIRONMENT.to_owned(), digest.into())).chain(recorded).collect()
    }

    /// Replaces values of variables that are not recorded in all that a trial printed.
    pub(crate) fn hide(&self, attempt: Attempt) -> Attempt {
        if self.hidden.is_empty() {
            return attempt;
        }
        let mut value = serde_json::to_value(&attempt).unwrap_or_default();
        for part in ["message", "stderrTail", "output", "roles", "result"] {
            if let Some(part) = value.get_mut(part) {
                self.hide_in(part);
            }
        }
        serde_json::from_value(value).unwrap_or_else(|error| Attempt {
            outcome: Outcome::Malformed,
            message: Some(format!("the attempt could not be searched for values of the environment: {error}")),
            stderr_tail: None,
            output: None,
            roles: None,
            result: None,
            ..attempt
        })
    }

    /// Replaces values in a text, which does not become longer, because texts in attempts have a maximum length.
    fn hide_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.hidden {
            if text.contains(value) {
                let shown = format!("[{name}]");
                let fits = shown.chars().count() <= value.chars().count();
                text = text.replace(value, if fits { &shown } else { "***" });
            }
        }
        text
    }

    fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hide_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.hide_in(member)),
            _ => {}
        }
    }
}

/// Variables whose values are no secrets and often occur in the messages of programs.
const HARMLESS: [&str; 17] = [
    "COLORTERM",
    "DISPLAY",
    "EDITOR",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LOGNAME",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PWD",
    "SHELL",
    "SHLVL",
    "TERM",
    "TMPDIR",
    "USER",
    "_",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(variables: &[(&str, &str)], recorded: &[&str]) -> Caller {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let all: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
        let inherited = Inherited { names: names(&all), recorded: names(recorded) };
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        Caller::of(Some(&inherited), find)
    }

    fn key(caller: &Caller, name: &str) -> Option<Scalar> {
        caller.keys().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    #[test]
    fn own_variables_replace_inherited_ones() {
        let caller = caller(&[("A", "1"), ("B", "2")], &[]);
        let own = BTreeMap::from([("A".to_owned(), "own".to_owned())]);
        assert_eq!(caller.besides(&own).collect::<Vec<_>>(), [b"B=2".to_vec()]);
        assert_eq!(Caller::of(None, |_| None).besides(&own).count(), 0);
    }

    #[test]
    fn values_are_recorded_only_if_listed() {
        let long = "x".repeat(LONGEST_RECORDED + 1);
        let caller = caller(
            &[("OMP_NUM_THREADS", "4"), ("TOKEN", "secret-text"), ("LONG", &long)],
            &["OMP_NUM_THREADS", "LONG", "ABSENT"],
        );
        assert_eq!(key(&caller, "env.OMP_NUM_THREADS"), Some("4".to_owned().into()));
        assert_eq!(caller.keys().len(), 2, "{:?}", caller.keys());
        assert!(!format!("{:?}", caller.keys()).contains("secret"));
        assert!(Caller::of(None, |_| None).keys().is_empty());
    }

    #[test]
    fn digest_depends_on_every_name_and_value() {
        let digest = |variables: &[(&str, &str)]| key(&caller(variables, &[]), INHERITED_ENVIRONMENT);
        let all = [("A", "1"), ("B", "2")];
        assert_eq!(digest(&all), digest(&[("B", "2"), ("A", "1")]), "the order does not matter");
        for other in
            [&[("A", "1"), ("B", "3")][..], &[("A", "1"), ("C", "2")], &[("A", "1")], &[("A", "1B"), ("", "2")]]
        {
            assert_ne!(digest(&all), digest(other), "{other:?}");
        }
    }

    #[test]
    fn printed_values_are_replaced_by_their_names() {
        let named = self::caller(&[("A_LONG_NAME", "secret")], &[]).hide_text("a secret");
        assert_eq!(named, "a ***", "a text never becomes longer");
        let caller = caller(
            &[
                ("TOKEN", "hunter2hunter2"),
                ("PART", "hunter2"),
                ("SHORT", "abc"),
                ("HOME", "/home/me"),
                ("GOGC", "400000"),
            ],
            &["GOGC"],
        );
        assert_eq!(
            caller.hide_text("with hunter2hunter2, hunter2, abc, /home/me/x and 400000"),
            "with [TOKEN], [PART], abc, /home/me/x and 400000"
        );
    }
}
