//! `batch-curp-ho bench`: the figures that the project claims for this workload, measured in one run.
//!
//! All arms take turns as whole trials; [`figures`] says how.
//!
//! | figure | what it is |
//! |---|---|
//! | `curp.closed.ops` | commands per second: the document's clients (2 processes, 2 streams each, 15 commands in flight per stream, half weak, a tenth writes), `natural` flush, coalesced messages, 40,000 commands |
//! | `curp.closed.weak_p50_ms` | median latency of the weak commands of the same trials |
//! | `curp.closed.speedup` | `curp.closed.ops` over the document's program without a delay: batches of what is there, every other message written by itself |
//! | `curp.closed.speedup_over_singles` | `curp.closed.ops` over what the document took that program for: one message per batch |
//! | `curp.share_of_syscall_ceiling` | `curp.closed.ops` over the commands per second that all CPUs could do that make the same calls of `write`, `read` and `epoll_wait` with the same bytes, and nothing else; that is measured right after each trial |
//! | `curp.closed.fast_share` | strong commands of the same trials that all replicas recorded without a conflict |
//! | `curp.closed.one_round_trip_share` | those, and those that a follower had at the leader's slot before it had them from the client |
//! | `curp.failover.lost` | commands with an answer that the replicas had not executed in the end, over all trials in which the leader is killed after a tenth of 200,000 commands and started again 200 ms later |
//! | `curp.failover.unavailable_ms` | in these trials the longest time after the kill in which no strong command was answered |
//! | `curp.failover.rejoin_ms` | from the start of the replica that was killed until it takes part again |
//! | `curp.silence.unavailable_ms` | as `unavailable_ms`, for a leader that is stopped and not killed, so that its connections stay and only its silence tells (after 1 s) |
//! | `curp.1m_over_10k` | commands per second of 1,000,000 commands over 10,000 (in every round fifteen such trials, all their commands over all their time), otherwise as `curp.closed.ops` |
//! | `curp.delay150_over_0` | commands per second with the document's 150 µs over none; every message written by itself, and the timer as the document's program had it |
//! | `curp.delay150_over_singles` | the same over one message per batch |
//! | `curp.precise150_over_0` | the same with a timer that keeps the 150 µs |
//! | `curp.delay150_achieved_us` | the median delay that the document's 150 µs really were |

use assay_harness::figures::{self, Estimate, Printer, Times};
use assay_harness::{Failure, FlagError, Flags};

use crate::ceiling::{Calls, call_rate};
use crate::client::quorum::Path;
use crate::command::Class;
use crate::parameters::Parameters;
use crate::replica::tally::Tally;
use crate::run::{self, Outcome};

/// The flags of `bench`.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    rounds: u64,
    operations: u64,
    short: u64,
    long: u64,
    failover: u64,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// When one is unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let operations = 100..=4_000_000;
        let settings = Self {
            rounds: flags.integer("rounds", 31, 6..=1000)?,
            operations: flags.integer("operations", 40_000, operations.clone())?,
            short: flags.integer("short-operations", 10_000, operations.clone())?,
            long: flags.integer("long-operations", 1_000_000, operations.clone())?,
            failover: flags.integer("failover-operations", 200_000, operations)?,
        };
        flags.finish()?;
        Ok(settings)
    }
}

const OURS: usize = 0;
const DELAY_0: usize = 1;
const SINGLES: usize = 2;
const GO_150: usize = 3;
const PRECISE_150: usize = 4;
const SHORT: usize = 5;
const LONG: usize = 6;
const FAILOVER: usize = 7;
const SILENCE: usize = 8;
/// The short trial takes a few hundredths of a second: its turn has several. All their commands over all their time is what they
/// count for, because that is what one long trial counts for: the median of short ones would leave out the slow moments that a long one
/// has to sit through.
const SHORT_REPEATS: usize = 15;

/// The arms, in this order.
fn arms(settings: &Settings) -> Vec<Parameters> {
    let arm = |operations: u64, rest: &[&str]| {
        // A tenth of the commands warms up, as in a trial of the default length.
        let common = [
            format!("--operations={operations}"),
            format!("--warmup-operations={}", (operations / 10).clamp(40, 4000)),
            "--ceilings=false".to_owned(),
        ];
        let all = common.into_iter().chain(rest.iter().map(|&flag| flag.to_owned()));
        Parameters::parse(all).expect("the arms' parameters are within bounds")
    };
    let timed = ["--message-writes=each", "--flush=timed", "--batch-delay-micros=150"];
    let after = format!("--fault-after={}", settings.failover / 10);
    let leader = ["--fault-replica=0", &*after];
    vec![
        arm(settings.operations, &[]),
        arm(settings.operations, &["--message-writes=each", "--flush=timed"]),
        arm(settings.operations, &["--message-writes=each", "--flush=immediate"]),
        arm(settings.operations, &[&timed[..], &["--timer=go-like"]].concat()),
        arm(settings.operations, &[&timed[..], &["--timer=precise"]].concat()),
        arm(settings.short, &[]),
        arm(settings.long, &[]),
        arm(settings.failover, &[&leader[..], &["--fault=restart"]].concat()),
        arm(settings.failover, &[&leader[..], &["--fault=stop", "--bound-replica=follower"]].concat()),
    ]
}

/// What is kept of a trial.
struct Trial {
    ops: f64,
    weak_p50: f64,
    delay: f64,
    calls: Calls,
    fast: f64,
    one_round_trip: f64,
    lost: f64,
    unavailable: f64,
    rejoin: f64,
}

impl From<Outcome> for Trial {
    fn from(outcome: Outcome) -> Self {
        let strong = outcome.measured().filter(|r| r.request.class == Class::Strong).count() as f64;
        let share = |paths: &[Path]| outcome.measured().filter(|r| paths.contains(&r.path)).count() as f64 / strong;
        let rejoin = outcome.fault.and_then(|fault| Some(fault.back?.saturating_sub(fault.ended?)));
        let mut delays = Tally::default();
        outcome.statuses.iter().for_each(|status| delays.merge(&status.batch_delays));
        Self {
            ops: outcome.throughput(),
            weak_p50: outcome.median_latency(Class::Weak).unwrap_or(f64::NAN),
            delay: delays.median().unwrap_or(f64::NAN) * 1e-9,
            calls: outcome.calls(),
            fast: share(&[Path::Fast]),
            one_round_trip: share(&[Path::Fast, Path::Overtaken]),
            lost: outcome.lost as f64,
            unavailable: outcome.unavailable().map_or(f64::NAN, |time| time as f64 * 1e-9),
            rejoin: rejoin.map_or(f64::NAN, |time| time as f64 * 1e-9),
        }
    }
}

/// A turn's trials as one.
fn together(mut turns: Vec<Trial>) -> Trial {
    let rate = turns.len() as f64 / turns.iter().map(|trial| trial.ops.recip()).sum::<f64>();
    let last = turns.pop().expect("a turn has a trial");
    Trial { ops: rate, ..last }
}

/// Measures all figures and prints each as one line of JSON.
///
/// # Errors
///
/// When a trial fails, memory is short, standard output is gone, or two arms disagree.
pub fn bench(settings: &Settings, out: &mut Printer<'_>) -> Result<(), Failure> {
    let arms = arms(settings);
    let mut trials: Vec<Vec<Trial>> = arms.iter().map(|_| Vec::new()).collect();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shares = Vec::new();
    let mut digest: Option<String> = None;
    // The first round is run and forgotten.
    for round in 0..=settings.rounds {
        out.progress(format_args!("round {round} of {}", settings.rounds));
        for arm in figures::in_turn(round as usize, arms.len()) {
            let repeats = if arm == SHORT { SHORT_REPEATS } else { 1 };
            let mut turns = Vec::new();
            for _ in 0..repeats {
                let outcome = run::measure(&arms[arm])?;
                // A wrong answer yields no number.
                let found = outcome.parity.hex();
                if *digest.get_or_insert_with(|| found.clone()) != found {
                    return Err(Failure::error(format_args!("arm {arm} gave other answers than the first")));
                }
                turns.push(Trial::from(outcome));
            }
            let trial = together(turns);
            if round > 0 {
                if arm == OURS {
                    shares.push(trial.ops / call_rate(cpus, trial.calls)?.value);
                }
                trials[arm].push(trial);
            }
        }
    }
    let each = |arm: usize, of: fn(&Trial) -> f64| Estimate::median(trials[arm].iter().map(of).collect());
    let ops = Times(trials.iter().map(|arm| arm.iter().map(|trial| trial.ops).collect()).collect());
    // Of all trials together: one that was lost is one too many, however seldom it is.
    let sum = trials[FAILOVER].iter().chain(&trials[SILENCE]).map(|trial| trial.lost).sum();
    let samples = trials[FAILOVER].len() + trials[SILENCE].len();
    let lost = Estimate { value: sum, low: sum, high: sum, samples };
    let all = [
        ("curp.closed.ops", "ops/s", each(OURS, |trial| trial.ops)),
        ("curp.closed.weak_p50_ms", "ms", each(OURS, |trial| trial.weak_p50 * 1e3)),
        ("curp.closed.speedup", "x", ops.ratio(OURS, DELAY_0)),
        ("curp.closed.speedup_over_singles", "x", ops.ratio(OURS, SINGLES)),
        ("curp.share_of_syscall_ceiling", "1", Estimate::median(shares)),
        ("curp.closed.fast_share", "1", each(OURS, |trial| trial.fast)),
        ("curp.closed.one_round_trip_share", "1", each(OURS, |trial| trial.one_round_trip)),
        ("curp.failover.lost", "1", lost),
        ("curp.failover.unavailable_ms", "ms", each(FAILOVER, |trial| trial.unavailable * 1e3)),
        ("curp.failover.rejoin_ms", "ms", each(FAILOVER, |trial| trial.rejoin * 1e3)),
        ("curp.silence.unavailable_ms", "ms", each(SILENCE, |trial| trial.unavailable * 1e3)),
        ("curp.1m_over_10k", "x", ops.ratio(LONG, SHORT)),
        ("curp.delay150_over_0", "x", ops.ratio(GO_150, DELAY_0)),
        ("curp.precise150_over_0", "x", ops.ratio(PRECISE_150, DELAY_0)),
        ("curp.delay150_over_singles", "x", ops.ratio(GO_150, SINGLES)),
        ("curp.delay150_achieved_us", "us", each(GO_150, |trial| trial.delay * 1e6)),
    ];
    for (figure, unit, estimate) in all {
        out.print(figure, unit, estimate)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_trials_count_by_all_their_time() {
        let trial = |ops| Trial {
            ops,
            weak_p50: 1.0,
            delay: 2.0,
            calls: Calls { writes: 1.0, reads: 1.0, waits: 1.0, bytes: 1.0 },
            fast: 1.0,
            one_round_trip: 1.0,
            lost: 0.0,
            unavailable: 0.0,
            rejoin: 0.0,
        };
        // 100 commands in a second and 100 in four: 200 in five.
        assert!((together(vec![trial(100.0), trial(25.0)]).ops - 40.0).abs() < 1e-9);
        assert!((together(vec![trial(7.0)]).ops - 7.0).abs() < 1e-9);
    }

    #[test]
    fn the_arms_are_the_ones_that_the_figures_speak_of() {
        let arms = arms(&Settings::parse([]).unwrap());
        assert_eq!(arms.len(), SILENCE + 1);
        assert_eq!(
            arms.iter().map(|arm| arm.operations).collect::<Vec<_>>(),
            [40_000, 40_000, 40_000, 40_000, 40_000, 10_000, 1_000_000, 200_000, 200_000]
        );
        assert_eq!(arms.iter().map(|arm| arm.batch_delay_micros).collect::<Vec<_>>(), [0, 0, 0, 150, 150, 0, 0, 0, 0]);
        assert!(arms[FAILOVER..].iter().all(|arm| (arm.fault_replica, arm.fault_after) == (0, 20_000)));
    }
}
