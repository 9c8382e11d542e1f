//! Whether what an object has in Azure is where its cluster is looked for now. A cluster that names no subscription is in that
//! of the manager: when that changes, everything seems to be absent, and would be made a second time or given up.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use crate::profile::PROVIDER_ID;
use crate::scope::Scope;

/// The annotation of AzureClusters with the subscription in which their resource group was seen.
pub const SUBSCRIPTION: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-subscription";

/// Checks that a cluster is where it was.
///
/// # Errors
/// Its resource group was seen in another subscription, or its network is in another subscription or group: both, and how to
/// go on.
pub fn check_cluster(scope: Scope<'_>, annotations: &BTreeMap<String, String>) -> Result<(), String> {
    let subscription = scope.subscription;
    let vnet = scope.spec.network_spec.as_ref().and_then(|network| network.vnet.as_ref());
    let network = vnet.and_then(|vnet| ResourceId::parse(vnet.id.as_deref()?).ok());
    let known =
        annotations.get(SUBSCRIPTION).map(|known| (known.as_str(), format!("annotation {SUBSCRIPTION}")));
    let network_is = network.as_ref().map(|id| (id.subscription_id(), "spec.networkSpec.vnet.id".to_owned()));
    for (known, member) in known.into_iter().chain(network_is) {
        if !known.eq_ignore_ascii_case(subscription) {
            return Err(format!(
                "the cluster is in subscription {known} ({member}), and not in {subscription}: {}",
                remedy(known, &member)
            ));
        }
    }
    let wanted = scope.network_group_name();
    match network.as_ref().and_then(ResourceId::group_name) {
        Some(group) if !group.eq_ignore_ascii_case(wanted) => Err(format!(
            "the network is in resource group {group} (spec.networkSpec.vnet.id), and not in {wanted}: set spec.networkSpec.vnet.resourceGroup back to {group}, or, if the cluster does not exist yet, remove spec.networkSpec.vnet.id"
        )),
        _ => Ok(()),
    }
}

/// Checks that what an object has in Azure, as its provider id says, is in its cluster's resource group.
///
/// # Errors
/// It is in another subscription or group: both, and how to go on.
pub fn check_provider_id(provider_id: Option<&str>, group: &ResourceId) -> Result<(), String> {
    let id = provider_id.and_then(|id| ResourceId::parse(id.strip_prefix(PROVIDER_ID)?).ok());
    let Some(id) = id else { return Ok(()) };
    let (known, subscription) = (id.subscription_id(), group.subscription_id());
    if !known.eq_ignore_ascii_case(subscription) {
        return Err(format!(
            "it is in subscription {known} (spec.providerID), and not in {subscription}, where its cluster is: {}",
            remedy(known, "spec.providerID")
        ));
    }
    match (id.group_name(), group.group_name()) {
        (Some(known), Some(wanted)) if !known.eq_ignore_ascii_case(wanted) => Err(format!(
            "it is in resource group {known} (spec.providerID), and not in {wanted}, where its cluster is: set spec.resourceGroup of the AzureCluster back to {known}"
        )),
        _ => Ok(()),
    }
}

fn remedy(known: &str, member: &str) -> String {
    format!(
        "set spec.subscriptionID of the AzureCluster, or AZURE_SUBSCRIPTION_ID of the manager, back to {known}, or, if nothing of it exists yet, remove {member}"
    )
}

#[cfg(test)]
mod tests {
    use capz_api::azure_cluster::AzureClusterSpec;
    use serde_json::json;

    use super::*;

    const VNET: &str = "/subscriptions/A/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v";

    #[test]
    fn a_cluster_is_where_it_was() {
        for (vnet, annotation, subscription, words) in [
            (json!({}), None, "a", None),
            (json!({ "id": VNET, "resourceGroup": "NET" }), Some("A"), "a", None),
            (json!({ "id": "no id" }), None, "a", None),
            (
                json!({ "id": VNET, "resourceGroup": "net" }),
                None,
                "b",
                Some("is in subscription A (spec.networkSpec.vnet.id)"),
            ),
            (json!({}), Some("a"), "b", Some("is in subscription a (annotation")),
            (json!({ "id": VNET }), None, "a", Some("vnet.resourceGroup back to net")),
            (json!({ "id": VNET, "resourceGroup": "other" }), None, "a", Some("and not in other")),
        ] {
            let spec = json!({ "networkSpec": { "vnet": vnet } });
            let spec: AzureClusterSpec = serde_json::from_value(spec).unwrap();
            let known = annotation.map(|known| (SUBSCRIPTION.to_owned(), known.to_owned()));
            let scope = Scope {
                cluster: "my-cluster",
                name: "my-cluster",
                spec: &spec,
                subscription,
                api_server_port: None,
                zones: &[],
                dns_suffix: "",
                gates: capz_api::Gates::default(),
            };
            let found = check_cluster(scope, &known.into_iter().collect());
            match words {
                None => assert_eq!(found, Ok(()), "{vnet}"),
                Some(words) => assert!(found.as_ref().is_err_and(|it| it.contains(words)), "{found:?}"),
            }
        }
    }

    #[test]
    fn a_machine_is_where_its_cluster_is() {
        let group = ResourceId::group("A", "My-Cluster");
        let vm = |subscription: &str, group: &str| {
            format!(
                "azure:///subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/m"
            )
        };
        for (id, words) in [
            (None, None),
            (Some(String::new()), None),
            (Some("aws:///i-1".to_owned()), None),
            (Some(vm("a", "my-cluster")), None),
            (Some(vm("b", "my-cluster")), Some("is in subscription b (spec.providerID)")),
            (Some(vm("a", "other")), Some("spec.resourceGroup of the AzureCluster back to other")),
        ] {
            let found = check_provider_id(id.as_deref(), &group);
            match words {
                None => assert_eq!(found, Ok(()), "{id:?}"),
                Some(words) => assert!(found.as_ref().is_err_and(|it| it.contains(words)), "{found:?}"),
            }
        }
    }
}
