//! Goals and plans, proven without a runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![recursion_limit = "256"]

mod adoption;
mod agent_pool;
mod azure;
mod azure_json;
mod cluster;
mod compare;
mod condition;
mod corpus;
mod deletion;
mod first_contact;
mod machine;
mod machine_life;
mod machine_zones;
mod managed_cluster;
mod pool;
mod pool_rollout;
mod pool_selection;
mod preview;
mod raw;
mod reports;
mod untagged;
mod upkeep;
