//! Checks that the resources of an object are where its cluster's resources are now. A cluster that names no
//! subscription uses the manager's: when that changes, all resources seem to be absent, and would be created a second
//! time or abandoned.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use crate::cluster::{Memory, RESOURCES};
use crate::profile::PROVIDER_ID;
use crate::scope::ClusterScope;
use crate::service::{self, Service};

/// The annotation of AzureClusters with the subscription in which their resource group was observed.
pub const SUBSCRIPTION: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-subscription";

/// Checks that a cluster's subscription and groups are unchanged.
///
/// # Errors
/// Its resource group was observed in another subscription, or its network is in another subscription or group. The
/// message names both, and says what to do.
pub fn check_cluster(scope: ClusterScope<'_>, annotations: &BTreeMap<String, String>) -> Result<(), String> {
    let subscription = scope.subscription;
    let network = scope.vnet().and_then(|vnet| ResourceId::parse(vnet.id.as_deref()?).ok());
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
    check_names(scope, network.as_ref(), annotations)?;
    let wanted = scope.network_group_name();
    match network.as_ref().and_then(ResourceId::group_name) {
        Some(group) if !group.eq_ignore_ascii_case(wanted) => Err(format!(
            "the network is in resource group {group} (spec.networkSpec.vnet.id), and not in {wanted}: set spec.networkSpec.vnet.resourceGroup back to {group}, or, if the cluster does not exist yet, remove spec.networkSpec.vnet.id"
        )),
        _ => Ok(()),
    }
}

/// Checks that a cluster's group and network are unchanged: with another name all resources would be created a second
/// time, and the existing ones deleted or abandoned.
fn check_names(
    scope: ClusterScope<'_>,
    network: Option<&ResourceId>,
    annotations: &BTreeMap<String, String>,
) -> Result<(), String> {
    let memory = Memory::of(annotations);
    let recorded = |service: &Service| memory.resources.get(service.name).into_iter().flatten();
    let group = scope.group();
    if recorded(&service::GROUP).next().is_some() && !recorded(&service::GROUP).any(|known| *known == group) {
        let known = recorded(&service::GROUP).map(ResourceId::name).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "the cluster has resource group {known} (annotation {RESOURCES}), and not {}: set spec.resourceGroup back, or, if nothing of \
             it exists yet, remove the annotation",
            group.name()
        ));
    }
    let wanted = scope.network_name();
    let known = network.map(|known| (known.name(), "spec.networkSpec.vnet.id".to_owned())).or_else(|| {
        let known = recorded(&service::VIRTUAL_NETWORK).last()?;
        (!recorded(&service::VIRTUAL_NETWORK).any(|known| *known == scope.network()))
            .then(|| (known.name(), format!("annotation {RESOURCES}")))
    });
    match known {
        Some((known, member)) if !known.eq_ignore_ascii_case(wanted) => Err(format!(
            "the network of the cluster is {known} ({member}), and not {wanted}: set spec.networkSpec.vnet.name back to {known}, or, if \
             nothing of the cluster exists yet, remove {member}"
        )),
        _ => Ok(()),
    }
}

/// Checks that the resource with this provider ID is in the cluster's resource group.
///
/// # Errors
/// It is in another subscription or group. The message names both, and says what to do.
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
    use std::collections::BTreeSet;

    use capz_api::azure_cluster::AzureClusterSpec;
    use serde_json::json;

    use super::*;

    const VNET: &str = "/subscriptions/A/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v";

    #[test]
    fn a_cluster_is_where_it_was() {
        for (vnet, annotation, subscription, words) in [
            (json!({}), None, "a", None),
            (json!({ "id": VNET, "name": "V", "resourceGroup": "NET" }), Some("A"), "a", None),
            (
                json!({ "id": VNET, "name": "other", "resourceGroup": "net" }),
                None,
                "a",
                Some("set spec.networkSpec.vnet.name back to v"),
            ),
            (json!({ "id": "no id" }), None, "a", None),
            (
                json!({ "id": VNET, "resourceGroup": "net" }),
                None,
                "b",
                Some("is in subscription A (spec.networkSpec.vnet.id)"),
            ),
            (json!({}), Some("a"), "b", Some("is in subscription a (annotation")),
            (json!({ "id": VNET, "name": "v" }), None, "a", Some("vnet.resourceGroup back to net")),
            (
                json!({ "id": VNET, "name": "v", "resourceGroup": "other" }),
                None,
                "a",
                Some("and not in other"),
            ),
        ] {
            let spec = json!({ "networkSpec": { "vnet": vnet } });
            let spec: AzureClusterSpec = serde_json::from_value(spec).unwrap();
            let known = annotation.map(|known| (SUBSCRIPTION.to_owned(), known.to_owned()));
            let scope = ClusterScope {
                cluster: "my-cluster",
                id: None,
                marked_only: false,
                kept: &BTreeSet::new(),
                namespace: "default",
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

    /// S6: a cluster keeps its recorded resources, whatever its spec says by now.
    #[test]
    fn a_cluster_keeps_its_group_and_its_network() {
        let group = "/subscriptions/a/resourceGroups/g";
        let network = format!("{group}/providers/Microsoft.Network/virtualNetworks/v");
        let recorded = json!({ "group": [group], "virtualnetworks": [network] }).to_string();
        let annotations = BTreeMap::from([(RESOURCES.to_owned(), recorded)]);
        for (group, name, words) in [
            ("G", "V", None),
            ("g", "w", Some("set spec.networkSpec.vnet.name back to v")),
            ("h", "v", Some("set spec.resourceGroup back")),
        ] {
            let spec = json!({ "resourceGroup": group, "networkSpec": { "vnet": { "name": name } } });
            let spec: AzureClusterSpec = serde_json::from_value(spec).unwrap();
            let scope = ClusterScope {
                cluster: "my-cluster",
                id: None,
                marked_only: false,
                kept: &BTreeSet::new(),
                namespace: "default",
                name: "my-cluster",
                spec: &spec,
                subscription: "a",
                api_server_port: None,
                zones: &[],
                dns_suffix: "",
                gates: capz_api::Gates::default(),
            };
            assert_eq!(check_cluster(scope, &BTreeMap::new()), Ok(()));
            match (check_cluster(scope, &annotations), words) {
                (Ok(()), None) => {}
                (Err(found), Some(words)) => assert!(found.contains(words), "{found}"),
                (found, _) => panic!("{group}/{name}: {found:?}"),
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
