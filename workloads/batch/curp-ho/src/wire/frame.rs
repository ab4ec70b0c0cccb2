//! Frames: four bytes of length, little-endian, then that many bytes.

use std::fmt;

/// Bytes in front of a frame's body.
pub const HEADER: usize = 4;
/// Bytes of the longest body.
pub const MAX_FRAME: usize = 1 << 20;

/// A length that no frame has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameError(pub usize);

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a frame of {} bytes; 1 to {MAX_FRAME} are allowed", self.0)
    }
}

/// A body and the bytes after it.
pub type Split<'a> = (&'a [u8], &'a [u8]);

/// Splits off the first body in `bytes`; `None` if it is incomplete.
///
/// # Errors
///
/// If the length is invalid, which is detected before the body arrives.
pub fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, FrameError> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_le_bytes(*header) as usize;
    if length == 0 || length > MAX_FRAME {
        return Err(FrameError(length));
    }
    Ok(rest.split_at_checked(length))
}

/// Appends a frame whose body `write` appends.
pub(super) fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; HEADER]);
    write(out);
    let length = out.len() - start - HEADER;
    debug_assert!((1..=MAX_FRAME).contains(&length), "a frame of {length} bytes");
    out[start..start + HEADER].copy_from_slice(&(length as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_complete_or_absent() {
        let mut bytes = Vec::new();
        append(&mut bytes, |out| out.extend(b"abc"));
        append(&mut bytes, |out| out.extend(b"d"));
        for cut in 0..7 {
            assert_eq!(split(&bytes[..cut]), Ok(None), "{cut} bytes");
        }
        let (first, rest) = split(&bytes).unwrap().unwrap();
        assert_eq!(first, b"abc");
        assert_eq!(split(rest), Ok(Some((&b"d"[..], &b""[..]))));
    }

    #[test]
    fn invalid_length_is_rejected_before_the_body_arrives() {
        assert_eq!(split(&[0; 4]), Err(FrameError(0)));
        assert_eq!(split(&[1, 0, 16, 0]), Err(FrameError(MAX_FRAME + 1)));
        assert_eq!(split(&[0xff; 4]), Err(FrameError(0xffff_ffff)));
        assert_eq!(split(&[0, 0, 16, 0]), Ok(None));
    }
}
