//! The kinds of Azure resources of goals: the API version, how they are read, their names in messages, and the
//! exceptions from the comparison of their documents.

use azure_types::ResourceId;
use serde_json::Value;

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
    /// Its name in messages.
    pub noun: &'static str,
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

const RESOURCE_GROUP: &str = "resource group";
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
    noun: "",
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
        resource_type: "Microsoft.Resources/resourceGroups",
        api_version: "2021-04-01",
        noun: RESOURCE_GROUP,
        read_by: ReadBy::Id,
        rules: &[("location", Rule::AtCreation)],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/virtualNetworks",
        noun: "virtual network",
        rules: &[("location", Rule::AtCreation)],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/virtualNetworks/subnets",
        noun: "subnet",
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
        noun: "peering",
        read_by: ReadBy::Parent("virtualNetworkPeerings"),
        // The other peering is gone: neither one can be written any more.
        beyond_repair: Some(("/properties/peeringState", "Disconnected")),
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/networkSecurityGroups",
        noun: "security group",
        rules: &[("location", Rule::AtCreation)],
        back: &["properties/subnets", "properties/networkInterfaces"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/routeTables",
        noun: "route table",
        rules: &[("location", Rule::AtCreation)],
        back: &["properties/subnets"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/publicIPAddresses",
        noun: "public IP",
        rules: &PUBLIC_IP_RULES,
        back: &["properties/ipConfiguration", "properties/natGateway"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/publicIPPrefixes",
        noun: "public IP prefix",
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
        noun: "NAT gateway",
        rules: &[("location", Rule::AtCreation), ("zones", Rule::AtCreation)],
        back: &["properties/subnets"],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/loadBalancers",
        noun: "load balancer",
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
        noun: "inbound NAT rule",
        read_by: ReadBy::Parent("inboundNatRules"),
        back: &["properties/backendIPConfiguration"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Network/privateEndpoints",
        noun: "private endpoint",
        rules: &[("location", Rule::AtCreation)],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/bastionHosts",
        noun: "bastion host",
        // Azure answers with a name of its own.
        rules: &[("location", Rule::AtCreation), ("properties/dnsName", Rule::AtCreation)],
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.Network/privateDnsZones",
        noun: "private DNS zone",
        conditional: true,
        ..DNS
    },
    Kind {
        resource_type: "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
        noun: "link of a private DNS zone",
        conditional: true,
        ..DNS
    },
    Kind {
        resource_type: "Microsoft.Network/privateDnsZones/A",
        noun: "DNS record",
        rules: &[("properties/aRecords", Rule::Whole), METADATA],
        ..DNS
    },
    Kind {
        resource_type: "Microsoft.Network/privateDnsZones/AAAA",
        noun: "DNS record",
        rules: &[("properties/aaaaRecords", Rule::Whole), METADATA],
        ..DNS
    },
    Kind {
        resource_type: "Microsoft.Network/networkInterfaces",
        noun: "network interface",
        rules: &INTERFACE_RULES,
        back: &["properties/virtualMachine", "properties/privateEndpoint"],
        ..CONDITIONAL
    },
    Kind {
        resource_type: "Microsoft.Compute/availabilitySets",
        noun: "availability set",
        back: &["properties/virtualMachines"],
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachines",
        noun: "virtual machine",
        // Its power state, and the cause of a failure.
        query: &[("$expand", "instanceView")],
        conditional: true,
        secret: &MACHINE_SECRETS,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachines/extensions",
        noun: "extension",
        read_by: ReadBy::Id,
        secret: &EXTENSION_SECRETS,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Compute/virtualMachineScaleSets",
        noun: "scale set",
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
        noun: "instance",
        read_by: ReadBy::Id,
        ..MACHINES
    },
    Kind {
        resource_type: "Microsoft.Authorization/roleAssignments",
        api_version: "2022-04-01",
        noun: "role assignment",
        read_by: ReadBy::Id,
        ..PLAIN
    },
    Kind {
        resource_type: "Microsoft.ContainerService/managedClusters",
        noun: "managed cluster",
        read_by: ReadBy::Id,
        rules: &MANAGED_CLUSTER_RULES,
        // The addresses of proxies may contain passwords.
        secret: &["properties/httpProxyConfig"],
        ..AKS
    },
    Kind {
        resource_type: "Microsoft.ContainerService/managedClusters/agentPools",
        noun: "node pool",
        read_by: ReadBy::ParentList,
        rules: &AGENT_POOL_RULES,
        ..AKS
    },
    Kind {
        resource_type: "Microsoft.ContainerService/fleets/members",
        api_version: "2025-03-01",
        preview_version: None,
        noun: "fleet member",
        read_by: ReadBy::Id,
        rules: &[("properties/clusterResourceId", Rule::AtCreation)],
        ..AKS
    },
    Kind {
        resource_type: "Microsoft.KubernetesConfiguration/extensions",
        api_version: "2023-05-01",
        noun: "cluster extension",
        read_by: ReadBy::Id,
        rules: &EXTENSION_RULES,
        ..PLAIN
    },
];

/// A disk: it is created with its machine, and deleted after it.
pub static DISK: Kind = Kind {
    resource_type: "Microsoft.Compute/disks",
    api_version: "2025-01-02",
    noun: "disk",
    back: &["managedBy", "managedByExtended"],
    ..PLAIN
};

/// The kind of types without a row: read one by one, without exceptions from the comparison.
static UNKNOWN: Kind = Kind { noun: "resource", read_by: ReadBy::Id, ..PLAIN };

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
        self.noun == RESOURCE_GROUP
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
    format!("{} {}", Kind::of(id).noun, names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row inherits the rest from the kinds of Microsoft.Network, which share one API version.
    #[test]
    fn each_kind_has_the_version_of_its_provider_and_a_name() {
        for kind in KINDS.iter().chain([&DISK]) {
            let is_network = kind.resource_type.starts_with("Microsoft.Network/");
            assert!(kind.api_version != NETWORK || is_network, "{}", kind.resource_type);
            assert!(!kind.noun.is_empty(), "{}", kind.resource_type);
        }
    }

    #[test]
    fn kinds_are_found_by_id_in_any_case() {
        for (id, noun) in [
            ("/subscriptions/s/resourceGroups/g", "resource group"),
            (
                "/subscriptions/s/resourcegroups/g/providers/microsoft.network/VIRTUALNETWORKS/v",
                "virtual network",
            ),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
                "subnet",
            ),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z/A/apiserver",
                "DNS record",
            ),
            ("/subscriptions/s/providers/Microsoft.Authorization/roleAssignments/r", "role assignment"),
            ("/subscriptions/s/resourceGroups/g/providers/Microsoft.Else/things/t", "resource"),
        ] {
            let id = ResourceId::parse(id).unwrap();
            assert_eq!(Kind::of(&id).noun, noun, "{id}");
        }
    }
}
