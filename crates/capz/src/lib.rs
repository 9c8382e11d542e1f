//! Clusters on Azure for Cluster API: the controllers of `infrastructure.cluster.x-k8s.io`.
//!
//! ```text
//!  watches ──▶ stores, queues ──▶ controllers ──goals──▶ reach ──▶ Azure
//!                                     ▲                    │
//!                                     └── status, events ◀─┘
//! ```
//!
//! `capz-planner` decides what a cluster or machine needs in Azure, and what the observed state means for its
//! conditions. This crate runs the reconcile loops around it: [`run`] starts them.
//!
//! The rooms stand on floors, and imports only lead down:
//!
//! ```text
//!  run          watches, queues, workers
//!  cluster      AzureCluster
//!  machine      AzureMachine, AzureMachineTemplate
//!  pool         AzureMachinePool, AzureMachinePoolMachine
//!  raw          AzureASOManagedCluster, AzureASOManagedControlPlane, AzureASOManagedMachinePool
//!  managed      AzureManagedCluster, AzureManagedControlPlane, AzureManagedMachinePool
//!  secrets      azure.json, bootstrap data, credentials for Azure Service Operator
//!  context      what reconciles share, and what they know of their cluster
//!  azure        clients, shared reads, execution of plans
//!  kubernetes   kinds, stores, queues, patches
//!  settings     flags and feature gates, as values
//! ```

mod azure;
mod cluster;
mod context;
mod kubernetes;
mod machine;
mod managed;
mod pool;
mod raw;
mod run;
mod secrets;
mod settings;

pub use azure::clients::{AccessError, Azure, CredentialSource, IdentitySecret};
pub use kubernetes::operator_objects::{Listed, OperatorObjects};
pub use kubernetes::workload::Workloads;
pub use run::{RunError, run};
pub use settings::{Concurrency, Endpoints, Gate, GateError, Gates, Settings, Stage, Timeouts};
