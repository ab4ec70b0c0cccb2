//! Determines whether the trial's CPUs were exclusive, with the evidence.

use assay_schema::attempt::{Isolation, IsolationLevel, NoiseWindow};

use crate::cgroup::Cgroups;
use crate::cpus::CpuSet;
use crate::host::Host;

/// Above this share of other work the CPUs count as shared, regardless of limits.
const OTHER_WORK_LIMIT: f64 = 0.05;
/// Maximum length of the reason in an attempt.
const LONGEST_REASON: usize = 1024;

/// The granted resources, constant during a block unless the pod is modified.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    online: Option<CpuSet>,
    isolated: Option<CpuSet>,
    cpuset: Option<CpuSet>,
    cpuset_is_exclusive: bool,
    cgroups: Cgroups,
    quota: Option<f64>,
    memory_limit: Option<u64>,
}

/// Observations of one trial.
#[derive(Debug, Clone)]
pub(crate) struct Observed<'a> {
    pub(crate) allowed_before: Option<CpuSet>,
    pub(crate) allowed_after: Option<CpuSet>,
    pub(crate) during: &'a NoiseWindow,
    pub(crate) other_work: OtherWorkSeen,
}

/// Other work on the trial's CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OtherWorkSeen {
    /// Its share over the named window.
    Over { window: &'static str, ratio: f64, uncertainty: f64 },
    /// The window is too short for the granularity of the counters.
    TooSoon,
    /// Counters are unavailable.
    Unreadable,
}

impl OtherWorkSeen {
    /// Derives it from a trial's readings.
    pub(crate) fn of(during: &NoiseWindow, counters_are_there: bool) -> Self {
        match (during.other_work_ratio, during.shares_window_seconds) {
            (Some(ratio), longer) => {
                let window = if longer.is_some() { "in and shortly before the trial" } else { "during the trial" };
                Self::Over { window, ratio, uncertainty: during.other_work_uncertainty.unwrap_or(0.0) }
            }
            (None, _) if counters_are_there => Self::TooSoon,
            (None, _) => Self::Unreadable,
        }
    }
}

impl Grant {
    pub(crate) fn read(host: &Host, cgroups: &Cgroups) -> Self {
        Self {
            online: host.online(),
            isolated: host.cpus("/sys/devices/system/cpu/isolated").filter(|cpus| !cpus.is_empty()),
            cpuset: cgroups.cpuset(),
            cpuset_is_exclusive: cgroups.cpuset_is_exclusive(),
            quota: cgroups.cpu_quota(),
            memory_limit: cgroups.memory_limit(),
            cgroups: cgroups.clone(),
        }
    }

    /// The record before a trial. The claim is verified by the readings of every trial.
    pub(crate) fn before(&self, allowed: Option<CpuSet>) -> Isolation {
        let (during, other_work) = (&NoiseWindow::default(), OtherWorkSeen::TooSoon);
        self.judge(&Observed { allowed_before: allowed.clone(), allowed_after: allowed, during, other_work })
    }

    /// The record of one trial.
    pub(crate) fn judge(&self, observed: &Observed<'_>) -> Isolation {
        let (level, reason) = self.level(observed);
        Isolation {
            level,
            cpus_allowed: observed.allowed_after.as_ref().or(observed.allowed_before.as_ref()).map(CpuSet::listed),
            cpu_quota: self.quota,
            memory_limit_bytes: self.memory_limit,
            // The text may contain two long lists of CPUs.
            reason: Some(reason.chars().take(LONGEST_REASON).collect()),
        }
    }

    fn level(&self, observed: &Observed<'_>) -> (IsolationLevel, String) {
        use IsolationLevel::{ExclusiveCpus, Shared, Throttled, Unknown};
        if let Some(periods) = observed.during.throttled_periods.filter(|&periods| periods > 0) {
            let seconds = observed.during.throttled_seconds.unwrap_or(0.0);
            return (Throttled, format!("the CPU quota stopped it in {periods} periods, for {seconds:.3} s"));
        }
        let (Some(before), Some(after)) = (&observed.allowed_before, &observed.allowed_after) else {
            return (Unknown, "the CPUs it may use could not be read".into());
        };
        if before != after {
            return (Shared, format!("its CPUs changed from {before} to {after} while it ran"));
        }
        let Some(online) = &self.online else {
            return (Unknown, "the CPUs that are online could not be read".into());
        };
        if online.is_subset(after) {
            return (Shared, format!("it may use every CPU that is online ({online}), and so may others"));
        }
        let evidence = match self.exclusive(after) {
            Ok(evidence) => evidence,
            Err(outcome) => return outcome,
        };
        match observed.other_work {
            OtherWorkSeen::Over { window, ratio, uncertainty } => {
                let (percent, off) = (100.0 * ratio, 100.0 * uncertainty);
                let seen = format!("other work took {percent:.1} % (± {off:.1}) of CPU {after} {window}");
                if ratio > OTHER_WORK_LIMIT + uncertainty {
                    (Shared, format!("{evidence}, yet {seen}"))
                } else {
                    (ExclusiveCpus, format!("{evidence}; {seen}"))
                }
            }
            OtherWorkSeen::TooSoon => {
                (ExclusiveCpus, format!("{evidence}; the block has not run for long enough to see other work"))
            }
            OtherWorkSeen::Unreadable => {
                (Unknown, format!("{evidence}, but whether other work ran on CPU {after} could not be read"))
            }
        }
    }

    /// Returns the evidence for exclusive CPUs, or the level otherwise.
    fn exclusive(&self, allowed: &CpuSet) -> Result<String, (IsolationLevel, String)> {
        if self.isolated.as_ref().is_some_and(|isolated| allowed.is_subset(isolated)) {
            return Ok(format!("the kernel command line isolates CPU {allowed}"));
        }
        let Some(cpuset) = &self.cpuset else {
            return Err((
                IsolationLevel::Unknown,
                format!(
                    "its affinity is CPU {allowed}, but the cpuset that would exclude other processes could not be read"
                ),
            ));
        };
        if cpuset != allowed {
            return Err((
                IsolationLevel::Shared,
                format!("only its affinity limits it to CPU {allowed}; its cpuset is {cpuset}, and others may use it"),
            ));
        }
        if self.cpuset_is_exclusive {
            return Ok(format!("the kernel excludes sibling cgroups from CPU {allowed}"));
        }
        let whole = allowed.len() as f64;
        if self.quota.is_some_and(|quota| (quota - whole).abs() > 1e-6) {
            let quota = self.quota.unwrap_or_default();
            return Err((
                IsolationLevel::Shared,
                format!("it may use {quota} CPUs' worth of CPU {allowed}, a shared pool"),
            ));
        }
        match self.cgroups.requests_cpus(allowed.len()) {
            Some(true) if self.cgroups.in_kubernetes_pod => Ok(format!(
                "the pod requests as many whole CPUs as its cpuset {allowed} has, so kubelet's static policy made it"
            )),
            Some(_) => Err((
                IsolationLevel::Shared,
                format!("its cpuset is CPU {allowed}, but there is no evidence that other processes are excluded"),
            )),
            None => Err((
                IsolationLevel::Unknown,
                format!("its cpuset is CPU {allowed}, but its CPU request could not be read"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    /// A pod that requests one CPU on a node with four.
    fn pod(cpuset: &str, shares: &str, quota: &str) -> FakeHost {
        FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/proc/self/cgroup", "2:cpuset:/kubepods/p/c\n1:cpu:/kubepods/p/c\n"),
            (
                "/proc/self/mountinfo",
                "30 20 0:26 /kubepods/p/c /cg/cpu ro - cgroup cgroup rw,cpu\n\
                 31 20 0:27 /kubepods/p/c /cg/cpuset ro - cgroup cgroup rw,cpuset\n",
            ),
            ("/cg/cpu/cpu.shares", shares),
            ("/cg/cpu/cpu.cfs_quota_us", quota),
            ("/cg/cpu/cpu.cfs_period_us", "100000"),
            ("/cg/cpuset/cpuset.cpus", cpuset),
        ])
    }

    fn judge(fake: &FakeHost, allowed: &str, during: &NoiseWindow) -> Isolation {
        let other_work = match during.other_work_ratio {
            Some(ratio) => OtherWorkSeen::Over { window: "during the trial", ratio, uncertainty: 0.01 },
            None => OtherWorkSeen::Unreadable,
        };
        judge_with(fake, allowed, during, other_work)
    }

    fn judge_with(fake: &FakeHost, allowed: &str, during: &NoiseWindow, other_work: OtherWorkSeen) -> Isolation {
        let host = fake.host();
        let allowed = CpuSet::parse(allowed);
        let observed = Observed { allowed_before: allowed.clone(), allowed_after: allowed, during, other_work };
        Grant::read(&host, &Cgroups::find(&host)).judge(&observed)
    }

    fn quiet() -> NoiseWindow {
        NoiseWindow { other_work_ratio: Some(0.003), throttled_periods: Some(0), ..NoiseWindow::default() }
    }

    #[track_caller]
    fn assert_judged(isolation: &Isolation, level: IsolationLevel, reason: &str) {
        assert_eq!(isolation.level, level, "{isolation:?}");
        assert!(isolation.reason.as_deref().unwrap_or("").contains(reason), "{isolation:?}");
    }

    #[test]
    fn static_policy_pod_has_exclusive_cpus() {
        for quota in ["100000", "-1"] {
            let isolation = judge(&pod("1", "1024", quota), "1", &quiet());
            assert_judged(&isolation, IsolationLevel::ExclusiveCpus, "static policy");
            assert_eq!(isolation.cpus_allowed.as_deref(), Some("1"));
        }
    }

    #[test]
    fn reason_with_many_cpus_fits_into_an_attempt() {
        use assay_schema::Check;
        let scattered = CpuSet::from_iter((0..1024).step_by(2)).to_string();
        for cpuset in [scattered.as_str(), "0-1023"] {
            judge(&pod(cpuset, "512", "50000"), &scattered, &quiet()).check().expect("an attempt takes it");
        }
    }

    #[test]
    fn the_shared_pool_is_not_exclusive_however_small() {
        assert_judged(&judge(&pod("0,2", "512", "50000"), "0,2", &quiet()), IsolationLevel::Shared, "shared pool");
        assert_judged(&judge(&pod("0", "102", "-1"), "0", &quiet()), IsolationLevel::Shared, "no evidence");
        assert_judged(&judge(&pod("0-3", "1024", "100000"), "0-3", &quiet()), IsolationLevel::Shared, "every CPU");
    }

    #[test]
    fn affinity_alone_is_not_exclusive() {
        assert_judged(&judge(&pod("0-3", "1024", "-1"), "1", &quiet()), IsolationLevel::Shared, "only its affinity");
    }

    #[test]
    fn other_work_overrides_the_limits() {
        let busy = NoiseWindow { other_work_ratio: Some(0.34), ..quiet() };
        assert_judged(&judge(&pod("1", "1024", "-1"), "1", &busy), IsolationLevel::Shared, "34.0 %");
        let unread = NoiseWindow { other_work_ratio: None, ..quiet() };
        assert_judged(&judge(&pod("1", "1024", "-1"), "1", &unread), IsolationLevel::Unknown, "could not be read");
        let early = judge_with(&pod("1", "1024", "-1"), "1", &unread, OtherWorkSeen::TooSoon);
        assert_judged(&early, IsolationLevel::ExclusiveCpus, "not run for long enough");
    }

    #[test]
    fn reason_is_truncated_to_the_limit_of_an_attempt() {
        let every_second = (0..200).map(|cpu| (2 * cpu).to_string()).collect::<Vec<_>>().join(",");
        for shares in ["204800", "1024"] {
            let isolation = judge(&pod(&every_second, shares, "-1"), &every_second, &quiet());
            assert_eq!(assay_schema::Check::check(&isolation), Ok(()));
            assert!(isolation.reason.is_some_and(|reason| reason.contains(&every_second)), "the beginning is there");
        }
    }

    #[test]
    fn throttling_comes_first() {
        let throttled = NoiseWindow { throttled_periods: Some(2), throttled_seconds: Some(0.05), ..quiet() };
        assert_judged(&judge(&pod("1", "1024", "100000"), "1", &throttled), IsolationLevel::Throttled, "2 periods");
    }

    #[test]
    fn isolated_cpus_are_exclusive_without_a_pod() {
        let fake = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "2-3\n"),
        ]);
        assert_judged(&judge(&fake, "3", &quiet()), IsolationLevel::ExclusiveCpus, "command line");
        assert_judged(&judge(&fake, "1", &quiet()), IsolationLevel::Unknown, "cpuset");
    }

    #[test]
    fn a_changed_cpuset_is_reported() {
        let fake = pod("1", "1024", "-1");
        let host = fake.host();
        let during = quiet();
        let observed = Observed {
            allowed_before: CpuSet::parse("1"),
            allowed_after: CpuSet::parse("2"),
            during: &during,
            other_work: OtherWorkSeen::TooSoon,
        };
        let isolation = Grant::read(&host, &Cgroups::find(&host)).judge(&observed);
        assert_judged(&isolation, IsolationLevel::Shared, "changed from 1 to 2");
    }
}
