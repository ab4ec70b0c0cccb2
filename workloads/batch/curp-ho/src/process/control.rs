//! Asks replicas for their state.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::command::Slot;
use crate::replica::Status;
use crate::wire::{Message, split};

/// Asks the replica at `address` for its state once it has executed so many slots.
///
/// # Errors
///
/// When it does not answer in time, or with something else.
pub fn status(address: &str, executed: Slot, patience: Duration) -> io::Result<Status> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(patience))?;
    let mut bytes = Vec::new();
    Message::StatusRequest { executed }.append(&mut bytes);
    stream.write_all(&bytes)?;
    let late = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let seconds = patience.as_secs_f64();
            io::Error::other(format!("a replica has not executed {executed} commands after {seconds} s"))
        }
        _ => error,
    };
    match Message::decode(&receive(&mut stream).map_err(late)?) {
        Ok(Message::Status { json }) => serde_json::from_slice(json).map_err(io::Error::other),
        Ok(other) => Err(io::Error::other(format!("{other:?} instead of a status"))),
        Err(malformed) => Err(io::Error::other(malformed.to_string())),
    }
}

/// Reads one frame's body.
///
/// # Errors
///
/// When the connection ends or times out first, or the frame's length is not allowed.
pub fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut header = [0; crate::wire::HEADER];
    stream.read_exact(&mut header)?;
    split(&header).map_err(|error| io::Error::other(error.to_string()))?;
    let mut body = vec![0; u32::from_le_bytes(header) as usize];
    stream.read_exact(&mut body)?;
    Ok(body)
}
