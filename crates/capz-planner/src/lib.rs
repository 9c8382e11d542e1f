//! From the declaration of a cluster on Azure and the observed state to the next steps and to conditions. Everything
//! here is a function of values: no client, no clock, no randomness.
//!
//! ```text
//!  AzureCluster, AzureMachine, …  ──▶ goals ──┐
//!                                             ├──▶ plan: what may be written now, what waits for what ──▶ conditions
//!  documents that Azure answered  ──▶ observed┘
//! ```
//!
//! * [`cluster`], [`machine`] and [`pool`] derive the goals of a kind of object; [`pool`] also decides which machines
//!   are deleted next. [`managed_cluster`] and [`agent_pool`] do the same for clusters that Azure manages (AKS).
//! * A [`Goal`] is a resource's ID, the desired document, and the rule that decides whether the resource is ours.
//! * Order is derived: a goal comes after those whose IDs are in its document ([`references`]).
//! * One comparison serves all kinds ([`compare`]): the observed state must contain the desired state. Everything else
//!   belongs to other writers and stays.
//! * The exceptions of a kind of resource are a row of the table in [`kind`].
//! * [`elsewhere`] detects that an object's resources are in another place than its cluster's.
//! * [`operator`] decides about the objects of the operator that the established provider uses.
//! * [`preview`] plans to the end: the output of `cerulean plan`.
//!
//! Resources, names and conditions are those of Cluster API Provider Azure (<https://capz.sigs.k8s.io/>): a management
//! cluster can change from one to the other.

pub mod agent_pool;
pub mod azure_json;
mod claimant;
pub mod cluster;
pub mod compare;
pub mod condition;
pub mod custom_headers;
mod document;
pub mod elsewhere;
mod extension;
pub mod goal;
pub mod image;
pub mod instance_view;
pub mod kind;
pub mod kubernetes_version;
pub mod machine;
mod machine_inputs;
pub mod managed_cluster;
mod noun;
pub mod observed;
pub mod operator;
mod owner_tags;
mod patches;
mod peering;
pub mod plan;
mod plan_text;
pub mod pool;
pub mod preview;
mod profile;
pub mod raw;
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
pub use compare::{Change, Withdrawn};
pub use goal::{Goal, GoalError, OwnershipRule, Upkeep};
pub use noun::noun;
pub use observed::{Observation, ObservedResources, Reading};
pub use owner_tags::OWNER_TAGS;
pub use plan::{Action, Plan, State, Step};
pub use preview::{Foreseen, Outlook, Preview};
pub use profile::provider_id;
pub use scope::ClusterScope;
pub use terminal::Terminal;
