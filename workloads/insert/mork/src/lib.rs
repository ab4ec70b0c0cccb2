//! MeTTa facts encoded as paths and inserted into a trie: the insertion kernel of the MORK serialisation document.
//!
//! * [`value`], [`token`], [`text`]: values and their text form;
//! * [`encoding`]: from value or text to the bytes of a path, and back;
//! * [`store`]: stores of paths, including the slow reference;
//! * [`symbols`], [`query`]: symbols by number, and pattern queries;
//! * [`environment`]: collections of facts and rules, the original's and ours;
//! * [`scratch`], [`cache`]: the two subjects of the document;
//! * [`workload`], [`run`]: the workload and one trial.

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
