//! `batch-curp-ho relay`: forwards connections with a delay in both directions, to simulate a longer network path.
//!
//! It measures its own precision, the excess delay of each chunk. For each line on standard input it prints these
//! figures as a line of JSON. It exits at the end of standard input.

use std::io::{self, BufRead, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::replica::say;
use crate::net::{now, sleep_until};
use crate::replica::tally::Tally;

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// The command line of a relay.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address that it listens at.
    pub listen: String,
    /// The address that it passes connections on to.
    pub to: String,
    /// Nanoseconds that it holds everything back, in each direction.
    pub delay: u64,
}

/// How well a relay did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Nanoseconds by which pieces were passed on too late.
    pub late: Tally,
}

/// Runs a relay until standard input ends.
///
/// # Errors
///
/// When the system refuses.
pub fn run(settings: &Settings) -> io::Result<()> {
    let listener = TcpListener::bind(&settings.listen)?;
    say(&format!("listens {}", listener.local_addr()?))?;
    let kept = Arc::new(Mutex::new(Kept::default()));
    let (passing, own) = (settings.clone(), Arc::clone(&kept));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // One that cannot be passed on is closed, as it would be without a relay.
            if let Ok(other) = TcpStream::connect(&passing.to) {
                let _ = pass(&stream, &other, passing.delay, &own)
                    .and_then(|()| pass(&other, &stream, passing.delay, &own));
            }
        }
    });
    for line in io::stdin().lock().lines() {
        line?;
        let kept = kept.lock().expect("no thread panics while it holds this");
        say(&serde_json::to_string(&*kept).expect("numbers are numbers"))?;
    }
    Ok(())
}

/// Forwards data from `one` until its end.
fn pass(one: &TcpStream, other: &TcpStream, delay: u64, kept: &Arc<Mutex<Kept>>) -> io::Result<()> {
    let (one, other, kept) = (one.try_clone()?, other.try_clone()?, Arc::clone(kept));
    other.set_nodelay(true)?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || read(one, delay, &sender));
    std::thread::spawn(move || write(&other, &receiver, &kept));
    Ok(())
}

/// Reads pieces; each is due so long after it came.
fn read(mut from: TcpStream, delay: u64, pieces: &Sender<(u64, Vec<u8>)>) {
    let mut room = vec![0; PIECE];
    // A connection that breaks ends like any other, so much later.
    while let Ok(length @ 1..) = from.read(&mut room) {
        if pieces.send((now() + delay, room[..length].to_vec())).is_err() {
            return;
        }
    }
    let _ = pieces.send((now() + delay, Vec::new()));
}

fn write(mut to: &TcpStream, pieces: &Receiver<(u64, Vec<u8>)>, kept: &Mutex<Kept>) {
    for (due, piece) in pieces {
        sleep_until(due);
        let late = now() - due;
        if piece.is_empty() {
            break;
        }
        // Count before writing, so that a chunk is counted before its receiver can see it.
        kept.lock().expect("no thread panics while it holds this").late.add(late);
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    // Both directions, because data in the other one has no receiver any more.
    let _ = to.shutdown(Shutdown::Both);
}
