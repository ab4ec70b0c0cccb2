//! Events by which the kernel kills or restricts a trial.
//!
//! A trial with such an event is no success, even if it printed a result. The README of this crate lists every counter of a
//! cgroup with its use.

use std::collections::BTreeMap;
use std::path::Path;

use assay_schema::kernel::{Death, Kernel};

use crate::cgroup::{Cgroups, Controller, Version, field};
use crate::processes;
use crate::usage;

/// One reading of all counters.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    oom_kills: Result<u64, String>,
    pid_limit_hits: Result<u64, String>,
    oom: Option<u64>,
    memory_limit: Option<u64>,
    memory_high: Option<u64>,
    hugetlb_limit: Option<u64>,
    machine_oom_kills: Option<u64>,
}

impl Events {
    pub(crate) fn read(cgroups: &Cgroups) -> Self {
        let line = processes::line();
        let memory = cgroups.memory.as_ref();
        let of_memory = memory.filter(|memory| is_own(cgroups, memory, &line).is_ok());
        let memory_event = |name: &str| {
            let memory = of_memory.filter(|memory| memory.version == Version::V2)?;
            field(&cgroups.host.text(memory.own().join("memory.events"))?, name)
        };
        let failures = || {
            let memory = of_memory.filter(|memory| memory.version == Version::V1)?;
            cgroups.host.number(memory.own().join("memory.failcnt"))
        };
        Self {
            oom_kills: memory.ok_or_else(|| "there is no memory controller".to_owned()).and_then(|memory| {
                is_own(cgroups, memory, &line)?;
                counter(cgroups, memory, memory.version.choose("memory.oom_control", "memory.events"), "oom_kill")
            }),
            pid_limit_hits: cgroups.pids.as_ref().ok_or_else(|| "there is no pids controller".to_owned()).and_then(
                |pids| {
                    is_own(cgroups, pids, &line)?;
                    counter(cgroups, pids, "pids.events", "max")
                },
            ),
            oom: memory_event("oom"),
            memory_limit: memory_event("max").or_else(failures),
            memory_high: memory_event("high"),
            hugetlb_limit: cgroups
                .hugetlb
                .as_ref()
                .filter(|hugetlb| is_own(cgroups, hugetlb, &line).is_ok())
                .and_then(|hugetlb| hugetlb_limit(cgroups, hugetlb)),
            machine_oom_kills: cgroups.host.text("/proc/vmstat").and_then(|text| field(&text, "oom_kill")),
        }
    }

    /// Returns the growth since an earlier reading, with the deaths in between.
    pub(crate) fn since(&self, earlier: &Self, deaths: Vec<Death>) -> Kernel {
        let mut unknown = BTreeMap::new();
        let mut decides = |name: &str, before: &Result<u64, String>, after: &Result<u64, String>| {
            let grown = before.clone().and_then(|before| {
                let grown = after.clone()?.checked_sub(before);
                grown.ok_or_else(|| "the counter decreased during the trial".to_owned())
            });
            grown.map_err(|reason| unknown.insert(name.to_owned(), reason)).ok()
        };
        let grown = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
        Kernel {
            oom_kills: decides("oomKills", &earlier.oom_kills, &self.oom_kills),
            pid_limit_hits: decides("pidLimitHits", &earlier.pid_limit_hits, &self.pid_limit_hits),
            oom_events: grown(earlier.oom, self.oom),
            memory_limit_hits: grown(earlier.memory_limit, self.memory_limit),
            memory_high_events: grown(earlier.memory_high, self.memory_high),
            hugetlb_limit_hits: grown(earlier.hugetlb_limit, self.hugetlb_limit),
            machine_oom_kills: grown(earlier.machine_oom_kills, self.machine_oom_kills),
            deaths: Some(deaths).filter(|deaths| !deaths.is_empty()),
            unknown: Some(unknown).filter(|unknown| !unknown.is_empty()),
        }
    }
}

/// Returns why a trial with these events is no success.
pub(crate) fn cause(kernel: &Kernel, memory_limit: Option<u64>) -> Option<String> {
    let mut causes = Vec::new();
    if let Some(kills) = kernel.oom_kills.filter(|&kills| kills > 0) {
        let number = if kills > 1 { format!(" {kills} times") } else { String::new() };
        let limit = memory_limit.map_or_else(String::new, |limit| format!("; the memory limit is {limit} bytes"));
        causes.push(format!("the kernel killed a process of this trial (out of memory){number}{limit}"));
    }
    if kernel.pid_limit_hits.is_some_and(|hits| hits > 0) {
        causes.push(
            "a process of this trial could not start another process or thread, because its cgroup's limit (pids.max) was reached"
                .to_owned(),
        );
    }
    if let Some(death) = kernel.deaths.iter().flatten().next() {
        let name = death.process.as_ref().map_or_else(String::new, |name| format!(" ({name:?})"));
        let signal = usage::signal_name(i32::try_from(death.signal).unwrap_or(0));
        let core = if death.core_dumped == Some(true) { " and dumped core" } else { "" };
        let advice = if signal == "SIGKILL" { "; a program that kills its helpers must wait for them" } else { "" };
        causes.push(format!(
            "a process of this trial{name} was terminated by signal {} ({signal}){core}{advice}",
            death.signal
        ));
    }
    (!causes.is_empty()).then(|| causes.join("; "))
}

/// Returns a counter of a controller's own folder, or the reason why it is unknown.
fn counter(cgroups: &Cgroups, of: &Controller, file: &str, name: &str) -> Result<u64, String> {
    let text = cgroups.host.text(of.own().join(file)).ok_or_else(|| format!("{file} cannot be read"))?;
    field(&text, name).ok_or_else(|| format!("{file} has no {name}"))
}

/// Returns the refused allocations of huge pages of all sizes; None without a readable counter.
fn hugetlb_limit(cgroups: &Cgroups, hugetlb: &Controller) -> Option<u64> {
    let own = hugetlb.own();
    let read = |file: &String| match hugetlb.version {
        Version::V1 => file.ends_with(".failcnt").then(|| cgroups.host.number(own.join(file)))?,
        Version::V2 => field(&file.ends_with(".events").then(|| cgroups.host.text(own.join(file)))??, "max"),
    };
    let files = cgroups.host.names(own);
    files.iter().filter(|file| file.starts_with("hugetlb.")).filter_map(read).reduce(|a, b| a + b)
}

/// Whether a cgroup has no other processes than the block's, or the reason why it counts others too. `line` has the
/// runner and its ancestors.
fn is_own(cgroups: &Cgroups, of: &Controller, line: &[i32]) -> Result<(), String> {
    let members = members(cgroups, of.own()).ok_or("cgroup.procs cannot be read")?;
    if line.first().is_none_or(|own| !members.contains(own)) {
        return Err("the visible cgroup does not have the runner".to_owned());
    }
    if cgroups.in_kubernetes_pod {
        return Ok(());
    }
    if let Some(other) = members.iter().find(|pid| !line.contains(pid)) {
        return Err(match other {
            // A process outside of this PID namespace.
            0 => "the cgroup also has processes outside of this container".to_owned(),
            pid => format!("the cgroup also has process {pid}{}", name_of(cgroups, *pid)),
        });
    }
    // Only the counters of version 2 include those of the cgroups below.
    let is_populated = |folder: &&String| {
        let events = cgroups.host.text(of.own().join(folder).join("cgroup.events"));
        of.version == Version::V2 && events.and_then(|text| field(&text, "populated")) == Some(1)
    };
    match cgroups.host.names(of.own()).iter().find(is_populated) {
        Some(folder) => Err(format!("the cgroup also counts processes of the cgroup {folder} below it")),
        None => Ok(()),
    }
}

fn members(cgroups: &Cgroups, folder: &Path) -> Option<Vec<i32>> {
    Some(cgroups.host.text(folder.join("cgroup.procs"))?.lines().filter_map(|line| line.parse().ok()).collect())
}

fn name_of(cgroups: &Cgroups, pid: i32) -> String {
    cgroups.host.word(format!("/proc/{pid}/comm")).map_or_else(String::new, |name| format!(" ({name})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    const MOUNTS: [&str; 2] = [
        "30 20 0:26 / /cg/memory rw - cgroup cgroup rw,memory\n\
         31 20 0:27 / /cg/pids rw - cgroup cgroup rw,pids\n\
         32 20 0:28 / /cg/hugetlb rw - cgroup cgroup rw,hugetlb\n",
        "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n",
    ];
    const MEMBERSHIPS: [&str; 2] = ["3:memory:/own\n2:pids:/own\n1:hugetlb:/own\n", "0::/own\n"];
    /// Folders of the controllers memory, pids and hugetlb.
    const FOLDERS: [[&str; 3]; 2] =
        [["/cg/memory/own", "/cg/pids/own", "/cg/hugetlb/own"], ["/cg/own", "/cg/own", "/cg/own"]];

    /// A cgroup of this process alone, of version 1 or 2.
    struct Tree {
        fake: FakeHost,
        v: usize,
    }

    impl Tree {
        fn new(version: usize) -> Self {
            let tree = Self { fake: FakeHost::new(&[]), v: version - 1 };
            tree.fake.write("/proc/self/cgroup", MEMBERSHIPS[tree.v]);
            tree.fake.write("/proc/self/mountinfo", MOUNTS[tree.v]);
            tree.fake.write("/proc/vmstat", "nr_free_pages 9\noom_kill 40\n");
            tree.fake.write("/cg/own/cgroup.controllers", "memory pids hugetlb\n");
            tree.members(&[processes::line()[0]]);
            tree.count(7, 3);
            tree
        }

        fn write(&self, controller: usize, file: &str, text: &str) {
            self.fake.write(&format!("{}/{file}", FOLDERS[self.v][controller]), text);
        }

        fn remove(&self, controller: usize, file: &str) {
            let path = self.fake.host().path(format!("{}/{file}", FOLDERS[self.v][controller]));
            std::fs::remove_file(path).expect("removed");
        }

        fn members(&self, pids: &[i32]) {
            let text: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
            (0..3).for_each(|controller| self.write(controller, "cgroup.procs", &text));
        }

        /// Sets the counters that decide.
        fn count(&self, oom_kills: u64, pids: u64) {
            match self.v {
                0 => self.write(
                    0,
                    "memory.oom_control",
                    &format!("oom_kill_disable 0\nunder_oom 0\noom_kill {oom_kills}\n"),
                ),
                _ => self.write(0, "memory.events", &format!("low 0\nhigh 1\nmax 5\noom 2\noom_kill {oom_kills}\n")),
            }
            self.write(1, "pids.events", &format!("max {pids}\n"));
        }

        fn read(&self) -> Events {
            Events::read(&Cgroups::find(&self.fake.host()))
        }

        fn unknown(kernel: &Kernel, counter: &str) -> String {
            kernel.unknown.as_ref().and_then(|unknown| unknown.get(counter).cloned()).unwrap_or_default()
        }
    }

    #[test]
    fn counter_that_grows_during_a_trial_fails_it() {
        for version in [1, 2] {
            for (kills, forks, words) in [
                (1, 0, "the kernel killed a process of this trial (out of memory); the memory limit is 64 bytes"),
                (3, 0, "(out of memory) 3 times"),
                (0, 2, "could not start another process or thread"),
            ] {
                let tree = Tree::new(version);
                let before = tree.read();
                tree.count(7 + kills, 3 + forks);
                let kernel = tree.read().since(&before, Vec::new());
                assert_eq!((kernel.oom_kills, kernel.pid_limit_hits), (Some(kills), Some(forks)), "version {version}");
                assert_eq!(kernel.unknown, None, "version {version}");
                let cause = cause(&kernel, Some(64)).expect("a cause");
                assert!(cause.contains(words), "version {version}: {cause}");
            }
        }
    }

    #[test]
    fn counter_that_grows_between_trials_fails_none() {
        for version in [1, 2] {
            let tree = Tree::new(version);
            let earlier = tree.read();
            assert_eq!(cause(&tree.read().since(&earlier, Vec::new()), None), None);
            tree.count(9, 9);
            let before = tree.read();
            let kernel = tree.read().since(&before, Vec::new());
            assert_eq!((kernel.oom_kills, kernel.pid_limit_hits), (Some(0), Some(0)), "version {version}");
            assert_eq!(cause(&kernel, None), None);
        }
    }

    #[test]
    fn counter_that_cannot_be_read_is_unknown() {
        let both = |version: usize, spoil: &dyn Fn(&Tree), words: [&str; 2]| {
            let tree = Tree::new(version);
            let before = tree.read();
            spoil(&tree);
            let kernel = tree.read().since(&before, Vec::new());
            assert_eq!((kernel.oom_kills, kernel.pid_limit_hits), (None, None), "version {version}: {kernel:?}");
            for (counter, words) in ["oomKills", "pidLimitHits"].iter().zip(words) {
                let reason = Tree::unknown(&kernel, counter);
                assert!(reason.contains(words), "version {version}: {counter}: {reason:?}");
            }
            assert_eq!(cause(&kernel, None), None, "an unknown counter is no event");
        };
        let file = |version: usize| ["memory.oom_control", "memory.events"][version - 1];
        for version in [1, 2] {
            let absent = |tree: &Tree| {
                tree.remove(0, file(version));
                tree.remove(1, "pids.events");
            };
            both(version, &absent, [&format!("{} cannot be read", file(version)), "pids.events cannot be read"]);
            let renamed = |tree: &Tree| {
                tree.write(0, file(version), "oom_kill_disable 0\n");
                tree.write(1, "pids.events", "");
            };
            both(version, &renamed, ["has no oom_kill", "has no max"]);
            both(version, &|tree| tree.count(6, 2), ["decreased"; 2]);
            let own = processes::line()[0];
            both(version, &|tree| tree.members(&[own, i32::MAX]), ["also has process 2147483647"; 2]);
            both(version, &|tree| tree.members(&[0, own]), ["outside of this container"; 2]);
            both(version, &|tree| tree.members(&[i32::MAX]), ["does not have the runner"; 2]);
            let procs = |tree: &Tree| (0..[3, 1][version - 1]).for_each(|of| tree.remove(of, "cgroup.procs"));
            both(version, &procs, ["cgroup.procs cannot be read"; 2]);
            let unmounted = |tree: &Tree| tree.fake.write("/proc/self/mountinfo", "");
            both(version, &unmounted, ["no memory controller", "no pids controller"]);
        }
        both(2, &|tree| tree.write(0, "below/cgroup.events", "populated 1\nfrozen 0\n"), ["cgroup below below it"; 2]);
    }

    #[test]
    fn ancestors_of_the_runner_are_no_other_processes() {
        for version in [1, 2] {
            let tree = Tree::new(version);
            tree.members(&processes::line());
            assert_eq!(tree.read().since(&tree.read(), Vec::new()).unknown, None, "version {version}");
        }
    }

    #[test]
    fn counters_of_a_pod_decide_beside_other_processes() {
        for version in [1, 2] {
            let tree = Tree::new(version);
            tree.members(&[processes::line()[0], 0, i32::MAX]);
            let pod = format!(
                "{}9 1 8:1 /var/lib/kubelet/pods/u/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n",
                MOUNTS[tree.v]
            );
            tree.fake.write("/proc/self/mountinfo", &pod);
            let before = tree.read();
            tree.count(8, 3);
            assert_eq!(tree.read().since(&before, Vec::new()).oom_kills, Some(1), "version {version}");
        }
    }

    #[test]
    fn further_counters_are_recorded_and_decide_nothing() {
        for version in [1, 2] {
            let tree = Tree::new(version);
            let name = ["failcnt", "events"][tree.v];
            let huge = |of: &str, count: u64| {
                let text = if tree.v == 0 { format!("{count}\n") } else { format!("max {count}\n") };
                tree.write(2, &format!("hugetlb.{of}.{name}"), &text);
            };
            huge("2MB", 1);
            huge("1GB", 5);
            tree.write(0, "memory.failcnt", "4\n");
            let before = tree.read();
            huge("2MB", 3);
            huge("1GB", 6);
            tree.write(0, "memory.failcnt", "24\n");
            tree.write(0, "memory.events", "low 9\nhigh 4\nmax 25\noom 3\noom_kill 7\noom_group_kill 9\n");
            tree.fake.write("/proc/vmstat", "oom_kill 42\n");
            let kernel = tree.read().since(&before, Vec::new());
            let expected = Kernel {
                oom_kills: Some(0),
                pid_limit_hits: Some(0),
                oom_events: [None, Some(1)][tree.v],
                memory_limit_hits: Some(20),
                memory_high_events: [None, Some(3)][tree.v],
                hugetlb_limit_hits: Some(3),
                machine_oom_kills: Some(2),
                ..Kernel::default()
            };
            assert_eq!(kernel, expected, "version {version}");
            assert_eq!(cause(&kernel, None), None, "version {version}");
        }
    }

    #[test]
    fn death_is_named_with_its_process() {
        let death = |signal, core_dumped| Death { process: Some("worker".to_owned()), signal, core_dumped };
        let said = |death| cause(&Kernel { deaths: Some(vec![death]), ..Kernel::default() }, None).expect("a cause");
        assert_eq!(
            said(death(11, Some(true))),
            "a process of this trial (\"worker\") was terminated by signal 11 (SIGSEGV) and dumped core"
        );
        assert!(said(death(9, None)).contains("must wait for them"));
    }
}
