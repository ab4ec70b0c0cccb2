//! Which neighbours a node keeps: the rule of the Vamana graph.
//!
//! From the closest candidate to the farthest: one is kept unless a neighbour that was kept already is much closer to it than the node
//! is. What remains points in all directions, and a few edges are long.

use crate::distance::Meter;

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

/// At most `most` of the candidates, which are sorted by distance.
pub fn select<'a>(
    candidates: &[Candidate],
    most: usize,
    vector: impl Fn(u32) -> &'a [f32],
    meter: &mut Meter,
) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::with_capacity(most);
    for candidate in candidates {
        if kept.len() == most {
            break;
        }
        let own = vector(candidate.slot);
        if kept.iter().all(|&earlier| candidate.distance <= ALPHA * meter.squared(vector(earlier), own)) {
            kept.push(candidate.slot);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::Distance;

    fn selected(points: &[[f32; 2]], most: usize) -> Vec<u32> {
        let mut candidates: Vec<Candidate> = (0..)
            .zip(points)
            .map(|(slot, point)| Candidate { distance: point[0] * point[0] + point[1] * point[1], slot })
            .collect();
        candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        select(&candidates, most, |slot| &points[slot as usize], &mut Meter::new(Distance::SCALAR))
    }

    #[test]
    fn one_is_kept_per_direction() {
        assert_eq!(selected(&[[2.0, 0.0], [1.0, 0.0], [0.0, 3.0], [3.0, 0.1], [-5.0, 0.0]], 8), [1, 2, 4]);
    }

    #[test]
    fn no_more_than_asked_for() {
        assert_eq!(selected(&[[1.0, 0.0], [-1.1, 0.0], [0.0, 1.2]], 2), [0, 1]);
        assert!(selected(&[], 2).is_empty());
    }
}
