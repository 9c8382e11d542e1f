//! The controllers, the provider and both simulators together, on virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_days;
mod checker;
mod crowd;
mod deployments;
mod docs;
mod drift;
mod kill;
mod local_services;
mod nodes;
mod places;
mod pools;
mod private_link;
mod random;
mod rights;
mod routes;
mod services;
mod several;
mod several_at_scale;
mod shapes;
mod sku;
mod spot;
mod starvation;
mod stopping;
mod takeover;
