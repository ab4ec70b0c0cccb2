//! Single-server private information retrieval with hints (RMS24): the system of the batching document, rebuilt to be measured.
//!
//! A client wants one entry of a server's database without telling which. Before its first query it reads the whole database once and
//! keeps many *hints*: sums of random entries, one from each of half of the blocks that the database is cut into. To get an
//! entry it looks for a hint that contains it and asks the server for the sum of everything else in that hint; the difference is the
//! entry. The server sees a random set of entries, and reads the square root of the database instead of all of it.
//!
//! * [`geometry`], [`database`]: blocks and entries.
//! * [`prf`]: the functions that say what a hint covers; [`cutoff`], [`hints`]: what is kept of a hint.
//! * [`offline`]: computing all hints; [`state`]: keeping them in a file.
//! * [`search`], [`query`]: finding a hint and asking about it, in five ways.
//! * [`wire`], [`server`], [`client`]: the protocol.
//! * [`reference`](mod@reference): the scheme by definition.
//! * [`run`] and [`serve`]: the two commands; [`child`], [`ceilings`], [`clock`], [`workload`]: what they need.

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
