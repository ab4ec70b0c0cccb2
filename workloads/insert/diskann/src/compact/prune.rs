//! Neighbour selection of the Vamana graph.
//!
//! From the closest candidate to the farthest, each is selected unless an already selected neighbour is much closer to
//! it than the node is. The remaining edges point in all directions, and a few are long.

/// How much closer, on squared distances: the document's constant.
const ALPHA: f32 = 1.4;

/// A possible neighbour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Squared distance to the node.
    pub distance: f32,
    /// Which vector, from zero.
    pub slot: u32,
}

/// At most `most` of the candidates, which are sorted by distance. `squared` says how far two of them lie from each other.
pub fn select(candidates: &[Candidate], most: usize, mut squared: impl FnMut(u32, u32) -> f32) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::with_capacity(most);
    for candidate in candidates {
        if kept.len() == most {
            break;
        }
        if kept.iter().all(|&earlier| candidate.distance <= ALPHA * squared(earlier, candidate.slot)) {
            kept.push(candidate.slot);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(points: &[[f32; 2]], most: usize) -> Vec<u32> {
        let mut candidates: Vec<Candidate> = (0..)
            .zip(points)
            .map(|(slot, point)| Candidate { distance: point[0] * point[0] + point[1] * point[1], slot })
            .collect();
        candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        select(&candidates, most, |a, b| {
            let [a, b] = [a, b].map(|slot| points[slot as usize]);
            (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
        })
    }

    #[test]
    fn one_is_kept_per_direction() {
        assert_eq!(selected(&[[2.0, 0.0], [1.0, 0.0], [0.0, 3.0], [3.0, 0.1], [-5.0, 0.0]], 8), [1, 2, 4]);
    }

    #[test]
    fn no_more_vectors_than_requested() {
        assert_eq!(selected(&[[1.0, 0.0], [-1.1, 0.0], [0.0, 1.2]], 2), [0, 1]);
        assert!(selected(&[], 2).is_empty());
    }
}
