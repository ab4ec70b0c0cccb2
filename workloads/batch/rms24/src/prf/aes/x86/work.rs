//! The work, for registers of any width: eight of them are in flight, which hides the latency of a round.

use assay_harness::aes::ROUND_KEYS;

use super::wide::{WIDEST, Wide, Work};
use crate::geometry::Place;
use crate::prf::aes::layout::{Cut, Matcher, NEXT_BLOCK, OFFSET, Offsets, SELECT, Wanted};
use crate::prf::aes::list::{AT_MOST, List};

/// Registers in flight.
const IN_FLIGHT: usize = 8;
/// Words of bits that are written at a time: as many as the outputs of the widest registers in flight have lanes of 16 bits.
const WORDS_AT_A_TIME: usize = 4;

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
            *block = wide.in_order(wide.round(*block, *key));
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

/// How many outputs, the first ones, hold no offset that is looked for: all, or some whole chunks. No true match is among them.
pub(in crate::prf::aes) struct Skip<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    pub(in crate::prf::aes) matcher: &'a Matcher,
    /// The first input, and how many follow in steps of one.
    pub(in crate::prf::aes) low: u64,
    pub(in crate::prf::aes) outputs: usize,
    /// Outputs of a chunk.
    pub(in crate::prf::aes) chunk: usize,
}

impl Work for Skip<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> usize {
        let keys = schedule(wide, self.keys);
        let mut inputs = Inputs::new(wide, self.low, 1, OFFSET);
        // A few more outputs may be looked at than a chunk has; a chunk of the widest registers in flight has none.
        let steps = self.chunk.div_ceil(IN_FLIGHT * W::BLOCKS);
        let mut starts = (0..self.outputs).step_by(self.chunk);
        let close = match self.matcher.0 {
            Wanted::Bits { mask, bits } => {
                let [mask, bits] = [mask, bits].map(|lane| wide.load(&[Matcher::lanes_of_16(lane); WIDEST]));
                starts.find(|_| {
                    let mut near = wide.none_near16();
                    for _ in 0..steps {
                        for output in encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide)) {
                            near = wide.look16(near, wide.and(output, mask), bits);
                        }
                    }
                    wide.any_near16(near)
                })
            }
            Wanted::Range { first, reach } => {
                let [first, reach] = [first, reach].map(|lane| wide.load(&[Matcher::lanes_of_32(lane); WIDEST]));
                starts.find(|_| {
                    let mut near = wide.none_near32();
                    for _ in 0..steps {
                        for output in encrypt(wide, &keys, inputs.take::<IN_FLIGHT>(wide)) {
                            near = wide.look32(near, wide.sub32(output, first), reach);
                        }
                    }
                    wide.any_near32(near, reach)
                })
            }
        };
        close.unwrap_or(self.outputs)
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
        let inputs = Inputs::new(wide, self.low, NEXT_BLOCK, SELECT);
        write_bits(wide, &keys, inputs, 4 * W::BLOCKS, self.words, |output| wide.below32(output, cutoff));
    }
}

/// A bit for every hint of some groups: whether it has the offset that is looked for.
pub(in crate::prf::aes) struct Matches<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    pub(in crate::prf::aes) matcher: &'a Matcher,
    /// The input of the first group; those of the others follow in steps of one.
    pub(in crate::prf::aes) low: u64,
    pub(in crate::prf::aes) words: &'a mut [u64],
}

impl Work for Matches<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let keys = schedule(wide, self.keys);
        let inputs = Inputs::new(wide, self.low, 1, OFFSET);
        match self.matcher.0 {
            Wanted::Bits { mask, bits } => {
                let [mask, bits] = [mask, bits].map(|lane| wide.load(&[Matcher::lanes_of_16(lane); WIDEST]));
                let equal = |output| wide.equal16(wide.and(output, mask), bits);
                write_bits(wide, &keys, inputs, 8 * W::BLOCKS, self.words, equal);
            }
            Wanted::Range { first, reach } => {
                let [first, reach] = [first, reach].map(|lane| wide.load(&[Matcher::lanes_of_32(lane); WIDEST]));
                let all = u32::MAX >> (32 - 4 * W::BLOCKS);
                let within = |output| wide.below32(reach, wide.sub32(output, first)) ^ all;
                write_bits(wide, &keys, inputs, 4 * W::BLOCKS, self.words, within);
            }
        }
    }
}

/// Writes the bits of every output, with `lanes` lanes each.
#[inline(always)]
fn write_bits<W: Wide>(
    wide: W,
    keys: &[W::Vector; ROUND_KEYS],
    mut inputs: Inputs<W>,
    lanes: usize,
    words: &mut [u64],
    bits: impl Fn(W::Vector) -> u32,
) {
    for words in words.chunks_mut(WORDS_AT_A_TIME) {
        let mut room = [0; WORDS_AT_A_TIME];
        for first in (0..64 * WORDS_AT_A_TIME).step_by(IN_FLIGHT * lanes) {
            for (i, output) in encrypt(wide, keys, inputs.take::<IN_FLIGHT>(wide)).into_iter().enumerate() {
                // A word has room for the lanes of whole registers.
                let at = first + i * lanes;
                room[at / 64] |= u64::from(bits(output)) << (at % 64);
            }
        }
        words.copy_from_slice(&room[..words.len()]);
    }
}

/// The blocks of bits with the offsets of a hint there, and the other blocks with the same offsets one by one.
pub(in crate::prf::aes) struct Expand<'a> {
    pub(in crate::prf::aes) keys: &'a [u128; ROUND_KEYS],
    /// The group of the hint, and its lane in there.
    pub(in crate::prf::aes) group: u64,
    pub(in crate::prf::aes) lane: u32,
    pub(in crate::prf::aes) offsets: Offsets,
    pub(in crate::prf::aes) words: &'a [u64],
    pub(in crate::prf::aes) blocks: u32,
    pub(in crate::prf::aes) places: &'a mut [Place],
    /// Where the others go, if they are wanted.
    pub(in crate::prf::aes) others: Option<&'a mut [Place]>,
}

impl Work for Expand<'_> {
    type Output = usize;

    /// Offset computation uses one execution unit; other blocks are listed meanwhile, while their bits are in the
    /// first-level cache.
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> usize {
        let Self { group, lane, offsets, words, blocks, places, .. } = self;
        let keys = schedule(wide, self.keys);
        let step = IN_FLIGHT * W::BLOCKS;
        let mut list = List::new(words, false, blocks);
        let mut others = self.others.map(|places| (List::new(words, true, blocks), places));
        let mut done = 0;
        while list.add_word(&[], places) {
            // Excludes the latest writes, because a read of data in the store buffer stalls.
            while done + step + AT_MOST <= list.count {
                offsets_in(wide, &keys, group, lane, offsets, &mut places[done..done + step]);
                done += step;
            }
            if let Some((others, room)) = &mut others {
                while others.count + AT_MOST <= done && others.add_word(&places[..done], room) {}
            }
        }
        let mut padded = [Place { block: 0, offset: 0 }; IN_FLIGHT * WIDEST];
        for rest in places[done..list.count].chunks_mut(step) {
            padded[..rest.len()].copy_from_slice(rest);
            offsets_in(wide, &keys, group, lane, offsets, &mut padded[..step]);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
        if let Some((others, room)) = &mut others {
            let with_offsets = others.count;
            while others.add_word(&[], room) {}
            for (other, place) in room.iter_mut().zip(&places[..list.count.min(others.count)]).skip(with_offsets) {
                other.offset = place.offset;
            }
        }
        list.count
    }
}

/// Writes the offsets in the blocks of as many places as are in flight.
#[inline(always)]
fn offsets_in<W: Wide>(
    wide: W,
    keys: &[W::Vector; ROUND_KEYS],
    group: u64,
    lane: u32,
    offsets: Offsets,
    places: &mut [Place],
) {
    let mut inputs = [keys[0]; IN_FLIGHT];
    for (input, places) in inputs.iter_mut().zip(places.chunks_exact(W::BLOCKS)) {
        *input = wide.at_places(places, group, OFFSET);
    }
    let Cut { lane, shift, factor } = offsets.cut(lane);
    let [shift, factor] = [shift, factor].map(|value| wide.load(&[Matcher::lanes_of_32(value); WIDEST]));
    let outputs = encrypt(wide, keys, inputs);
    for (two, places) in outputs.chunks_exact(2).zip(places.chunks_exact_mut(2 * W::BLOCKS)) {
        let bits = wide.shl32(wide.lanes32([two[0], two[1]], lane), shift);
        wide.put_offsets(wide.mul32(bits, factor), places);
    }
}
