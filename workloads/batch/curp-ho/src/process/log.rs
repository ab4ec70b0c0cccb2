//! One log line per command, written with a separate system call. The document's clients did this twice per command
//! within the timed region.

use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write as _};

use crate::command::ClientId;

/// Bytes after which the file begins anew: a log must not fill a disk.
const MOST: usize = 16 << 20;

/// A log without a name: it is gone when its process is.
#[derive(Debug)]
pub struct Log {
    file: File,
    line: String,
    written: usize,
    /// Lines that were written.
    pub lines: u64,
}

impl Log {
    /// An empty log in the folder for temporary files.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new(client: ClientId) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("curp-ho-{}-{client}.log", std::process::id()));
        let file = File::create(&path)?;
        std::fs::remove_file(&path)?;
        Ok(Self { file, line: String::new(), written: 0, lines: 0 })
    }

    /// Writes a line.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&mut self, line: Arguments<'_>) -> io::Result<()> {
        self.line.clear();
        writeln!(self.line, "{line}").map_err(io::Error::other)?;
        if self.written + self.line.len() > MOST {
            self.file.seek(SeekFrom::Start(0))?;
            self.written = 0;
        }
        self.file.write_all(self.line.as_bytes())?;
        self.written += self.line.len();
        self.lines += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_takes_every_line_and_never_grows_beyond_its_bound() {
        let mut log = Log::new(7).unwrap();
        let long = "x".repeat(1 << 20);
        for line in 0..40 {
            log.write(format_args!("{line} {long}")).unwrap();
        }
        assert_eq!(log.lines, 40);
        assert!(log.file.metadata().unwrap().len() <= MOST as u64);
    }
}
