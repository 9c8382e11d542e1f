//! The table of actions. The names are those of Azure's lists of permissions for Network, Compute and Management.

use super::cluster_manager::{
    CLUSTER_EXTENSIONS, CLUSTER_JOINS, CLUSTERS, FLEETS, MACHINE_IDENTITIES, MANAGED_CLUSTER_JOINS,
    MANAGED_CLUSTERS, RAW_RESOURCE_JOINS, RAW_RESOURCES, RAW_ROLE_ASSIGNMENTS, RESOURCE_HEALTH,
    USER_ASSIGNED, USER_ASSIGNED_JOIN,
};
use super::grant::{Grant, Place};
use super::{disk_driver, file_driver};
use crate::Feature::{
    ApplicationSecurityGroups, Base, Migration, NodeIp, NodeLifecycle, Nodes, PodRangesByTags, PrivateLink,
    PublicIpPrefixes, Pull, ResourceManager, Routes, Services, VirtualMachines,
};
use crate::{Feature, Program};

type Needs = &'static [&'static [Feature]];

const fn call(
    actions: &'static [&'static str],
    place: Place,
    features: Needs,
    purpose: &'static str,
) -> Grant {
    Grant { program: Program::ControllerManager, actions, place, features, purpose, is_join: false }
}

const fn join(
    actions: &'static [&'static str],
    place: Place,
    features: Needs,
    purpose: &'static str,
) -> Grant {
    Grant { is_join: true, ..call(actions, place, features, purpose) }
}

const fn of(program: Program, grant: Grant) -> Grant {
    Grant { program, ..grant }
}

/// Which features use the machines of nodes.
const OF_MACHINES: Needs = &[&[Services], &[Nodes], &[NodeLifecycle]];

/// All grants, in the order of pages.
pub static GRANTS: &[Grant] = &[
    call(
        &["Microsoft.Resources/subscriptions/providers/read"],
        Place::Subscription,
        &[&[Base]],
        "the zones of the region, when a replica becomes the leader, and for `--dry-run` and `cerulean plan`. **The \
         program ends without it**",
    ),
    call(
        &["Microsoft.Network/publicIPAddresses/read"],
        Place::Subscription,
        &[&[Services]],
        "addresses that an earlier start left in other groups. Without it they are not searched for",
    ),
    call(
        &["Microsoft.Network/privateLinkServices/read"],
        Place::Subscription,
        &[&[Services]],
        "the groups with private link services. Without it only the groups that Services name are read",
    ),
    call(
        &[
            "Microsoft.Network/loadBalancers/read",
            "Microsoft.Network/loadBalancers/write",
            "Microsoft.Network/loadBalancers/delete",
        ],
        Place::LoadBalancers,
        &[&[Services]],
        "load balancers",
    ),
    call(
        &[
            "Microsoft.Network/publicIPAddresses/read",
            "Microsoft.Network/publicIPAddresses/write",
            "Microsoft.Network/publicIPAddresses/delete",
        ],
        Place::PublicIps,
        &[&[Services]],
        "addresses of public Services",
    ),
    call(
        &["Microsoft.Network/networkSecurityGroups/read", "Microsoft.Network/networkSecurityGroups/write"],
        Place::SecurityGroup,
        &[&[Services]],
        "rules for the traffic of Services (`securityGroupName`)",
    ),
    call(
        &["Microsoft.Network/virtualNetworks/subnets/read"],
        Place::VirtualNetwork,
        &[&[Services]],
        "subnets of internal Services and of private link services",
    ),
    call(
        &[
            "Microsoft.Compute/virtualMachineScaleSets/read",
            "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
        ],
        Place::ScaleSets,
        OF_MACHINES,
        "nodes, and the members of pools",
    ),
    call(
        &[
            "Microsoft.Compute/virtualMachineScaleSets/write",
            "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
        ],
        Place::ScaleSets,
        &[&[Services]],
        "members of pools by interface; with `nodeIP` once, when members by interface leave",
    ),
    call(
        &[
            "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces/read",
            "Microsoft.Compute/virtualMachineScaleSets/publicIPAddresses/read",
        ],
        Place::ScaleSets,
        &[&[Nodes]],
        "addresses of instances, public ones if they have any",
    ),
    call(
        &["Microsoft.Network/locations/operations/read", "Microsoft.Network/locations/operationResults/read"],
        Place::LoadBalancers,
        &[&[Services]],
        "the results of writes",
    ),
    call(
        &["Microsoft.Compute/locations/operations/read"],
        Place::ScaleSets,
        &[&[Services]],
        "the results of writes",
    ),
    call(
        &["Microsoft.Compute/virtualMachines/read", "Microsoft.Network/networkInterfaces/read"],
        Place::VirtualMachines,
        &[&[Services, VirtualMachines], &[Nodes, VirtualMachines], &[NodeLifecycle, VirtualMachines]],
        "nodes, their addresses and pools",
    ),
    call(
        &["Microsoft.Network/publicIPAddresses/read"],
        Place::VirtualMachines,
        &[&[Nodes, VirtualMachines]],
        "public addresses of virtual machines",
    ),
    join(
        &["Microsoft.Network/publicIPAddresses/join/action"],
        Place::VirtualMachines,
        &[&[Services, VirtualMachines]],
        "interfaces with public addresses are written",
    ),
    call(
        &["Microsoft.Network/networkInterfaces/write"],
        Place::VirtualMachines,
        &[&[Services, VirtualMachines]],
        "members of pools by interface",
    ),
    call(
        &["Microsoft.Network/loadBalancers/migrateToIpBased/action"],
        Place::LoadBalancers,
        &[&[Services, Migration]],
        "Azure turns pools of interfaces into pools of addresses",
    ),
    call(
        &[
            "Microsoft.Network/privateLinkServices/read",
            "Microsoft.Network/privateLinkServices/write",
            "Microsoft.Network/privateLinkServices/delete",
            "Microsoft.Network/privateLinkServices/privateEndpointConnections/delete",
        ],
        Place::PrivateLinks,
        &[&[Services, PrivateLink]],
        "[private link services](resources/private-link-service.md)",
    ),
    call(
        &["Microsoft.Network/virtualNetworks/subnets/write"],
        Place::VirtualNetwork,
        &[&[Services, PrivateLink]],
        "a subnet whose policies for private link services are on",
    ),
    call(
        &["Microsoft.Network/routeTables/read", "Microsoft.Network/routeTables/write"],
        Place::RouteTable,
        &[&[Routes]],
        "[routes](running.md#pods-with-routes-in-azure)",
    ),
    call(
        &["Microsoft.Network/locations/operations/read"],
        Place::RouteTable,
        &[&[Routes]],
        "the results of writes",
    ),
    call(
        &["Microsoft.Network/virtualNetworks/subnets/read"],
        Place::VirtualNetwork,
        &[&[Routes]],
        "`--cluster-cidr` is compared with the nodes' subnet. Without it, it is not",
    ),
    call(
        &["Microsoft.Compute/virtualMachineScaleSets/read"],
        Place::ScaleSets,
        &[&[PodRangesByTags]],
        "their tags",
    ),
    call(
        &["Microsoft.Compute/availabilitySets/read"],
        Place::VirtualMachines,
        &[&[PodRangesByTags]],
        "their tags",
    ),
    join(
        &["Microsoft.Network/publicIPAddresses/join/action"],
        Place::PublicIps,
        &[&[Services]],
        "a load balancer has a public frontend",
    ),
    join(
        &["Microsoft.Network/virtualNetworks/subnets/join/action"],
        Place::VirtualNetwork,
        &[&[Services]],
        "internal frontends, private link services; scale sets, instances and interfaces are written",
    ),
    join(
        &["Microsoft.Network/loadBalancers/backendAddressPools/join/action"],
        Place::LoadBalancers,
        &[&[Services]],
        "scale sets, instances and interfaces become members",
    ),
    join(
        &["Microsoft.Network/networkSecurityGroups/join/action"],
        Place::SecurityGroup,
        &[&[Services]],
        "scale sets, instances and interfaces name one",
    ),
    join(
        &["Microsoft.Network/virtualNetworks/joinLoadBalancer/action"],
        Place::VirtualNetwork,
        &[&[Services, NodeIp]],
        "pools hold addresses",
    ),
    join(
        &["Microsoft.Network/publicIPPrefixes/join/action"],
        Place::Prefixes,
        &[&[Services, PublicIpPrefixes]],
        "a Service takes its address from a prefix",
    ),
    join(
        &["Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action"],
        Place::SecurityGroup,
        &[&[Services, ApplicationSecurityGroups]],
        "foreign rules in the security group name some",
    ),
    join(
        &["Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action"],
        Place::LoadBalancers,
        &[&[Services, PrivateLink]],
        "private link services",
    ),
    of(
        Program::NodeManager,
        call(
            &[
                "Microsoft.Compute/virtualMachineScaleSets/read",
                "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
                "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces/read",
                "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces/ipConfigurations/publicIPAddresses/read",
                "Microsoft.Compute/virtualMachines/read",
                "Microsoft.Network/networkInterfaces/read",
                "Microsoft.Network/publicIPAddresses/read",
            ],
            Place::VirtualMachines,
            &[&[ResourceManager]],
            "the node's machine, its interfaces and addresses",
        ),
    ),
    of(
        Program::CredentialProvider,
        call(
            &["Microsoft.ContainerRegistry/registries/pull/read"],
            Place::Registry,
            &[&[Pull]],
            "images; the built-in role `AcrPull` has the same action",
        ),
    ),
    CLUSTERS,
    CLUSTER_JOINS,
    USER_ASSIGNED,
    USER_ASSIGNED_JOIN,
    MACHINE_IDENTITIES,
    MANAGED_CLUSTERS,
    MANAGED_CLUSTER_JOINS,
    FLEETS,
    CLUSTER_EXTENSIONS,
    RESOURCE_HEALTH,
    RAW_RESOURCES,
    RAW_RESOURCE_JOINS,
    RAW_ROLE_ASSIGNMENTS,
    disk_driver::SIZES,
    disk_driver::DISKS,
    disk_driver::SNAPSHOTS,
    disk_driver::SOURCES,
    disk_driver::OPERATIONS,
    disk_driver::INSTANCES,
    disk_driver::MACHINES,
    disk_driver::ENCRYPTION,
    disk_driver::ACCESSES,
    file_driver::ACCOUNTS,
    file_driver::SHARES,
    file_driver::KEYS,
    file_driver::SUBNETS,
    file_driver::SUBNET_JOINS,
    file_driver::ENDPOINTS,
    file_driver::ENDPOINT_JOINS,
    file_driver::ZONES,
    file_driver::COPIES,
    file_driver::NODE_KEYS,
];
