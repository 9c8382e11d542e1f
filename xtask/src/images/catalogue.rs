//! The images: a row for each, with the path that its established counterpart has, so that manifests keep their commands.

use super::base::{ROOT, USER};
use super::platform::{AMD64, ARM64, Platform, WINDOWS};
use super::tools::{self, Tools};

/// Programs that are built with the features that any of them asks for, so that they share what is compiled. Within these groups
/// that is less than a hundredth of a program; the controllers' HTTP/2 would be an eighth of the programs of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What runs once in a cluster.
    Controllers,
    /// What runs on each node.
    Nodes,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 2] = [Self::Controllers, Self::Nodes];

    /// The crates of its programs for a platform. Cargo is given all of them, so that a program is the same whichever are wanted.
    pub fn packages(self, platform: &Platform) -> Vec<&'static str> {
        let of_group =
            IMAGES.iter().filter(|image| image.group == self && image.platforms.contains(&platform));
        of_group.map(|image| image.package).collect()
    }
}

/// An image with one program.
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    /// Its name in a registry, and in values of charts.
    pub name: &'static str,
    /// What it is built with.
    pub group: Group,
    /// The crate of its program.
    pub package: &'static str,
    /// The program, as cargo names it.
    pub binary: &'static str,
    /// The program's path on Linux, which is also the entrypoint.
    pub path: &'static str,
    /// The user that it runs as.
    pub user: &'static str,
    /// The programs of others that it has.
    pub tools: Option<&'static Tools>,
    /// What it is for, in one sentence.
    pub description: &'static str,
    /// Where it runs.
    pub platforms: &'static [&'static Platform],
}

const ON_LINUX: &[&Platform] = &[&AMD64, &ARM64];

/// All images.
pub static IMAGES: [Image; 7] = [
    Image {
        name: "azure-cloud-controller-manager",
        group: Group::Controllers,
        package: "cloud-controller-manager",
        binary: "azure-cloud-controller-manager",
        path: "/usr/local/bin/cloud-controller-manager",
        user: USER,
        tools: None,
        description: "Load balancers, nodes and routes of a Kubernetes cluster on Azure",
        platforms: ON_LINUX,
    },
    Image {
        name: "azure-cloud-node-manager",
        group: Group::Nodes,
        package: "cloud-node-manager",
        binary: "azure-cloud-node-manager",
        path: "/usr/local/bin/cloud-node-manager",
        user: USER,
        tools: None,
        description: "Initializes the Kubernetes node that it runs on with the data of its machine on Azure",
        platforms: &[&AMD64, &ARM64, &WINDOWS],
    },
    Image {
        name: "azure-acr-credential-provider",
        group: Group::Nodes,
        package: "acr-credential-provider",
        binary: "acr-credential-provider",
        path: "/usr/local/bin/acr-credential-provider",
        user: USER,
        tools: None,
        description: "The kubelet's plugin for credentials of Azure container registries",
        platforms: ON_LINUX,
    },
    Image {
        name: "health-probe-proxy",
        group: Group::Nodes,
        package: "health-probe-proxy",
        binary: "health-probe-proxy",
        path: "/usr/local/bin/health-probe-proxy",
        user: USER,
        tools: None,
        description: "Forwards health probes of Azure's load balancers to kube-proxy without the PROXY protocol",
        platforms: ON_LINUX,
    },
    Image {
        name: "cluster-api-azure-controller",
        group: Group::Controllers,
        package: "capz-controller-manager",
        binary: "capz-controller-manager",
        path: "/manager",
        user: USER,
        tools: None,
        description: "The infrastructure provider of Cluster API for Azure",
        platforms: ON_LINUX,
    },
    Image {
        name: "azuredisk-csi",
        group: Group::Controllers,
        package: "azuredisk-csi-driver",
        binary: "azurediskplugin",
        path: "/azurediskplugin",
        // On nodes it mounts; the chart gives the controller's pods another user.
        user: ROOT,
        tools: Some(&tools::DISKS),
        description: "The driver for volumes on Azure's disks, as controller and on nodes",
        platforms: ON_LINUX,
    },
    Image {
        name: "azurefile-csi",
        group: Group::Controllers,
        package: "azurefile-csi-driver",
        binary: "azurefileplugin",
        path: "/azurefileplugin",
        // As that for disks.
        user: ROOT,
        tools: Some(&tools::SHARES),
        description: "The driver for volumes on Azure's file shares, as controller and on nodes",
        platforms: ON_LINUX,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_programs_that_a_platform_has() {
        let on_linux = ["cloud-node-manager", "acr-credential-provider", "health-probe-proxy"];
        assert_eq!(Group::Nodes.packages(&ARM64), on_linux);
        assert_eq!(Group::Nodes.packages(&WINDOWS), ["cloud-node-manager"]);
        assert_eq!(
            Group::Controllers.packages(&AMD64),
            [
                "cloud-controller-manager",
                "capz-controller-manager",
                "azuredisk-csi-driver",
                "azurefile-csi-driver"
            ]
        );
    }
}
