//! Every coordinate independent and uniform in [0, 1], from the document's generator.
//!
//! In 128 dimensions all points are almost equally far from each other, which makes this the hardest case for any graph.

/// The document's generator of numbers.
#[derive(Debug, Clone)]
pub struct Lcg(u32);

impl Lcg {
    /// Starts the stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed as u32 ^ (seed >> 32) as u32)
    }

    /// The next number in [0, 1].
    pub fn unit(&mut self) -> f32 {
        const MASK: u32 = 0x7fff_ffff;
        self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (self.0 & MASK) as f32 / MASK as f32
    }
}

/// `count` vectors, one after the other.
#[must_use]
pub fn vectors(lcg: &mut Lcg, dims: usize, count: usize) -> Vec<f32> {
    (0..dims * count).map(|_| lcg.unit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_documents() {
        // The same arithmetic in wide integers.
        let expected = ((42_u64 * 1_103_515_245 + 12_345) % (1 << 32)) & 0x7fff_ffff;
        assert_eq!(Lcg::new(42).unit(), expected as f32 / 0x7fff_ffff as f32);
    }

    #[test]
    fn the_whole_interval_is_used() {
        let all = vectors(&mut Lcg::new(42), 128, 100);
        let mean = all.iter().sum::<f32>() / all.len() as f32;
        assert!((mean - 0.5).abs() < 0.01 && all.iter().all(|x| (0.0..=1.0).contains(x)), "mean {mean}");
    }
}
