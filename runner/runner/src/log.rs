//! The runner's log.

/// Writes one line to standard error. Errors are ignored, because a missing reader must not stop the runner.
pub(crate) fn log(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
