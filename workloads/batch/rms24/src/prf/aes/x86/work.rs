//! The work, for registers of any width: eight of them are in flight, which hides the latency of a round.

use assay_harness::aes::ROUND_KEYS;

use super::wide::{WIDEST, Wide, Work};
use crate::geometry::Place;
use crate::prf::aes::layout::{Lanes, Matcher, NEXT_BLOCK, OFFSET, Offsets, SELECT, Wanted};
use crate::prf::aes::list::blocks_of_bits;

/// Registers in flight.
const IN_FLIGHT: usize = 8;
/// Blocks of the database whose select values are computed at a time: those of two words, and of the widest registers in flight.
const BLOCKS_AT_A_TIME: usize = 128;

/// The round keys in registers.
#[inline(always)]
fn schedule<W: Wide>(wide: W, keys: &[u128; ROUND_KEYS]) -> [W::Vector; ROUND_KEYS] {
    let mut schedule = [wide.load(&[keys[0]; WIDEST]); ROUND_KEYS];
    for (round, key) in schedule.iter_mut().zip(keys) {
        *round = wide.load(&[*key; WIDEST]);
    }
    schedule
}

#[inline(always)]
fn encrypt<W: Wide, const N: usize>(
    wide: W,
    keys: &[W::Vector; ROUND_KEYS],
    mut blocks: [W::Vector; N],
) -> [W::Vector; N] {
    for block in &mut blocks {
        *block = wide.xor(*block, keys[0]);
    }
    for key in &keys[1..ROUND_KEYS - 1] {
        for block in &mut blocks {
            *block = wide.round(*block, *key);
        }
    }
    for block in &mut blocks {
        *block = wide.last_round(*block, keys[ROUND_KEYS - 1]);
    }
    blocks
}

/// The inputs `high << 64 | (low + i * step)`, one after the other.
struct Inputs<W: Wide> {
    next: W::Vector,
    step: W::Vector,
}

impl<W: Wide> Inputs<W> {
    #[inline(always)]
    fn new(wide: W, low: u64, step: u64, high: u64) -> Self {
        let mut first = [u128::from(high) << 64; WIDEST];
        for (i, input) in (0..).zip(&mut first) {
            *input |= u128::from(low.wrapping_add(step.wrapping_mul(i)));
        }
        let step = u128::from(step.wrapping_mul(W::BLOCKS as u64));
        Self { next: wide.load(&first), step: wide.load(&[step; WIDEST]) }
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self, wide: W) -> [W::Vector; N] {
        let mut taken = [self.next; N];
        for input in &mut taken {
            *input = self.next;
            self.next = wide.add64(self.next, self.step);
        }
        taken
    }
}

/// Encrypts the inputs `high << 64 | (low + i * step)`.
pub(in crate::prf::aes) struct Fill<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    pub(in crate::prf::aes) low: u64,
    pub(in crate::prf::aes) step: u64,
    pub(in crate::prf::aes) high: u64,
    pub(in crate::prf::aes) outputs: &'a mut [u128],
}

impl Work for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let keys = schedule(wide, self.keys);
        let mut inputs = Inputs::new(wide, self.low, self.step, self.high);
        let mut chunks = self.outputs.chunks_exact_mut(IN_FLIGHT * W::BLOCKS);
        for chunk in &mut chunks {
            let outputs = encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide));
            for (room, output) in chunk.chunks_exact_mut(W::BLOCKS).zip(outputs) {
                wide.store(output, room);
            }
        }
        let rest = chunks.into_remainder();
        let mut room = [0; IN_FLIGHT * WIDEST];
        if rest.len() <= W::BLOCKS {
            // Single values are asked for, too.
            let [output] = encrypt(wide, &keys, inputs.take(wide));
            wide.store(output, &mut room[..W::BLOCKS]);
        } else {
            let outputs = encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide));
            for (room, output) in room.chunks_exact_mut(W::BLOCKS).zip(outputs) {
                wide.store(output, room);
            }
        }
        rest.copy_from_slice(&room[..rest.len()]);
    }
}

/// Whether one of some hints may contain an entry: no false says so wrongly.
pub(in crate::prf::aes) struct MayContain<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    pub(in crate::prf::aes) matcher: &'a Matcher,
    /// The first input, and how many follow in steps of one; a few more may be looked at.
    pub(in crate::prf::aes) low: u64,
    pub(in crate::prf::aes) outputs: usize,
    /// The extra entries of the hints.
    pub(in crate::prf::aes) extras: &'a [u32],
}

impl Work for MayContain<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> bool {
        let index = self.matcher.index;
        let extra = self.extras.iter().fold(0, |any, extra| any | u32::from(*extra == index));
        let keys = schedule(wide, self.keys);
        let mut inputs = Inputs::new(wide, self.low, 1, OFFSET);
        let steps = self.outputs.div_ceil(IN_FLIGHT * W::BLOCKS);
        let offset = match self.matcher.wanted {
            Wanted::Bits { mask, bits } => {
                let [mask, bits] = [mask, bits].map(|lane| wide.load(&[Matcher::lanes_of_16(lane); WIDEST]));
                let mut least = wide.load(&[u128::MAX; WIDEST]);
                for _ in 0..steps {
                    for output in encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide)) {
                        least = wide.min16(least, wide.xor(wide.and(output, mask), bits));
                    }
                }
                wide.any_zero16(least)
            }
            Wanted::Range { first, reach } => {
                let [first, reach] = [first, reach].map(|lane| wide.load(&[Matcher::lanes_of_32(lane); WIDEST]));
                let mut least = wide.load(&[u128::MAX; WIDEST]);
                for _ in 0..steps {
                    for output in encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide)) {
                        least = wide.min32(least, wide.sub32(output, first));
                    }
                }
                // All lanes have a bit, those above the range a set one.
                wide.below32(reach, least) != u32::MAX >> (32 - 4 * W::BLOCKS)
            }
        };
        offset || extra != 0
    }
}

/// A bit for every block of the database: whether a hint's select value there is below the cutoff. There are as many blocks as bits.
pub(in crate::prf::aes) struct Below<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    /// The input of the first block.
    pub(in crate::prf::aes) low: u64,
    pub(in crate::prf::aes) cutoff: u32,
    pub(in crate::prf::aes) words: &'a mut [u64],
}

impl Work for Below<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let keys = schedule(wide, self.keys);
        let cutoff = wide.load(&[Matcher::lanes_of_32(self.cutoff); WIDEST]);
        let mut inputs = Inputs::new(wide, self.low, NEXT_BLOCK, SELECT);
        // Select values of a register.
        let lanes = 4 * W::BLOCKS;
        for words in self.words.chunks_mut(BLOCKS_AT_A_TIME / 64) {
            let mut bits = 0_u128;
            for first in (0..BLOCKS_AT_A_TIME).step_by(IN_FLIGHT * lanes) {
                for (i, output) in encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide)).into_iter().enumerate() {
                    bits |= u128::from(wide.below32(output, cutoff)) << (first + i * lanes);
                }
            }
            for (word, bits) in words.iter_mut().zip([bits as u64, (bits >> 64) as u64]) {
                *word = bits;
            }
        }
    }
}

/// The blocks of bits, written with whole registers.
pub(in crate::prf::aes) struct Blocks<'a> {
    pub(in crate::prf::aes) words: &'a [u64],
    pub(in crate::prf::aes) others: bool,
    pub(in crate::prf::aes) blocks: u32,
    pub(in crate::prf::aes) places: &'a mut [Place],
}

impl Work for Blocks<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<W: Wide>(self, _: W) -> usize {
        blocks_of_bits(self.words, self.others, self.blocks, self.places)
    }
}

/// The offsets of a hint in the blocks of some places.
pub(in crate::prf::aes) struct OffsetsAt<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    /// The group of the hint, and its lane in there.
    pub(in crate::prf::aes) group: u64,
    pub(in crate::prf::aes) lane: u32,
    pub(in crate::prf::aes) offsets: Offsets,
    pub(in crate::prf::aes) places: &'a mut [Place],
}

impl Work for OffsetsAt<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let Self { group, lane, offsets, places, .. } = self;
        let keys = schedule(wide, self.keys);
        let mut outputs = [0; IN_FLIGHT * WIDEST];
        let mut chunks = places.chunks_exact_mut(IN_FLIGHT * W::BLOCKS);
        for chunk in &mut chunks {
            encrypt_at(wide, &keys, group, chunk, &mut outputs);
            read_offsets(offsets, &outputs, lane, chunk);
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let mut padded = [Place { block: 0, offset: 0 }; IN_FLIGHT * WIDEST];
            padded[..rest.len()].copy_from_slice(rest);
            encrypt_at(wide, &keys, group, &padded[..IN_FLIGHT * W::BLOCKS], &mut outputs);
            read_offsets(offsets, &outputs, lane, rest);
        }
    }
}

/// The outputs of a group of hints in the blocks of as many places as are in flight.
#[inline(always)]
fn encrypt_at<W: Wide>(
    wide: W,
    keys: &[W::Vector; ROUND_KEYS],
    group: u64,
    places: &[Place],
    outputs: &mut [u128; IN_FLIGHT * WIDEST],
) {
    let mut inputs = [keys[0]; IN_FLIGHT];
    for (input, places) in inputs.iter_mut().zip(places.chunks_exact(W::BLOCKS)) {
        *input = wide.at_places(places, group, OFFSET);
    }
    for (room, output) in outputs.chunks_exact_mut(W::BLOCKS).zip(encrypt(wide, keys, inputs)) {
        wide.store(output, room);
    }
}

/// The offsets in one lane of the outputs.
#[inline(always)]
fn read_offsets(offsets: Offsets, outputs: &[u128], lane: u32, places: &mut [Place]) {
    let lane = lane as usize;
    match offsets.lanes {
        Lanes::Eight => {
            // SAFETY: every bit pattern is a number of either type.
            let (_, lanes, _) = unsafe { outputs.align_to::<u16>() };
            for (place, bits) in places.iter_mut().zip(lanes[lane..].iter().step_by(8)) {
                place.offset = offsets.of_bits(u32::from(*bits));
            }
        }
        Lanes::Four => {
            // SAFETY: every bit pattern is a number of either type.
            let (_, lanes, _) = unsafe { outputs.align_to::<u32>() };
            for (place, bits) in places.iter_mut().zip(lanes[lane..].iter().step_by(4)) {
                place.offset = offsets.of_bits(*bits);
            }
        }
    }
}
