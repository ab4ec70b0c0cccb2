//! Where a walk begins: at a random vector, found in two ways, or always at the same one.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;

/// How the first vector of a walk is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The document's baseline: a random offset into the table, with the table counted each time.
    Count,
    /// The document's proposal: a random id, and the first row from there on.
    Seek,
    /// The vector closest to the mean. It is looked for anew whenever the index has doubled.
    Medoid,
}

assay_harness::choices!(Start { "count" => Count, "seek" => Seek, "medoid" => Medoid });

/// A row of `table` for the random number `draw`, the document's first way. The statement is compiled anew each time, as there.
///
/// The document draws with SQL's `RANDOM()`; here the number comes from a seeded generator, so that a trial can be repeated.
///
/// # Errors
///
/// When SQLite refuses.
pub fn by_count(connection: &Connection, table: &str, draw: u64) -> Result<Option<u64>> {
    let sql = format!("SELECT id FROM {table} LIMIT 1 OFFSET ?1 % MAX((SELECT COUNT(*) FROM {table}), 1)");
    one(connection, &sql, Some(draw))
}

/// A row of `table` for the random number `draw`, the document's second way.
///
/// # Errors
///
/// When SQLite refuses.
pub fn by_seek(connection: &Connection, table: &str, draw: u64) -> Result<Option<u64>> {
    let sql = format!("SELECT id FROM {table} WHERE id >= ?1 % (SELECT MAX(id) FROM {table}) + 1 LIMIT 1");
    match one(connection, &sql, Some(draw))? {
        Some(id) => Ok(Some(id)),
        None => one(connection, &format!("SELECT id FROM {table} ORDER BY id LIMIT 1"), None),
    }
}

fn one(connection: &Connection, sql: &str, draw: Option<u64>) -> Result<Option<u64>> {
    let mut statement = connection.prepare(sql)?;
    let id = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0).map(i64::cast_unsigned);
    let found = match draw {
        // SQL's integers have a sign, and the remainder of a negative number is negative.
        Some(draw) => statement.query_row([(draw >> 1).cast_signed()], id),
        None => statement.query_row([], id),
    };
    Ok(found.optional()?)
}

/// Random numbers, for starts and all else that is drawn: a seeded SplitMix64.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Returns the id of the vector closest to the mean; the first of equally close ones. `None` if the index is empty. `all`
/// iterates over all vectors with their ids, in order, and is called twice, so that they need not be in memory.
///
/// # Errors
///
/// Those of `all`.
pub fn medoid<E>(
    dims: usize,
    mut all: impl FnMut(&mut dyn FnMut(u64, &[f32])) -> std::result::Result<(), E>,
) -> std::result::Result<Option<u64>, E> {
    let mut mean = vec![0.0_f64; dims];
    let mut count = 0.0_f64;
    all(&mut |_, vector: &[f32]| {
        mean.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
        count += 1.0;
    })?;
    mean.iter_mut().for_each(|sum| *sum /= count.max(1.0));
    let mut closest: Option<(u64, f64)> = None;
    all(&mut |id, vector: &[f32]| {
        let squared: f64 = vector.iter().zip(&mean).map(|(x, m)| (f64::from(*x) - m) * (f64::from(*x) - m)).sum();
        if closest.is_none_or(|(_, closest)| squared < closest) {
            closest = Some((id, squared));
        }
    })?;
    Ok(closest.map(|(id, _)| id))
}

/// The same of vectors that lie one after the other, with ids from one.
#[must_use]
pub fn medoid_of(dims: usize, vectors: &[f32]) -> Option<u64> {
    let all = |each: &mut dyn FnMut(u64, &[f32])| {
        (1..).zip(vectors.chunks_exact(dims)).for_each(|(id, vector)| each(id, vector));
        Ok::<(), std::convert::Infallible>(())
    };
    match medoid(dims, all) {
        Ok(medoid) => medoid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ids: &[i64]) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY)", []).unwrap();
        for id in ids {
            connection.execute("INSERT INTO t VALUES(?1)", [id]).unwrap();
        }
        connection
    }

    #[test]
    fn without_gaps_both_ways_find_the_same_row_and_every_row() {
        let connection = table(&[1, 2, 3, 4, 5, 6, 7]);
        let mut draws = Draws::new(1);
        let mut found: Vec<u64> = (0..200)
            .map(|_| {
                let draw = draws.draw();
                let id = by_count(&connection, "t", draw).unwrap();
                assert_eq!(id, by_seek(&connection, "t", draw).unwrap(), "draw {draw}");
                id.unwrap()
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn search_handles_gaps_and_an_empty_table() {
        let connection = table(&[100]);
        for draw in [0, 7, u64::MAX] {
            assert_eq!(by_count(&connection, "t", draw).unwrap(), Some(100));
            assert_eq!(by_seek(&connection, "t", draw).unwrap(), Some(100));
        }
        let empty = table(&[]);
        assert_eq!((by_count(&empty, "t", 9).unwrap(), by_seek(&empty, "t", 9).unwrap()), (None, None));
    }

    #[test]
    fn medoid_is_closest_to_the_mean() {
        let points = [0.0, 0.0, 10.0, 0.0, 4.0, 1.0, 0.0, 10.0];
        assert_eq!(medoid_of(2, &points), Some(3));
        assert_eq!(medoid_of(2, &[]), None);
        assert_eq!(medoid(2, |_| Err("no")), Err("no"));
    }
}
