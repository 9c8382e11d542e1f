//! The cloud configuration of a running program: where it is read, and how a change takes effect.
//!
//! ```text
//!  file ─────┐
//!            ├─read─▶ Reading ─differs─▶ checks ─prepare (Azure accepts it)─▶ the next Generation
//!  Secret ───┘           ▲                 │ refused: the previous generation stays in force
//!                        └── every 5 s ────┘
//! ```
//!
//! A generation is a client of Azure with the controllers that use it. The next one starts when the previous one has
//! ended, within the same process and under the same Lease; whatever was interrupted is planned again, as after a
//! restart.

mod generation;
mod reload;
pub mod sources;

pub(crate) use generation::{Generation, serve};
pub(crate) use reload::Reloader;
pub use sources::{SecretKey, Sources};
