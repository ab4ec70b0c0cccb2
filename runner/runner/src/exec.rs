//! Replaces a forked process by the trial's program.
//!
//! The standard library's `Command` falls back to `/bin/sh` for files that the kernel cannot execute, such as programs
//! for another architecture. This module calls `execve` directly and reports its error.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A program with its arguments and environment in the layout of `execve`.
#[derive(Debug)]
pub(crate) struct Program {
    path: CString,
    argv: Strings,
    env: Strings,
}

impl Program {
    /// Finds the program, searching the PATH of `env` if the name has no slash. `argv` is passed unchanged. `inherited` are
    /// further variables.
    pub(crate) fn find(
        program: &str,
        argv: &[String],
        env: &BTreeMap<String, String>,
        inherited: &[Vec<u8>],
    ) -> io::Result<Self> {
        let path = env.get("PATH").map_or("", String::as_str);
        Ok(Self {
            path: CString::new(resolve(program, path)?)?,
            argv: Strings::new(argv.iter().cloned().map(String::into_bytes))?,
            env: Strings::new(
                env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).chain(inherited.iter().cloned()),
            )?,
        })
    }

    /// Executes the program and returns only on failure. Async-signal-safe, because it makes a single system call.
    pub(crate) fn exec(&self) -> io::Error {
        // SAFETY: the path is a C string; argv and env are arrays of pointers to C strings, each ended by a null pointer, and
        // self keeps all of them alive.
        unsafe { libc::execve(self.path.as_ptr(), self.argv.as_ptr(), self.env.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// A null-terminated array of C strings.
#[derive(Debug)]
struct Strings {
    /// Addresses of `owned`'s buffers, which are stable; stored as integers to be Send.
    addresses: Vec<usize>,
    /// Owns the buffers.
    _owned: Vec<CString>,
}

impl Strings {
    fn new(strings: impl Iterator<Item = Vec<u8>>) -> io::Result<Self> {
        let owned = strings.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let addresses = owned.iter().map(|string| string.as_ptr().expose_provenance()).chain([0]).collect();
        Ok(Self { addresses, _owned: owned })
    }

    fn as_ptr(&self) -> *const *const libc::c_char {
        self.addresses.as_ptr().cast()
    }
}

/// Returns the path of a program.
pub(crate) fn resolve(program: &str, path: &str) -> io::Result<String> {
    if program.contains('/') {
        return Ok(program.to_owned());
    }
    let mut found = None;
    for folder in path.split(':') {
        let candidate = format!("{}/{program}", if folder.is_empty() { "." } else { folder });
        match fs::metadata(Path::new(&candidate)) {
            Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => return Ok(candidate),
            // Reported if no executable file is found.
            Ok(file) if file.is_file() => found = Some(candidate),
            _ => {}
        }
    }
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_searches_path_for_names_without_slash() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(&file, "").expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
            file.display().to_string()
        };
        file("a/tool", 0o644);
        let tool = file("b/tool", 0o755);
        let data = file("b/data", 0o644);
        let path = format!("/none:{0}/a:{0}/b", folder.path().display());
        assert_eq!(resolve("tool", &path).expect("found"), tool);
        assert_eq!(resolve("data", &path).expect("found"), data);
        assert_eq!(resolve("none", &path).expect_err("not there").kind(), io::ErrorKind::NotFound);
        assert_eq!(resolve("./a b", "").expect("as it is"), "./a b");
    }
}
