//! The rows, in chunks that an epoch change can replace one by one.
//!
//! All chunks of a fresh matrix lie in one allocation, on huge pages where the system gives them: a scan then loses no time to the
//! page walker. A merge of pending updates copies only the chunks it changes ([`Matrix::with_updates`]) and shares the rest.

use std::ops::Range;
use std::sync::Arc;
use std::{io, ptr, slice};

use assay_harness::machine;

use crate::lcg;

/// Chunks are as close to this many bytes as whole groups of rows allow; the document's benchmark uses 4 MiB.
const CHUNK_BYTES: usize = 4 << 20;

/// Every chunk, tile and thread starts at a row that is a multiple of this, so that no two of them share a word of selection bits
/// or a leaf of a distributed point function.
pub const ROW_GROUP: usize = 256;

/// A pending change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The row.
    pub row: usize,
    /// The XOR difference; as long as a row.
    pub difference: Vec<u8>,
}

/// Rows of equal size.
#[derive(Debug, Clone)]
pub struct Matrix {
    rows: usize,
    row_size: usize,
    chunk_rows: usize,
    chunks: Vec<Chunk>,
}

/// Consecutive rows.
#[derive(Debug, Clone)]
struct Chunk {
    region: Arc<Region>,
    bytes: Range<usize>,
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        &self.region.bytes()[self.bytes.clone()]
    }
}

/// A run of consecutive rows in one piece of memory.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The number of its first row in the matrix; a multiple of [`ROW_GROUP`].
    pub first_row: usize,
    /// Its rows, one after the other.
    pub bytes: &'a [u8],
}

impl Matrix {
    /// A matrix filled by the document's generator, on pages of a kind.
    ///
    /// # Errors
    ///
    /// When the system has no memory for it.
    ///
    /// # Panics
    ///
    /// When there are no rows, or the row size is not a multiple of 64 from 64 to 4096.
    pub fn generate(pages: Pages, rows: usize, row_size: usize, seed: u64) -> io::Result<Self> {
        assert!(rows > 0, "a matrix has rows");
        assert!((64..=4096).contains(&row_size) && row_size.is_multiple_of(64), "a row has whole cache lines");
        let bytes = rows.checked_mul(row_size).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut region = Region::new(bytes, pages)?;
        lcg::fill(region.bytes_mut(), seed, 0);
        let region = Arc::new(region);
        let chunk_rows = CHUNK_BYTES / row_size / ROW_GROUP * ROW_GROUP;
        let chunk_bytes = chunk_rows * row_size;
        let chunks = (0..bytes)
            .step_by(chunk_bytes)
            .map(|start| Chunk { region: region.clone(), bytes: start..bytes.min(start + chunk_bytes) })
            .collect();
        Ok(Self { rows, row_size, chunk_rows, chunks })
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of one row.
    #[must_use]
    pub fn row_size(&self) -> usize {
        self.row_size
    }

    /// Bytes of all rows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * self.row_size
    }

    /// One row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        let start = row % self.chunk_rows * self.row_size;
        &self.chunks[row / self.chunk_rows].bytes()[start..start + self.row_size]
    }

    /// The chunks, cut to the rows in `range`, which must start at a multiple of [`ROW_GROUP`].
    pub fn parts(&self, range: Range<usize>) -> impl Iterator<Item = Part<'_>> {
        debug_assert!(range.start.is_multiple_of(ROW_GROUP) && range.end <= self.rows);
        self.chunks.iter().enumerate().filter_map(move |(i, chunk)| {
            let first = i * self.chunk_rows;
            let (start, end) = (range.start.max(first), range.end.min(first + self.chunk_rows));
            let bytes =
                (start < end).then(|| &chunk.bytes()[(start - first) * self.row_size..(end - first) * self.row_size]);
            bytes.map(|bytes| Part { first_row: start, bytes })
        })
    }

    /// `threads` ranges of about equally many rows that together are all of them. Some are empty if there are few rows.
    #[must_use]
    pub fn split(&self, threads: usize) -> Vec<Range<usize>> {
        let groups = self.rows.div_ceil(ROW_GROUP);
        let start = |thread: usize| (groups * thread / threads * ROW_GROUP).min(self.rows);
        (0..threads).map(|thread| start(thread)..start(thread + 1)).collect()
    }

    /// The matrix after `updates`: chunks that no update touches are shared with this one.
    ///
    /// # Errors
    ///
    /// When the system has no memory for the changed chunks.
    pub fn with_updates(&self, updates: &[Update]) -> io::Result<Self> {
        let mut next = self.clone();
        let mut copied = vec![false; self.chunks.len()];
        for update in updates {
            let (index, row) = (update.row / self.chunk_rows, update.row % self.chunk_rows);
            let chunk = &mut next.chunks[index];
            if !copied[index] {
                let mut region = Region::new(chunk.bytes.len(), chunk.region.pages)?;
                region.bytes_mut().copy_from_slice(chunk.bytes());
                *chunk = Chunk { bytes: 0..chunk.bytes.len(), region: Arc::new(region) };
                copied[index] = true;
            }
            let region = Arc::get_mut(&mut chunk.region).expect("a chunk that was just copied has one owner");
            let bytes = &mut region.bytes_mut()[row * self.row_size..][..self.row_size];
            for (byte, difference) in bytes.iter_mut().zip(&update.difference) {
                *byte ^= difference;
            }
        }
        Ok(next)
    }

    /// How many of its bytes lie on huge pages, as far as the system says. Asked for is not given.
    #[must_use]
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let mut regions: Vec<&Arc<Region>> = self.chunks.iter().map(|chunk| &chunk.region).collect();
        regions.dedup_by(|a, b| Arc::ptr_eq(a, b));
        regions.into_iter().map(|region| machine::huge_page_bytes(region.bytes())).sum()
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }
}

/// Requested page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Two megabytes each, where the system gives them.
    Huge,
    /// The system's own size.
    Small,
}

/// Anonymous memory, zeroed, aligned to huge pages, and advised to use them or not.
#[derive(Debug)]
struct Region {
    pages: Pages,
    mapping: *mut libc::c_void,
    mapped: usize,
    start: *mut u8,
    length: usize,
}

// SAFETY: a region owns its memory, and hands it out by the usual rules of borrowing.
unsafe impl Send for Region {}
// SAFETY: as above; through a shared region the memory can only be read.
unsafe impl Sync for Region {}

impl Region {
    const HUGE_PAGE: usize = 2 << 20;

    fn new(length: usize, pages: Pages) -> io::Result<Self> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let mapped = length.checked_add(Self::HUGE_PAGE).ok_or_else(out_of_memory)?;
        // SAFETY: a new anonymous mapping, anywhere, disturbs no other memory.
        let mapping = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), mapped, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let offset = mapping.cast::<u8>().align_offset(Self::HUGE_PAGE);
        // SAFETY: the offset is less than a huge page, by which the mapping is longer than `length`.
        let start = unsafe { mapping.cast::<u8>().add(offset) };
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        // Miri has no such call.
        if !cfg!(miri) {
            // SAFETY: the range lies within the mapping made above; the advice does not change its contents. It is
            // optional, and the result reports its effect.
            unsafe { libc::madvise(start.cast(), length, advice) };
        }
        Ok(Self { pages, mapping, mapped, start, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` are mapped and initialised (to zero at first) for as long as `self` lives, and
        // nothing writes them while `self` is borrowed.
        unsafe { slice::from_raw_parts(self.start, self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing borrows from it any more.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_run_on_across_chunks_as_in_one_piece() {
        let matrix = Matrix::generate(Pages::Huge, 9000, 1024, 7).unwrap();
        assert_eq!(matrix.chunks(), 3);
        let mut expected = vec![0; 9000 * 1024];
        lcg::fill(&mut expected, 7, 0);
        for (row, bytes) in expected.chunks(1024).enumerate() {
            assert_eq!(matrix.row(row), bytes, "row {row}");
        }
    }

    #[test]
    fn small_pages_are_given_where_they_are_asked_for_and_hold_the_same() {
        let [huge, small] = [Pages::Huge, Pages::Small].map(|pages| Matrix::generate(pages, 40_000, 256, 7).unwrap());
        assert_eq!(small.huge_page_bytes().unwrap_or(0), 0);
        assert!(huge.huge_page_bytes().is_none_or(|bytes| bytes <= (10 << 20) && bytes.is_multiple_of(2 << 20)));
        assert!((0..40_000).all(|row| huge.row(row) == small.row(row)));
        let next = small.with_updates(&[Update { row: 0, difference: vec![1; 256] }]).unwrap();
        assert_eq!(next.huge_page_bytes(), small.huge_page_bytes());
    }

    #[test]
    fn parts_cover_a_range_once() {
        let matrix = Matrix::generate(Pages::Huge, 9001, 1024, 7).unwrap();
        for threads in [1, 2, 3, 64] {
            let mut row = 0;
            for range in matrix.split(threads) {
                for part in matrix.parts(range) {
                    assert_eq!(part.first_row, row);
                    assert_eq!(part.bytes[..1024], *matrix.row(row));
                    row += part.bytes.len() / 1024;
                }
            }
            assert_eq!(row, 9001);
        }
    }

    #[test]
    fn a_merge_copies_only_the_chunks_it_changes() {
        let matrix = Matrix::generate(Pages::Huge, 9001, 1024, 7).unwrap();
        let update = |row| Update { row, difference: vec![0xff; 1024] };
        let next = matrix.with_updates(&[update(0), update(9000), update(0), update(1)]).unwrap();
        let pairs = next.chunks.iter().zip(&matrix.chunks);
        let shared = pairs.filter(|(a, b)| Arc::ptr_eq(&a.region, &b.region) && a.bytes == b.bytes);
        assert_eq!(shared.count(), 1);
        assert_eq!(next.row(0), matrix.row(0));
        assert!(next.row(1).iter().zip(matrix.row(1)).all(|(a, b)| a ^ b == 0xff));
        assert!(next.row(9000).iter().zip(matrix.row(9000)).all(|(a, b)| a ^ b == 0xff));
    }
}
