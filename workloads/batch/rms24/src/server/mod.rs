//! The server: sums the entries of a question. It retains no state about clients.
//!
//! [`Server::handle`] maps request bytes to reply bytes; [`tcp`] serves it on a socket.

mod answer;
pub mod tcp;

pub use answer::answer as add;

use std::time::Instant;

use crate::clock::{self, Span};
use crate::database::Database;
use crate::query::Question;
use crate::wire::{Answering, Hello, Item, Ready, Reply, Request, Wishes};

/// Bytes of a frame beyond its questions.
const SLACK: usize = 64;

/// A database and the rules by which it is asked.
#[derive(Debug)]
pub struct Server {
    database: Database,
    batch_limit: u32,
}

/// The negotiated settings of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// The client's requested settings.
    pub wishes: Wishes,
    batch_limit: u32,
}

impl Server {
    /// A server that takes at most `batch_limit` questions at a time.
    #[must_use]
    pub fn new(database: Database, batch_limit: u32) -> Self {
        Self { database, batch_limit }
    }

    /// The longest message that makes sense: a full batch of questions about all blocks.
    #[must_use]
    pub fn message_limit(&self) -> usize {
        let question = 16 + 8 * self.database.geometry().blocks() as usize;
        SLACK + self.batch_limit as usize * question
    }

    /// Handles one message. The session is created by the client's first message; `apply` applies its settings and
    /// returns whether Nagle's algorithm is disabled.
    pub fn handle(&self, session: &mut Option<Session>, message: &[u8], apply: impl FnOnce(Wishes) -> bool) -> Reply {
        let began = clock::nanoseconds();
        let request = match Request::decode(message) {
            Ok(request) => request,
            Err(malformed) => return Reply::Error(malformed.to_string()),
        };
        let Some(agreed) = *session else {
            return match request {
                Request::RunConfig(hello) => self.agree(session, &hello, apply),
                _ => Reply::Error("the first message must be RunConfig".to_owned()),
            };
        };
        match request {
            Request::RunConfig(_) => Reply::Error("RunConfig comes once, as the first message".to_owned()),
            Request::Query(id, question) => {
                let item = self.item(id, &question, agreed.wishes.answering);
                Reply::Item(item, Span::since(began))
            }
            Request::Batch(questions) if questions.len() > agreed.batch_limit as usize => {
                let (found, allowed) = (questions.len(), agreed.batch_limit);
                Reply::Error(format!("a batch of {found} questions; at most {allowed} are allowed"))
            }
            Request::Batch(questions) => {
                let item = |(id, question): &(u64, Question)| self.item(*id, question, agreed.wishes.answering);
                let items = questions.iter().map(item).collect();
                Reply::Batch(items, Span::since(began))
            }
        }
    }

    fn agree(&self, session: &mut Option<Session>, hello: &Hello, apply: impl FnOnce(Wishes) -> bool) -> Reply {
        let geometry = self.database.geometry();
        let mine = (geometry.entries(), geometry.entry_size(), self.database.entries().seed());
        let wanted = (hello.entries, hello.entry_size as usize, hello.seed);
        if mine != wanted {
            let say = |(entries, size, seed)| format!("{entries} entries of {size} bytes, seed {seed}");
            return Reply::Error(format!("this server has {}, not {}", say(mine), say(wanted)));
        }
        if hello.batch_limit == 0 {
            return Reply::Error("a batch limit of 0 allows nothing".to_owned());
        }
        let batch_limit = self.batch_limit.min(hello.batch_limit);
        *session = Some(Session { wishes: hello.wishes, batch_limit });
        Reply::Ready(Ready { batch_limit, nodelay: apply(hello.wishes), huge_pages: self.database.huge_pages() })
    }

    fn item(&self, id: u64, question: &Question, answering: Answering) -> Item {
        let start = Instant::now();
        let outcome = answer::answer(&self.database, question, answering);
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Item { id, nanoseconds, outcome }
    }
}
