//! The protocol: messages and their frames.

pub mod framing;
mod message;

pub use message::{Answering, Hello, Item, Malformed, Ready, Reply, Request, Wishes};
