//! Single-server private information retrieval with hints (RMS24): the system of the batching document, rebuilt for
//! measurement.
//!
//! A client wants one entry of a server's database without revealing which. Before its first query it reads the whole
//! database once and computes many *hints*, sums of random entries, one from each of half of the database's blocks. To
//! get an entry it searches a hint that contains it and asks the server for the sum of all other entries in that hint;
//! the difference is the entry. The server sees a random set of entries, and reads the square root of the database
//! instead of all of it.
//!
//! * [`geometry`], [`database`]: blocks and entries.
//! * [`prf`]: pseudo-random functions that define a hint's entries; [`cutoff`], [`hints`]: stored hints.
//! * [`offline`]: computation of all hints; [`state`]: their cache file.
//! * [`search`], [`query`]: finding a hint and building its query, in five variants.
//! * [`wire`], [`server`], [`client`]: the protocol.
//! * [`reference`](mod@reference): the scheme by definition.
//! * [`run`] and [`serve`]: the two commands; [`child`], [`ceilings`], [`clock`], [`workload`]: their helpers.

pub mod ceilings;
pub mod child;
pub mod client;
pub mod clock;
pub mod cutoff;
pub mod database;
pub mod geometry;
pub mod hints;
pub mod offline;
pub mod prf;
pub mod query;
pub mod reference;
pub mod run;
pub mod search;
pub mod serve;
pub mod server;
pub mod state;
pub mod wire;
pub mod workload;
