//! Symbol interning: a table assigns a number to each new symbol, and paths contain the number.
//!
//! As with the original's feature `interning`, a symbol in a path is replaced by eight bytes, regardless of its length.
//! The original uses buckets with a lock each and tries from symbol to number; here it is one hash table over one
//! buffer of all symbols, which is not slower.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::encoding::{Tag, Unencodable, check_length, push_symbol};

/// Bytes of a number in a path.
const NUMBER: usize = size_of::<u64>();

/// Symbols and their numbers, which count from zero in the order of first sight.
#[derive(Debug, Clone, Default)]
pub struct SymbolTable {
    numbers: HashTable<usize>,
    hasher: DefaultHashBuilder,
    /// All symbols, one after the other.
    names: Vec<u8>,
    /// Where in `names` each symbol ends.
    ends: Vec<usize>,
}

impl SymbolTable {
    /// How many symbols it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes that the table occupies.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.numbers.allocation_size() + self.names.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The number of a symbol; a new one if it is not known.
    pub fn number(&mut self, symbol: &[u8]) -> usize {
        let hash = self.hasher.hash_one(symbol);
        let same = |&number: &usize| name(&self.names, &self.ends, number) == symbol;
        if let Some(&number) = self.numbers.find(hash, same) {
            return number;
        }
        let number = self.ends.len();
        self.names.extend_from_slice(symbol);
        self.ends.push(self.names.len());
        let hash_of = |&number: &usize| self.hasher.hash_one(name(&self.names, &self.ends, number));
        self.numbers.insert_unique(hash, number, hash_of);
        number
    }

    /// The number of a symbol that is known.
    #[must_use]
    pub fn known(&self, symbol: &[u8]) -> Option<usize> {
        let same = |&number: &usize| name(&self.names, &self.ends, number) == symbol;
        self.numbers.find(self.hasher.hash_one(symbol), same).copied()
    }

    /// The symbol of a number.
    ///
    /// # Panics
    ///
    /// When no symbol has it.
    #[must_use]
    pub fn symbol(&self, number: usize) -> &[u8] {
        name(&self.names, &self.ends, number)
    }

    /// Appends a path with numbers in place of its symbols.
    ///
    /// # Errors
    ///
    /// When it becomes too long; `out` then ends with it.
    pub fn intern(&mut self, path: &[u8], out: &mut Vec<u8>) -> Result<(), Unencodable> {
        let start = out.len();
        rewrite(path, out, |symbol| Some(self.number(symbol)));
        check_length(out.len() - start)
    }

    /// Appends a path with the numbers of symbols that are known. `false` if one is not: nothing has it then.
    #[must_use]
    pub fn find(&self, path: &[u8], out: &mut Vec<u8>) -> bool {
        rewrite(path, out, |symbol| self.known(symbol))
    }

    /// A path with its symbols in place of their numbers.
    ///
    /// # Panics
    ///
    /// When the path was not made by this table.
    #[must_use]
    pub fn expand(&self, mut path: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(path.len());
        while let Some((&tag, rest)) = path.split_first() {
            path = rest;
            if matches!(Tag::of(tag), Some(Tag::Symbol(_))) {
                let (number, rest) = rest.split_first_chunk::<NUMBER>().expect("a number has its own size");
                push_symbol(self.symbol(u64::from_be_bytes(*number) as usize), &mut out).expect("it was pushed before");
                path = rest;
            } else {
                out.push(tag);
            }
        }
        out
    }
}

fn name<'a>(names: &'a [u8], ends: &[usize], number: usize) -> &'a [u8] {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &names[start..ends[number]]
}

/// Appends a path with its symbols replaced by `number`, up to the first unknown one.
fn rewrite(mut path: &[u8], out: &mut Vec<u8>, mut number: impl FnMut(&[u8]) -> Option<usize>) -> bool {
    while let Some((&tag, rest)) = path.split_first() {
        path = rest;
        let Some(Tag::Symbol(length)) = Tag::of(tag) else {
            out.push(tag);
            continue;
        };
        let (symbol, rest) = rest.split_at(length);
        let Some(number) = number(symbol) else { return false };
        push_symbol(&(number as u64).to_be_bytes(), out).expect("eight bytes are a symbol");
        path = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_the_same_number_everywhere() {
        let mut table = SymbolTable::default();
        let mut path = Vec::new();
        // (f $x g f)
        table.intern(b"\x04\xc1f\xc0\xc2gg\xc1f", &mut path).unwrap();
        let [f, g] = [0_u64, 1].map(u64::to_be_bytes);
        assert_eq!(path, [b"\x04\xc8", &f[..], b"\xc0\xc8", &g, b"\xc8", &f].concat());
        assert_eq!(table.expand(&path), b"\x04\xc1f\xc0\xc2gg\xc1f");
        assert_eq!((table.len(), table.symbol(1), table.known(b"g")), (2, &b"gg"[..], None));
    }

    #[test]
    fn lookup_does_not_insert() {
        let mut table = SymbolTable::default();
        table.number(b"known");
        let mut path = Vec::new();
        assert!(!table.find(b"\x02\xc5known\xc1x", &mut path));
        assert_eq!(table.len(), 1);
        path.clear();
        assert!(table.find(b"\x01\xc5known", &mut path));
        assert_eq!(table.expand(&path), b"\x01\xc5known");
    }

    #[test]
    fn a_path_that_numbers_make_too_long_is_refused() {
        // One letter takes two bytes, its number nine.
        let path = [&[63_u8][..], &b"\xc1a".repeat(63)].concat();
        let many = [&[63][..], &path.repeat(63)].concat();
        assert!(many.len() <= crate::encoding::MAX_PATH);
        let refused = SymbolTable::default().intern(&many, &mut Vec::new()).unwrap_err();
        assert!(matches!(refused, Unencodable::TooLong(_)), "{refused}");
    }
}
