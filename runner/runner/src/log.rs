//! What the runner says to whoever reads its log.

/// Writes one line to standard error. Nobody reading it is no reason to stop.
pub(crate) fn log(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
