//! Connects in the background to a peer that may not listen yet.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long an attempt may take.
const ATTEMPT: Duration = Duration::from_secs(1);
/// How long to wait after one that failed.
const PAUSE: Duration = Duration::from_millis(10);

/// Attempts to connect, until one succeeds or this is dropped.
#[derive(Debug)]
pub struct Dial {
    connected: Receiver<TcpStream>,
    _wanted: Arc<()>,
}

impl Dial {
    /// Begins to connect to `address`, a host and a port.
    #[must_use]
    pub fn to(address: &str) -> Self {
        let (sender, connected) = channel();
        let wanted = Arc::new(());
        let (still_wanted, address) = (Arc::downgrade(&wanted), address.to_owned());
        std::thread::spawn(move || {
            while Weak::strong_count(&still_wanted) > 0 {
                if let Some(stream) = attempt(&address) {
                    // If the receiver was dropped, so is the stream, which closes it.
                    let _ = sender.send(stream);
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        });
        Self { connected, _wanted: wanted }
    }

    /// The connection, once there is one.
    #[must_use]
    pub fn connected(&self) -> Option<TcpStream> {
        self.connected.try_recv().ok()
    }
}

/// Returns the first connection among the name's addresses.
fn attempt(address: &str) -> Option<TcpStream> {
    address.to_socket_addrs().ok()?.find_map(|address| TcpStream::connect_timeout(&address, ATTEMPT).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    #[test]
    fn dial_reaches_a_late_peer_and_not_an_absent_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let dial = Dial::to(&address);
        assert!(dial.connected().is_none());
        let _late = TcpListener::bind(&address).unwrap();
        let begun = Instant::now();
        while dial.connected().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no connection arrived");
            std::thread::yield_now();
        }
        assert!(Dial::to("an invalid name").connected().is_none());
    }
}
