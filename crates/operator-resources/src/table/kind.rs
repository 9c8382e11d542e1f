//! The kinds that are served, as data.

use super::source::{Keeper, Source};

/// Where a resource of a kind lies in Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the subscription: a resource group. Its object has no owner.
    Subscription,
    /// In a resource group, which is its owner.
    Group,
    /// In a resource of this group and kind of the operator, which is its owner.
    Child(&'static str, &'static str),
    /// Beside any resource, which its owner names with group and kind, or by its ID.
    Extension,
}

/// A kind of the operator.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The operator's API group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The type in Azure, such as `Microsoft.ContainerService/managedClusters/agentPools`.
    pub resource_type: &'static str,
    /// Where its resources lie.
    pub place: Place,
    /// Azure's API versions for which the operator has served the kind, oldest first. Others are taken by their names.
    pub versions: &'static [&'static str],
    /// The members of `spec` that stand beside `properties` in the document; the others are in `properties`.
    pub envelope: &'static [&'static str],
    /// Lists of `spec` whose items have `properties` of their own in the document.
    pub nested: &'static [&'static str],
    /// Members of `spec` that name a key of a Secret.
    pub secrets: &'static [&'static str],
    /// Members of `spec` that name a whole Secret, whose keys become the members.
    pub secret_maps: &'static [&'static str],
    /// Lists in the document whose items have kinds of their own, so that no object states them. The operator reads
    /// them back before it writes: without them Azure would delete the items.
    pub children: &'static [&'static str],
    /// What `operatorSpec.secrets` and `operatorSpec.configMaps` can export.
    pub exports: &'static [(Keeper, &'static str, Source)],
}

impl Kind {
    /// Azure's namespace, such as `Microsoft.ContainerService`.
    pub fn namespace(&self) -> &'static str {
        self.resource_type.split('/').next().unwrap_or_default()
    }

    /// The last part of its type, such as `agentPools`.
    pub fn segment(&self) -> &'static str {
        self.resource_type.rsplit('/').next().unwrap_or_default()
    }
}

/// The kind of this group and name, if it is served.
pub fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|served| served.group == group && served.kind == kind)
}

const RESOURCES: &str = "resources.azure.com";
const CONTAINER_SERVICE: &str = "containerservice.azure.com";
const NETWORK: &str = "network.azure.com";
const IDENTITY: &str = "managedidentity.azure.com";
const CONFIGURATION: &str = "kubernetesconfiguration.azure.com";

const IN_CLUSTER: Place = Place::Child(CONTAINER_SERVICE, "ManagedCluster");
const IN_FLEET: Place = Place::Child(CONTAINER_SERVICE, "Fleet");
const IN_NETWORK: Place = Place::Child(NETWORK, "VirtualNetwork");

/// The versions of managed clusters.
const CLUSTERS: &[&str] = &[
    "2021-05-01",
    "2023-02-01",
    "2023-02-02-preview",
    "2023-10-01",
    "2023-11-02-preview",
    "2024-04-02-preview",
    "2024-09-01",
    "2025-08-01",
    "2025-10-02-preview",
    "2026-03-01",
    "2026-05-01",
];
const FLEETS: &[&str] = &["2023-03-15-preview", "2025-03-01"];
const NETWORKS: &[&str] = &["2020-11-01", "2024-03-01"];
const GATEWAYS: &[&str] = &["2022-07-01", "2024-03-01"];
const ZONES: &[&str] = &["2020-06-01", "2024-06-01"];
const IDENTITIES: &[&str] = &["2018-11-30", "2023-01-31"];

/// What a kind has unless it says otherwise.
const NOTHING: Kind = Kind {
    group: "",
    kind: "",
    resource_type: "",
    place: Place::Group,
    versions: &[],
    envelope: &[],
    nested: &[],
    secrets: &[],
    secret_maps: &[],
    children: &[],
    exports: &[],
};

/// A kubeconfig that Azure answers to this action.
const fn kubeconfig(action: &'static str) -> Source {
    Source::Call { action, member: "/kubeconfigs/0/value", is_base64: true }
}

/// All of them.
pub const KINDS: &[Kind] = &[
    Kind {
        group: RESOURCES,
        kind: "ResourceGroup",
        resource_type: "Microsoft.Resources/resourceGroups",
        place: Place::Subscription,
        versions: &["2020-06-01"],
        envelope: &["location", "managedBy", "tags"],
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "ManagedCluster",
        resource_type: "Microsoft.ContainerService/managedClusters",
        versions: CLUSTERS,
        envelope: &["extendedLocation", "identity", "kind", "location", "sku", "tags"],
        secrets: &[
            "aadProfile.serverAppSecret",
            "servicePrincipalProfile.secret",
            "windowsProfile.adminPassword",
        ],
        exports: &[
            (Keeper::Secret, "adminCredentials", kubeconfig("listClusterAdminCredential")),
            (Keeper::Secret, "userCredentials", kubeconfig("listClusterUserCredential")),
            (
                Keeper::ConfigMap,
                "oidcIssuerProfile",
                Source::Member("/properties/oidcIssuerProfile/issuerURL"),
            ),
            (Keeper::ConfigMap, "principalId", Source::Member("/identity/principalId")),
        ],
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "ManagedClustersAgentPool",
        resource_type: "Microsoft.ContainerService/managedClusters/agentPools",
        place: IN_CLUSTER,
        versions: CLUSTERS,
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "MaintenanceConfiguration",
        resource_type: "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
        place: IN_CLUSTER,
        versions: CLUSTERS,
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "TrustedAccessRoleBinding",
        resource_type: "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings",
        place: IN_CLUSTER,
        versions: CLUSTERS,
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "Fleet",
        resource_type: "Microsoft.ContainerService/fleets",
        versions: FLEETS,
        envelope: &["identity", "location", "tags"],
        exports: &[(Keeper::Secret, "userCredentials", kubeconfig("listCredentials"))],
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "FleetsMember",
        resource_type: "Microsoft.ContainerService/fleets/members",
        place: IN_FLEET,
        versions: FLEETS,
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "FleetsAutoUpgradeProfile",
        resource_type: "Microsoft.ContainerService/fleets/autoUpgradeProfiles",
        place: IN_FLEET,
        versions: &["2025-03-01"],
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "FleetsUpdateRun",
        resource_type: "Microsoft.ContainerService/fleets/updateRuns",
        place: IN_FLEET,
        versions: FLEETS,
        ..NOTHING
    },
    Kind {
        group: CONTAINER_SERVICE,
        kind: "FleetsUpdateStrategy",
        resource_type: "Microsoft.ContainerService/fleets/updateStrategies",
        place: IN_FLEET,
        versions: &["2025-03-01"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "VirtualNetwork",
        resource_type: "Microsoft.Network/virtualNetworks",
        versions: NETWORKS,
        envelope: &["extendedLocation", "location", "tags"],
        children: &["/properties/subnets", "/properties/virtualNetworkPeerings"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "VirtualNetworksSubnet",
        resource_type: "Microsoft.Network/virtualNetworks/subnets",
        place: IN_NETWORK,
        versions: NETWORKS,
        nested: &["delegations"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "VirtualNetworksVirtualNetworkPeering",
        resource_type: "Microsoft.Network/virtualNetworks/virtualNetworkPeerings",
        place: IN_NETWORK,
        versions: NETWORKS,
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "NatGateway",
        resource_type: "Microsoft.Network/natGateways",
        versions: GATEWAYS,
        envelope: &["location", "sku", "tags", "zones"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "PublicIPAddress",
        resource_type: "Microsoft.Network/publicIPAddresses",
        versions: NETWORKS,
        envelope: &["extendedLocation", "location", "sku", "tags", "zones"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "PublicIPPrefix",
        resource_type: "Microsoft.Network/publicIPPrefixes",
        versions: GATEWAYS,
        envelope: &["extendedLocation", "location", "sku", "tags", "zones"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "ApplicationSecurityGroup",
        resource_type: "Microsoft.Network/applicationSecurityGroups",
        versions: &["2024-01-01"],
        envelope: &["location", "tags"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "NetworkSecurityGroup",
        resource_type: "Microsoft.Network/networkSecurityGroups",
        versions: NETWORKS,
        envelope: &["location", "tags"],
        children: &["/properties/securityRules"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "NetworkSecurityGroupsSecurityRule",
        resource_type: "Microsoft.Network/networkSecurityGroups/securityRules",
        place: Place::Child(NETWORK, "NetworkSecurityGroup"),
        versions: NETWORKS,
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "RouteTable",
        resource_type: "Microsoft.Network/routeTables",
        versions: NETWORKS,
        envelope: &["location", "tags"],
        children: &["/properties/routes"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "RouteTablesRoute",
        resource_type: "Microsoft.Network/routeTables/routes",
        place: Place::Child(NETWORK, "RouteTable"),
        versions: NETWORKS,
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "PrivateEndpoint",
        resource_type: "Microsoft.Network/privateEndpoints",
        versions: GATEWAYS,
        envelope: &["extendedLocation", "location", "tags"],
        nested: &["ipConfigurations", "manualPrivateLinkServiceConnections", "privateLinkServiceConnections"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "PrivateEndpointsPrivateDnsZoneGroup",
        resource_type: "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
        place: Place::Child(NETWORK, "PrivateEndpoint"),
        versions: GATEWAYS,
        nested: &["privateDnsZoneConfigs"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "PrivateDnsZone",
        resource_type: "Microsoft.Network/privateDnsZones",
        versions: &["2018-09-01", "2024-06-01"],
        envelope: &["etag", "location", "tags"],
        ..NOTHING
    },
    Kind {
        group: NETWORK,
        kind: "PrivateDnsZonesVirtualNetworkLink",
        resource_type: "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
        place: Place::Child(NETWORK, "PrivateDnsZone"),
        versions: ZONES,
        envelope: &["etag", "location", "tags"],
        ..NOTHING
    },
    Kind {
        group: IDENTITY,
        kind: "UserAssignedIdentity",
        resource_type: "Microsoft.ManagedIdentity/userAssignedIdentities",
        versions: IDENTITIES,
        envelope: &["location", "tags"],
        exports: &[
            (Keeper::ConfigMap, "clientId", Source::Member("/properties/clientId")),
            (Keeper::ConfigMap, "principalId", Source::Member("/properties/principalId")),
            (Keeper::ConfigMap, "tenantId", Source::Member("/properties/tenantId")),
            (Keeper::Secret, "clientId", Source::Member("/properties/clientId")),
            (Keeper::Secret, "principalId", Source::Member("/properties/principalId")),
            (Keeper::Secret, "tenantId", Source::Member("/properties/tenantId")),
            (Keeper::Secret, "subscriptionId", Source::Subscription),
        ],
        ..NOTHING
    },
    Kind {
        group: IDENTITY,
        kind: "FederatedIdentityCredential",
        resource_type: "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials",
        place: Place::Child(IDENTITY, "UserAssignedIdentity"),
        versions: &["2022-01-31-preview", "2023-01-31"],
        ..NOTHING
    },
    Kind {
        group: CONFIGURATION,
        kind: "FluxConfiguration",
        resource_type: "Microsoft.KubernetesConfiguration/fluxConfigurations",
        place: Place::Extension,
        versions: &["2023-05-01", "2024-11-01"],
        secrets: &[
            "azureBlob.accountKey",
            "azureBlob.sasToken",
            "azureBlob.servicePrincipal.clientCertificate",
            "azureBlob.servicePrincipal.clientCertificatePassword",
            "azureBlob.servicePrincipal.clientSecret",
            "bucket.accessKey",
            "gitRepository.httpsCACert",
            "ociRepository.tlsConfig.caCertificate",
            "ociRepository.tlsConfig.clientCertificate",
            "ociRepository.tlsConfig.privateKey",
        ],
        secret_maps: &["configurationProtectedSettings"],
        ..NOTHING
    },
    Kind {
        group: CONFIGURATION,
        kind: "Extension",
        resource_type: "Microsoft.KubernetesConfiguration/extensions",
        place: Place::Extension,
        versions: &["2023-05-01", "2024-11-01"],
        envelope: &["identity", "managedBy", "plan", "systemData"],
        secret_maps: &["configurationProtectedSettings"],
        exports: &[(Keeper::ConfigMap, "principalId", Source::Member("/identity/principalId"))],
        ..NOTHING
    },
    Kind {
        group: "authorization.azure.com",
        kind: "RoleAssignment",
        resource_type: "Microsoft.Authorization/roleAssignments",
        place: Place::Extension,
        versions: &["2020-08-01-preview", "2022-04-01"],
        ..NOTHING
    },
    Kind {
        group: "containerregistry.azure.com",
        kind: "Registry",
        resource_type: "Microsoft.ContainerRegistry/registries",
        versions: &["2021-09-01", "2023-07-01"],
        envelope: &["identity", "location", "sku", "tags"],
        ..NOTHING
    },
    Kind {
        group: "operationalinsights.azure.com",
        kind: "Workspace",
        resource_type: "Microsoft.OperationalInsights/workspaces",
        versions: &["2021-06-01", "2025-07-01"],
        envelope: &["etag", "identity", "location", "tags"],
        exports: &[
            (Keeper::Secret, "primarySharedKey", shared_key("/primarySharedKey")),
            (Keeper::Secret, "secondarySharedKey", shared_key("/secondarySharedKey")),
        ],
        ..NOTHING
    },
];

const fn shared_key(member: &'static str) -> Source {
    Source::Call { action: "sharedKeys", member, is_base64: false }
}
