//! `assay-runner probe`: the fingerprint, isolation and noise that a block would record on this machine now.

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use assay_schema::attempt::{Environment, Isolation, NoiseWindow};
use serde::Serialize;
use serde_json::Value;

use crate::canary::Canaries;
use crate::cgroup::Cgroups;
use crate::counters::Counters;
use crate::cpus::CpuSet;
use crate::environment::{self, Planned};
use crate::host::Host;
use crate::isolation::{Grant, Observed, OtherWorkSeen};
use crate::probe::{self, Moment};

/// Long enough for all shares of CPU time at any tick length.
const TIME: Duration = Duration::from_secs(1);

/// The printed document.
#[derive(Debug, Serialize)]
struct Survey {
    schema: &'static str,
    environment: Environment,
    isolation: Isolation,
    noise: serde_json::Map<String, Value>,
}

/// Observes the machine for one second and prints one line of JSON.
pub(crate) fn print() -> Result<()> {
    let mut line = serde_json::to_vec(&look()).context("cannot encode the survey as JSON")?;
    line.push(b'\n');
    std::io::stdout().write_all(&line).context("cannot write to standard output")
}

fn look() -> Survey {
    let host = Host::real();
    let cgroups = Cgroups::find(&host);
    let allowed = CpuSet::allowed();
    let before = Counters::read(&host, &cgroups, allowed.as_ref());
    let start = Instant::now();
    let cpu = allowed.as_ref().and_then(CpuSet::first).unwrap_or(0);
    let canaries = Canaries::new(environment::last_level_cache(&host, cpu));
    let probes = Moment::new(probe::full(&host, &cgroups)).window(canaries.memory());
    std::thread::sleep(TIME.saturating_sub(start.elapsed()));
    let after = Counters::read(&host, &cgroups, allowed.as_ref());
    let during = after.since(&before, &VecDeque::new());
    let other_work = OtherWorkSeen::of(&during, after.sees_cpus());
    let observed =
        Observed { allowed_before: allowed.clone(), allowed_after: CpuSet::allowed(), during: &during, other_work };
    Survey {
        schema: "assay.dev/survey/v1alpha1",
        environment: environment::read(&host, &cgroups, allowed.as_ref(), Planned::default()),
        isolation: Grant::read(&host, &cgroups).judge(&observed),
        noise: both(&during, &probes),
    }
}

/// The readings of a second, and those of the probes where it has none.
fn both(during: &NoiseWindow, probes: &NoiseWindow) -> serde_json::Map<String, Value> {
    let mut all = serde_json::Map::new();
    for window in [probes, during] {
        if let Ok(Value::Object(readings)) = serde_json::to_value(window) {
            all.extend(readings.into_iter().filter(|(_, reading)| !reading.is_null()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_windows_give_their_readings_and_the_second_wins() {
        let probes = NoiseWindow { spin_seconds: Some(0.5), window_seconds: Some(0.25), ..NoiseWindow::default() };
        let during = NoiseWindow { steal_ratio: Some(0.0), window_seconds: Some(1.0), ..NoiseWindow::default() };
        let want = serde_json::json!({ "spinSeconds": 0.5, "stealRatio": 0.0, "windowSeconds": 1.0 });
        assert_eq!(Value::Object(both(&during, &probes)), want);
    }
}
