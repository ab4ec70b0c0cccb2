//! Coordinates that begin with a cache line: where vectors are as long as whole lines, no load of a distance lies across two.

use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};

/// Coordinates in a line.
const PER_LINE: usize = 16;

/// A cache line, which is as long as the widest vector that is loaded.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; PER_LINE]);

// SAFETY: numbers without padding, which may all be zero.
unsafe impl Zeroable for Line {}
// SAFETY: numbers without padding, and all bytes are numbers.
unsafe impl Pod for Line {}

/// Coordinates, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Coordinates {
    lines: Vec<Line>,
    len: usize,
}

impl Coordinates {
    /// Grows to `len` coordinates; new ones are zero.
    pub(super) fn grow_to(&mut self, len: usize) {
        self.lines.resize(len.div_ceil(PER_LINE), Line::zeroed());
        self.len = len;
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (size_of::<Line>() * self.lines.capacity()) as u64
    }
}

impl From<&[f32]> for Coordinates {
    fn from(coordinates: &[f32]) -> Self {
        let mut copy = Self::default();
        copy.grow_to(coordinates.len());
        copy.copy_from_slice(coordinates);
        copy
    }
}

impl Deref for Coordinates {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for Coordinates {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_begin_with_a_line_and_stay_as_they_are() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let mut copy = Coordinates::from(&*numbers);
            assert!(*copy == *numbers && copy.as_ptr().addr().is_multiple_of(64), "{len}");
            copy.grow_to(2 * len);
            assert!(copy[..len] == *numbers && copy[len..].iter().all(|c| *c == 0.0), "{len}, made longer");
            assert!(copy.memory_bytes() >= 8 * len as u64);
        }
    }
}
