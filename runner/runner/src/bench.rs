//! `assay-runner bench`: measures the runner's own overhead.
//!
//! | figure | meaning |
//! |---|---|
//! | `trial.overhead_ms` | time between two trials of a block: probes, launch, validation and writing the attempt. Mean over empty trials without warm-ups, with a 95 % interval of the mean |
//! | `trial.overhead_p99_ms` | its 99th percentile |
//!
//! Every second trial belongs to a null arm with a larger memory footprint, so that consecutive trials cannot share a
//! canary.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::block::{self, BlockArgs};
use crate::canary::Canaries;
use crate::environment::last_level_cache;
use crate::host::Host;
use crate::scratch::ScratchArgs;
use crate::stop::Stop;

const WARMUPS: usize = 2;

/// Runs a block of empty trials and prints the figures.
pub(crate) fn run(trials: u32) -> Result<(), Stop> {
    let folder = std::env::temp_dir().join(format!("assay-bench-{}", std::process::id()));
    let measured = measure(&folder, trials as usize);
    let _ = std::fs::remove_dir_all(&folder);
    print(&measured?[WARMUPS..]).map_err(Stop::Runner)
}

fn measure(folder: &Path, trials: usize) -> Result<Vec<Duration>, Stop> {
    let wave = folder.join("wave.json");
    write_wave(folder, &wave, trials).map_err(Stop::Runner)?;
    block::run(&BlockArgs {
        finish_seconds: 0,
        wave,
        block: "w000-b0000".to_owned(),
        out: Some(folder.join("out")),
        keeper: None,
        alone: false,
        executor: Some("bench".to_owned()),
        lease_file: None,
        counters: false,
        scratch: ScratchArgs::default(),
        steps: None,
    })
}

fn write_wave(folder: &Path, wave: &Path, trials: usize) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let beyond = Canaries::new(last_level_cache(&Host::real(), 0)).memory().bytes;
    let cell = |arm: usize, bytes: u64| {
        let argv = json!([own, "trivial", "--bytes", bytes.to_string()]);
        json!({"point": 0, "arm": arm, "argv": argv, "env": {}, "parameters": {}})
    };
    let text = json!({
        "schema": "assay.dev/wave/v1alpha1",
        "run": {"namespace": "", "name": "bench", "uid": "bench"},
        "experiment": format!("sha256:{}", "0".repeat(64)),
        "wave": 0,
        "purpose": "screen",
        "workload": {"output": {"format": "AssayResult"}, "timeoutSeconds": 60},
        "points": [{"key": "", "parameters": {}}],
        "arms": [{"name": "baseline", "baseline": true}, {"name": "null", "baseline": false, "null": true}],
        "cells": [cell(0, 0), cell(1, beyond)],
        "blocks": [{"id": "w000-b0000", "warmup": [0, 1], "order": (0..trials).map(|i| i % 2).collect::<Vec<_>>()}],
    });
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    std::fs::write(wave, text.to_string()).with_context(|| format!("cannot write {}", wave.display()))
}

fn print(overheads: &[Duration]) -> Result<()> {
    let mut millis: Vec<f64> = overheads.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    millis.sort_by(f64::total_cmp);
    let n = millis.len() as f64;
    let mean = millis.iter().sum::<f64>() / n;
    let deviation = (millis.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    // Normal approximation, because there are at least a hundred trials.
    let half = 1.96 * deviation / n.sqrt();
    let p99 = millis[((0.99 * n).ceil() as usize).clamp(1, millis.len()) - 1];
    let mut out = std::io::stdout().lock();
    for line in [
        json!({
            "figure": "trial.overhead_ms", "value": mean, "unit": "ms", "low": mean - half, "high": mean + half,
            "samples": millis.len(),
        }),
        json!({"figure": "trial.overhead_p99_ms", "value": p99, "unit": "ms", "samples": millis.len()}),
    ] {
        writeln!(out, "{line}").context("cannot write to standard output")?;
    }
    Ok(())
}

/// The empty trial: a process that allocates some memory, prints a result and exits.
pub(crate) fn trivial(bytes: usize) -> Result<()> {
    std::hint::black_box(vec![1_u8; bytes]);
    let result = json!({
        "schema": "assay.dev/result/v1alpha1",
        "workload": {"name": "trivial", "version": assay_schema::VERSION},
        "metrics": {"latency": {"unit": "s", "value": 0}},
    });
    writeln!(std::io::stdout(), "{result}").context("cannot write to standard output")
}
