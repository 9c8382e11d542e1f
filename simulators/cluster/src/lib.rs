//! Both simulators joined into one cluster: machines become nodes, nodes answer probes.
//!
//! * [`Shape`] describes what exists in Azure before the first Service, and the azure.json for it.
//! * [`spawn_stand_ins`] starts the kubelets and controllers that a cluster has beside its API server;
//!   [`spawn_stand_ins_of`] does so for one cluster of several in an Azure.
//! * [`HostedCluster`] is all of it on sockets, over TLS, with the files that programs are configured with.
//! * [`HostedAzure`] is Azure alone, the same way, and [`HostedKubernetes`] is Kubernetes alone.
//! * [`HostedManagement`] is a management cluster with Cluster API's core, and an Azure for the clusters that it
//!   creates.
//! * [`HostedRegistries`] are container registries with the sign-in that a node needs for them.
//! * [`upstream_arguments`] returns the arguments that cloud-controller-manager of cloud-provider-azure needs beside
//!   these files.
//! * [`play_cluster_api`] simulates Cluster API beside any API server, and [`WebhookServer`] connects one to webhooks
//!   beside it.
//! * [`WorkloadClusters`] are clusters of machines with kubeadm's bootstrap data.
//! * [`manifests`] applies users' manifests.

mod client;
mod cluster_api;
mod cluster_identities;
mod files;
mod hosted;
mod hosted_azure;
mod hosted_kubernetes;
mod hosted_management;
mod hosted_registries;
mod instance;
mod layout;
mod machines;
mod managed_clusters;
mod manager_host;
pub mod manifests;
mod node_answers;
mod page;
mod progress;
mod service_views;
mod shape;
mod sign_in;
mod stand_ins;
mod upstream;
mod webhook_server;
mod workload;

pub use self::stand_ins::{spawn_stand_ins, spawn_stand_ins_of};
pub use client::client_of;
pub use cluster_api::play_cluster_api;
pub use cluster_api_stand_in::Part;
pub use cluster_identities::SERVICE_ACCOUNT;
pub use files::HostError;
pub use hosted::{Files, HostedCluster, HostedOptions};
pub use hosted_azure::{HostedAzure, HostedAzureOptions};
pub use hosted_kubernetes::{HostedKubernetes, HostedKubernetesOptions};
pub use hosted_management::{HostedManagement, HostedManagementOptions};
pub use hosted_registries::{HostedRegistries, HostedRegistriesOptions};
pub use machine_disks;
pub use machine_shares;
pub use machines::{AzureMachines, running_host};
pub use node_answers::NodeAnswers;
pub use shape::{ExtraSubnet, NodePool, Orchestration, Shape, StandaloneMachine};
pub use upstream::upstream_arguments;
pub use webhook_server::{WebhookServer, free_port};
pub use workload::{
    Boot, BootPlan, CloudProvider, Outcome, WorkloadCluster, WorkloadClusters, WorkloadOptions,
};
