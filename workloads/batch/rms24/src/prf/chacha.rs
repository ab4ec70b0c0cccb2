//! ChaCha12, the way the document's program calls it: for each value a cipher is set up, sought to the block's 64 bytes of key
//! stream, and the first four or eight of them are used.

use chacha20::ChaCha12;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

use super::{Prf, Secret};

/// The first word of the nonce.
const SELECT: u32 = 0;
const OFFSET: u32 = 1;
/// Bytes of key stream per value, most of them thrown away.
const STREAM: usize = 64;
/// Values per step of the bulk functions.
const CHUNK: usize = 64;

/// ChaCha12 under a client's secret.
#[derive(Debug, Clone)]
pub struct ChaChaPrf {
    key: [u8; 32],
    block_size: u32,
}

impl ChaChaPrf {
    /// The function of a secret.
    #[must_use]
    pub fn new(secret: &Secret, block_size: u32) -> Self {
        Self { key: secret.key("chacha12"), block_size }
    }

    #[inline]
    fn cipher(&self, domain: u32, hint: u32) -> ChaCha12 {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&domain.to_le_bytes());
        nonce[4..8].copy_from_slice(&hint.to_le_bytes());
        ChaCha12::new(&self.key.into(), &nonce.into())
    }

    #[inline]
    fn value<const BYTES: usize>(&self, domain: u32, hint: u32, block: u32) -> [u8; BYTES] {
        let mut cipher = self.cipher(domain, hint);
        cipher.seek(u64::from(block) * STREAM as u64);
        let mut bytes = [0; BYTES];
        cipher.apply_keystream(&mut bytes);
        bytes
    }

    /// The values of all blocks are next to each other in one key stream.
    fn all(&self, domain: u32, hint: u32, values: &mut [u32], value: impl Fn(u64) -> u32) {
        let mut cipher = self.cipher(domain, hint);
        let mut stream = [0; STREAM * CHUNK];
        for values in values.chunks_mut(CHUNK) {
            let stream = &mut stream[..values.len() * STREAM];
            stream.fill(0);
            cipher.apply_keystream(stream);
            for (slot, bytes) in values.iter_mut().zip(stream.chunks_exact(STREAM)) {
                *slot = value(u64::from_le_bytes(*bytes.first_chunk().expect("64 bytes start with eight")));
            }
        }
    }
}

impl Prf for ChaChaPrf {
    #[inline]
    fn select(&self, hint: u32, block: u32) -> u32 {
        u32::from_le_bytes(self.value(SELECT, hint, block))
    }

    #[inline]
    fn offset(&self, hint: u32, block: u32) -> u32 {
        (u64::from_le_bytes(self.value(OFFSET, hint, block)) % u64::from(self.block_size)) as u32
    }

    fn selects(&self, hint: u32, values: &mut [u32]) {
        self.all(SELECT, hint, values, |eight| eight as u32);
    }

    fn offsets(&self, hint: u32, values: &mut [u32]) {
        let block_size = u64::from(self.block_size);
        self.all(OFFSET, hint, values, |eight| (eight % block_size) as u32);
    }
}
