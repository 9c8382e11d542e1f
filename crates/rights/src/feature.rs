//! The programs, and their features as far as rights differ.

/// A program with rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `azure-cloud-controller-manager`.
    ControllerManager,
    /// `azure-cloud-node-manager`.
    NodeManager,
    /// `acr-credential-provider`.
    CredentialProvider,
    /// `capz-controller-manager`; its rights in Kubernetes are in `deploy/capz/parts`.
    ClusterManager,
    /// `azurediskplugin` as controller, with its side-cars, which share its service account.
    DiskController,
    /// `azurediskplugin` on each node.
    DiskNode,
    /// `azurefileplugin` as controller, with its side-cars, which share its service account.
    FileController,
    /// `azurefileplugin` on each node.
    FileNode,
    /// The snapshot controller, which the charts of both drivers install on request.
    SnapshotController,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ControllerManager,
        Self::NodeManager,
        Self::CredentialProvider,
        Self::ClusterManager,
        Self::DiskController,
        Self::DiskNode,
        Self::FileController,
        Self::FileNode,
        Self::SnapshotController,
    ];

    /// The name in file names and in names of roles.
    pub fn name(self) -> &'static str {
        match self {
            Self::ControllerManager => "cloud-controller-manager",
            Self::NodeManager => "cloud-node-manager",
            Self::CredentialProvider => "acr-credential-provider",
            Self::ClusterManager => "capz-controller-manager",
            Self::DiskController => "csi-azuredisk-controller",
            Self::DiskNode => "csi-azuredisk-node",
            Self::FileController => "csi-azurefile-controller",
            Self::FileNode => "csi-azurefile-node",
            Self::SnapshotController => "csi-snapshot-controller",
        }
    }

    /// The name of its service account in kube-system.
    pub fn account(self) -> &'static str {
        match self {
            Self::DiskController => "csi-azuredisk-controller-sa",
            Self::DiskNode => "csi-azuredisk-node-sa",
            Self::FileController => "csi-azurefile-controller-sa",
            Self::FileNode => "csi-azurefile-node-sa",
            Self::SnapshotController => "csi-snapshot-controller-sa",
            other => other.name(),
        }
    }
}

/// A part of a program that needs rights of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// What every replica needs.
    Base,
    /// The election of a leader.
    Election,
    /// A Secret with azure.json.
    ConfigurationSecret,
    /// Load balancers for Services.
    Services,
    /// Nodes get the data of their machines.
    Nodes,
    /// Nodes are tainted and deleted as their machines stop and go.
    NodeLifecycle,
    /// Nodes that are virtual machines, those of flexible scale sets included.
    VirtualMachines,
    /// Backend pools of addresses.
    NodeIp,
    /// Azure turns pools of interfaces into pools of addresses.
    Migration,
    /// Public IPs from prefixes.
    PublicIpPrefixes,
    /// Foreign rules of the security group name application security groups.
    ApplicationSecurityGroups,
    /// Private link services.
    PrivateLink,
    /// Endpoints decide which nodes are in the pool of a Service.
    LocalPools,
    /// Labels of namespaces decide on which load balancer a Service is.
    NamespaceSelectors,
    /// Draining nodes get no new connections.
    AdminState,
    /// Routes to the pods of nodes.
    Routes,
    /// Nodes get ranges for their pods.
    PodRanges,
    /// Tags of scale sets and availability sets say how large the ranges are.
    PodRangesByTags,
    /// Metrics for callers that the cluster authorizes.
    Metrics,
    /// The agent of a node works for its node: the node manager, or the disk driver there.
    NodeAgent,
    /// The node manager announces scheduled events.
    ScheduledEvents,
    /// The node manager reads Resource Manager instead of instance metadata.
    ResourceManager,
    /// The kubelet pulls images.
    Pull,
    /// Clusters of Cluster API.
    Clusters,
    /// Machines of clusters get existing identities.
    UserAssignedIdentities,
    /// Machines of clusters get identities of their own, with roles.
    MachineIdentities,
    /// Clusters that Azure manages.
    ManagedClusters,
    /// Managed clusters are members of fleets.
    Fleets,
    /// Managed clusters have extensions.
    ClusterExtensions,
    /// The health of managed clusters is read.
    ResourceHealth,
    /// Raw resources beside managed clusters and their node pools.
    RawResources,
    /// Role assignments among the raw resources.
    RawRoleAssignments,
    /// Volumes on disks, with their snapshots.
    Volumes,
    /// Disks with the customer's keys.
    DiskEncryptionSets,
    /// Disks with private endpoints.
    DiskAccesses,
    /// The side-car that makes and deletes volumes.
    Provisioner,
    /// The side-car that attaches and detaches them.
    Attacher,
    /// The side-car that grows and modifies them.
    Resizer,
    /// The side-car that makes and deletes snapshots.
    Snapshotter,
    /// The elections of side-cars and of the snapshot controller.
    SideCarElections,
    /// The taint of nodes whose driver is not registered yet.
    NotReadyTaint,
    /// The objects of snapshots.
    Snapshots,
    /// Volumes on file shares, with their snapshots and storage accounts.
    Shares,
    /// Keys of storage accounts, in Secrets.
    AccountKeys,
    /// Keys of storage accounts that nodes ask from Azure.
    KeysFromAzure,
    /// Accounts that subnets reach through service endpoints.
    ServiceEndpoints,
    /// Accounts with private endpoints.
    PrivateEndpoints,
    /// Files are copied to a share from another one, or from a snapshot.
    ShareCopies,
    /// Pods with inline volumes must be allowed to read their Secrets.
    InlineSecretReviews,
    /// Shares are mounted in confidential containers.
    ConfidentialContainers,
}

impl Feature {
    /// All of them, in the order of pages and reports.
    pub const ALL: [Self; 50] = [
        Self::Base,
        Self::Election,
        Self::ConfigurationSecret,
        Self::Services,
        Self::Nodes,
        Self::NodeLifecycle,
        Self::VirtualMachines,
        Self::NodeIp,
        Self::Migration,
        Self::PublicIpPrefixes,
        Self::ApplicationSecurityGroups,
        Self::PrivateLink,
        Self::LocalPools,
        Self::NamespaceSelectors,
        Self::AdminState,
        Self::Routes,
        Self::PodRanges,
        Self::PodRangesByTags,
        Self::Metrics,
        Self::NodeAgent,
        Self::ScheduledEvents,
        Self::ResourceManager,
        Self::Pull,
        Self::Clusters,
        Self::UserAssignedIdentities,
        Self::MachineIdentities,
        Self::ManagedClusters,
        Self::Fleets,
        Self::ClusterExtensions,
        Self::ResourceHealth,
        Self::RawResources,
        Self::RawRoleAssignments,
        Self::Volumes,
        Self::DiskEncryptionSets,
        Self::DiskAccesses,
        Self::Provisioner,
        Self::Attacher,
        Self::Resizer,
        Self::Snapshotter,
        Self::SideCarElections,
        Self::NotReadyTaint,
        Self::Snapshots,
        Self::Shares,
        Self::AccountKeys,
        Self::KeysFromAzure,
        Self::ServiceEndpoints,
        Self::PrivateEndpoints,
        Self::ShareCopies,
        Self::InlineSecretReviews,
        Self::ConfidentialContainers,
    ];

    /// The name in file names and on command lines.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// When a configuration has it, for people.
    pub fn condition(self) -> &'static str {
        self.described().1
    }

    fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Base => ("base", "always"),
            Self::Election => ("election", "--leader-elect, the default"),
            Self::ConfigurationSecret => ("configuration-secret", "--cloud-config-secret-name"),
            Self::Services => ("services", "the controller service, a default"),
            Self::Nodes => ("nodes", "the controller cloud-node, a default"),
            Self::NodeLifecycle => ("node-lifecycle", "the controller cloud-node-lifecycle, a default"),
            Self::VirtualMachines => {
                ("virtual-machines", "nodes that are virtual machines, those of flexible scale sets included")
            }
            Self::NodeIp => ("node-ip", "loadBalancerBackendPoolConfigurationType: nodeIP"),
            Self::Migration => ("migration", "enableMigrateToIPBasedBackendPoolAPI"),
            Self::PublicIpPrefixes => {
                ("public-ip-prefixes", "the annotation azure-pip-prefix-id of a Service")
            }
            Self::ApplicationSecurityGroups => (
                "application-security-groups",
                "foreign rules of the security group name application security groups",
            ),
            Self::PrivateLink => ("private-link", "the annotation azure-pls-create of a Service"),
            Self::LocalPools => {
                ("local-pools", "multipleStandardLoadBalancerConfigurations with pools of addresses (nodeIP)")
            }
            Self::NamespaceSelectors => (
                "namespace-selectors",
                "serviceNamespaceSelector of an entry of multipleStandardLoadBalancerConfigurations",
            ),
            Self::AdminState => ("admin-state", "enableLoadBalancerAdminState"),
            Self::Routes => ("routes", "--configure-cloud-routes with routeTableName"),
            Self::PodRanges => ("pod-ranges", "--allocate-node-cidrs"),
            Self::PodRangesByTags => {
                ("pod-ranges-by-tags", "--allocate-node-cidrs with --cidr-allocator-type=CloudAllocator")
            }
            Self::Metrics => ("metrics", "--secure-port, a default, and callers of /metrics"),
            Self::NodeAgent => ("node", "always"),
            Self::ScheduledEvents => ("scheduled-events", "--scheduled-events"),
            Self::ResourceManager => ("resource-manager", "--use-instance-metadata=false"),
            Self::Pull => ("pull", "always"),
            Self::Clusters => ("clusters", "AzureClusters, with their machines and pools"),
            Self::UserAssignedIdentities => (
                "user-assigned-identities",
                "spec.identity: UserAssigned of machines, pools and managed clusters",
            ),
            Self::MachineIdentities => {
                ("machine-identities", "spec.identity: SystemAssigned of machines and pools")
            }
            Self::ManagedClusters => (
                "managed-clusters",
                "AzureManagedControlPlanes or AzureASOManagedControlPlanes, with their pools",
            ),
            Self::Fleets => ("fleets", "spec.fleetsMember of AzureManagedControlPlanes"),
            Self::ClusterExtensions => ("cluster-extensions", "spec.extensions of AzureManagedControlPlanes"),
            Self::ResourceHealth => ("resource-health", "the gate AKSResourceHealth"),
            Self::RawResources => (
                "raw-resources",
                "spec.resources of AzureASOManaged* with more than groups, clusters, pools and networks",
            ),
            Self::RawRoleAssignments => ("raw-role-assignments", "RoleAssignments in spec.resources"),
            Self::Volumes => ("volumes", "always"),
            Self::DiskEncryptionSets => (
                "disk-encryption-sets",
                "diskEncryptionSetID of a StorageClass, or machines whose disks have one",
            ),
            Self::DiskAccesses => ("disk-accesses", "diskAccessID of a StorageClass"),
            Self::Provisioner => ("external-provisioner", "the side-car external-provisioner"),
            Self::Attacher => ("external-attacher", "the side-car external-attacher"),
            Self::Resizer => ("external-resizer", "the side-car external-resizer"),
            Self::Snapshotter => ("external-snapshotter", "the side-car external-snapshotter"),
            Self::SideCarElections => ("elections", "--leader-election"),
            Self::NotReadyTaint => ("not-ready-taint", "--remove-not-ready-taint, a default"),
            Self::Snapshots => ("snapshots", "always"),
            Self::Shares => ("shares", "always"),
            Self::AccountKeys => (
                "account-keys",
                "classes over SMB that keep account keys in Secrets, which is their default, and inline volumes",
            ),
            Self::KeysFromAzure => (
                "keys-from-azure",
                "storeAccountKey: \"false\" of a class, or volumes whose Secret may not be read",
            ),
            Self::ServiceEndpoints => (
                "service-endpoints",
                "networkEndpointType: serviceEndpoint of a class, or protocol: nfs without a private endpoint",
            ),
            Self::PrivateEndpoints => {
                ("private-endpoints", "networkEndpointType: privateEndpoint of a class")
            }
            Self::ShareCopies => {
                ("copies", "claims of shares from snapshots and from other claims, without a key")
            }
            Self::InlineSecretReviews => {
                ("inline-secret-reviews", "--inline-volume-secret-authz=warn or enforce")
            }
            Self::ConfidentialContainers => ("confidential-containers", "--enable-kata-cc-mount"),
        }
    }
}
