//! `scan-pir bench`: the figures that the project claims for this kernel, measured in one run.
//!
//! All arms of a comparison share the matrix, the queries and the thread, and take turns: forwards in one round, backwards in the
//! next. Each round gives one ratio; a figure is the median of the rounds' ratios with a 95 % interval from order statistics, so a slow
//! spell of the machine that hits a whole round cancels, and one that hits a single arm is one round of many.
//!
//! | figure | numerator over denominator |
//! |---|---|
//! | `pir.qN.speedup.S` | `loop` over `S`, both from toy keys to answers |
//! | `pir.qN.scan_speedup.S` | `loop` from toy keys to answers over `S` with the bits given: what the scan alone would gain if the bits came for nothing |
//! | `pir.qN.scan_speedup_like_for_like.S` | `loop` over `S`, both with the bits given |
//! | `pir.qN.ms_per_query.S` | time of a batch from toy keys to answers over N |
//! | `pir.q1.share_of_read_ceiling` | speed at which `fused-m4r` reads the matrix at Q=1 with the bits given, over the fastest plain read of it in the same round |
//! | `pir.dpf.expand_us_per_key` | time to expand 24 keys, one after the other, over 24 |
//! | `pir.q8.dpf_over_scan` | `fused-m4r` from DPF keys to answers over the same with the bits given |
//! | `pir.q1.p95.ratio` | 95th percentile of `fused-m4r` over that of `loop`, both from toy keys to answers; the interval is a bootstrap over rounds |

use std::convert::Infallible;
use std::io::Write;

use assay_harness::figures::{self, Estimate, Times};
use assay_harness::simd::{Isa, Path};
use assay_harness::{FlagError, Flags, Phases, Stopwatch, ceiling};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::keys::{KeyKind, Keys};
use crate::matrix::Matrix;
use crate::run::{Failure, check_memory};
use crate::scan::{self, Bits, Plan, Strategy};
use crate::selection::Selection;
use crate::workload;

/// What `bench` can be told.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    rows: usize,
    row_size: usize,
    rounds: usize,
    tail_rounds: usize,
    path: Path,
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
pub fn bench(settings: &Settings, out: &mut impl Write) -> Result<(), Failure> {
    let s = settings;
    let isa = Isa::select(s.path).map_err(Failure::Path)?;
    // The matrix, and the bits of 96 keys several times over.
    check_memory(s.rows as u64 * s.row_size as u64 + 4 * Selection::bytes(96, s.rows) as u64 + (16 << 20))?;
    let matrix = Matrix::generate(s.rows, s.row_size, workload::SEED).map_err(Failure::System)?;
    let bench = Bench { matrix, isa };
    let mut print = |figure: &str, unit: &str, estimate: Estimate| {
        figures::print(out, figure, unit, estimate).map_err(Failure::System)
    };

    for queries in [8, 32] {
        progress(format_args!("Q={queries}, toy keys: {} rounds", s.rounds));
        let times = bench.batch(queries, s.rounds)?;
        let name = |rest: &str| format!("pir.q{queries}.{rest}");
        print(&name("speedup.fused_m4r"), "x", times.ratio(LOOP, M4R))?;
        print(&name("speedup.fused_tiled"), "x", times.ratio(LOOP, TILED))?;
        print(&name("speedup.fused_naive"), "x", times.ratio(LOOP, NAIVE))?;
        print(&name("scan_speedup.fused_m4r"), "x", times.ratio(LOOP, M4R_SCAN))?;
        print(&name("scan_speedup_like_for_like.fused_m4r"), "x", times.ratio(LOOP_SCAN, M4R_SCAN))?;
        let per_query = |arm: usize| times.median(arm, 1e3 / queries as f64);
        print(&name("ms_per_query.loop"), "ms", per_query(LOOP))?;
        print(&name("ms_per_query.fused_m4r"), "ms", per_query(M4R))?;
        if times.0.len() > GFNI {
            print(&name("speedup.fused_gfni"), "x", times.ratio(LOOP, GFNI))?;
            print(&name("scan_speedup.fused_gfni"), "x", times.ratio(LOOP, GFNI_SCAN))?;
            print(&name("scan_speedup_like_for_like.fused_gfni"), "x", times.ratio(LOOP_SCAN, GFNI_SCAN))?;
            print(&name("ms_per_query.fused_gfni"), "ms", per_query(GFNI))?;
        }
    }

    progress(format_args!("Q=1 beside the read ceiling: {} rounds", s.tail_rounds));
    let times = bench.read_share(s.tail_rounds);
    print("pir.q1.share_of_read_ceiling", "1", times.ratio(0, 1))?;
    let bytes = bench.matrix.bytes() as f64;
    print("pir.read_ceiling", "GB/s", Estimate::median(times.0[0].iter().map(|t| bytes / t / 1e9).collect()))?;

    progress(format_args!("distributed point functions: {} rounds", s.rounds));
    let times = bench.dpf(s.rounds);
    print("pir.dpf.expand_us_per_key", "us", times.median(0, 1e6 / DPF_KEYS as f64))?;
    print("pir.q8.dpf_over_scan", "x", times.ratio(1, 2))?;

    progress(format_args!("Q=1 tail: {} rounds", s.tail_rounds));
    let times = bench.tail(s.tail_rounds);
    print("pir.q1.p95.ratio", "x", p95_ratio(&times, 1, 0))
}

fn progress(message: std::fmt::Arguments<'_>) {
    eprintln!("scan-pir bench: {message}");
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

/// What all arms share.
struct Bench {
    matrix: Matrix,
    isa: Isa,
}

impl Bench {
    fn plan(&self, strategy: Strategy) -> Plan {
        Plan::new(strategy, self.isa, 1).expect("only arms that the path can carry out are asked for")
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
        let selection = scan::expand(&keys, self.matrix.rows(), self.plan(Strategy::FusedM4r));
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
            return Err(Failure::Unstable { iteration: arm });
        }
        Ok(take_turns(rounds, arms.len(), |arm| {
            std::hint::black_box(self.answer(arms[arm].0, arms[arm].1));
        }))
    }

    /// The plain read, then the scan.
    fn read_share(&self, rounds: usize) -> Times {
        let keys = self.keys(KeyKind::Toy, 1);
        let selection = scan::expand(&keys, self.matrix.rows(), self.plan(Strategy::FusedM4r));
        let parts: Vec<&[u8]> = self.matrix.parts(0..self.matrix.rows()).map(|part| part.bytes).collect();
        take_turns(rounds, 2, |arm| match arm {
            0 => {
                std::hint::black_box(ceiling::read_bandwidth(&parts, 1));
            }
            _ => {
                std::hint::black_box(self.answer(Bits::Given(&selection), Strategy::FusedM4r));
            }
        })
    }

    /// The expansion, the whole, the scan.
    fn dpf(&self, rounds: usize) -> Times {
        let keys = self.keys(KeyKind::Dpf, DPF_KEYS / scan::KEYS_PER_QUERY);
        let plan = self.plan(Strategy::FusedM4r);
        let mut selection = scan::expand(&keys, self.matrix.rows(), plan);
        let given = selection.clone();
        take_turns(rounds, 3, |arm| match arm {
            0 => {
                for (key, words) in selection.keys_mut().enumerate() {
                    keys.expand(key, plan.isa(), self.matrix.rows(), words);
                }
            }
            1 => {
                std::hint::black_box(self.answer(Bits::Keys(&keys), Strategy::FusedM4r));
            }
            _ => {
                std::hint::black_box(self.answer(Bits::Given(&given), Strategy::FusedM4r));
            }
        })
    }

    /// `loop`, then `fused-m4r`.
    fn tail(&self, rounds: usize) -> Times {
        let keys = self.keys(KeyKind::Toy, 1);
        take_turns(rounds, 2, |arm| {
            let strategy = if arm == 0 { Strategy::Loop } else { Strategy::FusedM4r };
            std::hint::black_box(self.answer(Bits::Keys(&keys), strategy));
        })
    }
}

fn take_turns(rounds: usize, arms: usize, mut run: impl FnMut(usize)) -> Times {
    let timed = |arm: usize| {
        let watch = Stopwatch::start();
        run(arm);
        Ok::<_, Infallible>(watch.seconds())
    };
    let Ok(times) = figures::take_turns(rounds, arms, timed);
    times
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
        let settings = Settings { rows: 600, row_size: 64, rounds: 6, tail_rounds: 200, path: Path::Auto };
        let mut out = Vec::new();
        bench(&settings, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            let figure: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| figure[name].as_f64().unwrap();
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{line}");
        }
        for name in ["pir.q8.speedup.fused_m4r", "pir.q32.scan_speedup.fused_m4r", "pir.q1.p95.ratio"] {
            assert!(text.contains(&format!("{name}\"")), "{name} is missing");
        }
    }
}
