//! The provider against a simulated Azure in the same process, on paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crash;
mod crowd;
mod families;
mod faults;
mod gone;
mod histories;
mod interfaces;
mod isolation;
mod local_pools;
mod machine_kinds;
mod machines;
mod mask_sizes;
mod neighbours;
mod pools;
mod private_link;
mod refusals;
mod routes;
mod services;
mod several;
mod sku;
mod thousand;
mod world;
