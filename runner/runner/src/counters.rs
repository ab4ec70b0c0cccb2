//! Kernel counters and the noise readings derived from two of them.

use std::collections::VecDeque;
use std::time::Instant;

use assay_schema::attempt::NoiseWindow;

use crate::cgroup::{self, Cgroups, Throttling};
use crate::cpus::CpuSet;
use crate::host::Host;
use crate::usage;

/// The tick length of /proc/stat, the same for every Linux user space.
const TICK_SECONDS: f64 = 0.01;
/// Minimum window for shares of CPU time. Over shorter windows the tick granularity dominates.
const SHARES_WINDOW: f64 = 20.0 * TICK_SECONDS;

/// One reading of all counters.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    at: Instant,
    cpus: Option<CpuTimes>,
    /// CPU time of the container, else of the runner and all reaped child processes.
    own_seconds: f64,
    throttling: Option<Throttling>,
    pressure: [Option<f64>; 3],
}

/// Accumulated times of the allowed CPUs since boot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CpuTimes {
    cpus: usize,
    busy_seconds: f64,
    steal_seconds: f64,
    /// Busy time of the CPUs outside the allowed set, if any.
    elsewhere_seconds: Option<f64>,
    /// Granularity of `busy_seconds` and `elsewhere_seconds`.
    resolution: f64,
}

impl Counters {
    pub(crate) fn read(host: &Host, cgroups: &Cgroups, allowed: Option<&CpuSet>) -> Self {
        Self {
            at: Instant::now(),
            cpus: allowed.and_then(|allowed| CpuTimes::read(host, allowed)),
            own_seconds: cgroups.container_cpu_seconds().unwrap_or_else(usage::cpu_seconds_so_far),
            throttling: cgroups.throttling(),
            pressure: ["cpu", "memory", "io"].map(|resource| {
                let of_node = || cgroup::pressure_total(&host.text(format!("/proc/pressure/{resource}"))?);
                cgroups.pressure(resource).or_else(of_node)
            }),
        }
    }

    /// Returns the noise window between `earlier` and this reading. If a trial is too short for shares of CPU time,
    /// these are taken over the shortest sufficient window that ends with the trial, from `history` (oldest first).
    pub(crate) fn since(&self, earlier: &Self, history: &VecDeque<Self>) -> NoiseWindow {
        let seconds = (self.at - earlier.at).as_secs_f64();
        let grown = |i: usize| Some((self.pressure[i]? - earlier.pressure[i]?).max(0.0));
        let mut window = NoiseWindow {
            window_seconds: Some(seconds),
            pressure_cpu_seconds: grown(0),
            pressure_memory_seconds: grown(1),
            pressure_io_seconds: grown(2),
            ..NoiseWindow::default()
        };
        if let (Some(before), Some(after)) = (earlier.throttling, self.throttling) {
            window.throttled_seconds = Some((after.seconds - before.seconds).max(0.0));
            window.throttled_periods = Some(after.periods.saturating_sub(before.periods));
        }
        let mut starts = std::iter::once(earlier).chain(history.iter().rev());
        let long_enough = starts.find_map(|start| Some((start, self.cpu_window(start)?)));
        let Some((start, (before, after, capacity))) = long_enough else { return window };
        let seconds = (self.at - start.at).as_secs_f64();
        window.shares_window_seconds = (start.at != earlier.at).then_some(seconds);
        window.steal_ratio = Some(((after.steal_seconds - before.steal_seconds) / capacity).max(0.0));
        window.other_cpus_ratio = before
            .elsewhere_seconds
            .zip(after.elsewhere_seconds)
            .map(|(before, after)| ((after - before) / seconds).max(0.0));
        // CPU time of processes other than the runner and its trials. Both kernel readings have a granularity.
        let own = self.own_seconds - start.own_seconds;
        let other = after.busy_seconds - before.busy_seconds - own;
        window.other_work_ratio = Some((other / capacity).max(0.0));
        window.other_work_uncertainty = Some(2.0 * after.resolution * after.cpus as f64 / capacity);
        window
    }

    /// Removes readings that no later trial can need.
    pub(crate) fn trim(history: &mut VecDeque<Self>) {
        while let (Some(second), Some(last)) = (history.get(1), history.back()) {
            if (last.at - second.at).as_secs_f64() < SHARES_WINDOW {
                break;
            }
            history.pop_front();
        }
    }

    /// Whether CPU times are available.
    pub(crate) fn sees_cpus(&self) -> bool {
        self.cpus.is_some()
    }

    /// Returns both CPU readings and the CPU seconds between them, if the window is long enough.
    fn cpu_window(&self, earlier: &Self) -> Option<(CpuTimes, CpuTimes, f64)> {
        let (before, after) = (earlier.cpus?, self.cpus?);
        let seconds = (self.at - earlier.at).as_secs_f64();
        let comparable = before.cpus == after.cpus && seconds >= SHARES_WINDOW;
        comparable.then_some((before, after, seconds * after.cpus as f64))
    }
}

impl CpuTimes {
    /// Reads /proc/stat and, if available, the nanosecond counters of /proc/schedstat.
    fn read(host: &Host, allowed: &CpuSet) -> Option<Self> {
        let stat = host.text("/proc/stat")?;
        let ticks: Vec<(usize, [u64; 8])> =
            per_cpu(&stat).map(|(cpu, ticks)| Some((cpu, *ticks.first_chunk()?))).collect::<Option<_>>()?;
        // user nice system idle iowait irq softirq steal; guest time is part of user.
        let busy = |&(cpu, [user, nice, system, _, _, irq, softirq, _]): &(usize, [u64; 8])| {
            (cpu, (user + nice + system + irq + softirq) as f64 * TICK_SECONDS)
        };
        let mut busy: Vec<(usize, f64)> = ticks.iter().map(busy).collect();
        let mut resolution = TICK_SECONDS;
        let precise = host.text("/proc/schedstat").map(|text| {
            // The seventh number is the nanoseconds for which tasks ran.
            per_cpu(&text).filter_map(|(cpu, n)| Some((cpu, *n.get(6)? as f64 / 1e9))).collect::<Vec<_>>()
        });
        if let Some(precise) = precise.filter(|precise| precise.len() == busy.len()) {
            (busy, resolution) = (precise, 0.001);
        }
        let (own, elsewhere): (Vec<_>, Vec<_>) = busy.into_iter().partition(|(cpu, _)| allowed.contains(*cpu));
        if own.len() != allowed.len() {
            return None;
        }
        let sum = |cpus: &[(usize, f64)]| cpus.iter().map(|(_, seconds)| seconds).sum::<f64>();
        let stolen = ticks.iter().filter(|(cpu, _)| allowed.contains(*cpu)).map(|(_, ticks)| ticks[7]).sum::<u64>();
        Some(Self {
            cpus: own.len(),
            busy_seconds: sum(&own),
            steal_seconds: stolen as f64 * TICK_SECONDS,
            elsewhere_seconds: (!elsewhere.is_empty()).then(|| sum(&elsewhere)),
            resolution,
        })
    }
}

/// The lines `cpu<N> number …`.
fn per_cpu(text: &str) -> impl Iterator<Item = (usize, Vec<u64>)> + '_ {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        Some((cpu, words.map_while(|word| word.parse().ok()).collect()))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::fake::FakeHost;

    fn allowed() -> CpuSet {
        CpuSet::parse("1").expect("a list")
    }

    fn machine(user: u64, steal: u64) -> FakeHost {
        let stat = format!(
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 900 0 0 0 0 0 0 0 0 0\ncpu1 {user} 0 5 70 3 1 1 {steal} 0 0\nintr 5\n"
        );
        FakeHost::new(&[
            ("/proc/stat", &stat),
            ("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n"),
        ])
    }

    fn reading(fake: &FakeHost, allowed: &CpuSet) -> Counters {
        let host = fake.host();
        Counters::read(&host, &Cgroups::find(&host), Some(allowed))
    }

    /// Two readings one second apart; the trial itself used `own` seconds.
    fn window(before: &FakeHost, after: &FakeHost, own: f64) -> NoiseWindow {
        let before = reading(before, &allowed());
        let mut after = reading(after, &allowed());
        after.at = before.at + Duration::from_secs(1);
        after.own_seconds = before.own_seconds + own;
        between(&before, &after, &VecDeque::new())
    }

    fn between(before: &Counters, after: &Counters, history: &VecDeque<Counters>) -> NoiseWindow {
        after.since(before, history)
    }

    #[test]
    fn other_work_excludes_the_trial() {
        let window = window(&machine(100, 0), &machine(180, 0), 0.5);
        assert!((window.other_work_ratio.expect("read") - 0.3).abs() < 1e-9);
        assert_eq!(window.steal_ratio, Some(0.0));
        assert_eq!(window.other_work_uncertainty, Some(0.02), "two ticks of a second");
        assert_eq!(window.window_seconds, Some(1.0));
        assert_eq!(window.pressure_cpu_seconds, Some(0.0));
        assert_eq!(window.pressure_io_seconds, None, "the fake machine does not say");
        assert_eq!(window.throttled_periods, None);
    }

    #[test]
    fn other_cpus_are_read() {
        let (before, after) = (machine(100, 0), machine(180, 0));
        let stat = after.host().text("/proc/stat").expect("written").replace("cpu0 900", "cpu0 975");
        after.write("/proc/stat", &stat);
        let window = window(&before, &after, 0.8);
        assert!((window.other_cpus_ratio.expect("read") - 0.75).abs() < 1e-9);
        assert_eq!(window.other_work_ratio, Some(0.0), "work on other CPUs is not work on the trial's CPU");
        let both = CpuSet::parse("0-1").expect("a list");
        let cpus = reading(&before, &both).cpus.expect("read");
        assert_eq!((cpus.cpus, cpus.elsewhere_seconds), (2, None), "there is no other CPU");
    }

    #[test]
    fn unreaped_processes_of_the_container_count_as_own_work() {
        // Two readings one second apart with the CPU always busy, of which 0.5 s belong to reaped processes.
        let pod = |user: u64, micros: u64| {
            let stat = format!("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 9 0 0 0 0 0 0 0 0 0\ncpu1 {user} 0 5 70 3 1 1 0 0 0\n");
            let usage = format!("usage_usec {micros}\n");
            FakeHost::new(&[
                ("/proc/stat", &stat),
                ("/proc/self/cgroup", "0::/\n"),
                ("/proc/self/mountinfo", "30 20 0:26 /kubepods/p/c /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"),
                ("/sys/fs/cgroup/cgroup.type", "domain\n"),
                ("/sys/fs/cgroup/cpu.stat", &usage),
            ])
        };
        let before = reading(&pod(100, 1_000_000), &allowed());
        let mut after = reading(&pod(200, 2_000_000), &allowed());
        after.at = before.at + Duration::from_secs(1);
        let window = between(&before, &after, &VecDeque::new());
        assert!(window.other_work_ratio.expect("read") < 1e-9, "{window:?}");
    }

    #[test]
    fn rounding_never_makes_other_work_negative() {
        assert_eq!(window(&machine(100, 0), &machine(149, 0), 0.5).other_work_ratio, Some(0.0));
    }

    #[test]
    fn steal_is_relative_to_the_window() {
        assert!((window(&machine(0, 10), &machine(0, 30), 0.0).steal_ratio.expect("read") - 0.2).abs() < 1e-9);
    }

    #[test]
    fn nanoseconds_are_preferred_to_ticks() {
        let (before, after) = (machine(100, 0), machine(180, 0));
        before.write("/proc/schedstat", "version 17\ncpu0 0 0 0 0 0 0 7 0 0\ncpu1 0 0 0 0 0 0 1000000000 5 9\n");
        after.write("/proc/schedstat", "version 17\ncpu0 0 0 0 0 0 0 7 0 0\ncpu1 0 0 0 0 0 0 1600000000 5 9\n");
        assert!((window(&before, &after, 0.5).other_work_ratio.expect("read") - 0.1).abs() < 1e-9);
    }

    #[test]
    fn short_window_has_no_shares() {
        let (before, mut after) = (reading(&machine(100, 0), &allowed()), reading(&machine(101, 1), &allowed()));
        after.at = before.at + Duration::from_millis(150);
        let window = between(&before, &after, &VecDeque::new());
        assert_eq!((window.other_work_ratio, window.steal_ratio), (None, None));
        assert!(window.pressure_cpu_seconds.is_some());
    }

    #[test]
    fn short_trial_extends_its_window_backwards() {
        let start = Instant::now();
        let read = |user: u64, millis: u64| {
            let mut reading = reading(&machine(user, 0), &allowed());
            reading.at = start + Duration::from_millis(millis);
            reading.own_seconds = 0.0;
            reading
        };
        // Busy for 40 of the 400 ms, all within the last 250.
        let mut history = VecDeque::from([read(100, 0), read(100, 150), read(101, 300)]);
        let (before, after) = (read(103, 350), read(104, 400));
        let window = between(&before, &after, &history);
        assert!((window.shares_window_seconds.expect("longer than the trial") - 0.25).abs() < 1e-9);
        assert!((window.other_work_ratio.expect("read") - 0.16).abs() < 1e-9);
        assert!((window.window_seconds.expect("read") - 0.05).abs() < 1e-9, "the trial's own");
        assert!((window.other_work_uncertainty.expect("read") - 0.08).abs() < 1e-9);

        let long = between(&history[0], &after, &history);
        assert_eq!(long.shares_window_seconds, None, "the trial is long enough itself");

        history.extend([before, after]);
        Counters::trim(&mut history);
        assert_eq!(
            history.front().map(|first| first.at),
            Some(start + Duration::from_millis(150)),
            "still long enough"
        );
    }

    #[test]
    fn unreadable_cpu_omits_the_reading() {
        let both = CpuSet::parse("1,7").expect("a list");
        assert_eq!(reading(&machine(1, 1), &both).cpus, None);
    }
}
