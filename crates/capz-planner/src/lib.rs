//! From what a cluster on Azure declares, and what Azure holds, to the next steps and to conditions. Everything here is a
//! function of values: no client, no clock, no randomness.
//!
//! ```text
//!  AzureCluster, AzureMachine, …  ──▶ goals ──┐
//!                                             ├──▶ plan: what may be written now, what waits for what ──▶ conditions
//!  documents that Azure answered  ──▶ observed┘
//! ```
//!
//! * [`cluster`], [`machine`] and [`pool`] make the goals of a kind of object; [`pool`] also says which machines go next.
//! * A [`Goal`] is a resource's id, the document that is wanted, and the rule that says whether the resource is ours.
//! * Order is not written down anywhere: a goal comes after those whose ids stand in its document ([`references`]).
//! * One comparison serves all kinds ([`compare`]): what is wanted must be contained in what Azure holds. What else is
//!   there belongs to somebody else and stays.
//! * What is special about a kind of resource is a row of the table in [`kind`].
//! * [`elsewhere`] says when an object has something in another place than where its cluster is looked for.
//! * [`operator`] says what becomes of the objects of the operator that the established provider works with.
//! * [`preview`] plans to the end: what `cerulean plan` prints.
//!
//! What has to be there, under which names and with which conditions, is what Cluster API Provider Azure made of it
//! (<https://capz.sigs.k8s.io/>): a management cluster can change from one to the other.

pub mod azure_json;
mod claimant;
pub mod cluster;
pub mod compare;
pub mod condition;
mod document;
pub mod elsewhere;
mod extension;
pub mod goal;
pub mod image;
pub mod instance_view;
pub mod kind;
pub mod kubernetes_version;
pub mod machine;
mod making;
pub mod managed;
pub mod observed;
pub mod operator;
mod owner_tags;
mod peering;
pub mod plan;
mod plan_text;
pub mod pool;
pub mod preview;
mod profile;
pub mod references;
mod role_assignment;
pub mod scope;
pub mod service;
pub mod size_check;
pub mod sku;
pub mod tags;
pub mod terminal;
mod untagged;

pub use claimant::Claimant;
pub use compare::Change;
pub use goal::{Goal, GoalError, OwnershipRule, Upkeep, Withdrawn};
pub use observed::{Observed, Reading, Seen};
pub use owner_tags::OWNER_TAGS;
pub use plan::{Action, Plan, State, Step};
pub use preview::{Foreseen, Outlook, Preview};
pub use profile::provider_id;
pub use scope::Scope;
pub use terminal::Terminal;
