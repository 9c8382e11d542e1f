//! Targets of private endpoints other than private link services, and their names: these resolve to the endpoint's
//! address where its zones are linked.

use azure_types::ResourceId;

use azure_engine::provider::AzureState;

/// (type, group, pattern of the name; `{name}` and `{region}` are filled in).
const TARGETS: [(&str, &str, &[&str]); 10] = [
    ("Microsoft.Storage/storageAccounts", "blob", &["{name}.blob.core.windows.net"]),
    ("Microsoft.Storage/storageAccounts", "file", &["{name}.file.core.windows.net"]),
    ("Microsoft.Storage/storageAccounts", "queue", &["{name}.queue.core.windows.net"]),
    ("Microsoft.Storage/storageAccounts", "table", &["{name}.table.core.windows.net"]),
    ("Microsoft.Storage/storageAccounts", "dfs", &["{name}.dfs.core.windows.net"]),
    ("Microsoft.Storage/storageAccounts", "web", &["{name}.web.core.windows.net"]),
    ("Microsoft.KeyVault/vaults", "vault", &["{name}.vault.azure.net"]),
    (
        "Microsoft.ContainerRegistry/registries",
        "registry",
        &["{name}.azurecr.io", "{name}.{region}.data.azurecr.io"],
    ),
    // Its names differ from disk to disk.
    ("Microsoft.Compute/diskAccesses", "disks", &[]),
    ("Microsoft.ContainerService/managedClusters", "management", &[]),
];

/// Whether private endpoints may connect to a resource of this type.
pub(crate) fn takes(target: &ResourceId) -> bool {
    let kind = target.resource_type();
    TARGETS.iter().any(|(of, ..)| of.eq_ignore_ascii_case(&kind))
}

/// The names of a target's group.
pub(crate) fn names(azure: &AzureState, target: &ResourceId, group: &str) -> Vec<String> {
    let kind = target.resource_type();
    let region = azure.location(target);
    TARGETS
        .iter()
        .filter(|(of, named, _)| of.eq_ignore_ascii_case(&kind) && named.eq_ignore_ascii_case(group))
        .flat_map(|(_, _, patterns)| *patterns)
        .map(|pattern| pattern.replace("{name}", &target.name().to_lowercase()).replace("{region}", &region))
        .collect()
}
