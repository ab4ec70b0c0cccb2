//! Sends a signal on behalf of Argo. Argo ends a block by executing a kill program in the container. Its default
//! program is in a folder that trials may write to, so that a trial could replace it and prevent the end of the block
//! or talk to Argo's controller.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::privacy;

/// Sends a signal to a process, both by number.
pub(crate) fn kill(signal: i32, process: i32) -> Result<()> {
    privacy::hide()?;
    send(signal, process)
}

fn send(signal: i32, process: i32) -> Result<()> {
    // Non-positive numbers mean process groups, which are not allowed.
    let of = Some(process)
        .filter(|&process| process > 0)
        .and_then(Pid::from_raw)
        .with_context(|| format!("{process} is not a process id"))?;
    let number = Signal::from_named_raw(signal).with_context(|| format!("{signal} is not a signal number"))?;
    kill_process(of, number).with_context(|| format!("cannot send signal {signal} to process {process}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn kill_terminates_a_process() {
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            let mut child = Command::new("sleep").arg("60").spawn().expect("child");
            send(signal, i32::try_from(child.id()).expect("pid")).expect("sent");
            assert_eq!(child.wait().expect("ended").signal(), Some(signal));
        }
    }

    #[test]
    fn kill_rejects_invalid_numbers() {
        for (signal, process, want) in [
            (15, 0, "0 is not a process id"),
            (15, -1, "-1 is not a process id"),
            (0, 1, "0 is not a signal number"),
            (4096, 1, "4096"),
        ] {
            let error = format!("{:#}", send(signal, process).expect_err("refused"));
            assert!(error.contains(want), "{error}");
        }
    }
}
