//! Sends a signal, as Argo does to end a block: it executes a program in the container for that, and the one that it would take lies where
//! trials may write. What a trial puts in its place decides whether the block ends, and talks to Argo's controller.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::privacy;

/// Sends a process a signal, by their numbers.
pub(crate) fn kill(signal: i32, process: i32) -> Result<()> {
    privacy::hide()?;
    send(signal, process)
}

fn send(signal: i32, process: i32) -> Result<()> {
    // A number below zero is a group of processes, or all.
    let of = Some(process)
        .filter(|&process| process > 0)
        .and_then(Pid::from_raw)
        .with_context(|| format!("{process} is no process"))?;
    let what = Signal::from_named_raw(signal).with_context(|| format!("{signal} is no signal"))?;
    kill_process(of, what).with_context(|| format!("cannot send signal {signal} to process {process}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn ends_a_process() {
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            let mut child = Command::new("sleep").arg("60").spawn().expect("child");
            send(signal, i32::try_from(child.id()).expect("pid")).expect("sent");
            assert_eq!(child.wait().expect("ended").signal(), Some(signal));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (signal, process, want) in
            [(15, 0, "0 is no process"), (15, -1, "-1 is no process"), (0, 1, "0 is no signal"), (4096, 1, "4096")]
        {
            let error = format!("{:#}", send(signal, process).expect_err("refused"));
            assert!(error.contains(want), "{error}");
        }
    }
}
