//! Vectors around one centre, as in a batch of inserts from one document or one photo album.

use super::uniform::{Lcg, vectors as uniform};

/// How far a coordinate lies from the centre's at most.
const NOISE: f32 = 0.01;

/// `count` vectors around the first vector of the stream.
#[must_use]
pub fn vectors(lcg: &mut Lcg, dims: usize, count: usize) -> Vec<f32> {
    let centre = uniform(lcg, dims, 1);
    let mut next = |i: usize| centre[i % dims] + NOISE * (2.0 * lcg.unit() - 1.0);
    (0..dims * count).map(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coordinate_lies_within_the_noise_of_the_centre() {
        let all = vectors(&mut Lcg::new(77_777), 16, 50);
        let centre = uniform(&mut Lcg::new(77_777), 16, 1);
        assert!(all.iter().zip(centre.iter().cycle()).all(|(x, c)| (x - c).abs() <= NOISE * 1.001));
    }
}
