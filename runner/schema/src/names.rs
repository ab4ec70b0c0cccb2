//! Format of block and trial names. This module is its only definition in Rust.
//!
//! Numbers are zero-padded to the minimum width of the name. Longer numbers have no leading zero, so that every number
//! has one representation.

use crate::check::{Checked, require};

/// Returns the trial id of a slot of a block: `w000-b0003-s00004`, or with a `w` for a warm-up.
pub fn trial(block: &str, slot: usize, warmup: bool) -> String {
    let kind = if warmup { 'w' } else { 's' };
    format!("{block}-{kind}{slot:05}")
}

pub(crate) fn block_id(field: &str, value: &str) -> Checked {
    require(block_and_rest(value) == Some(""), field, || format!("{value:?} is not a block id such as w000-b0003"))
}

pub(crate) fn trial_id(field: &str, value: &str) -> Checked {
    let rest = block_and_rest(value);
    let slot = rest.and_then(|rest| rest.strip_prefix("-s").or_else(|| rest.strip_prefix("-w")));
    let fits = slot.and_then(|slot| number(slot, 5)) == Some("");
    require(fits, field, || format!("{value:?} is not a trial id such as w000-b0003-s00004"))
}

/// Strips the block id from `value` and returns the rest.
fn block_and_rest(value: &str) -> Option<&str> {
    number(value.strip_prefix('w')?, 3).and_then(|rest| number(rest.strip_prefix("-b")?, 4))
}

/// Strips a number of at least `digits` digits and returns the rest; a longer number must not start with zero.
fn number(value: &str, digits: usize) -> Option<&str> {
    let found = value.bytes().take_while(u8::is_ascii_digit).count();
    (found == digits || found > digits && !value.starts_with('0')).then(|| &value[found..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zero_padded_and_unique() {
        for number in (0..1_000_000).step_by(7).chain([9_999, 10_000, 99_999, 100_000, 999_999, 1_000_000]) {
            let block = format!("w{number:03}-b{number:04}");
            assert!(block_id("id", &block).is_ok(), "{block}");
            for warmup in [false, true] {
                let trial = trial(&block, number, warmup);
                assert!(trial_id("trial", &trial).is_ok(), "{trial}");
            }
            let padded = format!("w{number:03}-b0{number:04}");
            assert!(block_id("id", &padded).is_err(), "{padded}");
        }
        for wrong in [
            "",
            "w000",
            "w00-b0000",
            "w000-b000",
            "w0000-b0000",
            "w000-b00000",
            "w000-b0000-",
            "w000_b0000",
            "w000-b000x",
        ] {
            assert!(block_id("id", wrong).is_err(), "{wrong}");
            assert!(trial_id("trial", &format!("{wrong}-s00000")).is_err(), "{wrong}");
        }
        for wrong in ["w000-b0000-s0000", "w000-b0000-s000000", "w000-b0000-x00000", "w000-b0000"] {
            assert!(trial_id("trial", wrong).is_err(), "{wrong}");
        }
    }
}
