//! The resource provider `Microsoft.ContainerService`: managed clusters (AKS) with their pools, and fleets.

mod agent_pool;
mod certificate;
mod control_plane;
mod ending;
mod fleet;
mod host;
mod kubeconfig;
mod kubernetes_version;
mod latencies;
mod location_calls;
mod maintenance_configuration;
mod managed_cluster;
mod nat_gateway;
mod node_group;
mod node_image;
mod preview_feature;
mod private_access;
mod protocol;
mod reading;
mod scale_set;
mod trusted_access;
mod type_names;
mod words;

use azure_engine::provider::Provider;
use azure_engine::settings::limits::Limit;
use azure_engine::types::names::NameRule;
use azure_engine::types::version::Since;

pub use self::kubeconfig::{AttachedKubernetes, KubernetesOfClusters};

/// Members that its documents have since a version.
static SINCE: [Since; 3] = [
    Since {
        of: "Microsoft.ContainerService/managedClusters",
        member: "properties/agentPoolProfiles/securityProfile/sshAccess",
        version: "2025-08-01",
    },
    Since {
        of: "Microsoft.ContainerService/managedClusters",
        member: "properties/networkProfile/kubeProxyConfig",
        // Previews alone have it, the older ones among them.
        version: "2025-10-02-preview",
    },
    Since {
        of: "Microsoft.ContainerService/managedClusters/agentPools",
        member: "properties/securityProfile/sshAccess",
        version: "2025-08-01",
    },
];

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![location_calls::answer],
        limits: LIMITS,
        latencies: latencies::LATENCIES,
        names: NAMES,
        since: &SINCE,
        ..Provider::new(
            "Microsoft.ContainerService",
            vec![
                &managed_cluster::ManagedClusters,
                &agent_pool::AgentPools,
                &maintenance_configuration::MaintenanceConfigurations,
                &trusted_access::TrustedAccessRoleBindings,
                &fleet::Fleets,
                &fleet::FleetMembers,
            ],
        )
    }
}

/// "Quotas, virtual machine size restrictions, and region availability in Azure Kubernetes Service (AKS)".
static LIMITS: &[Limit] = &[Limit::of("containerService.agentPoolsPerCluster", 100)];

static NAMES: &[NameRule] = &[
    NameRule {
        of: "*/managedClusters/agentPools",
        fits: |name| agent_pool::check_name(name, "Linux").is_ok(),
        refusal: |_, name| agent_pool::check_name(name, "Linux").err().unwrap_or_else(|| bad_name(name)),
    },
    NameRule { of: "*/managedClusters/*", fits: |_| true, refusal: |_, name| bad_name(name) },
    NameRule { of: "*/managedClusters", fits: fits_cluster, refusal: |_, name| bad_name(name) },
    NameRule { of: "*/fleets*", fits: fits_fleet, refusal: |_, name| bad_name(name) },
];

fn fits_cluster(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&name.len())
        && name.starts_with(word)
        && name.ends_with(word)
        && name.chars().all(|c| word(c) || matches!(c, '-' | '_'))
}

fn fits_fleet(name: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.starts_with(word)
        && name.ends_with(word)
        && name.chars().all(|c| word(c) || c == '-')
}

fn bad_name(name: &str) -> azure_engine::refusal::Refusal {
    words::invalid(
        "resourceName",
        format_args!("'{name}' is not valid: it must match the documented pattern."),
    )
}
