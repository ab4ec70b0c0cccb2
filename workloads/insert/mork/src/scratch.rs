//! The buffer into which the loader writes an expression's bytes before they are inserted.
//!
//! The original takes a fresh one of 4 GiB for each call. It never uses more than its first page, and pays for it
//! nevertheless: the system maps four gibibytes, faults in a page and zeroes it, and takes everything down again, for
//! each fact.

use std::fmt::Display;

use assay_harness::Failure;

/// Bytes of the original's buffer.
pub const HUGE: usize = 1 << 32;
/// Bytes of the buffer that a later version of the original zeroes for each call.
pub const SMALL: usize = 4096;

/// Where the buffer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// A fresh 4 GiB for each call, never zeroed by the program.
    Huge,
    /// A fresh 4 KiB for each call, zeroed.
    Small,
    /// One for all calls.
    Reused,
}

assay_harness::choices!(Scratch { "4gib" => Huge, "4kib" => Small, "reused" => Reused });

/// Hands out buffers of one kind.
#[derive(Debug)]
pub struct Supply {
    kind: Scratch,
    kept: Vec<u8>,
}

impl Supply {
    /// A supply of buffers.
    #[must_use]
    pub fn new(kind: Scratch) -> Self {
        Self { kind, kept: Vec::new() }
    }

    /// Returns an empty buffer with its first byte touched.
    ///
    /// The original sets the length of its 4 GiB to their capacity without initialization, and writes from the start.
    /// Here the length grows with the written data. The system does the same work, and no uninitialized data is read.
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        let mut buffer = match self.kind {
            Scratch::Huge => Vec::with_capacity(HUGE),
            Scratch::Small => vec![0; SMALL],
            Scratch::Reused => std::mem::take(&mut self.kept),
        };
        buffer.clear();
        // black_box retains the write, which faults the first page in.
        buffer.push(std::hint::black_box(0));
        buffer.clear();
        buffer
    }

    /// Takes a buffer back: kept or freed.
    #[inline]
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        if self.kind == Scratch::Reused {
            self.kept = buffer;
        } else {
            drop(std::hint::black_box(buffer));
        }
    }
}

/// 4 GiB of addresses cannot be had.
fn no_room(why: impl Display) -> Failure {
    let refused = "--scratch=4gib: a buffer of 4096 MiB of addresses cannot be had";
    Failure::usage(format_args!("{refused}: {why}; --scratch=reused needs none"))
}

/// Limits that determine whether 4 GiB are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Remainder of the address space limit; `None` if unlimited.
    pub addresses_left: Option<u64>,
    /// The system's mode: 0 by a heuristic, 1 always, 2 strictly.
    pub overcommit: Option<u64>,
    /// Memory and swap.
    pub total: Option<u64>,
    /// Remainder of the commit limit in overcommit mode 2.
    pub commit_left: Option<u64>,
}

impl Limits {
    /// As they are now.
    #[must_use]
    pub fn read() -> Self {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
        };
        Self {
            addresses_left: addresses_left(),
            overcommit: read_number("/proc/sys/vm/overcommit_memory"),
            total: kib("MemTotal").map(|memory| memory + kib("SwapTotal").unwrap_or(0)),
            commit_left: kib("CommitLimit").zip(kib("Committed_AS")).map(|(limit, used)| limit.saturating_sub(used)),
        }
    }

    /// Checks whether a 4 GiB buffer is possible, with a reserve.
    ///
    /// # Errors
    ///
    /// The limit that prevents it.
    pub fn check(&self) -> Result<(), Failure> {
        /// Reserve for the program's other mappings.
        const BESIDE: u64 = 64 << 20;
        let needed = HUGE as u64;
        let mib = |bytes: u64| bytes >> 20;
        if let Some(left) = self.addresses_left.filter(|left| *left < needed + BESIDE) {
            return Err(no_room(format_args!("the address space limit (ulimit -v) leaves {} MiB", mib(left))));
        }
        match (self.overcommit, self.commit_left, self.total) {
            (Some(2), Some(left), _) if left < needed + BESIDE => Err(no_room(format_args!(
                "memory is committed strictly (vm.overcommit_memory=2), which leaves {} MiB",
                mib(left)
            ))),
            (Some(0), _, Some(total)) if total < needed => Err(no_room(format_args!(
                "the system has {} MiB of memory and allows no more at once (vm.overcommit_memory=0)",
                mib(total)
            ))),
            _ => Ok(()),
        }
    }
}

/// Checks whether buffers of this kind are available: by the limits, then by reserving addresses once without touching
/// them.
///
/// # Errors
///
/// The reason if not.
pub fn check(kind: Scratch) -> Result<(), Failure> {
    if kind != Scratch::Huge {
        return Ok(());
    }
    Limits::read().check()?;
    let mut probe: Vec<u8> = Vec::new();
    probe.try_reserve_exact(HUGE).map_err(|_| no_room("the system refused it"))?;
    drop(std::hint::black_box(probe));
    Ok(())
}

fn addresses_left() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    if status != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    // SAFETY: asking for the page size has no precondition.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(limit.rlim_cur.saturating_sub(pages * u64::try_from(page).ok()?))
}

fn read_number(file: &str) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const FREE: Limits =
        Limits { addresses_left: None, overcommit: Some(0), total: Some(8 * GIB), commit_left: Some(GIB) };

    #[test]
    fn each_limit_refuses_for_its_own_reason() {
        for (limits, reason) in [
            (FREE, None),
            (Limits { addresses_left: Some(4 * GIB), ..FREE }, Some("(ulimit -v) leaves 4096 MiB; ")),
            (Limits { addresses_left: Some(5 * GIB), ..FREE }, None),
            (Limits { overcommit: Some(2), ..FREE }, Some("(vm.overcommit_memory=2), which leaves 1024 MiB; ")),
            (Limits { overcommit: Some(2), commit_left: Some(5 * GIB), ..FREE }, None),
            (Limits { total: Some(2 * GIB), ..FREE }, Some("has 2048 MiB of memory and allows no more at once")),
            (Limits { total: Some(2 * GIB), overcommit: Some(1), ..FREE }, None),
            (Limits { addresses_left: None, overcommit: None, total: None, commit_left: None }, None),
        ] {
            let refused = limits.check().err().map(|refused| refused.to_string());
            assert_eq!(refused.is_some(), reason.is_some(), "{limits:?}: {refused:?}");
            assert!(refused.is_none_or(|refused| refused.contains(reason.unwrap())), "{limits:?}: {reason:?}");
        }
    }

    #[test]
    fn error_names_the_flag_and_a_remedy() {
        let refused = Limits { overcommit: Some(2), ..FREE }.check().unwrap_err();
        let message = refused.to_string();
        assert!(refused.is_usage());
        for part in ["--scratch=4gib", "4096 MiB", "vm.overcommit_memory=2", "1024 MiB", "--scratch=reused"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_supply_hands_out_empty_buffers_of_its_kind() {
        for (kind, capacity) in [(Scratch::Huge, HUGE), (Scratch::Small, SMALL), (Scratch::Reused, 1)] {
            if check(kind).is_err() {
                continue;
            }
            let mut supply = Supply::new(kind);
            for _ in 0..2 {
                let mut buffer = supply.take();
                assert!(buffer.is_empty() && buffer.capacity() >= capacity, "{kind:?}");
                buffer.extend_from_slice(b"something");
                supply.give_back(buffer);
            }
            assert_eq!(supply.kept.capacity() > 0, kind == Scratch::Reused);
        }
    }
}
