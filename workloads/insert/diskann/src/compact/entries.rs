//! Entry points of walks without a random start.
//!
//! In clustered data a vector's edges stay within its cluster, and the larger a cluster is, the fewer edges leave it.
//! From a single start a walk no longer finds every cluster, and vectors inserted there are connected to another one.
//! Landmarks from the whole index give access to each cluster. An index of layers (HNSW, Malkov and Yashunin 2016) has
//! its upper layers for that.

use super::deleted::Deleted;

/// Maximum number of landmarks, and four times the minimum if there are as many vectors: with 128 dimensions 128 KiB.
const LANDMARKS: usize = 256;

/// The slots where walks begin: the medoid, or the first vector where none is known, and landmarks. None in an empty index.
pub(super) fn entries(medoid: Option<u32>, len: usize, deleted: &Deleted) -> Vec<u32> {
    let first = || Some(deleted.next_slot(0)).filter(|slot| (*slot as usize) < len);
    medoid.or_else(first).into_iter().chain(landmarks(len, deleted)).collect()
}

/// Vectors at equal distances in the order of their ids, the same ones until the index has doubled. An odd number of slots apart: vectors
/// that are a power of two of bytes apart share few lines of a cache.
fn landmarks(len: usize, deleted: &Deleted) -> impl Iterator<Item = u32> {
    let step = (len.next_power_of_two() / LANDMARKS) | 1;
    (0..len).step_by(step).map(|slot| slot as u32).filter(|slot| !deleted.is_gone(*slot))
}

#[cfg(test)]
mod tests {
    use super::super::nodes::{Question, Seen, Walked, closest_found, search};
    use super::super::whole::{Still, Whole};
    use super::*;
    use crate::distance::{Distance, Meter, Path};
    use crate::index::NodeCache;

    #[test]
    fn there_are_enough_landmarks_and_not_too_many_and_they_stay() {
        let none = Deleted::default();
        for len in [1, 2, 100, 255, 256, 257, 1000, 4096, 10_000, 1_000_000] {
            let found: Vec<u32> = landmarks(len, &none).collect();
            assert!((len.min(LANDMARKS / 4)..=LANDMARKS).contains(&found.len()), "{} of {len}", found.len());
            let doubled: Vec<u32> = landmarks(len.next_power_of_two(), &none).collect();
            assert_eq!(doubled[..found.len()], found, "{len}");
        }
    }

    #[test]
    fn a_walk_begins_at_the_medoid_and_nowhere_that_is_gone() {
        let mut deleted = Deleted::default();
        assert_eq!(entries(None, 0, &deleted), [0_u32; 0]);
        assert_eq!(entries(Some(2), 4, &deleted), [2, 0, 1, 2, 3]);
        deleted.insert(0);
        deleted.insert(1);
        deleted.set_one_gone(0);
        assert_eq!(entries(None, 4, &deleted), [1, 1, 2, 3]);
    }

    /// Two clusters without an edge between them: the closest vectors are found from any medoid.
    #[test]
    fn search_finds_clusters_unreachable_from_the_medoid() {
        let (none, len) = (Deleted::default(), 2000);
        let place = |slot: u32| (slot % 2 * 1_000_000 + slot) as f32;
        let mut nodes = Whole::new(1, NodeCache::PerBatch);
        for slot in 0..len {
            nodes.append(&[place(slot)]);
        }
        for slot in 0..len {
            let neighbours = [slot.checked_sub(2), Some(slot + 2).filter(|next| *next < len)];
            nodes.fill_edges(slot, &neighbours.into_iter().flatten().collect::<Vec<_>>());
        }
        let mut seen = Seen::default();
        seen.resize(nodes.len());
        let mut meter = Meter::new(Distance::select(Path::Scalar).unwrap());
        for asked in (0..len).step_by(37) {
            for medoid in [0, 1, len - 1] {
                let starts = entries(Some(medoid), nodes.len(), &none);
                let question = Question { query: &[place(asked)], starts: &starts, list: 10 };
                let beam = search(&mut Still(&nodes), question, &none, &mut seen, &(), &mut meter).unwrap();
                assert_eq!(closest_found(&beam, 1, &none), [u64::from(asked) + 1], "from {medoid}");
            }
        }
    }
}
