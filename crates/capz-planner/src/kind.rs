//! The kinds of Azure resources of goals: the API version, how they are read, their names in messages, and the
//! exceptions from the comparison of their documents.

use azure_types::ResourceId;
use serde_json::Value;

use crate::noun::noun;

/// How resources of a kind are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBy {
    /// One list of the resource group shows all of them.
    GroupList,
    /// One list of the resource that they lie in shows all of them.
    ParentList,
    /// They are embedded in their parent's document, in this member of its properties.
    Parent(&'static str),
    /// One by one.
    Id,
}

/// The exception for a member that is not simply compared. Members are named by their path in the document, `*` for any
/// item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It counts at creation only: Azure does not show it, or it must not change.
    AtCreation,
    /// A list in which each item counts as a whole, in any order; or an object that is written as a whole if it
    /// differs.
    Whole,
    /// The observed value is not sent back: its parts are resources of their own, which others write.
    Apart,
}

/// A kind of resource.
#[derive(Debug)]
pub struct Kind {
    /// The type, as in ids.
    pub resource_type: &'static str,
    /// The version of Azure's API that documents are written in.
    pub api_version: &'static str,
    /// The version with features in preview, for users who ask for them; `None` without such a version.
    pub preview_version: Option<&'static str>,
    /// How it is read.
    pub read_by: ReadBy,
    /// Query options of its reads.
    pub query: &'static [(&'static str, &'static str)],
    /// Whether a write can be conditional on the observed version.
    pub conditional: bool,
    /// Exceptions from the comparison.
    pub rules: &'static [(&'static str, Rule)],
    /// Members in which Azure shows the resources that refer to this one: they are no references of its own.
    pub back: &'static [&'static str],
    /// A member, by its path, and the value of it that shows that the resource is beyond repair: it is deleted and
    /// created again.
    pub beyond_repair: Option<(&'static str, &'static str)>,
    /// Members that a plan must not show.
    pub secret: &'static [&'static str],
}

const RESOURCE_GROUP: &str = "Microsoft.Resources/resourceGroups";
const NETWORK: &str = "2025-05-01";
const COMPUTE: &str = "2025-04-01";
const PRIVATE_DNS: &str = "2024-06-01";
const CONTAINER_SERVICE: &str = "2025-08-01";
const CONTAINER_SERVICE_PREVIEW: &str = "2025-10-02-preview";

/// A record names its owner from its creation on: one that was created without an owner is not written for that.
const METADATA: (&str, Rule) = ("properties/metadata", Rule::AtCreation);

const PLAIN: Kind = Kind {
    resource_type: "",
    api_version: NETWORK,
    preview_version: None,
    read_by: ReadBy::GroupList,
    query: &[],
    conditional: false,
    rules: &[],
    back: &[],
    beyond_repair: None,
    secret: &[],
};

/// A kind of Microsoft.Network whose writes can be conditional.
const CONDITIONAL: Kind = Kind { conditional: true, ..PLAIN };
const DNS: Kind = Kind { api_version: PRIVATE_DNS, read_by: ReadBy::Id, ..PLAIN };
const MACHINES: Kind = Kind { api_version: COMPUTE, ..PLAIN };
/// A kind of AKS.
const AKS: Kind = Kind {
    api_version: CONTAINER_SERVICE,
    preview_version: Some(CONTAINER_SERVICE_PREVIEW),
    conditional: true,
    ..PLAIN
};

/// Azure cannot change any of these members of a public IP. A region may have got zones since.
const PUBLIC_IP_RULES: [(&str, Rule); 4] = [
    ("location", Rule::AtCreation),
    ("extendedLocation", Rule::AtCreation),
    ("zones", Rule::AtCreation),
    ("properties/ipTags", Rule::AtCreation),
];
const INTERFACE_RULES: [(&str, Rule); 4] = [
    ("location", Rule::AtCreation),
    ("extendedLocation", Rule::AtCreation),
    // A user may keep the address of a machine as it is.
    ("properties/ipConfigurations/*/properties/privateIPAllocationMethod", Rule::AtCreation),
    ("properties/dnsSettings/dnsServers", Rule::Whole),
];

/// Azure cannot change most of these members of a managed cluster, and shows others in words of its own.
const MANAGED_CLUSTER_RULES: [(&str, Rule); 17] = [
    ("location", Rule::AtCreation),
    ("properties/agentPoolProfiles", Rule::Apart),
    ("properties/dnsPrefix", Rule::AtCreation),
    ("properties/enableRBAC", Rule::AtCreation),
    ("properties/httpProxyConfig", Rule::AtCreation),
    ("properties/linuxProfile", Rule::AtCreation),
    ("properties/nodeResourceGroup", Rule::AtCreation),
    ("properties/servicePrincipalProfile", Rule::AtCreation),
    ("properties/aadProfile/adminGroupObjectIDs", Rule::Whole),
    ("properties/apiServerAccessProfile/authorizedIPRanges", Rule::Whole),
    ("properties/networkProfile/dnsServiceIP", Rule::AtCreation),
    ("properties/networkProfile/loadBalancerSku", Rule::AtCreation),
    ("properties/networkProfile/networkPlugin", Rule::AtCreation),
    ("properties/networkProfile/serviceCidr", Rule::AtCreation),
    ("properties/networkProfile/loadBalancerProfile/outboundIPPrefixes/publicIPPrefixes", Rule::Whole),
    ("properties/networkProfile/loadBalancerProfile/outboundIPs/publicIPs", Rule::Whole),
    ("identity/userAssignedIdentities", Rule::Whole),
];
/// Azure can change none of the first of these members of a node pool.
const AGENT_POOL_RULES: [(&str, Rule); 18] = [
    ("properties/availabilityZones", Rule::AtCreation),
    ("properties/enableEncryptionAtHost", Rule::AtCreation),
    ("properties/enableFIPS", Rule::AtCreation),
    ("properties/enableNodePublicIP", Rule::AtCreation),
    ("properties/enableUltraSSD", Rule::AtCreation),
    ("properties/kubeletConfig", Rule::AtCreation),
    ("properties/kubeletDiskType", Rule::AtCreation),
    ("properties/linuxOSConfig", Rule::AtCreation),
    ("properties/maxPods", Rule::AtCreation),
    ("properties/nodePublicIPPrefixID", Rule::AtCreation),
    ("properties/osDiskSizeGB", Rule::AtCreation),
    ("properties/osDiskType", Rule::AtCreation),
    ("properties/osType", Rule::AtCreation),
    ("properties/scaleSetPriority", Rule::AtCreation),
    ("properties/type", Rule::AtCreation),
    ("properties/vmSize", Rule::AtCreation),
    ("properties/vnetSubnetID", Rule::AtCreation),
    ("properties/nodeTaints", Rule::Whole),
];
/// Azure cannot change any of these members of an extension.
const EXTENSION_RULES: [(&str, Rule); 4] = [
    ("plan", Rule::AtCreation),
    ("identity", Rule::AtCreation),
    ("properties/extensionType", Rule::AtCreation),
    ("properties/scope", Rule::AtCreation),
];

/// Members of a machine that contain secrets, below the machine's own properties or a set's profile.
const MACHINE_SECRETS: [&str; 2] = ["properties/osProfile/adminPassword", "properties/osProfile/customData"];
const SET_SECRETS: [&str; 4] = [
    "properties/virtualMachineProfile/osProfile/adminPassword",
    "properties/virtualMachineProfile/osProfile/customData",
    "properties/virtualMachineProfile/extensionProfile/extensions/*/properties/protectedSettings",
    "properties/virtualMachineProfile/extensionProfile/extensions/*/properties/settings",
];
const EXTENSION_SECRETS: [&str; 2] = ["properties/protectedSettings", "properties/settings"];

/// All kinds.
pub static KINDS: [Kind; 28] = [
    Kind {
        resource_type: RESOURCE_GROUP,
        api_version: "2021-04-01",
        read_by: ReadBy::Id,
        rules: &[("location", Rule::AtCreation)],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/virtualNetworks",
        rules: &[("location", Rule::AtCreation)],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/virtualNetworks/subnets",
        read_by: ReadBy::Parent("subnets"),
        rules: &[("properties/addressPrefixes", Rule::Whole), ("properties/serviceEndpoints", Rule::Whole)],
        back: &[
            "properties/ipConfigurations",
            "properties/ipConfigurationProfiles",
            "properties/privateEndpoints",
        ],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/virtualNetworks/virtualNetworkPeerings",
        read_by: ReadBy::Parent("virtualNetworkPeerings"),
        // The other peering is gone: neither one can be written any more.
        beyond_repair: Some(("/properties/peeringState", "Disconnected")),
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/networkSecurityGroups",
        rules: &[("location", Rule::AtCreation)],
        back: &["properties/subnets", "properties/networkInterfaces"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/routeTables",
        rules: &[("location", Rule::AtCreation)],
        back: &["properties/subnets"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/publicIPAddresses",
        rules: &PUBLIC_IP_RULES,
        back: &["properties/ipConfiguration", "properties/natGateway"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/publicIPPrefixes",
        read_by: ReadBy::Id,
        back: &[
            "properties/loadBalancerFrontendIpConfiguration",
            "properties/natGateway",
            "properties/publicIPAddresses",
        ],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/natGateways",
        rules: &[("location", Rule::AtCreation), ("zones", Rule::AtCreation)],
        back: &["properties/subnets"],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/loadBalancers",
        rules: &[
            ("location", Rule::AtCreation),
            ("properties/frontendIPConfigurations/*/zones", Rule::AtCreation),
        ],
        back: &[
            "properties/backendAddressPools/*/properties/backendIPConfigurations",
            "properties/backendAddressPools/*/properties/loadBalancerBackendAddresses",
        ],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/loadBalancers/inboundNatRules",
        read_by: ReadBy::Parent("inboundNatRules"),
        back: &["properties/backendIPConfiguration"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/privateEndpoints",
        rules: &[("location", Rule::AtCreation)],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/bastionHosts",
        // Azure answers with a name of its own.
        rules: &[("location", Rule::AtCreation), ("properties/dnsName", Rule::AtCreation)],
        ..PLAIN
    },
    Kind { resource_type: "Microsoft.Network/privateDnsZones", conditional: true, ..DNS },
    Kind { resource_type: "Microsoft.Network/privateDnsZones/virtualNetworkLinks", conditional: true, ..DNS },
    Kind {
        resource_type: "Microsoft.Network/privateDnsZones/A",
        rules: &[("properties/aRecords", Rule::Whole), METADATA],
        ..DNS
    },
    Kind {
        resource_type: "Microsoft.Network/privateDnsZones/AAAA",
        rules: &[("properties/aaaaRecords", Rule::Whole), METADATA],
        ..DNS
    },
    Kind {
        resource_type: "Microsoft.Network/networkInterfaces",
        rules: &INTERFACE_RULES,
        back: &["properties/virtualMachine", "properties/privateEndpoint"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Compute/availabilitySets",
        back: &["properties/virtualMachines"],
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachines",
        // Its power state, and the cause of a failure.
        query: &[("$expand", "instanceView")],
        conditional: true,
        secret: &MACHINE_SECRETS,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachines/extensions",
        read_by: ReadBy::Id,
        secret: &EXTENSION_SECRETS,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachineScaleSets",
        read_by: ReadBy::Id,
        conditional: true,
        rules: &[
            ("location", Rule::AtCreation),
            ("plan", Rule::AtCreation),
            ("properties/orchestrationMode", Rule::AtCreation),
            ("properties/platformFaultDomainCount", Rule::AtCreation),
            ("properties/singlePlacementGroup", Rule::AtCreation),
            ("properties/virtualMachineProfile/networkProfile", Rule::AtCreation),
            // A new one would be drawn every time, and it is never used.
            ("properties/virtualMachineProfile/osProfile/adminPassword", Rule::AtCreation),
            ("properties/virtualMachineProfile/osProfile/linuxConfiguration/ssh/publicKeys", Rule::Whole),
            ("properties/virtualMachineProfile/storageProfile/imageReference", Rule::Whole),
            ("zones", Rule::Whole),
        ],
        secret: &SET_SECRETS,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        read_by: ReadBy::Id,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Authorization/roleAssignments",
        api_version: "2022-04-01",
        read_by: ReadBy::Id,
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.ContainerService/managedClusters",
        read_by: ReadBy::Id,
        rules: &MANAGED_CLUSTER_RULES,
        // The addresses of proxies may contain passwords.
        secret: &["properties/httpProxyConfig"],
        ..AKS
    },
    Kind {
        resource_type: "Microsoft.ContainerService/managedClusters/agentPools",
        read_by: ReadBy::ParentList,
        rules: &AGENT_POOL_RULES,
        ..AKS
    },
    Kind {
        resource_type: "Microsoft.ContainerService/fleets/members",
        api_version: "2025-03-01",
        preview_version: None,
        read_by: ReadBy::Id,
        rules: &[("properties/clusterResourceId", Rule::AtCreation)],
        ..AKS
    },
    Kind {
        resource_type: "Microsoft.KubernetesConfiguration/extensions",
        api_version: "2023-05-01",
        read_by: ReadBy::Id,
        rules: &EXTENSION_RULES,
        ..PLAIN
    },
];

/// A disk: it is created with its machine, and deleted after it.
pub static DISK: Kind = Kind {
    resource_type: "Microsoft.Compute/disks",
    api_version: "2025-01-02",
    back: &["managedBy", "managedByExtended"],
    ..PLAIN
};

/// The kind of types without a row: read one by one, without exceptions from the comparison.
static UNKNOWN: Kind = Kind { read_by: ReadBy::Id, ..PLAIN };

impl Kind {
    /// The kind of the resource with this id.
    pub fn of(id: &ResourceId) -> &'static Self {
        Self::named(&id.resource_type())
    }

    /// The kind of this type.
    pub fn named(resource_type: &str) -> &'static Self {
        KINDS
            .iter()
            .chain([&DISK])
            .find(|kind| kind.resource_type.eq_ignore_ascii_case(resource_type))
            .unwrap_or(&UNKNOWN)
    }

    /// Whether it is a resource group, which may also get the cluster's ID later.
    pub fn is_group(&self) -> bool {
        self.resource_type == RESOURCE_GROUP
    }

    /// The sign that an existing resource is beyond repair.
    pub(crate) fn shows_no_use<'a>(&self, held: &'a Value) -> Option<(&'static str, &'a Value)> {
        let (path, value) = self.beyond_repair?;
        let found = held.pointer(path)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        found.as_str().is_some_and(|found| found.eq_ignore_ascii_case(value)).then_some((name, found))
    }

    /// The members of its properties in which other resources are embedded.
    pub(crate) fn children(&self) -> impl Iterator<Item = &'static str> + '_ {
        KINDS.iter().filter_map(|kind| match kind.read_by {
            ReadBy::Parent(member) => {
                let (parent, _) = kind.resource_type.rsplit_once('/')?;
                (parent == self.resource_type).then_some(member)
            }
            _ => None,
        })
    }

    /// The exception for the member at this path; `segments` are names of members, and `*` for items of lists.
    pub(crate) fn rule(&self, segments: &[&str]) -> Option<Rule> {
        self.rules
            .iter()
            .find(|(path, _)| path.split('/').eq(segments.iter().copied()))
            .map(|(_, rule)| *rule)
    }

    /// Whether the member at this path must not be shown: it is secret, or in a secret one, or contains a secret one.
    pub(crate) fn is_secret(&self, segments: &[&str]) -> bool {
        self.secret.iter().any(|path| path.split('/').zip(segments).all(|(secret, mine)| secret == *mine))
    }
}

/// The name of a resource in messages: `subnet my-cluster-vnet/my-cluster-node-subnet`.
pub(crate) fn describe(id: &ResourceId) -> String {
    let names: Vec<&str> = match id.type_and_name_pairs() {
        pairs if pairs.is_empty() => vec![id.name()],
        pairs => pairs.iter().map(|(_, name)| *name).collect(),
    };
    format!("{} {}", noun(id), names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row inherits the rest from the kinds of Microsoft.Network, which share one API version.
    #[test]
    fn each_kind_has_the_version_of_its_provider() {
        for kind in KINDS.iter().chain([&DISK]) {
            let is_network = kind.resource_type.starts_with("Microsoft.Network/");
            assert!(kind.api_version != NETWORK || is_network, "{}", kind.resource_type);
        }
    }

    #[test]
    fn each_kind_has_a_noun() {
        let ours = KINDS.iter().chain([&DISK]).map(|kind| kind.resource_type);
        let of_users = operator_resources::KINDS.iter().map(|kind| kind.resource_type);
        for resource_type in ours.chain(of_users) {
            assert!(crate::noun::of_type(resource_type).is_some(), "{resource_type}");
        }
    }
}
