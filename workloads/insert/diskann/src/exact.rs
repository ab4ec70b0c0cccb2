//! The true nearest neighbours, by comparing with every vector, and how many of them an index finds.

use crate::index::Stored;

/// Neighbours that are asked for.
pub const K: usize = 10;

/// The ids (from one) of the `k` vectors closest to `query`, of equally close ones the first. In double precision and in order, so that
/// every machine agrees.
#[must_use]
pub fn nearest<'a>(query: &[f32], vectors: impl Iterator<Item = (u64, &'a [f32])>, k: usize) -> Vec<u64> {
    let mut best: Vec<(f64, u64)> = Vec::with_capacity(k + 1);
    for (id, vector) in vectors {
        let distance = squared(query, vector);
        if best.len() == k && best.last().is_some_and(|(worst, _)| *worst <= distance) {
            continue;
        }
        let at = best.partition_point(|(earlier, _)| *earlier <= distance);
        best.insert(at, (distance, id));
        best.truncate(k);
    }
    best.into_iter().map(|(_, id)| id).collect()
}

/// The squared distance in double precision.
#[must_use]
pub fn squared(a: &[f32], b: &[f32]) -> f64 {
    // Four sums, always the same four: quick without any special instruction, and the same everywhere.
    let mut sums = [0.0_f64; 4];
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        let difference = f64::from(*x) - f64::from(*y);
        sums[i % 4] += difference * difference;
    }
    sums[0] + sums[1] + (sums[2] + sums[3])
}

/// The share of the true neighbours that were found, over all queries. `None` without any.
#[must_use]
pub fn recall(truth: &[Vec<u64>], found: &[Vec<u64>]) -> Option<f64> {
    let wanted: usize = truth.iter().map(Vec::len).sum();
    let hit = |(truth, found): (&Vec<u64>, &Vec<u64>)| truth.iter().filter(|id| found.contains(id)).count();
    (wanted > 0).then(|| truth.iter().zip(found).map(hit).sum::<usize>() as f64 / wanted as f64)
}

/// Exact search of the stored vectors with the code that evaluates an index. Its recall against the truth must be 1.0.
/// Otherwise ids are shifted, vectors are lost or the truth belongs to other data, and every recall is invalid.
#[must_use]
pub fn control(stored: &[Stored], queries: &[&[f32]]) -> Vec<Vec<u64>> {
    let search = |query: &&[f32]| nearest(query, stored.iter().map(|s| (s.id, s.vector.as_slice())), K);
    queries.iter().map(search).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_nearest_are_those_that_sorting_everything_gives(
            points in prop::collection::vec((0_u8..9, 0_u8..9), 1..60),
            k in 1_usize..12
        ) {
            let points: Vec<[f32; 2]> = points.into_iter().map(|(x, y)| [x.into(), y.into()]).collect();
            let query = [4.0, 4.0];
            let mut all: Vec<(f64, u64)> = (1..).zip(&points).map(|(id, p)| (squared(&query, p), id)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let expected: Vec<u64> = all.into_iter().take(k).map(|(_, id)| id).collect();
            prop_assert_eq!(nearest(&query, (1..).zip(points.iter().map(|p| &p[..])), k), expected);
        }
    }

    #[test]
    fn recall_is_the_share_of_true_neighbours() {
        let truth = [vec![1, 2, 3, 4], vec![5, 6]];
        assert_eq!(recall(&truth, &truth), Some(1.0));
        assert_eq!(recall(&truth, &[vec![4, 9, 8, 7], vec![6, 5]]), Some(0.5));
        assert_eq!(recall(&[], &[]), None);
    }

    #[test]
    fn control_detects_shifted_ids_and_lost_vectors() {
        let stored: Vec<Stored> =
            (1..=30_u8).map(|i| Stored { id: i.into(), vector: vec![f32::from(i) * f32::from(i)] }).collect();
        let query = [100.0];
        let truth = vec![nearest(&query, stored.iter().map(|s| (s.id, s.vector.as_slice())), K)];
        let score = |stored: &[Stored]| recall(&truth, &control(stored, &[&query])).unwrap();
        assert_eq!(score(&stored), 1.0);
        let shifted: Vec<Stored> = stored.iter().map(|s| Stored { id: s.id + 1, vector: s.vector.clone() }).collect();
        assert!(score(&shifted) < 1.0);
        let lost: Vec<Stored> = stored.iter().filter(|s| s.id != 10).cloned().collect();
        assert!(score(&lost) < 1.0);
    }
}
