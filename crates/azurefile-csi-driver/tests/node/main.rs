//! The service Node: on simulated machines with simulated services of files, and on folders of this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod confidential;
mod disks;
mod failures;
mod identities;
mod inline;
mod keys;
mod nfs;
mod proxy;
mod publishing;
mod requests;
mod rotation;
mod shares;
mod smb;
mod statistics;
mod world;
