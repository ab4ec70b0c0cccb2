//! The server behind a socket: a thread per connection, as in the document's program.

use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Server;
use crate::wire::framing::{self, Framing, Incoming};
use crate::wire::{Reply, Wishes};

/// Connections at a time.
pub const MAX_CONNECTIONS: usize = 64;
/// After that long without a byte a connection is given up.
const IDLE: Duration = Duration::from_secs(120);
/// How much of a frame that is too long is read and thrown away, so that the client gets to see why.
const DRAIN: u64 = 16 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Serves until the listener fails.
///
/// # Errors
///
/// When no connection can be accepted any more.
pub fn serve(server: &Arc<Server>, listener: &TcpListener) -> io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The client was gone before it was served, or a signal came.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let ticket = Ticket::take(&open);
        let server = Arc::clone(server);
        let served = thread::Builder::new().name("connection".to_owned()).spawn(move || {
            // An error ends only its connection.
            let _ = match ticket {
                Some(_ticket) => connection(&server, stream),
                None => refuse(stream),
            };
        });
        if let Err(error) = served {
            eprintln!("batch-rms24 serve: no thread for a connection: {error}");
        }
    }
}

/// One of the connections that may be open at a time.
struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let ticket = Self(Arc::clone(open));
        (ticket.0.fetch_add(1, Ordering::Relaxed) < MAX_CONNECTIONS).then_some(ticket)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn refuse(mut stream: TcpStream) -> io::Result<()> {
    say(&mut stream, &Reply::Error(format!("{MAX_CONNECTIONS} connections are open already")))
}

fn say(stream: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let mut frame = framing::empty();
    reply.encode(&mut frame);
    framing::write(stream, &mut frame, Framing::SingleWrite).map(|_| ())
}

fn connection(server: &Server, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let (mut session, mut message, mut frame) = (None, Vec::new(), framing::empty());
    loop {
        match framing::read(&mut stream, server.message_limit(), &mut message)? {
            Incoming::End => return Ok(()),
            Incoming::TooLong(length) => {
                let limit = server.message_limit();
                say(&mut stream, &Reply::Error(format!("a message of {length} bytes; at most {limit} are allowed")))?;
                return close(stream);
            }
            Incoming::Message => {}
        }
        let reply = server.handle(&mut session, &message, |wishes| apply(&stream, wishes));
        framing::clear(&mut frame);
        reply.encode(&mut frame);
        let framing = session.map_or(Framing::SingleWrite, |session| session.wishes.framing);
        framing::write(&mut stream, &mut frame, framing)?;
    }
}

/// Applies the supported settings and reads them back.
fn apply(stream: &TcpStream, wishes: Wishes) -> bool {
    let _ = stream.set_nodelay(wishes.nodelay);
    stream.nodelay().unwrap_or(false)
}

/// Closes a connection on which the client may still be sending: closing at once could take the last reply from it.
fn close(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(DRAIN_TIME))?;
    io::copy(&mut (&mut stream).take(DRAIN), &mut io::sink()).map(|_| ())
}
