//! `scan-pir bench`: the figures that the project claims for this kernel, measured in one run.
//!
//! All arms of a comparison share the matrix, the queries and the thread; [`figures`] says how they take turns.
//!
//! | figure | numerator over denominator |
//! |---|---|
//! | `pir.qN.speedup.S` | `loop` over `S`, both from toy keys to answers |
//! | `pir.qN.scan_speedup.S` | `loop` from toy keys to answers over `S` with the bits given: what the scan alone would gain if the bits came for nothing |
//! | `pir.qN.scan_speedup_like_for_like.S` | `loop` over `S`, both with the bits given |
//! | `pir.qN.ms_per_query.S` | time of a batch from toy keys to answers over N |
//! | `pir.q1.share_of_read_ceiling` | speed at which `fused-m4r` reads the matrix at Q=1 with the bits given, over a plain read of it by the same instructions in the same round |
//! | `pir.q1.share_of_read_ceiling.dpf` | the same with the bits of distributed point functions, of which half are one |
//! | `pir.q32.share_of_compute_ceiling` | what the path's fastest strategy computes per second at Q=32 with the bits of distributed point functions given, over what the CPU can compute of that: bytes loaded from the first-level cache for `fused-m4r`, products of bit matrices for `fused-gfni` |
//! | `pir.q32.share_of_compute_ceiling.S` | the same of strategy `S` |
//! | `pir.q32.scan_ms_per_query` | time of that scan over 32 |
//! | `pir.dpf.expand_us_per_key` | time to expand 24 keys, one after the other, over 24 |
//! | `pir.dpf.share_of_aes_ceiling` | AES calls of that per second over what the CPU can do of them |
//! | `pir.q8.dpf_over_scan` | `fused-m4r` from DPF keys to answers over the same with the bits given |
//! | the seven above, and `.PATH` | the same with an instruction set forced; of the last two, with a way to compute AES forced |
//! | `pir.q1.p95.ratio` | 95th percentile of `fused-m4r` over that of `loop`, both from toy keys to answers; the interval is a bootstrap over rounds |

use std::hint::black_box;
use std::sync::Arc;

use assay_harness::figures::{self, Estimate, Printer, Times};
use assay_harness::simd::{Isa, Path};
use assay_harness::{Failure, FlagError, Flags, Phases, Stopwatch, ceiling, machine};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::keys::dpf::{Aes, DpfKey, Prg};
use crate::keys::{KeyKind, Keys};
use crate::matrix::Matrix;
use crate::run::SIZES;
use crate::scan::{self, Bits, Method, Plan, Strategy, by_pattern, m4r};
use crate::selection::Selection;
use crate::workload;

/// The flags of `bench`.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    rows: usize,
    row_size: usize,
    rounds: usize,
    tail_rounds: usize,
    path: Path,
    aes: Aes,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let settings = Self {
            rows: flags.integer("rows", 262_144, 1..=1 << 26)? as usize,
            row_size: flags.integer("row-size", 256, 64..=4096)? as usize,
            rounds: flags.integer("rounds", 20, 6..=10_000)? as usize,
            tail_rounds: flags.integer("tail-rounds", 300, 200..=100_000)? as usize,
            path: flags.choice("path", Path::Auto, &Path::CHOICES)?,
            aes: flags.choice("aes", Aes::Auto, &Aes::CHOICES)?,
        };
        flags.finish()?;
        if !settings.row_size.is_multiple_of(64) {
            return Err(FlagError::new("row-size", settings.row_size, "a row is a multiple of 64 bytes"));
        }
        Ok(settings)
    }
}

/// Measures all figures and prints each as one line of JSON.
///
/// # Errors
///
/// When the path is not available, memory is short, standard output is gone, or two arms disagree.
pub fn bench(settings: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let s = settings;
    let isa = Isa::select(s.path)?;
    // The matrix, and the bits of 96 keys several times over.
    let needed = s.rows as u64 * s.row_size as u64 + 4 * Selection::bytes(96, s.rows) as u64 + (16 << 20);
    machine::check_memory(needed, SIZES)?;
    let matrix = Matrix::generate(s.rows, s.row_size, workload::SEED)?;
    let bench = Bench { matrix: Arc::new(matrix), isa, generator: Prg::select(s.aes, isa)? };

    for queries in [8, 32] {
        out.progress(format_args!("Q={queries}, toy keys: {} rounds", s.rounds));
        let times = bench.batch(queries, s.rounds)?;
        let mut print = |name: &str, unit: &str, estimate: Estimate| {
            out.print(format_args!("pir.q{queries}.{name}"), unit, estimate)
        };
        print("speedup.fused_m4r", "x", times.ratio(LOOP, M4R))?;
        print("speedup.fused_tiled", "x", times.ratio(LOOP, TILED))?;
        print("speedup.fused_naive", "x", times.ratio(LOOP, NAIVE))?;
        print("scan_speedup.fused_m4r", "x", times.ratio(LOOP, M4R_SCAN))?;
        print("scan_speedup_like_for_like.fused_m4r", "x", times.ratio(LOOP_SCAN, M4R_SCAN))?;
        let per_query = |arm: usize| times.median(arm, 1e3 / queries as f64);
        print("ms_per_query.loop", "ms", per_query(LOOP))?;
        print("ms_per_query.fused_m4r", "ms", per_query(M4R))?;
        if times.0.len() > GFNI {
            print("speedup.fused_gfni", "x", times.ratio(LOOP, GFNI))?;
            print("scan_speedup.fused_gfni", "x", times.ratio(LOOP, GFNI_SCAN))?;
            print("scan_speedup_like_for_like.fused_gfni", "x", times.ratio(LOOP_SCAN, GFNI_SCAN))?;
            print("ms_per_query.fused_gfni", "ms", per_query(GFNI))?;
        }
    }

    bench.limits(s, out, "")?;
    bench.expansion(s, bench.generator, out, "")?;
    // A path is asked for by name to have a CPU's figures that has no better one.
    if s.path == Path::Auto && s.aes == Aes::Auto {
        for isa in Isa::available() {
            let forced = Bench { isa, ..bench.clone() };
            forced.limits(s, out, &format!(".{}", isa.name()))?;
        }
        for prg in Prg::available() {
            bench.expansion(s, prg, out, &format!(".{}", prg.name().replace('-', "_")))?;
        }
    }

    out.progress(format_args!("distributed point functions: {} rounds", s.rounds));
    let times = bench.dpf(s.rounds)?;
    out.print("pir.q8.dpf_over_scan", "x", times.ratio(0, 1))?;

    out.progress(format_args!("Q=1 tail: {} rounds", s.tail_rounds));
    let times = bench.tail(s.tail_rounds)?;
    out.print("pir.q1.p95.ratio", "x", p95_ratio(&times, 1, 0))
}

/// The arms of [`Bench::batch`].
const LOOP: usize = 0;
const NAIVE: usize = 1;
const TILED: usize = 2;
const M4R: usize = 3;
const LOOP_SCAN: usize = 4;
const M4R_SCAN: usize = 5;
/// Only there where the path can carry it out.
const GFNI: usize = 6;
const GFNI_SCAN: usize = 7;
/// Keys of a batch of eight.
const DPF_KEYS: usize = 24;
/// Queries of the largest batch.
const MANY: usize = 32;

/// What all arms share.
#[derive(Clone)]
struct Bench {
    matrix: Arc<Matrix>,
    isa: Isa,
    generator: Prg,
}

impl Bench {
    fn plan(&self, strategy: Strategy) -> Plan {
        let plan = Plan::new(strategy, self.isa, 1).expect("only arms that the path can carry out are asked for");
        plan.with_generator(self.generator)
    }

    /// The bits of a batch.
    fn selection(&self, kind: KeyKind, queries: usize) -> Selection {
        scan::expand(&self.keys(kind, queries), self.matrix.rows(), self.plan(Strategy::FusedM4r))
    }

    fn keys(&self, kind: KeyKind, queries: usize) -> Keys {
        let batch = workload::queries(kind, self.matrix.rows(), queries, workload::SEED);
        let parsed = Keys::parse(kind, self.matrix.rows(), batch.iter().flatten().map(Vec::as_slice));
        parsed.expect("the generator makes keys for its own matrix")
    }

    fn answer(&self, bits: Bits<'_>, strategy: Strategy) -> Vec<u8> {
        let scanned = scan::scan(&self.matrix, bits, self.plan(strategy), &mut Phases::new());
        scanned.answers.bytes().to_vec()
    }

    fn batch(&self, queries: usize, rounds: usize) -> Result<Times, Failure> {
        let keys = self.keys(KeyKind::Toy, queries);
        let selection = self.selection(KeyKind::Toy, queries);
        let mut arms = vec![
            (Bits::Keys(&keys), Strategy::Loop),
            (Bits::Keys(&keys), Strategy::FusedNaive),
            (Bits::Keys(&keys), Strategy::FusedTiled),
            (Bits::Keys(&keys), Strategy::FusedM4r),
            (Bits::Given(&selection), Strategy::Loop),
            (Bits::Given(&selection), Strategy::FusedM4r),
        ];
        if Plan::new(Strategy::FusedGfni, self.isa, 1).is_ok() {
            arms.extend([(Bits::Keys(&keys), Strategy::FusedGfni), (Bits::Given(&selection), Strategy::FusedGfni)]);
        }
        // A wrong answer yields no number.
        let expected = self.answer(arms[0].0, arms[0].1);
        if let Some(arm) = arms.iter().position(|(bits, strategy)| self.answer(*bits, *strategy) != expected) {
            return Err(Failure::error(format_args!("arm {arm} gave other answers than the first")));
        }
        figures::time_turns(rounds, arms.len(), |arm| {
            black_box(self.answer(arms[arm].0, arms[arm].1));
            Ok(())
        })
    }

    /// How near the scan comes to what bounds it: at one query reading, at many computing.
    fn limits(&self, s: &Settings, out: &mut Printer<'_>, suffix: &str) -> Result<(), Failure> {
        let path = self.isa.name();
        out.progress(format_args!("{path}: Q=1 beside the read ceiling: {} rounds", s.tail_rounds));
        let times = self.read_share(s.tail_rounds)?;
        out.print(format_args!("pir.q1.share_of_read_ceiling{suffix}"), "1", times.ratio(0, 1))?;
        out.print(format_args!("pir.q1.share_of_read_ceiling.dpf{suffix}"), "1", times.ratio(0, 2))?;
        let bytes = self.matrix.bytes() as f64;
        let speeds = times.0[0].iter().map(|seconds| bytes / seconds / 1e9).collect();
        out.print(format_args!("pir.read_ceiling{suffix}"), "GB/s", Estimate::median(speeds))?;

        out.progress(format_args!("{path}: Q=32 beside the compute ceiling: {} rounds", s.rounds));
        let strategies = [Strategy::FusedM4r, Strategy::FusedGfni];
        let plans: Vec<Plan> =
            strategies.into_iter().filter_map(|strategy| Plan::new(strategy, self.isa, 1).ok()).collect();
        let times = self.compute_share(&plans, s.rounds)?;
        for (i, plan) in plans.iter().enumerate() {
            let name = plan.strategy().name().replace('-', "_");
            let share = times.ratio(2 * i, 2 * i + 1);
            out.print(format_args!("pir.q32.share_of_compute_ceiling.{name}{suffix}"), "1", share)?;
        }
        let seconds = |i: &usize| times.median(2 * i + 1, 1.0).value;
        let fastest = (0..plans.len()).min_by(|a, b| seconds(a).total_cmp(&seconds(b))).expect("a path has a plan");
        let share = times.ratio(2 * fastest, 2 * fastest + 1);
        out.print(format_args!("pir.q32.share_of_compute_ceiling{suffix}"), "1", share)?;
        let per_query = times.median(2 * fastest + 1, 1e3 / MANY as f64);
        out.print(format_args!("pir.q32.scan_ms_per_query{suffix}"), "ms", per_query)
    }

    /// The plain read, then the scan with the bits of toy keys, then with those of distributed point functions.
    fn read_share(&self, rounds: usize) -> Result<Times, Failure> {
        let selections = [KeyKind::Toy, KeyKind::Dpf].map(|kind| self.selection(kind, 1));
        let parts: Vec<&[u8]> = self.matrix.parts(0..self.matrix.rows()).map(|part| part.bytes).collect();
        figures::time_turns(rounds, 3, |arm| {
            match arm {
                0 => drop(black_box(ceiling::read_bandwidth(&parts, 1, self.isa, 1))),
                _ => drop(black_box(self.answer(Bits::Given(&selections[arm - 1]), Strategy::FusedM4r))),
            }
            Ok(())
        })
    }

    /// For every plan the time that its scan of a large batch would take at the limit, then the time that it takes.
    fn compute_share(&self, plans: &[Plan], rounds: usize) -> Result<Times, Failure> {
        let selection = self.selection(KeyKind::Dpf, MANY);
        figures::take_turns(rounds, 2 * plans.len(), |arm| {
            let plan = plans[arm / 2];
            if arm.is_multiple_of(2) {
                return Ok(self.at_the_limit(plan, selection.keys()));
            }
            let watch = Stopwatch::start();
            black_box(scan::scan(&self.matrix, Bits::Given(&selection), plan, &mut Phases::new()));
            Ok(watch.seconds())
        })
    }

    /// Seconds that a scan would take if it did nothing but what bounds it, as fast as the CPU can.
    fn at_the_limit(&self, plan: Plan, keys: usize) -> f64 {
        let bytes = self.matrix.bytes() as u64;
        match plan.method(keys) {
            Method::MaskedXor => (bytes * keys as u64) as f64 / ceiling::masked_xors(plan.scan_isa(), 1).value,
            Method::ByPattern => by_pattern::bytes_loaded(bytes, keys) / ceiling::cache_reads(self.isa, 1).value,
            Method::FourRussians => m4r::bytes_loaded(bytes, keys) / ceiling::cache_reads(self.isa, 1).value,
            #[cfg(target_arch = "x86_64")]
            Method::BitMatrices => {
                let gfni = plan.gfni().expect("a plan for this method is only made with it");
                scan::gfni::products(bytes, keys) / gfni.product_rate(1).value
            }
        }
    }

    /// How long it takes to expand keys by one generator, and how near that is to the rate of AES.
    fn expansion(&self, s: &Settings, prg: Prg, out: &mut Printer<'_>, suffix: &str) -> Result<(), Failure> {
        out.progress(format_args!("{}: expanding keys: {} rounds", prg.name(), s.rounds));
        let keys = self.keys(KeyKind::Dpf, DPF_KEYS / scan::KEYS_PER_QUERY);
        let rows = self.matrix.rows();
        let mut selection = Selection::new(keys.len(), rows);
        let calls = (DPF_KEYS * DpfKey::aes_calls(rows)) as f64;
        let limit = || ceiling::aes_rate_with(prg.instructions(), 1).map(|limit| calls / limit.value);
        let arms = if limit().is_some() { 2 } else { 1 };
        let times = figures::take_turns(s.rounds, arms, |arm| -> Result<f64, Failure> {
            if arm == 1 {
                return Ok(limit().expect("a limit that was there is there"));
            }
            let watch = Stopwatch::start();
            let each = selection.keys_mut().enumerate();
            each.for_each(|(key, words)| keys.expand(key, self.isa, prg, rows, words));
            Ok(watch.seconds())
        })?;
        let per_key = times.median(0, 1e6 / DPF_KEYS as f64);
        out.print(format_args!("pir.dpf.expand_us_per_key{suffix}"), "us", per_key)?;
        if arms == 2 {
            out.print(format_args!("pir.dpf.share_of_aes_ceiling{suffix}"), "1", times.ratio(1, 0))?;
        }
        Ok(())
    }

    /// The whole from keys to answers, then the scan.
    fn dpf(&self, rounds: usize) -> Result<Times, Failure> {
        let keys = self.keys(KeyKind::Dpf, DPF_KEYS / scan::KEYS_PER_QUERY);
        let given = scan::expand(&keys, self.matrix.rows(), self.plan(Strategy::FusedM4r));
        figures::time_turns(rounds, 2, |arm| {
            let bits = if arm == 0 { Bits::Keys(&keys) } else { Bits::Given(&given) };
            black_box(self.answer(bits, Strategy::FusedM4r));
            Ok(())
        })
    }

    /// `loop`, then `fused-m4r`.
    fn tail(&self, rounds: usize) -> Result<Times, Failure> {
        let keys = self.keys(KeyKind::Toy, 1);
        figures::time_turns(rounds, 2, |arm| {
            let strategy = if arm == 0 { Strategy::Loop } else { Strategy::FusedM4r };
            black_box(self.answer(Bits::Keys(&keys), strategy));
            Ok(())
        })
    }
}

/// The ratio of two arms' 95th percentiles, with a bootstrap over rounds.
fn p95_ratio(times: &Times, numerator: usize, denominator: usize) -> Estimate {
    const RESAMPLES: usize = 2000;
    let (n, d) = (&times.0[numerator], &times.0[denominator]);
    let ratio = |rounds: &[usize]| {
        let p95 = |times: &[f64]| percentile(rounds.iter().map(|round| times[*round]).collect(), 0.95);
        p95(n) / p95(d)
    };
    let rounds = n.len();
    let mut rng = ChaCha12Rng::seed_from_u64(95);
    let resampled = (0..RESAMPLES).map(|_| {
        let rounds: Vec<usize> = (0..rounds).map(|_| (rng.next_u64() % rounds as u64) as usize).collect();
        ratio(&rounds)
    });
    let resampled: Vec<f64> = resampled.collect();
    let all: Vec<usize> = (0..rounds).collect();
    let (low, high) = (percentile(resampled.clone(), 0.025), percentile(resampled, 0.975));
    Estimate { value: ratio(&all), low, high, samples: rounds }
}

/// The nearest-rank percentile.
fn percentile(mut samples: Vec<f64>, share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = (samples.len() as f64 * share).ceil() as usize;
    samples[rank.clamp(1, samples.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_sample() {
        assert_eq!(percentile((1..=200).rev().map(f64::from).collect(), 0.95), 190.0);
        assert_eq!(percentile(vec![3.0], 0.025), 3.0);
    }

    #[test]
    fn every_figure_is_one_line_with_an_interval_around_its_value() {
        let settings =
            Settings { rows: 600, row_size: 64, rounds: 6, tail_rounds: 200, path: Path::Auto, aes: Aes::Auto };
        let mut out = Vec::new();
        bench(&settings, &mut Printer::new("scan-pir", &mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            let figure: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| figure[name].as_f64().unwrap();
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{line}");
        }
        let mut names = ["pir.q8.speedup.fused_m4r", "pir.q32.scan_speedup.fused_m4r", "pir.q1.p95.ratio"]
            .map(str::to_owned)
            .to_vec();
        for suffix in Isa::available().iter().map(|isa| format!(".{}", isa.name())).chain([String::new()]) {
            names.push(format!("pir.q1.share_of_read_ceiling{suffix}"));
            names.push(format!("pir.q32.share_of_compute_ceiling{suffix}"));
        }
        for suffix in
            Prg::available().iter().map(|prg| format!(".{}", prg.name().replace('-', "_"))).chain([String::new()])
        {
            names.push(format!("pir.dpf.expand_us_per_key{suffix}"));
        }
        for name in names {
            assert!(text.contains(&format!("{name}\"")), "{name} is missing");
        }
    }
}
