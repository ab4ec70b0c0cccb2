//! The mix of strong and weak commands, reads and writes, and their keys.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::Zipf;
use crate::client::Request;
use crate::command::{Class, mix};

/// An endless stream of requests that follows from its seed.
#[derive(Debug, Clone)]
pub struct Mix {
    rng: ChaCha8Rng,
    zipf: Zipf,
    keys: u64,
    weak_percent: u64,
    write_percent: u64,
}

impl Mix {
    /// `keys` keys of which a few are asked for often (by `skew`), and shares in percent.
    #[must_use]
    pub fn new(seed: u64, keys: u64, skew: f64, weak_percent: u64, write_percent: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self { rng, zipf: Zipf::new(keys, skew), keys, weak_percent, write_percent }
    }

    /// The next request.
    pub fn draw(&mut self) -> Request {
        // Both shares exactly: the document's `Intn(100) <= p` made 51 of 50 and 11 of 10.
        let mut percent = |share: u64| (u64::from(self.rng.next_u32()) * 100) >> 32 < share;
        let (weak, put) = (percent(self.weak_percent), percent(self.write_percent));
        // The key of a rank is spread over the key space, so that frequent keys are not neighbours.
        let key = mix(self.zipf.sample(&mut self.rng)) % self.keys;
        Request { class: if weak { Class::Weak } else { Class::Strong }, put, key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_shares_match_the_parameters() {
        const DRAWS: usize = 100_000;
        for (weak_percent, write_percent) in [(0, 0), (100, 100), (50, 10), (51, 11)] {
            let mut mix = Mix::new(3, 1000, 1.01, weak_percent, write_percent);
            let all: Vec<Request> = (0..DRAWS).map(|_| mix.draw()).collect();
            for (share, percent) in [
                (all.iter().filter(|r| r.class == Class::Weak).count(), weak_percent),
                (all.iter().filter(|r| r.put).count(), write_percent),
            ] {
                let expected = DRAWS as f64 * percent as f64 / 100.0;
                let bound = if percent % 100 == 0 { 0.0 } else { 5.0 * expected.sqrt() };
                assert!((share as f64 - expected).abs() <= bound, "{share} against {expected}");
            }
            assert!(all.iter().all(|r| r.key < 1000));
        }
    }

    #[test]
    fn a_seed_gives_one_stream() {
        let stream =
            |seed| (0..50).scan(Mix::new(seed, 100, 0.9, 50, 50), |mix, _| Some(mix.draw())).collect::<Vec<_>>();
        assert_eq!(stream(1), stream(1));
        assert_ne!(stream(1), stream(2));
    }
}
