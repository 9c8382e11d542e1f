//! One comparison for all kinds.

use azure_types::ResourceId;
use capz_planner::compare::merge;
use capz_planner::kind::Kind;
use serde_json::{Value, json};

fn kind(resource_type: &str) -> &'static Kind {
    let (namespace, kind) = resource_type.split_once('/').unwrap();
    Kind::of(&ResourceId::group("s", "g").resource(namespace, kind, "x"))
}

fn changes(kind: &Kind, wanted: Value, held: Value) -> Vec<String> {
    let (merged, changes) = merge(kind, &wanted, &held, &[]);
    // The written document contains the desired one.
    assert_eq!(merge(kind, &wanted, &merged, &[]).1.len(), 0, "{merged}");
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_wanted_must_be_contained_in_what_is_held() {
    let balancer = kind("Microsoft.Network/loadBalancers");
    let group = kind("Microsoft.Network/networkSecurityGroups");
    let described = |text: Option<&str>| {
        let properties = text.map_or(json!({}), |text| json!({ "description": text }));
        json!({ "properties": { "securityRules": [{ "name": "r", "properties": properties }] } })
    };
    let subnet = Kind::of(
        &ResourceId::group("s", "g")
            .resource("Microsoft.Network", "virtualNetworks", "v")
            .child("subnets", "s"),
    );
    for (kind, wanted, held, expected) in [
        (
            balancer,
            json!({ "tags": { "a": "b" } }),
            json!({ "tags": { "a": "c" } }),
            vec!["tags.a: c becomes b"],
        ),
        (
            balancer,
            json!({ "properties": { "loadBalancingRules": [{ "name": "R", "properties": { "frontendPort": 1 } }] } }),
            json!({ "properties": { "loadBalancingRules": [
                { "name": "r", "properties": { "frontendPort": 1, "provisioningState": "Succeeded" } },
                { "name": "other", "properties": {} },
            ] } }),
            vec![],
        ),
        (
            balancer,
            json!({ "properties": { "probes": [{ "name": "p", "properties": { "port": 2, "requestPath": "/" } }] } }),
            json!({ "properties": { "probes": [{ "name": "p", "properties": { "port": 1 } }] } }),
            vec!["probes[p].port: 1 becomes 2", "probes[p].requestPath is missing: /"],
        ),
        (
            balancer,
            json!({ "properties": { "frontendIPConfigurations": [{ "name": "f", "properties": { "a": 1 } }] } }),
            json!({ "properties": { "frontendIPConfigurations": [{ "name": "f", "properties": { "a": 2 } }] } }),
            vec!["frontendIPConfigurations[f].a: 2 becomes 1"],
        ),
        (
            balancer,
            json!({ "properties": { "outboundRules": [{ "name": "o" }] } }),
            json!({ "properties": {} }),
            vec!["outboundRules is missing: [{\"name\":\"o\"}]"],
        ),
        (
            subnet,
            json!({ "properties": { "addressPrefixes": ["a", "b"] } }),
            json!({ "properties": { "addressPrefixes": ["b", "A"] } }),
            vec![],
        ),
        (
            subnet,
            json!({ "properties": { "addressPrefixes": ["a"] } }),
            json!({ "properties": { "addressPrefixes": ["a", "b"] } }),
            vec!["addressPrefixes: [\"a\",\"b\"] becomes [\"a\"]"],
        ),
        (
            subnet,
            json!({ "properties": { "natGateway": { "id": "/subscriptions/S/resourceGroups/G" }, "x": false, "y": [] } }),
            json!({ "properties": { "natGateway": { "id": "/subscriptions/s/resourcegroups/g" } } }),
            vec![],
        ),
        // An empty text equals an absent one, and removes an existing one. A tag without a value is a tag.
        (group, described(Some("")), described(None), vec![]),
        (group, described(Some("")), described(Some("")), vec![]),
        (group, described(Some("")), described(Some("x")), vec!["securityRules[r].description: x becomes "]),
        (
            kind("Microsoft.Network/natGateways"),
            json!({ "tags": { "a": "" } }),
            json!({ "tags": {} }),
            vec!["tags.a is missing: "],
        ),
    ] {
        assert_eq!(changes(kind, wanted.clone(), held.clone()), expected, "{wanted} in {held}");
    }
}

#[test]
fn what_others_put_there_stays() {
    let subnet = Kind::of(
        &ResourceId::group("s", "g")
            .resource("Microsoft.Network", "virtualNetworks", "v")
            .child("subnets", "s"),
    );
    let held =
        json!({ "properties": { "addressPrefix": "a", "delegations": [{ "name": "d" }] }, "etag": "1" });
    let (merged, _) = merge(subnet, &json!({ "properties": { "addressPrefix": "b" } }), &held, &[]);
    assert_eq!(
        merged,
        json!({ "properties": { "addressPrefix": "b", "delegations": [{ "name": "d" }] }, "etag": "1" })
    );
}

/// A printed plan shows no bootstrap data and no passwords.
#[test]
fn secrets_are_not_shown() {
    let machine = kind("Microsoft.Compute/virtualMachines");
    let wanted =
        json!({ "properties": { "osProfile": { "customData": "secret", "adminPassword": "secret" } } });
    let held = json!({ "properties": { "osProfile": { "customData": "other" } } });
    let said = changes(machine, wanted, held).join(" ");
    assert!(!said.contains("secret") && !said.contains("other"), "{said}");
}

/// A member that contains a secret is not shown either: a plan prints this for the part that contains one.
#[test]
fn what_holds_secrets_is_not_shown() {
    let (machine, set) =
        (kind("Microsoft.Compute/virtualMachines"), kind("Microsoft.Compute/virtualMachineScaleSets"));
    let extension = Kind::of(
        &ResourceId::group("s", "g")
            .resource("Microsoft.Compute", "virtualMachines", "v")
            .child("extensions", "e"),
    );
    let protected = json!({ "protectedSettings": { "commandToExecute": "secret" } });
    let one = json!({ "properties": protected });
    for (kind, wanted, held, expected) in [
        (
            machine,
            json!({ "properties": { "osProfile": { "customData": "secret" } } }),
            json!({ "properties": {} }),
            "osProfile differs",
        ),
        (
            extension,
            one.clone(),
            json!({ "properties": { "protectedSettings": "other" } }),
            "protectedSettings differs",
        ),
        (
            set,
            json!({ "properties": { "virtualMachineProfile": { "extensionProfile": { "extensions": [one] } } } }),
            json!({ "properties": { "virtualMachineProfile": { "extensionProfile": {} } } }),
            "virtualMachineProfile.extensionProfile.extensions differs",
        ),
        (
            machine,
            json!({ "properties": { "other": "shown" } }),
            json!({ "properties": {} }),
            "other is missing: shown",
        ),
        (machine, json!({ "tags": { "a": "shown" } }), json!({}), "tags is missing: shown"),
    ] {
        assert_eq!(changes(kind, wanted.clone(), held), [expected], "{wanted}");
    }
}
