//! Limits and statistics of the cgroups this process is in, in either version.

use std::path::{Path, PathBuf};

use crate::cpus::CpuSet;
use crate::host::Host;

/// The two layouts in which the kernel shows a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl Version {
    /// What is so in this version.
    pub(crate) fn choose<T>(self, v1: T, v2: T) -> T {
        match self {
            Self::V1 => v1,
            Self::V2 => v2,
        }
    }
}

/// The folders of one controller, from this process's own cgroup to the outermost one that can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Controller {
    version: Version,
    folders: Vec<PathBuf>,
}

/// How long and how often a CPU quota stopped this process, since its cgroups were made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Throttling {
    pub(crate) seconds: f64,
    pub(crate) periods: u64,
}

/// The cgroups this process is in.
#[derive(Debug, Clone)]
pub(crate) struct Cgroups {
    host: Host,
    cpu: Option<Controller>,
    cpuacct: Option<Controller>,
    cpuset: Option<Controller>,
    memory: Option<Controller>,
    unified: Option<Controller>,
    /// The paths show that a kubelet made these cgroups.
    pub(crate) in_kubernetes_pod: bool,
}

impl Cgroups {
    /// Finds them through /proc/self. A controller that is not mounted is absent.
    pub(crate) fn find(host: &Host) -> Self {
        let memberships = host.text("/proc/self/cgroup").unwrap_or_default();
        let mounts = host.text("/proc/self/mountinfo").unwrap_or_default();
        let unified = Controller::find(host, &memberships, &mounts, None);
        let controller = |name| Controller::find(host, &memberships, &mounts, Some(name));
        Self {
            cpu: controller("cpu"),
            // Version 2 has no such controller: every cgroup counts its CPU time.
            cpuacct: Controller::at(host, &memberships, &mounts, Version::V1, "cpuacct").or_else(|| unified.clone()),
            cpuset: controller("cpuset"),
            memory: controller("memory"),
            unified,
            in_kubernetes_pod: [&memberships, &mounts]
                .iter()
                .any(|text| text.contains("kubepods") || text.contains("/kubelet/pods/")),
            host: host.clone(),
        }
    }

    /// The version that governs CPU time.
    pub(crate) fn version(&self) -> Option<Version> {
        self.cpu.as_ref().or(self.cpuset.as_ref()).map(|controller| controller.version)
    }

    /// The tightest CFS quota, in CPUs.
    pub(crate) fn cpu_quota(&self) -> Option<f64> {
        let controller = self.cpu.as_ref()?;
        let quota = |folder: &PathBuf| {
            let (quota, period) = match controller.version {
                Version::V1 => (
                    self.host.word(folder.join("cpu.cfs_quota_us"))?,
                    self.host.word(folder.join("cpu.cfs_period_us"))?,
                ),
                Version::V2 => {
                    let text = self.host.word(folder.join("cpu.max"))?;
                    let (quota, period) = text.split_once(' ')?;
                    (quota.to_owned(), period.to_owned())
                }
            };
            // "max" and -1 both mean no quota.
            let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
            (quota > 0.0 && period > 0.0).then(|| quota / period)
        };
        controller.folders.iter().filter_map(quota).reduce(f64::min)
    }

    /// Whether this process's own cgroup has the CPU weight that a kubelet gives to a request of that many whole CPUs.
    pub(crate) fn requests_cpus(&self, cpus: usize) -> Option<bool> {
        let controller = self.cpu.as_ref()?;
        let own = controller.own();
        let shares = cpus as u64 * 1024;
        match controller.version {
            Version::V1 => Some(self.host.number(own.join("cpu.shares"))? == shares),
            Version::V2 => Some(weights(shares).contains(&self.host.number(own.join("cpu.weight"))?)),
        }
    }

    /// The CPUs of this process's own cgroup.
    pub(crate) fn cpuset(&self) -> Option<CpuSet> {
        let controller = self.cpuset.as_ref()?;
        let own = controller.own();
        let names: &[&str] = match controller.version {
            Version::V1 => &["cpuset.effective_cpus", "cpuset.cpus"],
            Version::V2 => &["cpuset.cpus.effective"],
        };
        names.iter().find_map(|name| self.host.cpus(own.join(name))).filter(|cpus| !cpus.is_empty())
    }

    /// Whether the kernel keeps sibling cgroups off this cgroup's CPUs.
    pub(crate) fn cpuset_is_exclusive(&self) -> bool {
        let Some(controller) = &self.cpuset else { return false };
        let own = controller.own();
        match controller.version {
            // The root always has the flag, and no sibling.
            Version::V1 => {
                controller.folders.len() > 1 && self.host.number(own.join("cpuset.cpu_exclusive")) == Some(1)
            }
            Version::V2 => {
                matches!(self.host.word(own.join("cpuset.cpus.partition")).as_deref(), Some("root" | "isolated"))
            }
        }
    }

    /// The tightest memory limit.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        let controller = self.memory.as_ref()?;
        let name = controller.version.choose("memory.limit_in_bytes", "memory.max");
        // Version 1 says "no limit" with a huge number.
        let limits = controller.folders.iter().filter_map(|folder| self.host.number(folder.join(name)));
        limits.filter(|&limit| limit > 0 && limit < 1 << 60).min()
    }

    /// Memory in use by this process's own cgroup.
    pub(crate) fn memory_used(&self) -> Option<u64> {
        let controller = self.memory.as_ref()?;
        let name = controller.version.choose("memory.usage_in_bytes", "memory.current");
        self.host.number(controller.own().join(name))
    }

    /// How many processes of this cgroup the kernel has killed for lack of memory.
    pub(crate) fn out_of_memory_kills(&self) -> Option<u64> {
        let controller = self.memory.as_ref()?;
        let name = controller.version.choose("memory.oom_control", "memory.events");
        field(&self.host.text(controller.own().join(name))?, "oom_kill")
    }

    /// Throttling by the quotas of all the cgroups that can be seen.
    pub(crate) fn throttling(&self) -> Option<Throttling> {
        let controller = self.cpu.as_ref()?;
        let throttling = |folder: &PathBuf| {
            let text = self.host.text(folder.join("cpu.stat"))?;
            let (name, per_second) = controller.version.choose(("throttled_time", 1e9), ("throttled_usec", 1e6));
            let seconds = field(&text, name)? as f64 / per_second;
            Some(Throttling { seconds, periods: field(&text, "nr_throttled")? })
        };
        controller
            .folders
            .iter()
            .filter_map(throttling)
            .reduce(|a, b| Throttling { seconds: a.seconds + b.seconds, periods: a.periods + b.periods })
    }

    /// CPU seconds that a pod's container has used, whoever in it: also what no parent waits for, which no process has in its usage.
    /// Elsewhere nothing is known of who shares the cgroup.
    pub(crate) fn container_cpu_seconds(&self) -> Option<f64> {
        let controller = self.cpuacct.as_ref().filter(|_| self.in_kubernetes_pod)?;
        let own = controller.own();
        match controller.version {
            Version::V1 => Some(self.host.number(own.join("cpuacct.usage"))? as f64 / 1e9),
            Version::V2 => {
                // The root has no type, and the CPU time of the whole node.
                self.host.word(own.join("cgroup.type"))?;
                Some(field(&self.host.text(own.join("cpu.stat"))?, "usage_usec")? as f64 / 1e6)
            }
        }
    }

    /// Total seconds for which some task of this cgroup waited for the resource: `cpu`, `memory` or `io`.
    pub(crate) fn pressure(&self, resource: &str) -> Option<f64> {
        let own = self.unified.as_ref()?.own();
        // The root has no type, and the pressure of the whole node.
        self.host.word(own.join("cgroup.type"))?;
        pressure_total(&self.host.text(own.join(format!("{resource}.pressure")))?)
    }
}

impl Controller {
    /// Finds one controller of version 1 or 2, or with no name the version 2 hierarchy itself.
    fn find(host: &Host, memberships: &str, mounts: &str, name: Option<&str>) -> Option<Self> {
        let v1 = name.and_then(|name| Self::at(host, memberships, mounts, Version::V1, name));
        v1.or_else(|| {
            let controller = Self::at(host, memberships, mounts, Version::V2, "")?;
            // Beside version 1 the version 2 hierarchy may be mounted without this controller.
            let has = |name: &str| {
                let controllers = host.text(controller.own().join("cgroup.controllers"))?;
                Some(controllers.split_whitespace().any(|word| word == name))
            };
            name.is_none_or(|name| has(name).unwrap_or(false)).then_some(controller)
        })
    }

    fn at(host: &Host, memberships: &str, mounts: &str, version: Version, name: &str) -> Option<Self> {
        let membership = memberships.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|controller| controller == name).then_some(path)
        })?;
        let (root, point) = mounts.lines().find_map(|line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(3);
            let (root, point) = (mount.next()?, mount.next()?);
            let mut filesystem = filesystem.split(' ');
            let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
            let fits = match version {
                Version::V1 => kind == "cgroup" && options.split(',').any(|option| option == name),
                Version::V2 => kind == "cgroup2",
            };
            fits.then_some((root, PathBuf::from(point)))
        })?;
        // In a container the mount usually shows this cgroup, or one above it, as its root.
        let below = Path::new(membership).strip_prefix(root).unwrap_or(Path::new(""));
        let own = point.join(below);
        let own = if host.path(&own).is_dir() { own } else { point.clone() };
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&point)).map(Path::to_owned).collect();
        Some(Self { version, folders })
    }

    /// This process's own cgroup: the first folder, of which there is one at least.
    fn own(&self) -> &Path {
        &self.folders[0]
    }
}

/// The version 2 weights that runc and crun, old and new, write for version 1 shares.
fn weights(shares: u64) -> [u64; 2] {
    let linear = 1 + (shares.saturating_sub(2) * 9999) / 262_142;
    // Since 2025, so that 1,024 shares become the default weight of 100.
    let log = (shares as f64).log2();
    let curved = 10f64.powf((log * log + 125.0 * log) / 612.0 - 7.0 / 34.0).ceil() as u64;
    [linear, curved]
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The `some` total of a pressure file, in seconds.
pub(crate) fn pressure_total(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total: u64 = some.split("total=").nth(1)?.trim().parse().ok()?;
    Some(total as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    /// A container as containerd makes it with version 1: only its own cgroups are mounted.
    fn v1_pod() -> FakeHost {
        FakeHost::new(&[
            (
                "/proc/self/cgroup",
                "3:cpu,cpuacct:/kubepods/pod1/c1\n2:cpuset:/kubepods/pod1/c1\n1:memory:/kubepods/pod1/c1\n0::/\n",
            ),
            (
                "/proc/self/mountinfo",
                "30 20 0:26 /kubepods/pod1/c1 /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n\
                 31 20 0:27 /kubepods/pod1/c1 /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n\
                 32 20 0:28 /kubepods/pod1/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            ),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.shares", "1024\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "7250000000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 250000000\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.cpus", "1\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "1\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.cpu_exclusive", "1\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n"),
            ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"),
        ])
    }

    /// A service with version 2, seen from the host: the slice above it has the tighter limits.
    fn v2_service() -> FakeHost {
        FakeHost::new(&[
            ("/proc/self/cgroup", "0::/bench.slice/a.service\n"),
            (
                "/proc/self/mountinfo",
                "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
            ("/sys/fs/cgroup/bench.slice/a.service/cgroup.controllers", "cpuset cpu io memory pids\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/cgroup.type", "domain\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/cpu.weight", "39\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 500000\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/cpuset.cpus.effective", "2-3\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/cpuset.cpus.partition", "isolated\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/bench.slice/a.service/memory.events", "low 0\noom 2\noom_kill 1\n"),
            (
                "/sys/fs/cgroup/bench.slice/a.service/cpu.pressure",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
            ),
            ("/sys/fs/cgroup/bench.slice/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/bench.slice/cpu.stat", "nr_throttled 2\nthrottled_usec 250000\n"),
            ("/sys/fs/cgroup/bench.slice/memory.max", "1073741824\n"),
        ])
    }

    #[test]
    fn reads_version_1_from_inside_a_container() {
        let fake = v1_pod();
        let cgroups = Cgroups::find(&fake.host());
        assert_eq!(cgroups.version(), Some(Version::V1));
        assert!(cgroups.in_kubernetes_pod);
        assert_eq!(cgroups.cpu_quota(), Some(1.0));
        assert_eq!(cgroups.requests_cpus(1), Some(true));
        assert_eq!(cgroups.requests_cpus(2), Some(false));
        assert_eq!(cgroups.cpuset(), CpuSet::parse("1"));
        assert!(!cgroups.cpuset_is_exclusive(), "nothing above can be seen, so the flag may be the root's");
        assert_eq!(cgroups.memory_limit(), Some(2 << 30));
        assert_eq!(cgroups.memory_used(), Some(1 << 20));
        assert_eq!(cgroups.out_of_memory_kills(), Some(4));
        assert_eq!(cgroups.throttling(), Some(Throttling { seconds: 0.25, periods: 3 }));
        assert_eq!(cgroups.pressure("cpu"), None);
        assert_eq!(cgroups.container_cpu_seconds(), Some(7.25));
    }

    #[test]
    fn reads_version_2_with_the_limits_above() {
        let fake = v2_service();
        let cgroups = Cgroups::find(&fake.host());
        assert_eq!(cgroups.version(), Some(Version::V2));
        assert!(!cgroups.in_kubernetes_pod);
        assert_eq!(cgroups.cpu_quota(), Some(1.5));
        assert_eq!(cgroups.requests_cpus(1), Some(true));
        assert_eq!(cgroups.cpuset(), CpuSet::parse("2-3"));
        assert!(cgroups.cpuset_is_exclusive());
        assert_eq!(cgroups.memory_limit(), Some(1 << 30));
        assert_eq!(cgroups.out_of_memory_kills(), Some(1));
        assert_eq!(cgroups.throttling(), Some(Throttling { seconds: 0.75, periods: 3 }));
        assert_eq!(cgroups.pressure("cpu"), Some(1.5));
        assert_eq!(cgroups.pressure("io"), None);
        assert_eq!(cgroups.container_cpu_seconds(), None, "a service shares its cgroup with whom it likes");
    }

    #[test]
    fn a_container_of_version_2_knows_its_own_cpu_time_and_never_takes_the_nodes_for_it() {
        let files = [
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "30 20 0:26 /kubepods/p/c /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 1500000\nuser_usec 1\n"),
            ("/sys/fs/cgroup/cgroup.type", "domain\n"),
        ];
        let seconds = |files: &[(&str, &str)]| Cgroups::find(&FakeHost::new(files).host()).container_cpu_seconds();
        assert_eq!(seconds(&files), Some(1.5));
        assert_eq!(seconds(&files[..3]), None, "the root of all cgroups has no type");
    }

    #[test]
    fn nothing_mounted_is_nothing_known() {
        let fake = FakeHost::new(&[("/proc/self/cgroup", "0::/\n")]);
        let cgroups = Cgroups::find(&fake.host());
        assert_eq!(cgroups.version(), None);
        assert_eq!(cgroups.cpu_quota(), None);
        assert_eq!(cgroups.cpuset(), None);
        assert_eq!(cgroups.throttling(), None);
    }

    #[test]
    fn a_unified_hierarchy_beside_version_1_lacks_its_controllers() {
        let fake = FakeHost::new(&[
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/unified/cgroup.controllers", "\n"),
        ]);
        assert_eq!(Cgroups::find(&fake.host()).version(), None);
    }

    #[test]
    fn weights_are_those_of_the_runtimes() {
        assert_eq!(weights(1024), [39, 100]);
        assert_eq!(weights(2048), [79, 174]);
    }
}
