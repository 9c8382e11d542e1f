//! The images: a row for each, with the path that its established counterpart has, so that manifests keep their commands.

use super::platform::{AMD64, ARM64, Platform, WINDOWS};

/// An image with one program.
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    /// Its name in a registry, and in values of charts.
    pub name: &'static str,
    /// The crate of its program.
    pub package: &'static str,
    /// The program, as cargo names it.
    pub binary: &'static str,
    /// The program's path on Linux, which is also the entrypoint.
    pub path: &'static str,
    /// What it is for, in one sentence.
    pub description: &'static str,
    /// Where it runs.
    pub platforms: &'static [&'static Platform],
}

const ON_LINUX: &[&Platform] = &[&AMD64, &ARM64];

/// All images.
pub const IMAGES: [Image; 5] = [
    Image {
        name: "azure-cloud-controller-manager",
        package: "cloud-controller-manager",
        binary: "azure-cloud-controller-manager",
        path: "/usr/local/bin/cloud-controller-manager",
        description: "Load balancers, nodes and routes of a Kubernetes cluster on Azure",
        platforms: ON_LINUX,
    },
    Image {
        name: "azure-cloud-node-manager",
        package: "cloud-node-manager",
        binary: "azure-cloud-node-manager",
        path: "/usr/local/bin/cloud-node-manager",
        description: "Initializes the Kubernetes node that it runs on with the data of its machine on Azure",
        platforms: &[&AMD64, &ARM64, &WINDOWS],
    },
    Image {
        name: "azure-acr-credential-provider",
        package: "acr-credential-provider",
        binary: "acr-credential-provider",
        path: "/usr/local/bin/acr-credential-provider",
        description: "The kubelet's plugin for credentials of Azure container registries",
        platforms: ON_LINUX,
    },
    Image {
        name: "health-probe-proxy",
        package: "health-probe-proxy",
        binary: "health-probe-proxy",
        path: "/usr/local/bin/health-probe-proxy",
        description: "Forwards health probes of Azure's load balancers to kube-proxy without the PROXY protocol",
        platforms: ON_LINUX,
    },
    Image {
        name: "cluster-api-azure-controller",
        package: "capz-controller-manager",
        binary: "capz-controller-manager",
        path: "/manager",
        description: "The infrastructure provider of Cluster API for Azure",
        platforms: ON_LINUX,
    },
];
