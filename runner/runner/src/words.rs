//! Output of a process: its result, or the last line of its error output.

use std::fs;
use std::io;
use std::path::Path;

/// Length of the excerpt on each side of a parse error.
const EXCERPT: usize = 40;

/// The last non-empty line of an output, which usually has the reason of a failure.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(String::new, |line| format!("; the end of its output: {}", shortened(line, 500)))
}

/// Truncates a text to `shown` characters and marks the truncation.
pub(crate) fn shortened(text: &str, shown: usize) -> String {
    text.char_indices().nth(shown).map_or_else(|| text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

/// Parses a result of the schema.
pub(crate) fn parse(text: &[u8], source: &str, parity_required: bool) -> Result<assay_schema::Result, String> {
    if text.trim_ascii().is_empty() {
        return Err(format!("{source} is empty; the process must write its result there"));
    }
    let result: assay_schema::Result = assay_schema::read(text).map_err(|error| {
        let problem = if error.incomplete { "ends in the middle of the result" } else { "is not a result" };
        format!("{source} {problem}: {error}{}", excerpt(text, &error))
    })?;
    if parity_required && result.parity.is_none() {
        return Err(format!("{source}: field parity: missing, but the workload requires a parity digest"));
    }
    Ok(result)
}

/// The text around a parse error.
fn excerpt(text: &[u8], error: &assay_schema::ReadError) -> String {
    let (Some(line), Some(column)) = (error.line, error.column) else { return String::new() };
    let Some(line) = text.split(|&byte| byte == b'\n').nth(line.saturating_sub(1)) else { return String::new() };
    let start = column.saturating_sub(EXCERPT).min(line.len());
    let end = (column + EXCERPT).min(line.len());
    let shown = String::from_utf8_lossy(&line[start..end]);
    let shown = shown.trim();
    if shown.is_empty() { String::new() } else { format!(", near {shown:?}") }
}

/// Removes an earlier trial's result.
pub(crate) fn clear_output(path: &Path) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove an earlier trial's result {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_result_is_removed() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("result.json");
        fs::write(&file, "{}").expect("written");
        clear_output(&file).expect("removed");
        clear_output(&file).expect("nothing to remove is fine");
        assert!(!file.exists());
        assert!(clear_output(folder.path()).is_err(), "a folder is not removed");
    }
}
