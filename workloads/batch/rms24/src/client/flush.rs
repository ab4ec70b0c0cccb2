//! When questions are sent.

/// How many of the full batches are sent after a query has been built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// The document's: at most one. A query asks two questions, so with a batch size of one, half of all questions wait until the
    /// last query has been built, and are then sent back to back.
    OnePerQuery,
    /// All of them.
    Full,
}

assay_harness::choices!(Flush { "one-per-query" => OnePerQuery, "full" => Full });

impl Flush {
    /// How many batches of `batch` questions to send when `waiting` are there.
    #[must_use]
    pub fn due(self, waiting: usize, batch: usize) -> usize {
        let full = waiting / batch;
        match self {
            Self::OnePerQuery => full.min(1),
            Self::Full => full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Flush;

    #[test]
    fn the_documents_rule_leaves_half_of_the_questions_for_the_end() {
        let mut waiting = 0;
        for _ in 0..200 {
            waiting += 2;
            waiting -= Flush::OnePerQuery.due(waiting, 1);
        }
        assert_eq!(waiting, 200);
    }

    #[test]
    fn a_batch_is_due_when_it_is_full() {
        for (waiting, batch, due) in [(2, 1, 2), (2, 4, 0), (3, 4, 0), (4, 4, 1), (9, 4, 2)] {
            assert_eq!(Flush::Full.due(waiting, batch), due, "{waiting} waiting, batches of {batch}");
        }
    }
}
