//! Asks replicas for their state.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::replica::Settings;
use crate::command::{Addresses, Slot};
use crate::replica::Status;
use crate::wire::{Message, split};

/// Retry interval for unreachable peers.
const PAUSE: Duration = Duration::from_millis(10);

/// Starts a trial on replicas that run already. All replicas discard the state of an earlier trial and apply
/// `settings`; returns after all have confirmed.
///
/// # Errors
///
/// If a replica is unreachable or does not confirm in time.
pub fn begin(addresses: &Addresses, patience: Duration, settings: impl Fn(u8) -> Settings) -> io::Result<()> {
    let mut newest = 0;
    for address in addresses {
        newest = newest.max(status(address, 0, patience)?.era);
    }
    let era = newest.saturating_add(1);
    let mut asked = Vec::new();
    for (address, id) in addresses.iter().zip(0..) {
        let settings = serde_json::to_vec(&settings(id)).expect("settings are only numbers and names");
        asked.push((address, ask(address, patience, &Message::Begin { era, settings: &settings })?));
    }
    for (address, mut stream) in asked {
        let confirmed = |error: io::Error| {
            let seconds = patience.as_secs_f64();
            io::Error::other(format!("the replica at {address} has not begun anew within {seconds} s: {error}"))
        };
        match Message::decode(&receive(&mut stream).map_err(confirmed)?) {
            Ok(Message::Begun { era: begun }) if begun == era => {}
            other => return Err(io::Error::other(format!("the replica at {address} has not begun anew: {other:?}"))),
        }
    }
    Ok(())
}

/// Sends a message to a peer that may not listen yet.
fn ask(address: &str, patience: Duration, message: &Message<'_>) -> io::Result<TcpStream> {
    let called = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) if called.elapsed() >= patience => return Err(io::Error::other(format!("{address}: {error}"))),
            Err(_) => std::thread::sleep(PAUSE),
        }
    };
    stream.set_read_timeout(Some(patience))?;
    let mut bytes = Vec::new();
    message.append(&mut bytes);
    stream.write_all(&bytes)?;
    Ok(stream)
}

/// Requests the state of the replica at `address` once it has executed `executed` slots.
///
/// # Errors
///
/// If it does not answer in time or answers something else.
pub fn status(address: &str, executed: Slot, patience: Duration) -> io::Result<Status> {
    let mut stream = ask(address, patience, &Message::StatusRequest { executed })?;
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
