//! Short probes of the machine between trials.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use assay_schema::attempt::NoiseWindow;

use crate::canary::Canary;
use crate::cgroup::Cgroups;
use crate::host::Host;

/// Maximum buffer of the bandwidth probe.
const BUFFER_BYTES: usize = 32 << 20;
/// Minimum buffer of the bandwidth probe; with less memory it is skipped.
const BUFFER_BYTES_LEAST: usize = 4 << 20;
/// The bandwidth probe starts no further pass after this time.
const BANDWIDTH_TIME: Duration = Duration::from_millis(60);

/// Steps of one spin: about a third of a millisecond.
const SPIN_STEPS: u64 = 200_000;
const SPINS: usize = 3;

const SLEEP: Duration = Duration::from_micros(100);
const SLEEPS: usize = 9;

/// Runs the spin and timer probes: about 3 ms.
pub(crate) fn short() -> NoiseWindow {
    let start = Instant::now();
    let spin = median([(); SPINS].map(|()| spin()));
    let lateness = median([(); SLEEPS].map(|()| lateness()));
    NoiseWindow {
        window_seconds: Some(start.elapsed().as_secs_f64()),
        spin_seconds: Some(spin).filter(|&seconds| seconds > 0.0),
        timer_lateness_seconds: Some(lateness),
        ..NoiseWindow::default()
    }
}

/// Probe readings between two trials. The canary is read at most once per moment and kind, because the reading after
/// one trial is also the reading before the next.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    window: NoiseWindow,
    canaries: BTreeMap<Canary, Option<f64>>,
}

impl Moment {
    pub(crate) fn new(window: NoiseWindow) -> Self {
        Self { window, canaries: BTreeMap::new() }
    }

    /// Returns the record for a trial with this canary.
    pub(crate) fn window(&mut self, canary: Canary) -> NoiseWindow {
        let start = Instant::now();
        let seconds = *self.canaries.entry(canary).or_insert_with(|| canary.read());
        if let Some(window) = &mut self.window.window_seconds {
            *window += start.elapsed().as_secs_f64();
        }
        let mut window = self.window.clone();
        window.canary_seconds = seconds;
        window.canary_bytes = seconds.map(|_| canary.bytes);
        window
    }
}

/// Runs the short probe and the bandwidth probe: about 100 ms.
pub(crate) fn full(host: &Host, cgroups: &Cgroups) -> NoiseWindow {
    let start = Instant::now();
    let mut window = short();
    window.read_bandwidth_bytes_per_second = buffer_bytes(host, cgroups).and_then(read_bandwidth);
    window.window_seconds = Some(start.elapsed().as_secs_f64());
    window
}

/// A fixed amount of arithmetic with a dependency between all steps.
fn spin() -> f64 {
    let start = Instant::now();
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..SPIN_STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
    start.elapsed().as_secs_f64()
}

/// Returns the wake-up latency of a short sleep.
fn lateness() -> f64 {
    let start = Instant::now();
    std::thread::sleep(SLEEP);
    start.elapsed().saturating_sub(SLEEP).as_secs_f64()
}

/// Returns the size of the bandwidth probe's buffer: a quarter of the free memory, at most [`BUFFER_BYTES`].
pub(crate) fn buffer_bytes(host: &Host, cgroups: &Cgroups) -> Option<usize> {
    let of_limit = || Some(cgroups.memory_limit()?.saturating_sub(cgroups.memory_used().unwrap_or(0)));
    let of_machine = host.memory("MemAvailable");
    let free = [of_limit(), of_machine].into_iter().flatten().min()?;
    let bytes = usize::try_from(free / 4).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
    (bytes >= BUFFER_BYTES_LEAST).then_some(bytes)
}

/// Bytes per second of the fastest pass over a buffer.
fn read_bandwidth(bytes: usize) -> Option<f64> {
    let buffer = vec![1_u64; bytes / size_of::<u64>()];
    let start = Instant::now();
    let mut fastest = f64::INFINITY;
    while start.elapsed() < BANDWIDTH_TIME {
        let pass = Instant::now();
        let mut sums = [0_u64; 16];
        for chunk in black_box(&buffer).chunks_exact(sums.len()) {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum = sum.wrapping_add(*value);
            }
        }
        black_box(sums);
        fastest = fastest.min(pass.elapsed().as_secs_f64());
    }
    (fastest > 0.0 && fastest.is_finite()).then(|| bytes as f64 / fastest)
}

fn median<const N: usize>(mut values: [f64; N]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[N / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn probes_return_readings() {
        let host = Host::real();
        let window = full(&host, &Cgroups::find(&host));
        assert!(window.spin_seconds.expect("always there") > 0.0);
        assert!(window.timer_lateness_seconds.expect("always there") >= 0.0);
        let parts = window.spin_seconds.expect("there") + window.timer_lateness_seconds.expect("there");
        assert!(window.window_seconds.expect("there") >= parts);
    }

    #[test]
    fn canary_is_read_once_per_moment() {
        let canaries = crate::canary::Canaries::new(None);
        let mut moment = Moment::new(short());
        let first = moment.window(canaries.standing_for(0));
        assert!(first.canary_seconds.is_some() && first.canary_bytes.is_some() && first.spin_seconds.is_some());
        let again = moment.window(canaries.standing_for(0));
        assert_eq!(first.canary_seconds, again.canary_seconds, "a second reading would differ");
        let other = moment.window(canaries.standing_for(1 << 20));
        assert_ne!(other.canary_bytes, first.canary_bytes);
        assert_eq!(other.spin_seconds, first.spin_seconds);
        assert!(other.window_seconds > first.window_seconds, "its time is part of the window");
    }

    #[test]
    fn buffer_fits_into_free_memory() {
        let bytes = |kib: u64| {
            let fake = FakeHost::new(&[("/proc/meminfo", &format!("MemAvailable:   {kib} kB\n"))]);
            buffer_bytes(&fake.host(), &Cgroups::find(&fake.host()))
        };
        assert_eq!(bytes(8 << 20), Some(BUFFER_BYTES));
        assert_eq!(bytes(64 << 10), Some(16 << 20));
        assert_eq!(bytes(8 << 10), None);
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median([5.0, 1.0, 9.0]), 5.0);
    }
}
