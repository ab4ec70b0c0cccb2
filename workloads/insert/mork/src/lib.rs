//! MeTTa facts encoded as paths and inserted into a trie: the insertion kernel of the MORK serialisation document.
//!
//! * [`value`], [`token`], [`text`]: what facts are made of, and how they are written;
//! * [`encoding`]: from value or text to the bytes of a path, and back;
//! * [`store`]: where paths are kept, the slow reference included;
//! * [`symbols`], [`query`]: symbols by number, and questions about what is there;
//! * [`environment`]: what facts and rules are added to, the original's way and ours;
//! * [`scratch`], [`cache`]: the two things the document's question turns on;
//! * [`workload`], [`run`]: what is measured, and one trial.

pub mod cache;
pub mod ceiling;
pub mod counting;
pub mod encoding;
pub mod environment;
pub mod laps;
pub mod query;
pub mod run;
pub mod scratch;
pub mod store;
pub mod subject;
pub mod symbols;
pub mod text;
pub mod token;
pub mod usage;
pub mod value;
pub mod workload;
