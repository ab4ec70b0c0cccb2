//! The buffer into which the loader writes an expression's bytes before they are inserted.
//!
//! The original takes a fresh one of 4 GiB for each call. It never uses more than its first page, and pays for it
//! nevertheless: the system maps four gibibytes, faults in a page and zeroes it, and takes everything down again, for
//! each fact.

use std::fmt;

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

    /// An empty buffer, its first byte touched.
    ///
    /// The original sets the length of its 4 GiB to their capacity without having written them, and writes from the
    /// start. Here the length grows with what is written: the system does the same work, and nothing is read that was
    /// never written.
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        let mut buffer = match self.kind {
            Scratch::Huge => Vec::with_capacity(HUGE),
            Scratch::Small => vec![0; SMALL],
            Scratch::Reused => std::mem::take(&mut self.kept),
        };
        buffer.clear();
        // The write is not to be left out: it is what faults the first page in.
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

/// Why 4 GiB of addresses cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// The limit on the process's addresses.
    AddressLimit {
        /// What is left of it, in bytes.
        left: u64,
    },
    /// The system commits memory strictly (`vm.overcommit_memory=2`).
    StrictCommit {
        /// What may still be committed, in bytes.
        left: u64,
    },
    /// The system refuses a single allocation larger than all its memory (`vm.overcommit_memory=0`).
    Overcommit {
        /// All memory and swap, in bytes.
        total: u64,
    },
    /// It was tried, and refused.
    Refused,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(f, "--scratch=4gib: a buffer of 4096 MiB of addresses cannot be had: ")?;
        match self {
            Self::AddressLimit { left } => write!(f, "the address space limit (ulimit -v) leaves {} MiB", mib(*left)),
            Self::StrictCommit { left } => {
                write!(f, "memory is committed strictly (vm.overcommit_memory=2), which leaves {} MiB", mib(*left))
            }
            Self::Overcommit { total } => {
                write!(
                    f,
                    "the system has {} MiB of memory and allows no more at once (vm.overcommit_memory=0)",
                    mib(*total)
                )
            }
            Self::Refused => f.write_str("the system refused it"),
        }?;
        f.write_str("; --scratch=reused needs none")
    }
}

impl From<NoRoom> for Failure {
    fn from(no_room: NoRoom) -> Self {
        Self::usage(no_room)
    }
}

/// What decides whether 4 GiB can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What the limit on addresses leaves; `None` without one.
    pub addresses_left: Option<u64>,
    /// The system's mode: 0 by a heuristic, 1 always, 2 strictly.
    pub overcommit: Option<u64>,
    /// Memory and swap.
    pub total: Option<u64>,
    /// What may still be committed in mode 2.
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

    /// Whether a 4 GiB buffer is possible, with a little room beside it.
    ///
    /// # Errors
    ///
    /// What stands in its way.
    pub fn check(&self) -> Result<(), NoRoom> {
        /// What the program itself maps while the buffer is there.
        const BESIDE: u64 = 64 << 20;
        let needed = HUGE as u64;
        if let Some(left) = self.addresses_left.filter(|left| *left < needed + BESIDE) {
            return Err(NoRoom::AddressLimit { left });
        }
        match (self.overcommit, self.commit_left, self.total) {
            (Some(2), Some(left), _) if left < needed + BESIDE => Err(NoRoom::StrictCommit { left }),
            (Some(0), _, Some(total)) if total < needed => Err(NoRoom::Overcommit { total }),
            _ => Ok(()),
        }
    }
}

/// Whether buffers of this kind can be had: by the limits, then by asking for addresses once, without touching them.
///
/// # Errors
///
/// What stands in the way.
pub fn check(kind: Scratch) -> Result<(), NoRoom> {
    if kind != Scratch::Huge {
        return Ok(());
    }
    Limits::read().check()?;
    let mut probe: Vec<u8> = Vec::new();
    probe.try_reserve_exact(HUGE).map_err(|_| NoRoom::Refused)?;
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
        for (limits, outcome) in [
            (FREE, Ok(())),
            (Limits { addresses_left: Some(4 * GIB), ..FREE }, Err(NoRoom::AddressLimit { left: 4 * GIB })),
            (Limits { addresses_left: Some(5 * GIB), ..FREE }, Ok(())),
            (Limits { overcommit: Some(2), ..FREE }, Err(NoRoom::StrictCommit { left: GIB })),
            (Limits { overcommit: Some(2), commit_left: Some(5 * GIB), ..FREE }, Ok(())),
            (Limits { total: Some(2 * GIB), ..FREE }, Err(NoRoom::Overcommit { total: 2 * GIB })),
            (Limits { total: Some(2 * GIB), overcommit: Some(1), ..FREE }, Ok(())),
            (Limits { addresses_left: None, overcommit: None, total: None, commit_left: None }, Ok(())),
        ] {
            assert_eq!(limits.check(), outcome, "{limits:?}");
        }
    }

    #[test]
    fn the_message_names_the_flag_and_the_way_out() {
        let message = NoRoom::StrictCommit { left: GIB }.to_string();
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
