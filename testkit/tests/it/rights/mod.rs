//! The roles in `deploy/rights/azure` are enough for their features, and each of their actions is needed; so are the
//! roles that `cerulean rights` prints for a cluster, at the scopes that it prints.

mod features;
mod needs;
mod node_manager;
mod stage;
