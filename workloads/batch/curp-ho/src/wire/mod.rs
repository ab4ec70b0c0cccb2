//! Wire format: length-prefixed frames with one message each.

mod frame;
mod message;

pub use frame::{FrameError, HEADER, MAX_FRAME, Split, split};
pub use message::{
    Accept, Accepts, Ack, Acks, Batch, BatchWriter, ErrorCode, MAX_BATCH, Malformed, Message, Proposal, Reply, Verdict,
};
pub(crate) use message::{Reader, Writer};
