//! Contents of an environment, in a form independent of its implementation.

use std::collections::BTreeMap;

use assay_harness::Digest;

use crate::encoding::decode;
use crate::value::Value;

/// The content of an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dump {
    /// Every path, sorted.
    pub paths: Vec<Vec<u8>>,
    /// How often each rule was added, by its path.
    pub multiplicities: BTreeMap<Vec<u8>, u64>,
    /// How many rules there are for a head and a number of arguments.
    pub index: BTreeMap<(String, usize), u64>,
    /// How many rules apply to everything.
    pub wildcards: u64,
}

impl Dump {
    /// A dump of sorted paths with their counts, for stores that keep rules nowhere else: paths with a count are rules,
    /// and their heads are in their paths.
    ///
    /// # Panics
    ///
    /// When a counted path is no rule.
    pub fn of_counted<'a>(paths: impl Iterator<Item = (&'a [u8], u64)>) -> Self {
        let mut dump = Self::default();
        for (path, count) in paths {
            dump.paths.push(path.to_vec());
            if count > 0 {
                dump.multiplicities.insert(path.to_vec(), count);
                let rule = decode(path).expect("a store has only encoded expressions");
                let Value::SExpr(items) = rule else { panic!("only rules are counted, not {rule:?}") };
                match items.get(1).and_then(Value::head) {
                    Some((head, arguments)) => *dump.index.entry((head.to_owned(), arguments)).or_insert(0) += count,
                    None => dump.wildcards += count,
                }
            }
        }
        dump
    }

    /// The digest by which environments are compared. Every piece goes in with its length.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let (mut digest, mut record) = (Digest::new(), Vec::new());
        let mut add = |what: u8, piece: Option<&[u8]>, numbers: &[u64]| {
            record.clear();
            record.push(what);
            if let Some(bytes) = piece {
                record.extend((bytes.len() as u64).to_le_bytes());
                record.extend_from_slice(bytes);
            }
            record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            digest.add(&record);
        };
        for path in &self.paths {
            add(b'p', Some(path), &[]);
        }
        for (path, count) in &self.multiplicities {
            add(b'm', Some(path), &[*count]);
        }
        for ((head, arguments), count) in &self.index {
            add(b'i', Some(head.as_bytes()), &[*arguments as u64, *count]);
        }
        add(b'w', None, &[self.wildcards]);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_sees_every_part() {
        let dump =
            Dump::of_counted([(&b"\xc1a"[..], 0), (b"\x03\xc1=\xc1f\xc1g", 2), (b"\x03\xc1=\xc0\xc1g", 1)].into_iter());
        assert_eq!(dump.index, [(("f".to_owned(), 0), 2)].into());
        assert_eq!((dump.wildcards, dump.multiplicities.len(), dump.paths.len()), (1, 2, 3));
        let changes: [fn(&mut Dump); 5] = [
            |dump| drop(dump.paths.pop()),
            |dump| dump.paths[0].push(0),
            |dump| *dump.multiplicities.first_entry().unwrap().get_mut() += 1,
            |dump| *dump.index.first_entry().unwrap().get_mut() += 1,
            |dump| dump.wildcards += 1,
        ];
        for change in changes {
            let mut other = dump.clone();
            change(&mut other);
            assert_ne!(other.digest().hex(), dump.digest().hex());
        }
        assert_eq!(dump.digest().items(), 3 + 2 + 1 + 1);
    }
}
