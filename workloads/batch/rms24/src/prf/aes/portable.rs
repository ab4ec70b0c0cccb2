//! AES with the `aes` crate of RustCrypto, which brings its own detection: the reference for the others, and the way of CPUs that are not
//! x86-64.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::layout::{Matcher, NEXT_BLOCK, OFFSET, SELECT, SELECTS};

/// Blocks handed over at a time.
const IN_FLIGHT: usize = 8;

/// A cipher under one key.
#[derive(Clone)]
pub(super) struct Portable(Aes128);

impl std::fmt::Debug for Portable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Portable")
    }
}

impl Portable {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self(Aes128::new(&Array(key)))
    }

    pub(super) fn fill(&self, low: u64, step: u64, high: u64, outputs: &mut [u128]) {
        let mut low = low;
        for outputs in outputs.chunks_mut(IN_FLIGHT) {
            let inputs = std::array::from_fn(|i| low.wrapping_add(step.wrapping_mul(i as u64)));
            outputs.copy_from_slice(&self.encrypt(&inputs, high)[..outputs.len()]);
            low = low.wrapping_add(step.wrapping_mul(IN_FLIGHT as u64));
        }
    }

    fn encrypt(&self, low: &[u64; IN_FLIGHT], high: u64) -> [u128; IN_FLIGHT] {
        let mut blocks = low.map(|low| Array((u128::from(high) << 64 | u128::from(low)).to_le_bytes()));
        self.0.encrypt_blocks(&mut blocks);
        blocks.map(|block| u128::from_le_bytes(block.0))
    }

    pub(super) fn skip(&self, matcher: &Matcher, low: u64, outputs: usize, chunk: usize) -> usize {
        let mut firsts = (0..outputs).step_by(IN_FLIGHT);
        let close = firsts.find(|first| {
            let inputs = std::array::from_fn(|i| low.wrapping_add((first + i) as u64));
            self.encrypt(&inputs, OFFSET).iter().any(|output| matcher.lanes(*output).1 != 0)
        });
        close.map_or(outputs, |first| first / chunk * chunk)
    }

    pub(super) fn matches(&self, matcher: &Matcher, low: u64, words: &mut [u64]) {
        words.fill(0);
        let (lanes, _) = matcher.lanes(0);
        let outputs = words.len() * 64 / lanes as usize;
        for first in (0..outputs).step_by(IN_FLIGHT) {
            let inputs = std::array::from_fn(|i| low.wrapping_add((first + i) as u64));
            for (output, at) in
                self.encrypt(&inputs, OFFSET).into_iter().zip((first * lanes as usize..).step_by(lanes as usize))
            {
                words[at / 64] |= matcher.lanes(output).1 << (at % 64);
            }
        }
    }

    pub(super) fn below(&self, hint: u64, cutoff: u32, words: &mut [u64]) {
        /// Outputs whose select values are a word's.
        const OUTPUTS: usize = 16;
        let mut outputs = [0; OUTPUTS];
        for (at, word) in (0..).zip(words) {
            self.fill(
                hint.wrapping_add(NEXT_BLOCK.wrapping_mul(at * OUTPUTS as u64)),
                NEXT_BLOCK,
                SELECT,
                &mut outputs,
            );
            let lanes = outputs.iter().flat_map(|output| (0..SELECTS).map(|lane| (*output >> (32 * lane)) as u32));
            *word = (0..).zip(lanes).fold(0, |word, (bit, select)| word | u64::from(select < cutoff) << bit);
        }
    }
}
