//! Which edges a node keeps: the document's two rules.

use super::layout::{Block, Edge};
use crate::distance::Meter;

/// How much longer the way over a neighbour may be before an edge is needed, on squared distances: 1.18 on true ones.
const ALPHA: f32 = 1.4;
/// Pruning stops at so few edges.
const MIN_DEGREE: usize = 8;

/// Where in `node` an edge to `vector` would go: over the one to the same vector, at the end, or over the longest that is longer.
/// `None` where a neighbour of `node` is so close to `vector` that the edge is not needed, or all edges are shorter.
#[must_use]
pub fn place(node: &Block, id: u64, vector: &[f32], slots: usize, meter: &mut Meter) -> Option<(usize, f32)> {
    let distance = meter.squared(node.vector(), vector);
    let mut longest: Option<(usize, f32)> = None;
    for index in (0..node.edges()).rev() {
        let edge = node.edge(index);
        if edge.id == id {
            return Some((index, distance));
        }
        if distance > ALPHA * meter.squared(node.edge_vector(index), vector) {
            return None;
        }
        if edge.distance > distance && longest.is_none_or(|(_, longest)| edge.distance > longest) {
            longest = Some((index, edge.distance));
        }
    }
    if node.edges() < slots {
        return Some((node.edges(), distance));
    }
    longest.map(|(index, _)| (index, distance))
}

/// Takes out of `node` the edges that the one in slot `inserted` makes needless.
pub fn prune(node: &mut Block, inserted: usize, meter: &mut Meter) {
    // The last edge moves into a hole, so the slot of the new one may change. Its id does not.
    let id = node.edge(inserted).id;
    let vector = node.edge_vector(inserted).to_vec();
    let mut index = 0;
    while index < node.edges() && node.edges() > MIN_DEGREE {
        let edge = node.edge(index);
        if edge.id != id && edge.distance > ALPHA * meter.squared(&vector, node.edge_vector(index)) {
            node.remove_edge(index);
        } else {
            index += 1;
        }
    }
}

/// Gives `node` an edge to `vector` if it should have one, and prunes. Returns whether it did.
pub fn connect(node: &mut Block, id: u64, vector: &[f32], slots: usize, meter: &mut Meter) -> bool {
    let Some((index, distance)) = place(node, id, vector, slots, meter) else { return false };
    node.set_edge(index, Edge { id, distance }, vector);
    prune(node, index, meter);
    true
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::*;
    use crate::distance::Distance;

    fn meter() -> Meter {
        Meter::new(Distance::SCALAR)
    }

    /// A node at the origin of the plane with edges to `points`, whose ids count from 10.
    fn node(slots: usize, points: &[[f32; 2]]) -> Block {
        let layout = Layout::new(2, 24 + 24 * slots).unwrap();
        let mut block = Block::new(layout, 1, &[0.0, 0.0]);
        for (i, point) in points.iter().enumerate() {
            let distance = point[0] * point[0] + point[1] * point[1];
            block.set_edge(i, Edge { id: 10 + i as u64, distance }, point);
        }
        block
    }

    fn ids(node: &Block) -> Vec<u64> {
        (0..node.edges()).map(|i| node.edge(i).id).collect()
    }

    #[test]
    fn an_edge_goes_where_the_rule_says() {
        for (what, points, new, expected) in [
            ("the first", vec![], (20, [1.0, 0.0]), Some(0)),
            ("at the end", vec![[0.0, 1.0]], (20, [1.0, 0.0]), Some(1)),
            ("the same vector again", vec![[0.0, 1.0], [5.0, 5.0]], (10, [0.0, 1.0]), Some(0)),
            ("behind a neighbour", vec![[1.0, 0.0]], (20, [2.0, 0.0]), None),
            ("full, over the longest", vec![[0.0, 3.0], [-4.0, 0.0], [0.0, -2.0]], (20, [1.0, 0.0]), Some(1)),
            ("full, all shorter", vec![[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], (20, [9.0, 0.0]), None),
        ] {
            // Three slots.
            let found = place(&node(3, &points), new.0, &new.1, 3, &mut meter());
            assert_eq!(found.map(|(index, _)| index), expected, "{what}");
        }
    }

    #[test]
    fn pruning_takes_out_what_lies_behind_the_new_neighbour_and_stops_at_eight() {
        let far: Vec<[f32; 2]> = (0..12).map(|i| [10.0, f32::from(i as u8) / 10.0]).collect();
        let mut pruned = node(16, &far);
        assert!(connect(&mut pruned, 99, &[5.2, 0.5], 16, &mut meter()));
        assert_eq!(pruned.edges(), MIN_DEGREE);
        assert!(ids(&pruned).contains(&99), "the new edge stays");

        let around: Vec<[f32; 2]> = (0..12).map(|i| (f32::from(i as u8) * 0.5).sin_cos().into()).collect();
        let mut kept = node(16, &around);
        assert!(connect(&mut kept, 99, &[-0.1, -0.1], 16, &mut meter()));
        assert_eq!(kept.edges(), 13, "nothing lies behind it");
    }
}
