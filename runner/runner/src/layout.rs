//! Randomizes the stack address per trial, so that layout effects do not favour one arm.
//!
//! The environment is above the stack, and its length determines the address of the first frame. A program can be
//! several per cent faster at one length than at another (Mytkowicz et al. 2009), and an arm with longer variables
//! would retain this bias for the whole run. The kernel's ASLR, which stays enabled, moves the stack too where it is
//! available. The padding works everywhere and is reproducible by seed. Programs can ignore it. The heap address is
//! left to the kernel, because moving it needs the help of the program or its C library.

use std::collections::BTreeMap;

/// The padding variable.
const VARIABLE: &str = "ASSAY_LAYOUT_PAD";
/// One page; alignment effects repeat beyond it.
const MOST: u64 = 4096;

/// Sets the padding of a trial, drawn from the seed and the trial's id. It is independent of the arm.
pub(crate) fn randomise(env: &mut BTreeMap<String, String>, seed: Option<u64>, trial: &str) {
    let Some(seed) = seed else { return };
    let mut hash = blake3::Hasher::new();
    hash.update(&seed.to_le_bytes()).update(trial.as_bytes());
    let mut drawn = [0; 8];
    hash.finalize_xof().fill(&mut drawn);
    let length = u64::from_le_bytes(drawn) % MOST;
    env.insert(VARIABLE.to_owned(), "x".repeat(usize::try_from(length).unwrap_or_default()));
}

/// Returns the padding of a trial in bytes.
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
    fn padding_depends_only_on_seed_and_trial() {
        assert_eq!(drawn(1, "w000-b0000-s00000"), drawn(1, "w000-b0000-s00000"));
        assert_ne!(drawn(1, "w000-b0000-s00000"), drawn(2, "w000-b0000-s00000"));
        assert_ne!(drawn(1, "w000-b0000-s00000"), drawn(1, "w000-b0000-s00001"));
    }

    #[test]
    fn paddings_cover_a_page() {
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
