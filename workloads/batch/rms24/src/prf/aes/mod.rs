//! AES-128 under one secret key that is expanded once. One call gives several values.
//!
//! ```text
//! select values   E(hint, block / 4, 1)          four of 32 bits, for four consecutive blocks of one hint
//! offsets         E(hint / lanes, block, 2)      for the same block of eight consecutive hints (16 bits each), or of four (32 bits)
//! ```
//!
//! Offsets are packed over hints because the search for a hint asks all hints about one block. A client that expands a hint asks one hint
//! about all blocks, and needs a whole call for each; but it expands one hint and searches through thousands.
//!
//! Sixteen bits make an unbiased offset only if the block size is a power of two. For other sizes an offset comes from 32 bits, by
//! multiplication: it is off uniform by a factor of at most 1 ± block size / 2^32, 10^-5 for the document's blocks. The bias is the same
//! for every offset that a server sees, whatever the wanted entry is.

#[cfg(target_arch = "x86_64")]
mod aes_ni;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vaes512;

use assay_harness::flags;
use assay_harness::path::{self, Unavailable};

use super::{Prf, Secret};

const SELECT: u64 = 1;
const OFFSET: u64 = 2;
/// Select values per call.
const SELECTS: u32 = 4;
/// What is added to an input to get to the next block of the database.
const NEXT_BLOCK: u64 = 1 << 32;
/// Calls per step of the bulk functions.
const CHUNK: usize = 64;

/// How an output is cut into offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Eight of 16 bits; the block size is a power of two.
    Eight,
    /// Four of 32 bits.
    Four,
}

impl Lanes {
    /// What blocks of this size take.
    #[must_use]
    pub fn of(block_size: u32) -> Self {
        if block_size.is_power_of_two() && block_size <= 1 << 16 { Self::Eight } else { Self::Four }
    }

    /// Offsets per output.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
        }
    }
}

/// AES-128 under a client's secret.
#[derive(Debug, Clone)]
pub struct AesPrf {
    cipher: Cipher,
    block_size: u32,
    lanes: Lanes,
}

impl AesPrf {
    /// The function of a secret, computed by the instructions of `path`.
    #[must_use]
    pub fn new(secret: &Secret, block_size: u32, path: AesPath) -> Self {
        let key = secret.key("aes-128");
        let key = *key.first_chunk().expect("32 bytes start with 16");
        Self { cipher: path.cipher(key), block_size, lanes: Lanes::of(block_size) }
    }

    /// How outputs are cut into offsets.
    #[must_use]
    pub fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// Entries of a block of the database.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Outputs with the offsets of one block in the groups of hints from `group` on.
    #[inline]
    pub fn offset_outputs(&self, group: u32, block: u32, outputs: &mut [u128]) {
        self.cipher.fill(u64::from(block) << 32 | u64::from(group), 1, OFFSET, outputs);
    }

    /// Outputs with the select values of the four blocks from `4 * quad` on, in the hints from `hint` on.
    #[inline]
    pub fn select_outputs(&self, hint: u32, quad: u32, outputs: &mut [u128]) {
        self.cipher.fill(u64::from(quad) << 32 | u64::from(hint), 1, SELECT, outputs);
    }

    /// The offset in one lane of an output.
    #[inline]
    #[must_use]
    pub fn offset_in(&self, output: u128, lane: u32) -> u32 {
        match self.lanes {
            Lanes::Eight => (output >> (16 * lane)) as u32 & (self.block_size - 1),
            Lanes::Four => {
                let bits = (output >> (32 * lane)) as u32;
                ((u64::from(bits) * u64::from(self.block_size)) >> 32) as u32
            }
        }
    }

    /// The select value in one lane of an output.
    #[inline]
    #[must_use]
    pub fn select_in(output: u128, lane: u32) -> u32 {
        (output >> (32 * lane)) as u32
    }

    fn one(&self, low: u64, domain: u64) -> u128 {
        let mut output = [0];
        self.cipher.fill(low, 0, domain, &mut output);
        output[0]
    }
}

impl Prf for AesPrf {
    fn select(&self, hint: u32, block: u32) -> u32 {
        let output = self.one(u64::from(block / SELECTS) << 32 | u64::from(hint), SELECT);
        Self::select_in(output, block % SELECTS)
    }

    fn offset(&self, hint: u32, block: u32) -> u32 {
        let lanes = self.lanes.count();
        let output = self.one(u64::from(block) << 32 | u64::from(hint / lanes), OFFSET);
        self.offset_in(output, hint % lanes)
    }

    fn selects(&self, hint: u32, values: &mut [u32]) {
        let mut outputs = [0; CHUNK];
        let mut low = u64::from(hint);
        for values in values.chunks_mut(CHUNK * SELECTS as usize) {
            let outputs = &mut outputs[..values.len().div_ceil(SELECTS as usize)];
            self.cipher.fill(low, NEXT_BLOCK, SELECT, outputs);
            low += outputs.len() as u64 * NEXT_BLOCK;
            for (values, output) in values.chunks_mut(SELECTS as usize).zip(outputs) {
                for (lane, value) in values.iter_mut().enumerate() {
                    *value = Self::select_in(*output, lane as u32);
                }
            }
        }
    }

    fn offsets(&self, hint: u32, values: &mut [u32]) {
        let lanes = self.lanes.count();
        let (mut low, lane) = (u64::from(hint / lanes), hint % lanes);
        let mut outputs = [0; CHUNK];
        for values in values.chunks_mut(CHUNK) {
            let outputs = &mut outputs[..values.len()];
            self.cipher.fill(low, NEXT_BLOCK, OFFSET, outputs);
            low += values.len() as u64 * NEXT_BLOCK;
            for (value, output) in values.iter_mut().zip(outputs) {
                *value = self.offset_in(*output, lane);
            }
        }
    }
}

/// A cipher under one key.
#[derive(Debug, Clone)]
enum Cipher {
    Portable(portable::Portable),
    #[cfg(target_arch = "x86_64")]
    AesNi(aes_ni::AesNi),
    #[cfg(target_arch = "x86_64")]
    Vaes512(vaes512::Vaes512),
}

impl Cipher {
    /// Encrypts the inputs `high << 64 | (low + i * step)`.
    #[inline]
    fn fill(&self, low: u64, step: u64, high: u64, outputs: &mut [u128]) {
        match self {
            Self::Portable(cipher) => cipher.fill(low, step, high, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(cipher) => cipher.fill(low, step, high, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512(cipher) => cipher.fill(low, step, high, outputs),
        }
    }
}

/// A way to compute AES that this CPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AesPath(Wish);

/// A wish for a way to compute AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The fastest the CPU has.
    Auto,
    /// The `aes` crate, which brings its own detection.
    Portable,
    /// AES-NI: one block per instruction.
    AesNi,
    /// VAES with 512 bits: four blocks per instruction.
    Vaes512,
}

impl Wish {
    /// Every wish, by the name it has on a command line.
    pub const CHOICES: [(&'static str, Self); 4] =
        [("auto", Self::Auto), ("portable", Self::Portable), ("aes-ni", Self::AesNi), ("vaes512", Self::Vaes512)];

    /// Its name on a command line and in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        flags::name(&self, &Self::CHOICES)
    }
}

impl AesPath {
    /// The way that `wish` asks for.
    ///
    /// # Errors
    ///
    /// When the CPU does not have it.
    pub fn select(wish: Wish) -> Result<Self, Unavailable> {
        path::select(wish, &Wish::CHOICES, &Self::available(), |path| path.name())
    }

    /// Every way that this CPU has, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self(Wish::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(aes_ni::AesNi::is_available().then_some(Self(Wish::AesNi)));
            all.extend(vaes512::Vaes512::is_available().then_some(Self(Wish::Vaes512)));
        }
        all
    }

    /// Its name on a command line and in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    fn cipher(self, key: [u8; 16]) -> Cipher {
        #[cfg(target_arch = "x86_64")]
        match self.0 {
            Wish::AesNi => return Cipher::AesNi(aes_ni::AesNi::new(key).expect("a path is there once selected")),
            Wish::Vaes512 => {
                return Cipher::Vaes512(vaes512::Vaes512::new(key).expect("a path is there once selected"));
            }
            Wish::Auto | Wish::Portable => {}
        }
        Cipher::Portable(portable::Portable::new(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix B: 3243f6a8 885a308d 313198a2 e0370734 under 2b7e1516 28aed2a6 abf71588 09cf4f3c.
    #[test]
    fn every_path_encrypts_as_the_standard_does() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let input = u128::from_le_bytes(0x3243_f6a8_885a_308d_3131_98a2_e037_0734_u128.to_be_bytes());
        let expected = u128::from_le_bytes(0x3925_841d_02dc_09fb_dc11_8597_196a_0b32_u128.to_be_bytes());
        for path in AesPath::available() {
            let mut output = [0];
            path.cipher(key).fill(input as u64, 0, (input >> 64) as u64, &mut output);
            assert_eq!(output, [expected], "{}", path.name());
        }
    }

    #[test]
    fn every_path_fills_any_length_and_step_as_the_portable_one() {
        let reference = AesPath(Wish::Portable).cipher([7; 16]);
        for path in AesPath::available() {
            let cipher = path.cipher([7; 16]);
            for length in (0..70).chain([127, 128, 129, 500]) {
                for (low, step) in [(0, 1), (u64::MAX - 3, 1), (0xffff_fff0, NEXT_BLOCK), (9, 0)] {
                    let (mut expected, mut found) = (vec![0; length], vec![0; length]);
                    reference.fill(low, step, 2, &mut expected);
                    cipher.fill(low, step, 2, &mut found);
                    assert_eq!(found, expected, "{}: {length} from {low} by {step}", path.name());
                }
            }
        }
    }
}
