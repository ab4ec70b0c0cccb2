//! What client and server say to each other: messages, and the frames they travel in.

pub mod framing;
mod message;

pub use message::{Answering, Hello, Item, Malformed, Ready, Reply, Request, Wishes};
