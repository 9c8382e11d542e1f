//! Azure: clients by identity, shared reads, and the execution of plans.

pub mod clients;
pub mod failure;
pub mod instances;
pub mod operations;
pub mod reach;
pub mod reads;
pub mod repeats;
pub mod skus;
pub mod spans;
