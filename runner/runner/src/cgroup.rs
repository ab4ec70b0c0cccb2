//! Limits and statistics of this process's cgroups, version 1 and 2.

use std::path::{Path, PathBuf};

use crate::cpus::CpuSet;
use crate::host::Host;

/// The cgroup versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl Version {
    /// Returns the value for this version.
    pub(crate) fn choose<T>(self, v1: T, v2: T) -> T {
        match self {
            Self::V1 => v1,
            Self::V2 => v2,
        }
    }
}

/// Folders of one controller, from this process's own cgroup to the outermost visible one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Controller {
    pub(crate) version: Version,
    folders: Vec<PathBuf>,
}

/// Throttled time and periods of this process's cgroups since their creation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Throttling {
    pub(crate) seconds: f64,
    pub(crate) periods: u64,
}

/// The cgroups of this process.
#[derive(Debug, Clone)]
pub(crate) struct Cgroups {
    pub(crate) host: Host,
    cpu: Option<Controller>,
    cpuacct: Option<Controller>,
    cpuset: Option<Controller>,
    pub(crate) memory: Option<Controller>,
    pub(crate) pids: Option<Controller>,
    pub(crate) hugetlb: Option<Controller>,
    unified: Option<Controller>,
    /// Whether the paths are those of a kubelet.
    pub(crate) in_kubernetes_pod: bool,
}

impl Cgroups {
    /// Finds the cgroups through /proc/self. Controllers that are not mounted are absent.
    pub(crate) fn find(host: &Host) -> Self {
        let memberships = host.text("/proc/self/cgroup").unwrap_or_default();
        let mounts = host.text("/proc/self/mountinfo").unwrap_or_default();
        let unified = Controller::find(host, &memberships, &mounts, None);
        let controller = |name| Controller::find(host, &memberships, &mounts, Some(name));
        Self {
            cpu: controller("cpu"),
            // Version 2 has no cpuacct controller, because every cgroup accounts its CPU time.
            cpuacct: Controller::at(host, &memberships, &mounts, Version::V1, "cpuacct").or_else(|| unified.clone()),
            cpuset: controller("cpuset"),
            memory: controller("memory"),
            pids: controller("pids"),
            hugetlb: controller("hugetlb"),
            unified,
            in_kubernetes_pod: memberships.contains("kubepods") || mounts.lines().any(is_mount_of_a_pod),
            host: host.clone(),
        }
    }

    /// The version that controls CPU time.
    pub(crate) fn version(&self) -> Option<Version> {
        self.cpu.as_ref().or(self.cpuset.as_ref()).map(|controller| controller.version)
    }

    /// The smallest CFS quota, in CPUs.
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

    /// Whether this process's own cgroup has the CPU weight that a kubelet sets for a request of `cpus` whole CPUs.
    pub(crate) fn requests_cpus(&self, cpus: usize) -> Option<bool> {
        let controller = self.cpu.as_ref()?;
        let own = controller.own();
        let shares = cpus as u64 * 1024;
        match controller.version {
            Version::V1 => Some(self.host.number(own.join("cpu.shares"))? == shares),
            Version::V2 => Some(weights(shares).contains(&self.host.number(own.join("cpu.weight"))?)),
        }
    }

    /// The cpuset of this process's own cgroup.
    pub(crate) fn cpuset(&self) -> Option<CpuSet> {
        let controller = self.cpuset.as_ref()?;
        let own = controller.own();
        let names: &[&str] = match controller.version {
            Version::V1 => &["cpuset.effective_cpus", "cpuset.cpus"],
            Version::V2 => &["cpuset.cpus.effective"],
        };
        names.iter().find_map(|name| self.host.cpus(own.join(name))).filter(|cpus| !cpus.is_empty())
    }

    /// Whether the kernel excludes sibling cgroups from this cgroup's CPUs.
    pub(crate) fn cpuset_is_exclusive(&self) -> bool {
        let Some(controller) = &self.cpuset else { return false };
        let own = controller.own();
        match controller.version {
            // The root always has the flag and has no siblings.
            Version::V1 => {
                controller.folders.len() > 1 && self.host.number(own.join("cpuset.cpu_exclusive")) == Some(1)
            }
            Version::V2 => {
                matches!(self.host.word(own.join("cpuset.cpus.partition")).as_deref(), Some("root" | "isolated"))
            }
        }
    }

    /// The smallest memory limit.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        let controller = self.memory.as_ref()?;
        let name = controller.version.choose("memory.limit_in_bytes", "memory.max");
        // Version 1 represents an unlimited value by a huge number.
        let limits = controller.folders.iter().filter_map(|folder| self.host.number(folder.join(name)));
        limits.filter(|&limit| limit > 0 && limit < 1 << 60).min()
    }

    /// Memory usage of this process's own cgroup.
    pub(crate) fn memory_used(&self) -> Option<u64> {
        let controller = self.memory.as_ref()?;
        let name = controller.version.choose("memory.usage_in_bytes", "memory.current");
        self.host.number(controller.own().join(name))
    }

    /// Throttling by the quotas of all visible cgroups.
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

    /// CPU seconds used by all processes of a pod's container, including unreaped ones, which are in no process's
    /// usage. None outside of a pod, where other processes may share the cgroup.
    pub(crate) fn container_cpu_seconds(&self) -> Option<f64> {
        let controller = self.cpuacct.as_ref().filter(|_| self.in_kubernetes_pod)?;
        let own = controller.own();
        match controller.version {
            Version::V1 => Some(self.host.number(own.join("cpuacct.usage"))? as f64 / 1e9),
            Version::V2 => {
                // The root has no type, and its CPU time is that of the whole node.
                self.host.word(own.join("cgroup.type"))?;
                Some(field(&self.host.text(own.join("cpu.stat"))?, "usage_usec")? as f64 / 1e6)
            }
        }
    }

    /// Total seconds in which some task of this cgroup stalled on the resource: `cpu`, `memory` or `io`.
    pub(crate) fn pressure(&self, resource: &str) -> Option<f64> {
        let own = self.unified.as_ref()?.own();
        // The root has no type, and its pressure is that of the whole node.
        self.host.word(own.join("cgroup.type"))?;
        pressure_total(&self.host.text(own.join(format!("{resource}.pressure")))?)
    }
}

impl Controller {
    /// Finds a controller of version 1 or 2; without a name the version 2 hierarchy itself.
    fn find(host: &Host, memberships: &str, mounts: &str, name: Option<&str>) -> Option<Self> {
        let v1 = name.and_then(|name| Self::at(host, memberships, mounts, Version::V1, name));
        v1.or_else(|| {
            let controller = Self::at(host, memberships, mounts, Version::V2, "")?;
            // In hybrid mode the version 2 hierarchy may lack this controller.
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
        // In a container the root of the mount is usually this cgroup or an ancestor.
        let below = Path::new(membership).strip_prefix(root).unwrap_or(Path::new(""));
        let own = point.join(below);
        let own = if host.path(&own).is_dir() { own } else { point.clone() };
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&point)).map(Path::to_owned).collect();
        Some(Self { version, folders })
    }

    /// This process's own cgroup, which is the first folder. There is at least one.
    pub(crate) fn own(&self) -> &Path {
        &self.folders[0]
    }
}

/// The version 2 weights to which old and new versions of runc and crun map version 1 shares.
fn weights(shares: u64) -> [u64; 2] {
    let linear = 1 + (shares.saturating_sub(2) * 9999) / 262_142;
    // The mapping since 2025, by which 1,024 shares become the default weight of 100.
    let log = (shares as f64).log2();
    let curved = 10f64.powf((log * log + 125.0 * log) / 612.0 - 7.0 / 34.0).ceil() as u64;
    [linear, curved]
}

/// Whether a line of mountinfo is of a container's file system in a pod. A node also has mounts of its pods' volumes, in
/// the kubelet's folder.
fn is_mount_of_a_pod(line: &str) -> bool {
    let mut words = line.split(' ').skip(3);
    let (Some(root), Some(point)) = (words.next(), words.next()) else { return false };
    (root.contains("kubepods") || root.contains("/kubelet/pods/")) && !point.contains("/kubelet/pods/")
}

/// Returns the number after a name at the start of a line.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Returns the `some` total of a pressure file, in seconds.
pub(crate) fn pressure_total(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total: u64 = some.split("total=").nth(1)?.trim().parse().ok()?;
    Some(total as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    /// A containerd container with version 1, in which only its own cgroups are mounted.
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
        ])
    }

    /// A service with version 2, seen from the host. Its parent slice has the smaller limits.
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
        assert_eq!(cgroups.throttling(), Some(Throttling { seconds: 0.75, periods: 3 }));
        assert_eq!(cgroups.pressure("cpu"), Some(1.5));
        assert_eq!(cgroups.pressure("io"), None);
        assert_eq!(cgroups.container_cpu_seconds(), None, "a service shares its cgroup with whom it likes");
    }

    #[test]
    fn version_2_container_cpu_time_excludes_the_node() {
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
    fn volumes_of_pods_do_not_make_a_node_a_pod() {
        let in_pod = |mounts: &str| {
            let files = [("/proc/self/cgroup", "0::/user.slice\n"), ("/proc/self/mountinfo", mounts)];
            Cgroups::find(&FakeHost::new(&files).host()).in_kubernetes_pod
        };
        assert!(in_pod("9 1 8:1 /var/lib/kubelet/pods/u/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"));
        assert!(!in_pod("9 1 0:4 / /var/lib/kubelet/pods/u/volumes/token rw - tmpfs tmpfs rw\n"));
        let subpath = "/var/lib/kubelet/pods/u/volumes/data";
        assert!(!in_pod(&format!("9 1 8:1 {subpath} {subpath}-subpath rw - ext4 /dev/sda1 rw\n")));
    }

    #[test]
    fn without_mounts_all_values_are_absent() {
        let fake = FakeHost::new(&[("/proc/self/cgroup", "0::/\n")]);
        let cgroups = Cgroups::find(&fake.host());
        assert_eq!(cgroups.version(), None);
        assert_eq!(cgroups.cpu_quota(), None);
        assert_eq!(cgroups.cpuset(), None);
        assert_eq!(cgroups.throttling(), None);
    }

    #[test]
    fn hybrid_mode_uses_version_1_controllers() {
        let fake = FakeHost::new(&[
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/unified/cgroup.controllers", "\n"),
        ]);
        assert_eq!(Cgroups::find(&fake.host()).version(), None);
    }

    #[test]
    fn weights_match_the_container_runtimes() {
        assert_eq!(weights(1024), [39, 100]);
        assert_eq!(weights(2048), [79, 174]);
    }
}
