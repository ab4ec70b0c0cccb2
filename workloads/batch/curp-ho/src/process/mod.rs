//! Processes: a replica, a load generator, and the one that starts them all.

pub mod children;
pub mod control;
pub mod drive;
pub mod load;
pub mod log;
pub mod record;
pub mod relay;
pub mod replica;
pub mod routines;
