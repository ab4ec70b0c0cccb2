//! Log record of one insert, little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 2 | number of edges of the new vector |
//! | 4 each | their ids |
//! | 2 | number of other vectors with changed edges |
//! | each: 4 | the vector |
//! | 1 | 255: one more edge, to the new vector; otherwise the new number of edges |
//! | 4 each | their ids, unless it is one more |

use bytemuck::cast_slice;

/// One insert.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The ids that the new vector has edges to.
    pub forward: Vec<u32>,
    /// Its changes to the edges of others.
    pub changes: Vec<Change>,
}

/// A change of one vector's edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// One edge more, to the new vector.
    Append(u32),
    /// All edges anew.
    Replace(u32, Vec<u32>),
}

/// Instead of a number of edges: one more.
const ONE_MORE: u8 = u8::MAX;

impl Record {
    /// Its bytes.
    ///
    /// # Panics
    ///
    /// When a vector has more edges than an index allows.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = |len: usize| u16::try_from(len).expect("a walk visits fewer").to_le_bytes();
        let mut bytes = Vec::with_capacity(4 + 4 * self.forward.len() + 8 * self.changes.len());
        bytes.extend(count(self.forward.len()));
        bytes.extend_from_slice(cast_slice(&self.forward));
        bytes.extend(count(self.changes.len()));
        for change in &self.changes {
            match change {
                Change::Append(node) => {
                    bytes.extend(node.to_le_bytes());
                    bytes.push(ONE_MORE);
                }
                Change::Replace(node, edges) => {
                    bytes.extend(node.to_le_bytes());
                    let edges_left = u8::try_from(edges.len()).ok().filter(|edges| *edges != ONE_MORE);
                    bytes.push(edges_left.expect("an index allows fewer edges"));
                    bytes.extend_from_slice(cast_slice(edges));
                }
            }
        }
        bytes
    }

    /// The insert that `bytes` say, if they say one and nothing else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let forward = rest.u16()?;
        let forward = rest.ids(usize::from(forward))?;
        let changes = rest.u16()?;
        let changes = (0..changes).map(|_| {
            let node = rest.u32()?;
            Some(match rest.take()? {
                [ONE_MORE] => Change::Append(node),
                [edges] => Change::Replace(node, rest.ids(usize::from(edges))?),
            })
        });
        let changes = changes.collect::<Option<_>>()?;
        rest.0.is_empty().then_some(Self { forward, changes })
    }
}

/// Reads from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn ids(&mut self, count: usize) -> Option<Vec<u32>> {
        (0..count).map(|_| self.u32()).collect()
    }
}

/// Ids as a row of edges has them.
#[must_use]
pub fn ids_to_bytes(ids: &[u32]) -> Vec<u8> {
    cast_slice(ids).to_vec()
}

/// The ids of a row of edges.
#[must_use]
pub fn ids_from_bytes(bytes: &[u8]) -> Option<Vec<u32>> {
    let (ids, []) = bytes.as_chunks() else { return None };
    Some(ids.iter().copied().map(u32::from_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changes() -> impl Strategy<Value = Change> {
        prop_oneof![
            any::<u32>().prop_map(Change::Append),
            (any::<u32>(), prop::collection::vec(any::<u32>(), 0..40))
                .prop_map(|(node, edges)| Change::Replace(node, edges)),
        ]
    }

    proptest! {
        #[test]
        fn a_record_reads_back_and_no_part_of_it_does(
            forward in prop::collection::vec(any::<u32>(), 0..40),
            changes in prop::collection::vec(changes(), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let record = Record { forward, changes };
            let bytes = record.to_bytes();
            prop_assert_eq!(Record::from_bytes(&bytes), Some(record));
            prop_assert_eq!(Record::from_bytes(&bytes[..cut.index(bytes.len())]), None);
            prop_assert_eq!(Record::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }

        #[test]
        fn ids_read_back(ids in prop::collection::vec(any::<u32>(), 0..40)) {
            let bytes = ids_to_bytes(&ids);
            prop_assert_eq!(ids_from_bytes(&[&bytes[..], &[0]].concat()), None);
            prop_assert_eq!(ids_from_bytes(&bytes), Some(ids));
        }
    }
}
