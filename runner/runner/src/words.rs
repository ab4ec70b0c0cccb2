//! What a process leaves to be read: its result, or its last words.

use std::fs;
use std::io;
use std::path::Path;

/// How much of a faulty line a message shows on each side of the fault.
const EXCERPT: usize = 40;

/// The last line of an output, which usually says why a process ended.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(String::new, |line| format!("; the end of its output: {}", shortened(line, 500)))
}

/// So many characters of a text, and a sign that there are more.
pub(crate) fn shortened(text: &str, shown: usize) -> String {
    text.char_indices().nth(shown).map_or_else(|| text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

/// Reads a result as the schema has it.
pub(crate) fn parse(text: &[u8], source: &str, parity_required: bool) -> Result<assay_schema::Result, String> {
    if text.trim_ascii().is_empty() {
        return Err(format!("{source} is empty; the process should write its result there"));
    }
    let result: assay_schema::Result = assay_schema::read(text).map_err(|error| {
        let what = if error.incomplete { "ends in the middle of the result" } else { "is not a result" };
        format!("{source} {what}: {error}{}", excerpt(text, &error))
    })?;
    if parity_required && result.parity.is_none() {
        return Err(format!("{source}: field parity: missing, but the workload requires a parity digest"));
    }
    Ok(result)
}

/// The text around the fault.
fn excerpt(text: &[u8], error: &assay_schema::ReadError) -> String {
    let (Some(line), Some(column)) = (error.line, error.column) else { return String::new() };
    let Some(line) = text.split(|&byte| byte == b'\n').nth(line.saturating_sub(1)) else { return String::new() };
    let start = column.saturating_sub(EXCERPT).min(line.len());
    let end = (column + EXCERPT).min(line.len());
    let shown = String::from_utf8_lossy(&line[start..end]);
    let shown = shown.trim();
    if shown.is_empty() { String::new() } else { format!(", near {shown:?}") }
}

/// Removes what an earlier trial left at the result's place.
pub(crate) fn clear_output(path: &Path) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove what an earlier trial left in {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_trial_left_is_removed() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("result.json");
        fs::write(&file, "{}").expect("written");
        clear_output(&file).expect("removed");
        clear_output(&file).expect("nothing to remove is fine");
        assert!(!file.exists());
        assert!(clear_output(folder.path()).is_err(), "a folder is not removed");
    }
}
