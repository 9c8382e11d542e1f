//! The values files in `templates/addons`, which `docs/clusters/cloud-provider.md` passes to Helm.

use std::fs;

use serde_json::{Value, json};

use super::page::folder;

/// The pod CIDRs of a flavor's Cluster.
fn pods(flavor: &str) -> Vec<Value> {
    let text =
        fs::read_to_string(folder().join(format!("../../deploy/capz/templates/{flavor}.yaml"))).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let cluster = objects.iter().find(|object| object["kind"] == "Cluster").unwrap();
    cluster["spec"]["clusterNetwork"]["pods"]["cidrBlocks"].as_array().unwrap().clone()
}

#[test]
fn pools_of_calico_are_the_pods_of_the_flavors() {
    for (addon, flavor, encapsulation, ranges_of_nodes) in [
        ("calico", "cluster-template", "VXLAN", "Calico"),
        ("calico-ipv6", "cluster-template-ipv6", "None", "HostLocal"),
        ("calico-dual-stack", "cluster-template-dual-stack", "None", "HostLocal"),
    ] {
        let text =
            fs::read_to_string(folder().join(format!("../../templates/addons/{addon}/values.yaml"))).unwrap();
        let values: Value = serde_saphyr::from_str(&text).unwrap();
        let installation = &values["installation"];
        let network = &installation["calicoNetwork"];
        let pools = network["ipPools"].as_array().unwrap();
        let ranges: Vec<Value> = pools.iter().map(|pool| pool["cidr"].clone()).collect();
        assert_eq!(ranges, pods(flavor), "{addon}");
        assert!(pools.iter().all(|pool| pool["encapsulation"] == encapsulation), "{addon}");
        assert_eq!((&network["mtu"], &network["bgp"]), (&json!(1350), &json!("Disabled")), "{addon}");
        assert_eq!(installation["cni"]["ipam"]["type"], ranges_of_nodes, "{addon}");
    }
}
