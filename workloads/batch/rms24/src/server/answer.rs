//! Adding up entries: random reads of a large memory.

use assay_harness::prefetch;

use crate::database::{Database, Entries, Layout};
use crate::geometry::{Geometry, Place};
use crate::prf::{ROOM, blocks_of_bits};
use crate::query::Question;
use crate::wire::Answering;

/// How far ahead of the adding entries are asked for. On an Intel Xeon half of it was slower and half as much again no faster.
const AHEAD: usize = 32;

/// Returns the sums of a question's entries, or an error text.
///
/// # Errors
///
/// If the question does not match the database.
pub fn answer(database: &Database, question: &Question, answering: Answering) -> Result<Vec<u8>, String> {
    check(database.geometry(), question)?;
    let sum = |places: &[Place]| match (database, answering) {
        (Database::Memory(layout), Answering::Copy) => add_copies(layout, places),
        (Database::Memory(layout), Answering::Prefetch) => add_ahead(layout, places),
        (Database::Computed(entries), _) => add_computed(*entries, places),
    };
    Ok(match question {
        Question::Pairs(places) => sum(places),
        Question::Halves { mask, offsets } => {
            let (ones, zeroes) = halves(database.geometry(), mask, offsets);
            [ones, zeroes].map(|half| sum(&half)).concat()
        }
    })
}

fn check(geometry: Geometry, question: &Question) -> Result<(), String> {
    let (blocks, size) = (geometry.blocks(), geometry.block_size());
    match question {
        Question::Pairs(places) if places.len() > blocks as usize => {
            Err(format!("{} places; there are {blocks} blocks", places.len()))
        }
        Question::Pairs(places) => {
            let is_outside = |place: &&Place| (place.block >= blocks) | (place.offset >= size);
            // All are looked at without a branch; which one it was matters to the message only.
            let any = places.iter().fold(false, |any, place| any | is_outside(&place));
            let outside = if any { places.iter().find(is_outside) } else { None };
            outside.map_or(Ok(()), |Place { block, offset }| {
                Err(format!("no entry {block}:{offset}: there are {blocks} blocks of {size} entries"))
            })
        }
        Question::Halves { mask, offsets } => {
            if offsets.len() != geometry.half() {
                return Err(format!("halves of {} blocks; there are {blocks} blocks", 2 * offsets.len()));
            }
            let ones: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
            let beyond = blocks % 8 != 0 && mask.last().is_some_and(|last| last >> (blocks % 8) != 0);
            if ones as usize != geometry.half() || beyond {
                return Err(format!("a mask of {ones} blocks; half of them are {}", geometry.half()));
            }
            let outside = offsets.iter().max().filter(|offset| u32::from(**offset) >= size);
            outside.map_or(Ok(()), |offset| Err(format!("no offset {offset}: blocks have {size} entries")))
        }
    }
}

/// The places of the blocks whose bit is set, and of the others. Both take their offsets from the same list.
fn halves(geometry: Geometry, mask: &[u8], offsets: &[u16]) -> (Vec<Place>, Vec<Place>) {
    let word = |bytes: &[u8]| (0..).zip(bytes).fold(0, |word, (i, byte)| word | u64::from(*byte) << (8 * i));
    let words: Vec<u64> = mask.chunks(8).map(word).collect();
    let others: Vec<u64> = words.iter().map(|word| !word).collect();
    let half = |words: &[u64]| {
        let mut places = vec![Place { block: 0, offset: 0 }; offsets.len() + ROOM];
        let count = blocks_of_bits(words, geometry.blocks(), &mut places);
        places.truncate(count);
        for (place, offset) in places.iter_mut().zip(offsets) {
            place.offset = u32::from(*offset);
        }
        places
    };
    (half(&words), half(&others))
}

/// The document's way.
fn add_copies(database: &Layout, places: &[Place]) -> Vec<u8> {
    let mut sum = vec![0_u8; database.geometry().entry_size()];
    for place in places {
        let entry: Vec<u8> = database.entry(*place).iter().flat_map(|word| word.to_le_bytes()).collect();
        for (sum, byte) in sum.iter_mut().zip(std::hint::black_box(entry)) {
            *sum ^= byte;
        }
    }
    sum
}

fn add_computed(entries: Entries, places: &[Place]) -> Vec<u8> {
    let geometry = entries.geometry();
    let mut sum = vec![0; geometry.entry_words()];
    for place in places {
        entries.xor_into(geometry.index(*place), &mut sum);
    }
    bytes(&sum)
}

fn add_ahead(database: &Layout, places: &[Place]) -> Vec<u8> {
    match database.geometry().entry_words() {
        4 => add_words::<4>(database, places),
        5 => add_words::<5>(database, places),
        words => add_any(database, places, words),
    }
}

fn add_words<const WORDS: usize>(database: &Layout, places: &[Place]) -> Vec<u8> {
    let (geometry, words) = (database.geometry(), database.words());
    let at = |place: &Place| geometry.index(*place) as usize * WORDS;
    let mut sum = [0; WORDS];
    for (i, place) in places.iter().enumerate() {
        if let Some(later) = places.get(i + AHEAD) {
            let start = words.as_ptr().wrapping_add(at(later));
            prefetch::line(start);
            // An entry that divides a cache line lies in one, for the first is at the start of a page.
            if 8 % WORDS != 0 {
                prefetch::line(start.wrapping_add(WORDS - 1));
            }
        }
        let entry: &[u64; WORDS] = words[at(place)..].first_chunk().expect("places were checked");
        for (sum, word) in sum.iter_mut().zip(entry) {
            *sum ^= word;
        }
    }
    bytes(&sum)
}

fn add_any(database: &Layout, places: &[Place], words: usize) -> Vec<u8> {
    let mut sum = vec![0; words];
    for (i, place) in places.iter().enumerate() {
        if let Some(later) = places.get(i + AHEAD) {
            prefetch::lines(database.entry(*later));
        }
        for (sum, word) in sum.iter_mut().zip(database.entry(*place)) {
            *sum ^= word;
        }
    }
    bytes(&sum)
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
