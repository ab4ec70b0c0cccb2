//! Messages as bytes, little-endian throughout.
//!
//! ```text
//! request   kind u32: 1 RunConfig | 2 Query: question | 3 BatchRequest: count u32, questions
//! question  id u64, form u32, count u32, then by form
//!           0 pairs: count times block u32, offset u32         16 + 8 * count bytes, as the document's
//!           1 halves: count blocks; mask of ceil(count / 8) bytes; count / 2 offsets u16
//! reply     kind u32: 1 Ready | 2 Reply: item, span | 3 BatchReply: count u32, items, span | 4 Error: text
//! span      began u64, ended u64: the server's work on the request, in nanoseconds of its machine's monotonic clock
//! item      id u64, nanoseconds u64, status u32 (0 sums, 1 text), length u32, as many bytes
//! ```

use std::fmt;

use super::framing::Framing;
use crate::clock::Span;
use crate::geometry::Place;
use crate::query::Question;

/// The client's requested connection settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// Whether the server shall switch Nagle's algorithm off.
    pub nodelay: bool,
    /// How the server shall write.
    pub framing: Framing,
    /// How the server shall add up entries.
    pub answering: Answering,
}

/// How a server adds up entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// The document's method: every entry is copied into a separate vector and XORed byte by byte.
    Copy,
    /// Entries are asked for 16 ahead and added word by word where they lie.
    Prefetch,
}

assay_harness::choices!(Answering { "copy" => Copy, "prefetch" => Prefetch });

/// The first message of a client: RunConfig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Entries of the database it expects.
    pub entries: u32,
    /// Bytes of an entry.
    pub entry_size: u32,
    /// Seed of the contents.
    pub seed: u64,
    /// The most questions per batch that it would send.
    pub batch_limit: u32,
    /// The requested connection settings.
    pub wishes: Wishes,
}

/// A client's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Must come first.
    RunConfig(Hello),
    /// One question.
    Query(u64, Question),
    /// Several questions.
    Batch(Vec<(u64, Question)>),
}

/// The answer to RunConfig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Maximum number of questions per batch, the lesser of the client's and the server's limit.
    pub batch_limit: u32,
    /// Whether Nagle's algorithm is off at the server, as read back.
    pub nodelay: bool,
    /// Whether the system took the advice to use huge pages for the database.
    pub huge_pages: bool,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The question's number.
    pub id: u64,
    /// Server time of the question.
    pub nanoseconds: u64,
    /// The sums, one for pairs and two for halves, or an error text; other questions of the batch are unaffected.
    pub outcome: Result<Vec<u8>, String>,
}

/// A server's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To RunConfig.
    Ready(Ready),
    /// To a query, and when the server worked on it.
    Item(Item, Span),
    /// To a batch, and when the server worked on it.
    Batch(Vec<Item>, Span),
    /// The request as a whole cannot be served.
    Error(String),
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed message: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

const PAIRS: u32 = 0;
const HALVES: u32 = 1;
/// Bytes of the shortest question, and of the shortest item.
const SHORTEST: usize = 16;

impl Request {
    /// Appends the message to a frame.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::RunConfig(hello) => {
                put32(to, 1);
                put32(to, hello.entries);
                put32(to, hello.entry_size);
                put64(to, hello.seed);
                put32(to, hello.batch_limit);
                let Wishes { nodelay, framing, answering } = hello.wishes;
                to.push(u8::from(nodelay));
                to.push(u8::from(framing == Framing::SingleWrite));
                to.push(u8::from(answering == Answering::Prefetch));
            }
            Self::Query(id, question) => {
                put32(to, 2);
                encode_question(to, *id, question);
            }
            Self::Batch(questions) => {
                put32(to, 3);
                put32(to, questions.len() as u32);
                questions.iter().for_each(|(id, question)| encode_question(to, *id, question));
            }
        }
    }

    /// The questions in it.
    pub fn into_questions(self) -> impl Iterator<Item = Question> {
        let (one, many) = match self {
            Self::RunConfig(_) => (None, Vec::new()),
            Self::Query(_, question) => (Some(question), Vec::new()),
            Self::Batch(questions) => (None, questions),
        };
        one.into_iter().chain(many.into_iter().map(|(_, question)| question))
    }

    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// If it is invalid.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut from = Reader(message);
        let request = match from.u32()? {
            1 => Self::RunConfig(Hello {
                entries: from.u32()?,
                entry_size: from.u32()?,
                seed: from.u64()?,
                batch_limit: from.u32()?,
                wishes: Wishes {
                    nodelay: from.truth()?,
                    framing: if from.truth()? { Framing::SingleWrite } else { Framing::TwoWrites },
                    answering: if from.truth()? { Answering::Prefetch } else { Answering::Copy },
                },
            }),
            2 => {
                let (id, question) = from.question()?;
                Self::Query(id, question)
            }
            3 => {
                let count = from.count(SHORTEST)?;
                Self::Batch((0..count).map(|_| from.question()).collect::<Result<_, _>>()?)
            }
            _ => return Err(Malformed("unknown kind of request")),
        };
        from.end()?;
        Ok(request)
    }
}

fn encode_question(to: &mut Vec<u8>, id: u64, question: &Question) {
    put64(to, id);
    match question {
        Question::Pairs(places) => {
            put32(to, PAIRS);
            put32(to, places.len() as u32);
            to.reserve(8 * places.len());
            for place in places {
                to.extend_from_slice(&(u64::from(place.offset) << 32 | u64::from(place.block)).to_le_bytes());
            }
        }
        Question::Halves { mask, offsets } => {
            put32(to, HALVES);
            put32(to, 2 * offsets.len() as u32);
            to.extend_from_slice(mask);
            to.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        }
    }
}

impl Reply {
    /// Appends the message to a frame.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Ready(ready) => {
                put32(to, 1);
                put32(to, ready.batch_limit);
                to.push(u8::from(ready.nodelay));
                to.push(u8::from(ready.huge_pages));
            }
            Self::Item(item, span) => {
                put32(to, 2);
                item.encode(to);
                put_span(to, *span);
            }
            Self::Batch(items, span) => {
                put32(to, 3);
                put32(to, items.len() as u32);
                items.iter().for_each(|item| item.encode(to));
                put_span(to, *span);
            }
            Self::Error(text) => {
                put32(to, 4);
                put32(to, text.len() as u32);
                to.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// If it is invalid.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut from = Reader(message);
        let reply = match from.u32()? {
            1 => Self::Ready(Ready { batch_limit: from.u32()?, nodelay: from.truth()?, huge_pages: from.truth()? }),
            2 => Self::Item(from.item()?, from.span()?),
            3 => {
                let count = from.count(SHORTEST)?;
                Self::Batch((0..count).map(|_| from.item()).collect::<Result<_, _>>()?, from.span()?)
            }
            4 => {
                let length = from.u32()? as usize;
                Self::Error(from.text(length)?)
            }
            _ => return Err(Malformed("unknown kind of reply")),
        };
        from.end()?;
        Ok(reply)
    }
}

impl Item {
    fn encode(&self, to: &mut Vec<u8>) {
        put64(to, self.id);
        put64(to, self.nanoseconds);
        let (status, bytes) = match &self.outcome {
            Ok(sums) => (0, sums.as_slice()),
            Err(text) => (1, text.as_bytes()),
        };
        put32(to, status);
        put32(to, bytes.len() as u32);
        to.extend_from_slice(bytes);
    }
}

fn put32(to: &mut Vec<u8>, value: u32) {
    to.extend_from_slice(&value.to_le_bytes());
}

fn put64(to: &mut Vec<u8>, value: u64) {
    to.extend_from_slice(&value.to_le_bytes());
}

fn put_span(to: &mut Vec<u8>, span: Span) {
    put64(to, span.began);
    put64(to, span.ended);
}

/// The unread part of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(*self.take(N)?.first_chunk().expect("as many bytes were taken"))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn truth(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed("a truth value is neither 0 nor 1")),
        }
    }

    /// Reads a count of items of at least `size` bytes. An impossible count is rejected before allocation.
    fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        if count > self.0.len() / size { Err(Malformed("it ends too early")) } else { Ok(count) }
    }

    fn text(&mut self, length: usize) -> Result<String, Malformed> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed("a text is not UTF-8"))
    }

    fn question(&mut self) -> Result<(u64, Question), Malformed> {
        let (id, form) = (self.u64()?, self.u32()?);
        let question = match form {
            PAIRS => {
                let count = self.count(8)?;
                let place = |bytes: &[u8]| {
                    let both = u64::from_le_bytes(*bytes.first_chunk().expect("chunks of eight"));
                    Place { block: both as u32, offset: (both >> 32) as u32 }
                };
                Question::Pairs(self.take(8 * count)?.chunks_exact(8).map(place).collect())
            }
            HALVES => {
                let blocks = self.u32()? as usize;
                if !blocks.is_multiple_of(2) {
                    return Err(Malformed("an odd number of blocks has no halves"));
                }
                let mask = self.take(blocks.div_ceil(8))?.to_vec();
                let offsets = self.take(blocks)?.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
                Question::Halves { mask, offsets: offsets.collect() }
            }
            _ => return Err(Malformed("unknown form of question")),
        };
        Ok((id, question))
    }

    fn item(&mut self) -> Result<Item, Malformed> {
        let (id, nanoseconds, status) = (self.u64()?, self.u64()?, self.u32()?);
        let length = self.u32()? as usize;
        let outcome = match status {
            0 => Ok(self.take(length)?.to_vec()),
            1 => Err(self.text(length)?),
            _ => return Err(Malformed("unknown status")),
        };
        Ok(Item { id, nanoseconds, outcome })
    }

    fn span(&mut self) -> Result<Span, Malformed> {
        Ok(Span { began: self.u64()?, ended: self.u64()? })
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("it goes on after its end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn questions() -> impl Strategy<Value = Question> {
        prop_oneof![
            prop::collection::vec((any::<u32>(), any::<u32>()), 0..50).prop_map(|places| {
                Question::Pairs(places.into_iter().map(|(block, offset)| Place { block, offset }).collect())
            }),
            prop::collection::vec((any::<u8>(), any::<u16>()), 0..50).prop_map(|blocks| {
                let offsets: Vec<u16> = blocks.iter().map(|(_, offset)| *offset).collect();
                let mask = blocks.iter().map(|(byte, _)| *byte).take((2 * offsets.len()).div_ceil(8)).collect();
                Question::Halves { mask, offsets }
            }),
        ]
    }

    fn requests() -> impl Strategy<Value = Request> {
        prop_oneof![
            (any::<u32>(), any::<u64>(), any::<[bool; 3]>()).prop_map(|(entries, seed, [a, b, c])| {
                let framing = if a { Framing::SingleWrite } else { Framing::TwoWrites };
                let answering = if b { Answering::Prefetch } else { Answering::Copy };
                let wishes = Wishes { nodelay: c, framing, answering };
                Request::RunConfig(Hello { entries, entry_size: 40, seed, batch_limit: !entries, wishes })
            }),
            (any::<u64>(), questions()).prop_map(|(id, question)| Request::Query(id, question)),
            prop::collection::vec((any::<u64>(), questions()), 0..5).prop_map(Request::Batch),
        ]
    }

    fn items() -> impl Strategy<Value = Item> {
        let outcome = prop_oneof![prop::collection::vec(any::<u8>(), 0..80).prop_map(Ok), "[ -~]{0,30}".prop_map(Err),];
        (any::<u64>(), any::<u64>(), outcome).prop_map(|(id, nanoseconds, outcome)| Item { id, nanoseconds, outcome })
    }

    fn spans() -> impl Strategy<Value = Span> {
        any::<[u64; 2]>().prop_map(|[began, ended]| Span { began, ended })
    }

    fn replies() -> impl Strategy<Value = Reply> {
        prop_oneof![
            (any::<u32>(), any::<bool>(), any::<bool>()).prop_map(|(batch_limit, nodelay, huge_pages)| {
                Reply::Ready(Ready { batch_limit, nodelay, huge_pages })
            }),
            (items(), spans()).prop_map(|(item, span)| Reply::Item(item, span)),
            (prop::collection::vec(items(), 0..5), spans()).prop_map(|(items, span)| Reply::Batch(items, span)),
            "[ -~]{0,30}".prop_map(Reply::Error),
        ]
    }

    proptest! {
        #[test]
        fn messages_round_trip_and_truncated_ones_are_rejected(
            request in requests(), reply in replies(), cut: prop::sample::Index, more: u8,
        ) {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            prop_assert_eq!(Request::decode(&bytes), Ok(request));
            prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(more);
            prop_assert!(Request::decode(&bytes).is_err());

            let mut bytes = Vec::new();
            reply.encode(&mut bytes);
            prop_assert_eq!(Reply::decode(&bytes), Ok(reply));
            prop_assert!(Reply::decode(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(more);
            prop_assert!(Reply::decode(&bytes).is_err());
        }

        #[test]
        fn random_bytes_are_rejected_without_a_panic(kind in 0_u32..6, noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&kind.to_le_bytes()[..], &noise].concat();
            let _ = Request::decode(&bytes);
            let _ = Reply::decode(&bytes);
        }
    }

    #[test]
    fn a_question_of_the_document_has_the_documents_bytes() {
        let places = vec![Place { block: 1, offset: 2 }; 21_413];
        let mut bytes = Vec::new();
        encode_question(&mut bytes, 7, &Question::Pairs(places));
        assert_eq!(bytes.len(), 171_320);
    }

    #[test]
    fn huge_count_is_rejected_before_allocation() {
        let mut bytes = 3_u32.to_le_bytes().to_vec();
        bytes.extend(u32::MAX.to_le_bytes());
        assert_eq!(Request::decode(&bytes), Err(Malformed("it ends too early")));
    }
}
