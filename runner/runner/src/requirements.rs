//! Preconditions of a block, checked before its first trial.

use assay_schema::attempt::{Environment, Isolation, IsolationLevel};
use assay_schema::result::Scalar;
use assay_schema::wave::Requirements;

/// Returns all unmet requirements in one line; None if all are met.
pub(crate) fn unmet(required: &Requirements, environment: &Environment, isolation: &Isolation) -> Option<String> {
    let mut problems = Vec::new();
    for (key, value) in required.require.iter().flatten() {
        let found = environment.hard.get(key).or_else(|| environment.soft.get(key)).map(text);
        match found {
            Some(found) if found == *value => {}
            Some(found) => problems.push(format!("{key} is {found:?} and must be {value:?}")),
            None => problems.push(format!("{key} must be {value:?} and this machine does not report it")),
        }
    }
    if required.isolation.is_some() && isolation.level != IsolationLevel::ExclusiveCpus {
        let reason = isolation.reason.as_deref().unwrap_or("no reason known");
        problems.push(format!("isolation is {:?} and must be ExclusiveCPUs: {reason}", isolation.level));
    }
    if problems.is_empty() {
        return None;
    }
    Some(format!("unmet requirements of the run: {}", problems.join("; ")))
}

/// Formats a value as in a run's manifest: text, number, true or false.
fn text(value: &Scalar) -> String {
    match value {
        Scalar::Text(text) => text.clone(),
        Scalar::Number(number) => number.to_string(),
        Scalar::Bool(flag) => flag.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_schema::wave::RequiredIsolation;

    use super::*;

    fn environment() -> Environment {
        let hard = [
            ("governor", Scalar::Text("performance".into())),
            ("smt", Scalar::Bool(false)),
            ("numaNodes", Scalar::Number(2.into())),
        ];
        let soft = [("hostname", Scalar::Text("node-a".into()))];
        let map = |entries: &[(&str, Scalar)]| entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        Environment { hard: map(&hard), soft: map(&soft) }
    }

    fn judge(require: &[(&str, &str)], isolation: Option<RequiredIsolation>, level: IsolationLevel) -> Option<String> {
        let require: BTreeMap<String, String> = require.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let required = Requirements { require: Some(require), isolation };
        let isolation = Isolation {
            level,
            cpus_allowed: None,
            cpu_quota: None,
            memory_limit_bytes: None,
            reason: Some("it may use every CPU".into()),
        };
        unmet(&required, &environment(), &isolation)
    }

    #[test]
    fn met_requirements_are_not_reported() {
        let require = [("governor", "performance"), ("smt", "false"), ("numaNodes", "2"), ("hostname", "node-a")];
        assert_eq!(judge(&require, None, IsolationLevel::Shared), None);
        assert_eq!(judge(&[], Some(RequiredIsolation::ExclusiveCpus), IsolationLevel::ExclusiveCpus), None);
    }

    #[test]
    fn unmet_requirements_are_reported_with_the_found_value() {
        let require = [("governor", "powersave"), ("smt", "true"), ("hostname", "node-a"), ("turbo", "false")];
        let said = judge(&require, Some(RequiredIsolation::ExclusiveCpus), IsolationLevel::Shared).expect("unmet");
        for words in [
            "governor is \"performance\" and must be \"powersave\"",
            "smt is \"false\" and must be \"true\"",
            "turbo must be \"false\" and this machine does not report it",
            "isolation is Shared and must be ExclusiveCPUs: it may use every CPU",
        ] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains("hostname"), "{said}");
    }

    #[test]
    fn unknown_isolation_is_unmet() {
        let exclusive = Some(RequiredIsolation::ExclusiveCpus);
        for level in [IsolationLevel::Shared, IsolationLevel::Throttled, IsolationLevel::Unknown] {
            assert!(judge(&[], exclusive, level).is_some(), "{level:?}");
        }
    }
}
