//! The way to the server and back: a socket, or a call.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Broken;
use crate::server::{Server, Session};
use crate::wire::framing::{self, Framing, HEADER, Incoming};
use crate::wire::{Hello, Ready, Reply, Request};

/// A server that says nothing for this long is gone.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than any reply: a batch of the most questions, each with two sums of the widest entries.
const REPLY_LIMIT: usize = 16 << 20;

/// Carries a message there and another back.
pub trait Transport {
    /// An empty frame for the next request, room for its header included.
    fn frame(&mut self) -> &mut Vec<u8>;

    /// Sends the frame. Returns its bytes.
    ///
    /// # Errors
    ///
    /// When the server is gone.
    fn write(&mut self) -> io::Result<u64>;

    /// Waits for the reply.
    ///
    /// # Errors
    ///
    /// When the server is gone.
    fn read(&mut self) -> io::Result<&[u8]>;

    /// Whether Nagle's algorithm is off at this end; `None` where there is no socket.
    fn nodelay(&self) -> Option<bool>;
}

/// A way there and back, whichever it is.
pub type Link<'a> = Box<dyn Transport + Send + 'a>;

/// Agrees with the server on how the connection is used.
fn greet(transport: &mut impl Transport, hello: &Hello) -> Result<Ready, Broken> {
    Request::RunConfig(*hello).encode(transport.frame());
    transport.write()?;
    match Reply::decode(transport.read()?) {
        Ok(Reply::Ready(ready)) => Ok(ready),
        Ok(Reply::Error(problem)) => Err(Broken::Server(problem)),
        Ok(_) => Err(Broken::Server("it answers before it is asked".to_owned())),
        Err(malformed) => Err(Broken::Server(malformed.to_string())),
    }
}

/// How the client's end of a connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Whether Nagle's algorithm is off.
    pub nodelay: bool,
    /// How frames are written.
    pub framing: Framing,
}

/// A socket.
#[derive(Debug)]
pub struct Tcp {
    stream: TcpStream,
    framing: Framing,
    frame: Vec<u8>,
    message: Vec<u8>,
}

impl Tcp {
    /// Connects and performs the handshake. `end` configures this end, and `hello` requests the configuration of the
    /// server's.
    ///
    /// # Errors
    ///
    /// If there is no server, or it has another database.
    pub fn connect(address: SocketAddr, hello: &Hello, end: End) -> Result<(Link<'static>, Ready), Broken> {
        let End { nodelay, framing } = end;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(nodelay)?;
        let mut tcp = Self { stream, framing, frame: framing::empty(), message: Vec::new() };
        let ready = greet(&mut tcp, hello)?;
        Ok((Box::new(tcp), ready))
    }
}

impl Transport for Tcp {
    fn frame(&mut self) -> &mut Vec<u8> {
        framing::clear(&mut self.frame);
        &mut self.frame
    }

    fn write(&mut self) -> io::Result<u64> {
        framing::write(&mut self.stream, &mut self.frame, self.framing)
    }

    fn read(&mut self) -> io::Result<&[u8]> {
        match framing::read(&mut self.stream, REPLY_LIMIT, &mut self.message)? {
            Incoming::Message => Ok(&self.message),
            Incoming::End => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it")),
            Incoming::TooLong(length) => Err(io::Error::other(format!("a reply of {length} bytes"))),
        }
    }

    fn nodelay(&self) -> Option<bool> {
        self.stream.nodelay().ok()
    }
}

/// A server in the same thread: its answer is there when the write returns. No sockets, the same bytes.
#[derive(Debug)]
pub struct Memory<'a> {
    server: &'a Server,
    session: Option<Session>,
    frame: Vec<u8>,
    reply: Vec<u8>,
}

impl<'a> Memory<'a> {
    /// Agrees with the server.
    ///
    /// # Errors
    ///
    /// When it has another database.
    pub fn connect(server: &'a Server, hello: &Hello) -> Result<(Link<'a>, Ready), Broken> {
        let mut memory = Self { server, session: None, frame: framing::empty(), reply: Vec::new() };
        let ready = greet(&mut memory, hello)?;
        Ok((Box::new(memory), ready))
    }
}

impl Transport for Memory<'_> {
    fn frame(&mut self) -> &mut Vec<u8> {
        framing::clear(&mut self.frame);
        &mut self.frame
    }

    fn write(&mut self) -> io::Result<u64> {
        Ok(self.frame.len() as u64)
    }

    fn read(&mut self) -> io::Result<&[u8]> {
        let reply = self.server.handle(&mut self.session, &self.frame[HEADER..], |_| false);
        self.reply.clear();
        reply.encode(&mut self.reply);
        Ok(&self.reply)
    }

    fn nodelay(&self) -> Option<bool> {
        None
    }
}
