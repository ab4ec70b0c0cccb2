//! Flags whose values are texts, which the harness has no kind for: taken out before the others are parsed.

use assay_harness::FlagError;

/// Takes the flag `name` out of `arguments`. An empty value counts as none.
///
/// # Errors
///
/// When it is given twice.
pub fn take(arguments: &mut Vec<String>, name: &str) -> Result<Option<String>, FlagError> {
    let value =
        |argument: &String| Some(argument.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    let found: Vec<String> = arguments.iter().filter_map(value).collect();
    arguments.retain(|argument| value(argument).is_none());
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone()).filter(|text| !text.is_empty())),
        [_, second, ..] => Err(FlagError::new(name, second, "it is given twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(all: &[&str]) -> Vec<String> {
        all.iter().map(|&one| one.to_owned()).collect()
    }

    #[test]
    fn only_the_named_flag_is_taken() {
        let mut all = arguments(&["--state=/a=b", "--states=1", "--seed=2"]);
        assert_eq!(take(&mut all, "state").unwrap().as_deref(), Some("/a=b"));
        assert_eq!(all, ["--states=1", "--seed=2"]);
        assert_eq!(take(&mut all, "state").unwrap(), None);
        assert_eq!(take(&mut arguments(&["--state="]), "state").unwrap(), None);
        let twice = take(&mut arguments(&["--state=a", "--state=b"]), "state").unwrap_err();
        assert_eq!(twice.to_string(), "--state=b: it is given twice");
    }
}
