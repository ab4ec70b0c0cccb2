//! A program with known slowdowns. An iteration is `--work` equal units in sequence, so that 1,010 units take one per
//! cent longer than 1,000. Calibration runs use it, because the true ratio of their arms is known.
//!
//! A unit is integer arithmetic with a dependency between all steps, mixed with data-dependent reads. It represents
//! branchy, pointer-chasing programs, as opposed to a scan.

use std::hint::black_box;
use std::process::ExitCode;

use assay_harness::flags::USAGE;
use assay_harness::{Flags, Report, Stopwatch, Unit};

/// Steps of one unit: one or two microseconds.
const STEPS: u64 = 256;

struct Parameters {
    work: u64,
    iterations: u64,
    warmups: u64,
    kibibytes: u64,
}

impl Parameters {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let parse = || {
            let mut flags = Flags::parse(arguments)?;
            let parameters = Self {
                work: flags.integer("work", 1000, 1..=10_000_000)?,
                iterations: flags.integer("iterations", 20, 1..=100_000)?,
                warmups: flags.integer("warmup-iterations", 3, 0..=10_000)?,
                kibibytes: flags.integer("kibibytes", 256, 1..=1 << 20)?,
            };
            flags.finish()?;
            Ok(parameters)
        };
        parse().map_err(|error: assay_harness::flags::FlagError| error.to_string())
    }
}

fn main() -> ExitCode {
    let parameters = match Parameters::parse(std::env::args().skip(1)) {
        Ok(parameters) => parameters,
        Err(message) => {
            eprintln!(
                "{message}\nusage: spin-kernel [--work=N] [--iterations=N] [--warmup-iterations=N] [--kibibytes=N]"
            );
            return ExitCode::from(USAGE);
        }
    };
    let table = table(parameters.kibibytes * 1024 / 8);
    for _ in 0..parameters.warmups {
        black_box(iteration(&table, parameters.work));
    }
    let mut latencies = Vec::new();
    for _ in 0..parameters.iterations {
        let watch = Stopwatch::start();
        black_box(iteration(&table, parameters.work));
        latencies.push(watch.seconds());
    }
    let mut report = Report::new("spin-kernel", assay_harness::VERSION);
    report.effective("work", parameters.work).samples("latency", Unit::SECONDS, &latencies);
    match report.print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Numbers to be led astray by: a power of two of them, so that a place is a mask away.
fn table(words: u64) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    (0..words.next_power_of_two()).map(|_| next(&mut state)).collect()
}

/// One step of xorshift64*.
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Runs `work` units, each dependent on the previous one.
fn iteration(table: &[u64], work: u64) -> u64 {
    let mask = table.len() as u64 - 1;
    let mut state = 1;
    let mut sum = 0_u64;
    for _ in 0..work {
        for _ in 0..STEPS {
            let place = next(&mut state) & mask;
            let value = table[usize::try_from(place).expect("the table fits into memory")];
            state ^= value | 1;
            // A branch that nothing can foresee.
            sum = if value & 1 == 0 { sum.wrapping_add(value) } else { sum.rotate_left(7) };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Parameters, String> {
        Parameters::parse(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn more_work_goes_on_where_less_ended() {
        let table = table(1024);
        // The second unit starts from the state of the first, so that units can neither be skipped nor overlapped.
        assert_ne!(iteration(&table, 1), iteration(&table, 2));
        assert_eq!(iteration(&table, 7), iteration(&table, 7));
    }

    #[test]
    fn generator_state_is_never_zero() {
        // A state of 0 would stay 0, and every later read would be of one place.
        let table = table(64);
        let mut state = 1;
        for _ in 0..1_000_000 {
            let place = next(&mut state) & 63;
            state ^= table[usize::try_from(place).unwrap()] | 1;
            assert_ne!(state, 0);
        }
    }

    #[test]
    fn invalid_parameters_are_reported() {
        assert!(parse(&["--work=1010", "--kibibytes=1"]).is_ok());
        assert!(parse(&["--work=0"]).err().is_some_and(|e| e.contains("--work")));
        assert!(parse(&["--colour=red"]).err().is_some_and(|e| e.contains("colour")));
    }
}
