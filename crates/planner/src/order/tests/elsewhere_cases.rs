//! Resources in other groups than the cluster's, and in another subscription.

use azure_types::ResourceId;
use serde_json::json;

use super::*;
use crate::model::Flavor;

/// Load balancers, the network and the security group are in groups of their own, in another subscription.
fn apart(extra: Value) -> Cluster {
    let mut config = json!({
        "loadBalancerResourceGroup": "balancers", "vnetResourceGroup": "network",
        "securityGroupResourceGroup": "walls", "networkResourceSubscriptionID": "networks",
        "networkResourceTenantID": "tenant",
    });
    config.as_object_mut().unwrap().append(&mut extra.as_object().unwrap().clone());
    cluster_with(config)
}

fn place(id: &ResourceId) -> String {
    format!("{} {}", id.subscription_id(), id.group_name().unwrap_or_default())
}

/// Every ID of this kind in a document, with its subscription and group.
fn places(document: &impl serde::Serialize, kind: &str) -> Vec<String> {
    let text = serde_json::to_string(document).unwrap();
    let ids = text.split('"').filter(|word| word.starts_with("/subscriptions/") && word.contains(kind));
    let mut found: Vec<String> = ids.map(|id| place(&id.parse().unwrap())).collect();
    found.sort();
    found.dedup();
    found
}

/// LB-411: each resource is read and written where it is configured to be, and every reference points there.
#[test]
fn lb_411_references_lead_to_where_resources_are() {
    for members in ["nodeIPConfiguration", "nodeIP"] {
        let cluster = apart(json!({"loadBalancerBackendPoolConfigurationType": members}));
        let mut azure = Azure::of(cluster);
        let group = azure.observed.security_group.as_mut().unwrap();
        group.id = azure.cluster.security_group_id();
        let web = svc("web").tcp(80).dual().annotate("azure-load-balancer-resource-group", "addresses");
        let db = svc("db").tcp(5432).internal().annotate("azure-pls-create", "true");
        let services = [web.arc(), db.arc()];
        let nodes = nodes([node("alpha", 0), machine_node("alone")]);
        azure.converge(&services, &nodes);
        for flavor in Flavor::BOTH {
            let document = azure.load_balancer(flavor).unwrap();
            assert_eq!(places(document, "/loadBalancers/"), ["networks balancers"], "{members}");
            if members == "nodeIP" {
                assert!(places(document, "/virtualNetworks/").contains(&"networks network".to_owned()));
            }
        }
        let outside = azure.load_balancer(Flavor::External).unwrap();
        assert_eq!(places(outside, "/publicIPAddresses/"), ["networks addresses"]);
        let inside = azure.load_balancer(Flavor::Internal).unwrap();
        assert_eq!(places(inside, "/subnets/"), ["networks network"]);
        for address in &azure.observed.public_ips {
            assert_eq!(place(address.id.as_ref().unwrap()), "networks addresses");
        }
        let link = &azure.observed.private_links[0];
        assert_eq!(place(link.id.as_ref().unwrap()), "networks rg");
        assert_eq!(places(link, "/loadBalancers/"), ["networks balancers"]);
        assert_eq!(azure.observed.security_group.as_ref().unwrap().id, azure.cluster.security_group_id());
        assert_eq!(place(&azure.cluster.security_group_id().unwrap()), "networks walls");
        // Machines refer to the pools from their own subscription.
        let joined: Vec<String> = places(&azure.observed.machines.interfaces, "/backendAddressPools/");
        assert_eq!(joined.is_empty(), members == "nodeIP");
        assert!(joined.iter().all(|place| place == "networks balancers"), "{joined:?}");

        azure.converge(&[web.deleting().arc(), db.deleting().arc()], &nodes);
        assert!(azure.observed.load_balancers.is_empty() && azure.observed.public_ips.is_empty());
        assert!(azure.observed.private_links.is_empty());
    }
}

/// LB-062, LB-124: in an edge zone load balancers, public IPs and private link services are created there, without
/// zones of the region.
#[test]
fn lb_124_everything_is_made_in_the_edge_zone() {
    let mut azure =
        Azure::of(cluster_with(json!({"extendedLocationName": "edge", "extendedLocationType": "EdgeZone"})));
    let services = [
        svc("web").tcp(80).dual().arc(),
        svc("db").tcp(5432).internal().annotate("azure-pls-create", "true").arc(),
    ];
    azure.converge(&services, &nodes([node("alpha", 0)]));
    let observed = serde_json::to_value((
        &azure.observed.load_balancers,
        &azure.observed.public_ips,
        &azure.observed.private_links,
    ))
    .unwrap();
    let all: Vec<&Value> =
        observed.as_array().unwrap().iter().flat_map(|kind| kind.as_array().unwrap()).collect();
    assert_eq!(all.len(), 2 + 2 + 1);
    for document in all {
        assert_eq!(document["extendedLocation"], json!({"name": "edge", "type": "EdgeZone"}), "{document}");
        assert!(!document.to_string().contains("\"zones\""), "{document}");
    }
}
