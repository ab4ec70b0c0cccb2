//! The vectors of a comparison, in files that any language reads: `data.json` says how many, `vectors.f32` and `queries.f32` are
//! coordinates one after the other, `truth.u32` the ids, from one, of the ten true neighbours of each query, all little-endian. The truth
//! is that of the end: with every vector inserted.

use std::fs;
use std::path::Path;

use assay_harness::Failure;
use bytemuck::cast_slice;
use serde::{Deserialize, Serialize};

use crate::dataset::Data;
use crate::exact::{K, nearest};

/// How many there are of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Coordinates per vector.
    pub dims: usize,
    /// Vectors that an arm begins with.
    pub size: usize,
    /// Vectors that are inserted.
    pub inserts: usize,
    /// Queries.
    pub queries: usize,
    /// Neighbours of a query.
    pub k: usize,
}

/// Input of an arm.
#[derive(Debug, Clone)]
pub struct Given {
    /// How many there are.
    pub sizes: Sizes,
    /// Vectors and queries.
    pub data: Data,
    /// The ids of every query's true neighbours.
    pub truth: Vec<Vec<u64>>,
}

const SIZES: &str = "data.json";
const VECTORS: &str = "vectors.f32";
const QUERIES: &str = "queries.f32";
const TRUTH: &str = "truth.u32";

/// Writes `data` to `folder`; the first `size` vectors are the arm's initial ones.
///
/// # Errors
///
/// If the system fails.
pub fn write(folder: &Path, data: &Data, size: usize) -> Result<(), Failure> {
    let (dims, queries) = (data.dims, data.queries().count());
    let sizes = Sizes { dims, size, inserts: data.len() - size, queries, k: K };
    let vectors = || (1..).zip(data.vectors.chunks_exact(dims));
    let truth: Vec<u32> = data.queries().flat_map(|query| nearest(query, vectors(), K)).map(|id| id as u32).collect();
    fs::write(folder.join(VECTORS), cast_slice::<_, u8>(&data.vectors))?;
    fs::write(folder.join(QUERIES), cast_slice::<_, u8>(&data.queries))?;
    fs::write(folder.join(TRUTH), cast_slice::<_, u8>(&truth))?;
    Ok(fs::write(folder.join(SIZES), serde_json::to_vec(&sizes).map_err(Failure::error)?)?)
}

/// Reads the files of [`write`].
///
/// # Errors
///
/// If they are missing or have a wrong length.
pub fn read(folder: &Path) -> Result<Given, Failure> {
    let file = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|error| Failure::error(format_args!("{}: {error}", path.display())))
    };
    let sizes: Sizes = serde_json::from_slice(&file(SIZES)?).map_err(Failure::error)?;
    let words = |name: &str, expected: usize| -> Result<Vec<[u8; 4]>, Failure> {
        let bytes = file(name)?;
        let (words, []) = bytes.as_chunks::<4>() else {
            return Err(Failure::error(format_args!(
                "{name} has {} bytes, and has to have a multiple of four",
                bytes.len()
            )));
        };
        if words.len() != expected {
            return Err(Failure::error(format_args!(
                "{name} has {} numbers, and {SIZES} says {expected}",
                words.len()
            )));
        }
        Ok(words.to_vec())
    };
    let floats = |name, expected| -> Result<Vec<f32>, Failure> {
        Ok(words(name, expected)?.into_iter().map(f32::from_le_bytes).collect())
    };
    let Sizes { dims, size, inserts, queries, k } = sizes;
    let numbers = |each: usize, of: Option<usize>| {
        let count = of.and_then(|of| each.checked_mul(of)).filter(|_| dims > 0 && k > 0);
        count.ok_or_else(|| Failure::error(format_args!("{SIZES}: invalid sizes {sizes:?}")))
    };
    let vectors = floats(VECTORS, numbers(dims, size.checked_add(inserts))?)?;
    let data = Data { dims, vectors, queries: floats(QUERIES, numbers(dims, Some(queries))?)? };
    let truth = words(TRUTH, numbers(k, Some(queries))?)?;
    let truth: Vec<u64> = truth.into_iter().map(|id| u32::from_le_bytes(id).into()).collect();
    Ok(Given { sizes, data, truth: truth.chunks_exact(k).map(<[u64]>::to_vec).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Kind;

    #[test]
    fn written_data_round_trips_and_a_truncated_file_is_rejected() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-data-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let data = Data::generate(Kind::Uneven, 8, 42, 30, 10, 4);
        write(&folder, &data, 30).unwrap();
        let sizes = Sizes { dims: 8, size: 30, inserts: 10, queries: 4, k: K };
        let given = read(&folder).unwrap();
        assert_eq!((given.sizes, &given.data.vectors, &given.data.queries), (sizes, &data.vectors, &data.queries));
        let query = data.queries().next().unwrap();
        assert_eq!(given.truth[0], nearest(query, (1..).zip(data.vectors.chunks_exact(8)), K));
        for (name, bytes, message) in [
            (TRUTH, &[0; 8][..], "truth.u32 has 2 numbers, and data.json says 40"),
            (QUERIES, &[0; 7], "queries.f32 has 7 bytes"),
            (SIZES, b"{}", "missing field"),
            (SIZES, br#"{"dims":0,"size":30,"inserts":10,"queries":4,"k":10}"#, "invalid sizes"),
            (SIZES, br#"{"dims":8,"size":2305843009213693953,"inserts":10,"queries":4,"k":10}"#, "invalid sizes"),
            (SIZES, br#"{"dims":8,"size":18446744073709551615,"inserts":10,"queries":4,"k":10}"#, "invalid sizes"),
        ] {
            fs::write(folder.join(name), bytes).unwrap();
            let failure = read(&folder).unwrap_err().to_string();
            assert!(failure.contains(message), "{failure}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
