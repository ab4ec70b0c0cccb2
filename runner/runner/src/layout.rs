//! Where a process's stack begins: moved from trial to trial, so that no arm keeps one accident of it.
//!
//! The environment lies above the stack, and how long it is decides at which address the first frame begins. A program can be
//! several per cent faster with one length than with another (Mytkowicz et al. 2009), and an arm whose variables happen to be
//! longer would keep that for the whole run. The kernel's own randomisation, which stays on, moves the stack as well where it is
//! enabled; this does so everywhere, and the same way again for the same seed. A program need not know of it. The heap begins
//! where the kernel puts it: without the program's or its C library's help nobody else can move it.

use std::collections::BTreeMap;

/// The variable whose length is drawn.
const VARIABLE: &str = "ASSAY_LAYOUT_PAD";
/// A page: beyond it alignments repeat.
const MOST: u64 = 4096;

/// Gives a trial its own length of environment, drawn from the seed and the trial's place in the run. The arm plays no part.
pub(crate) fn randomise(env: &mut BTreeMap<String, String>, seed: Option<u64>, trial: &str) {
    let Some(seed) = seed else { return };
    let mut hash = blake3::Hasher::new();
    hash.update(&seed.to_le_bytes()).update(trial.as_bytes());
    let mut drawn = [0; 8];
    hash.finalize_xof().fill(&mut drawn);
    let length = u64::from_le_bytes(drawn) % MOST;
    env.insert(VARIABLE.to_owned(), "x".repeat(usize::try_from(length).unwrap_or_default()));
}

/// How much a trial's environment was lengthened.
pub(crate) fn padding(env: &BTreeMap<String, String>) -> Option<usize> {
    env.get(VARIABLE).map(String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, trial: &str) -> usize {
        let mut env = BTreeMap::new();
        randomise(&mut env, Some(seed), trial);
        padding(&env).expect("a length")
    }

    #[test]
    fn a_length_depends_on_the_seed_and_the_trial_alone() {
        assert_eq!(drawn(1, "w000-b0000-s00000"), drawn(1, "w000-b0000-s00000"));
        assert_ne!(drawn(1, "w000-b0000-s00000"), drawn(2, "w000-b0000-s00000"));
        assert_ne!(drawn(1, "w000-b0000-s00000"), drawn(1, "w000-b0000-s00001"));
    }

    #[test]
    fn lengths_are_spread_over_a_page() {
        let lengths: Vec<usize> = (0..4000).map(|slot| drawn(1, &format!("w000-b0000-s{slot:05}"))).collect();
        assert!(lengths.iter().all(|&length| length < 4096));
        for quarter in 0..4 {
            let inside = lengths.iter().filter(|&&length| length / 1024 == quarter).count();
            assert!((850..1150).contains(&inside), "{inside} of 4000 lengths are in quarter {quarter}");
        }
    }

    #[test]
    fn without_a_seed_nothing_is_added() {
        let mut env = BTreeMap::new();
        randomise(&mut env, None, "w000-b0000-s00000");
        assert!(env.is_empty() && padding(&env).is_none());
    }
}
