//! CPU sets in the kernel's list format.

use std::collections::BTreeSet;
use std::fmt;

/// Maximum length of a CPU list in an attempt.
const LONGEST_LIST: usize = 1024;

/// A set of CPUs, e.g. `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// Parses the kernel's list format; None if the text is invalid.
    pub(crate) fn parse(list: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        for part in list.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            cpus.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
        }
        Some(Self(cpus))
    }

    /// The affinity of the calling thread, read back from the kernel.
    pub(crate) fn allowed() -> Option<Self> {
        let set = rustix::thread::sched_getaffinity(None).ok()?;
        Some((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
    }

    /// The set as an affinity mask.
    pub(crate) fn mask(&self) -> rustix::thread::CpuSet {
        let mut mask = rustix::thread::CpuSet::new();
        self.iter().for_each(|cpu| mask.set(cpu));
        mask
    }

    /// The list for an attempt; a longer list is truncated and ends with the number of CPUs.
    pub(crate) fn listed(&self) -> String {
        let mut list = self.to_string();
        if list.len() > LONGEST_LIST {
            let rest = format!(",… ({} in all)", self.len());
            list.truncate(list[..=LONGEST_LIST - rest.len()].rfind(',').unwrap_or(0));
            list += &rest;
        }
        list
    }

    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    pub(crate) fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_the_kernels_lists() {
        for list in ["", "0", "1", "0-3", "0,2-5,9", "0-1,64-127"] {
            assert_eq!(CpuSet::parse(list).expect("a list").to_string(), list);
        }
        assert_eq!(CpuSet::parse("2-5\n").expect("a list").len(), 4);
        assert_eq!(CpuSet::parse("two"), None);
    }

    #[test]
    fn listed_truncates_to_the_limit_of_an_attempt() {
        let scattered: CpuSet = (0..1024).step_by(2).collect();
        let listed = scattered.listed();
        let (kept, rest) = listed.split_once(",…").expect("it is cut");
        assert!(listed.len() <= LONGEST_LIST && rest == " (512 in all)", "{listed}");
        assert!(CpuSet::parse(kept).expect("a list").is_subset(&scattered), "{kept}");
        let half: CpuSet = scattered.iter().take(256).collect();
        assert_eq!(half.listed(), half.to_string());
    }

    #[test]
    fn allowed_reads_the_affinity() {
        assert!(!CpuSet::allowed().expect("readable").is_empty());
    }
}
