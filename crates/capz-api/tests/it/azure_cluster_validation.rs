//! Section B of the acceptance list: validation of an AzureCluster.

use capz_api::admission::validate;
use capz_api::{Context, Gates};
use serde_json::{Value, json};

use super::{admitted, change_refused, judge, refused, said, with};

const KIND: &str = "AzureCluster";

fn base() -> Value {
    json!({
        "metadata": { "name": "my-cluster" },
        "spec": { "location": "eastus", "identityRef": { "kind": "AzureClusterIdentity", "name": "id" } }
    })
}

/// Both required subnets, the one for nodes with further members.
fn subnets(node: Value) -> Value {
    let mut subnet = json!({ "role": "node", "name": "n", "cidrBlocks": ["10.1.0.0/16"] });
    for (member, value) in node.as_object().unwrap() {
        subnet[member] = value.clone();
    }
    json!([{ "role": "control-plane", "name": "cp", "cidrBlocks": ["10.0.0.0/16"] }, subnet])
}

fn node(member: &str, value: Value) -> (&'static str, Value) {
    ("spec.networkSpec.subnets", subnets(json!({ member: value })))
}

fn rules(rule: Value) -> (&'static str, Value) {
    node("securityGroup", json!({ "securityRules": [rule] }))
}

fn api(member: &str, value: Value) -> (String, Value) {
    (format!("spec.networkSpec.apiServerLB.{member}"), value)
}

/// CAPZ-019, CAPZ-020
#[test]
fn names_are_short_and_plain() {
    for (name, taken) in [
        ("1my-cluster".to_owned(), true),
        ("a".repeat(44), true),
        ("a".repeat(45), false),
        ("my_cluster".to_owned(), false),
        ("My-Cluster".to_owned(), false),
        ("my.cluster".to_owned(), false),
        ("-abc".to_owned(), false),
        ("a".to_owned(), false),
    ] {
        let errors = refused(KIND, with(&base(), &[("metadata.name", json!(name))]), &Context::default());
        assert_eq!(errors.is_empty(), taken, "{name}: {errors:?}");
        assert!(taken || errors[0].starts_with("metadata.name: Invalid value"), "{errors:?}");
    }
}

/// CAPZ-021, CAPZ-022, CAPZ-023, CAPZ-024. Missing roles are validated where defaults did not add them: in a stored
/// object.
#[test]
fn subnets_fit_the_network_and_each_other() {
    let only = |role: &str| {
        json!({ "metadata": { "name": "c1" }, "spec": { "location": "l",
        "networkSpec": { "vnet": { "cidrBlocks": ["10.0.0.0/8"] },
            "subnets": [{ "role": role, "name": "s", "cidrBlocks": ["10.0.0.0/16"] }] } } })
    };
    for (role, missing) in
        [("node", Some("control-plane")), ("control-plane", Some("node")), ("cluster", None)]
    {
        let errors = super::said(capz_api::admission::validate(KIND, &only(role), None, &Context::default()));
        let found = errors.iter().find(|error| error.contains("required role"));
        assert_eq!(found.is_some(), missing.is_some(), "{errors:?}");
        if let (Some(found), Some(missing)) = (found, missing) {
            assert!(found.contains(&format!("required role {missing} not included")), "{found}");
        }
    }
    judge(
        KIND,
        &base(),
        &[
            (&[node("name", json!("cp"))], "subnets[1]: Duplicate value: \"cp\""),
            (&[node("name", json!("###"))], "subnets[1].name: Invalid value"),
            (
                &[("spec.networkSpec.vnet.resourceGroup", json!("invalid-rg###"))],
                "vnet.resourceGroup: Invalid value",
            ),
            (
                &[node("cidrBlocks", json!(["11.0.0.0/16"]))],
                "subnets[1].cidrBlocks: Invalid value: \"11.0.0.0/16\"",
            ),
            (
                &[node("cidrBlocks", json!(["11.1/16"]))],
                "subnets[1].cidrBlocks[0]: Invalid value: \"11.1/16\": invalid CIDR",
            ),
            (
                &[
                    ("spec.networkSpec.vnet.cidrBlocks", json!(["10.0.0.0/8", "11.0.0.0/8"])),
                    node("cidrBlocks", json!(["11.0.0.0/16"])),
                ],
                "",
            ),
        ],
        &Context::default(),
    );
}

/// CAPZ-025, CAPZ-026
#[test]
fn security_rules_have_a_priority_and_one_source() {
    let rule = |member: &str, value: Value| {
        let mut rule = json!({ "name": "r", "description": "d", "protocol": "Tcp", "direction": "Inbound", "priority": 100 });
        rule[member] = value;
        rules(rule)
    };
    judge(
        KIND,
        &base(),
        &[
            (&[rule("priority", json!(99))], "securityRules[0].priority: Invalid value: 99"),
            (&[rule("priority", json!(4097))], "securityRules[0].priority: Invalid value: 4097"),
            (&[rule("priority", json!(100))], ""),
            (&[rule("priority", json!(4096))], ""),
            (
                &[rules(json!({ "name": "r", "priority": 100, "source": "*", "sources": ["10.0.0.0/8"] }))],
                "security rules cannot have source and sources",
            ),
        ],
        &Context::default(),
    );
}

/// CAPZ-027, CAPZ-028, CAPZ-029
#[test]
fn the_load_balancer_of_the_api_server_is_one_that_azure_makes() {
    let gate = Context { gates: Gates { api_server_ilb: true, ..Gates::default() }, ..Context::default() };
    let plain = Context::default();
    let public = |name: &str| json!({ "name": name, "publicIP": { "name": name } });
    let private = |address: &str| json!({ "name": "p", "privateIP": address });
    let internal = |frontends: Value| vec![api("type", json!("Internal")), api("frontendIPs", frontends)];
    for (context, changes, expected) in [
        (&plain, vec![api("sku", json!("Basic"))], "apiServerLB.sku: Unsupported value: \"Basic\""),
        (&plain, vec![api("type", json!("Foo"))], "apiServerLB.type: Unsupported value: \"Foo\""),
        (&plain, vec![api("idleTimeoutInMinutes", json!(3))], "idleTimeoutInMinutes: Invalid value: 3"),
        (&plain, vec![api("idleTimeoutInMinutes", json!(31))], "idleTimeoutInMinutes: Invalid value: 31"),
        (&plain, vec![api("name", json!("***"))], "apiServerLB.name: Invalid value: \"***\""),
        (
            &plain,
            vec![api("frontendIPs", json!([public("a"), public("b")]))],
            "should have 1 Frontend IP configuration",
        ),
        (
            &plain,
            vec![api("frontendIPs", json!([public("a"), private("10.0.0.9")]))],
            "frontendIPs[1].privateIP: Forbidden",
        ),
        (&gate, vec![api("frontendIPs", json!([public("a"), private("10.0.0.9")]))], ""),
        (
            &gate,
            vec![api("frontendIPs", json!([public("a"), private("10.1.0.9")]))],
            "needs to be in control plane subnet range (10.0.0.0/16)",
        ),
        (&plain, internal(json!([public("a")])), "frontendIPs[0].publicIP: Forbidden"),
        (&plain, internal(json!([private("NotAnIP")])), "isn't a valid IPv4 or IPv6 address"),
        (&plain, internal(json!([private("10.1.0.9")])), "needs to be in control plane subnet range"),
        (&plain, internal(json!([private("10.0.0.9")])), ""),
    ] {
        let changes: Vec<(&str, Value)> =
            changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
        judge(KIND, &base(), &[(&changes, expected)], context);
    }
}

/// CAPZ-030, CAPZ-031
#[test]
fn load_balancers_for_what_goes_out_have_limits() {
    judge(
        KIND,
        &base(),
        &[
            (&[("spec.networkSpec.controlPlaneOutboundLB", json!({}))], "controlPlaneOutboundLB: Forbidden"),
            (
                &[
                    node("cidrBlocks", json!(["10.1.0.0/16", "fd00::/64"])),
                    ("spec.networkSpec.vnet.cidrBlocks", json!(["10.0.0.0/8", "fd00::/48"])),
                    ("spec.networkSpec.nodeOutboundLB.frontendIPsCount", json!(17)),
                ],
                "nodeOutboundLB.frontendIPsCount: Invalid value: 17: Max front end ips allowed is 16",
            ),
        ],
        &Context::default(),
    );
}

/// CAPZ-032, CAPZ-033
#[test]
fn a_private_name_needs_an_internal_load_balancer() {
    let internal = ("spec.networkSpec.apiServerLB.type", json!("Internal"));
    let zone = |name: &str| ("spec.networkSpec.privateDNSZoneName", json!(name));
    judge(
        KIND,
        &base(),
        &[
            (
                &[internal.clone(), zone("wrong@d_ns.io")],
                "privateDNSZoneName: Invalid value: \"wrong@d_ns.io\"",
            ),
            (&[internal.clone(), zone("example.com")], ""),
            (&[zone("example.com")], "available only if APIServerLB.Type is Internal"),
            (
                &[internal, ("spec.networkSpec.privateDNSZoneResourceGroup", json!("rg"))],
                "privateDNSZoneResourceGroup: Invalid value: \"rg\"",
            ),
        ],
        &Context::default(),
    );
}

/// CAPZ-034, CAPZ-035, CAPZ-036
#[test]
fn identity_edge_zone_and_tunnels_are_checked() {
    let edge = ("spec.extendedLocation", json!({ "name": "losangeles", "type": "EdgeZone" }));
    let plain = Context::default();
    let gate = Context { gates: Gates { edge_zone: true, ..Gates::default() }, ..Context::default() };
    judge(
        KIND,
        &base(),
        &[
            (&[("spec.identityRef", Value::Null)], "spec.identityRef: Required value"),
            (
                &[("spec.identityRef.kind", json!("Secret"))],
                "spec.identityRef.kind: Unsupported value: \"Secret\"",
            ),
            (std::slice::from_ref(&edge), "spec.extendedLocation: Forbidden"),
            (
                &[("spec.bastionSpec.azureBastion", json!({ "enableTunneling": true }))],
                "sku must be Standard",
            ),
            (&[("spec.bastionSpec.azureBastion", json!({ "enableTunneling": true, "sku": "Standard" }))], ""),
        ],
        &plain,
    );
    judge(KIND, &base(), &[(&[edge], "")], &gate);
}

/// CAPZ-037
#[test]
fn service_endpoints_are_services_in_regions() {
    let endpoint = |service: &str, locations: Value| {
        node("serviceEndpoints", json!([{ "service": service, "locations": locations }]))
    };
    judge(
        KIND,
        &base(),
        &[
            (&[endpoint("Foo.Bar", json!(["*"]))], "serviceEndpoints[0].service: Invalid value: \"Foo.Bar\""),
            (&[endpoint("Microsoft.Foo!", json!(["*"]))], "serviceEndpoints[0].service: Invalid value"),
            (&[endpoint("", json!(["*"]))], "serviceEndpoints[0].service: Required value"),
            (&[endpoint("Microsoft.Storage", json!([]))], "serviceEndpoints[0].locations: Required value"),
            (
                &[endpoint("Microsoft.Storage", json!(["east us 2"]))],
                "locations[0]: Invalid value: \"east us 2\"",
            ),
            (&[endpoint("Microsoft.Storage", json!(["*"]))], ""),
            (&[endpoint("Microsoft.Storage", json!(["eastus2", "westus"]))], ""),
        ],
        &Context::default(),
    );
}

/// CAPZ-038
#[test]
fn private_endpoints_lead_somewhere() {
    let target = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/a";
    let endpoint = |member: &str, value: Value| {
        let mut endpoint =
            json!({ "name": "pe", "privateLinkServiceConnections": [{ "privateLinkServiceID": target }] });
        endpoint[member] = value;
        node("privateEndpoints", json!([endpoint]))
    };
    let connection = |value: Value| endpoint("privateLinkServiceConnections", json!([value]));
    let twice =
        json!({ "name": "pe", "privateLinkServiceConnections": [{ "privateLinkServiceID": target }] });
    judge(
        KIND,
        &base(),
        &[
            (
                &[endpoint("privateLinkServiceConnections", json!([]))],
                "privateLinkServiceConnections cannot be empty",
            ),
            (
                &[connection(json!({ "privateLinkServiceID": "not/an/id" }))],
                "privateLinkServiceID: Invalid value",
            ),
            (&[connection(json!({}))], "privateLinkServiceID: Required value"),
            (
                &[endpoint("privateIPAddresses", json!(["10.9.0.1"]))],
                "needs to be in subnet range (10.1.0.0/16)",
            ),
            (&[endpoint("privateIPAddresses", json!(["10.1.0.10"]))], ""),
            (
                &[connection(json!({ "privateLinkServiceID": target, "requestMessage": "x".repeat(141) }))],
                "requestMessage: Invalid value",
            ),
            (
                &[node("privateEndpoints", json!([twice, twice]))],
                "privateEndpoints[1].name: Duplicate value: \"pe\"",
            ),
        ],
        &Context::default(),
    );
}

/// CAPZ-039
#[test]
fn no_network_is_joined_twice() {
    let peering = json!({ "remoteVnetName": "v", "resourceGroup": "rg" });
    judge(
        KIND,
        &base(),
        &[
            (
                &[("spec.networkSpec.vnet.peerings", json!([peering, peering]))],
                "vnet.peerings[1]: Duplicate value: \"v\"",
            ),
            (
                &[(
                    "spec.networkSpec.vnet.peerings",
                    json!([peering, { "remoteVnetName": "v", "resourceGroup": "rg2" }]),
                )],
                "",
            ),
        ],
        &Context::default(),
    );
}

/// CAPZ-040, CAPZ-041, CAPZ-042, CAPZ-043, CAPZ-044, CAPZ-045, CAPZ-046, CAPZ-047. Each case: the old object, the new
/// one, and the refusal (empty if it is admitted).
#[test]
fn what_azure_cannot_change_stays() {
    let spec = |member: &str, value: Value| vec![(format!("spec.{member}"), value)];
    let none = Vec::new;
    let host = |host: &str| spec("controlPlaneEndpoint", json!({ "host": host, "port": 6443 }));
    let zones = |zones: Value| spec("networkSpec.apiServerLB.availabilityZones", zones);
    let bastion = |value: Value| spec("bastionSpec.azureBastion", value);
    let of_node = |member: &str, value: Value| spec("networkSpec.subnets", subnets(json!({ member: value })));
    let named = |member: &str, name: &str| of_node(member, json!({ "name": name }));
    let owned = |changes: Vec<(String, Value)>| {
        let tag = "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster";
        [spec("networkSpec.vnet.tags", json!({ tag: "owned" })), changes].concat()
    };
    let existing = of_node("id", json!("/subscriptions/1"));
    let narrower = of_node("cidrBlocks", json!(["10.1.0.0/17"]));
    let mut further = subnets(json!({}));
    further
        .as_array_mut()
        .unwrap()
        .push(json!({ "role": "node", "name": "m", "cidrBlocks": ["10.2.0.0/16"] }));
    let overrides =
        spec("cloudProviderConfigOverrides", json!({ "backOffs": { "cloudProviderBackoff": true } }));
    let three = || zones(json!(["1", "2", "3"]));
    let cases = [
        (
            none(),
            spec("location", json!("westus")),
            "spec.location: Invalid value: \"westus\": field is immutable",
        ),
        (none(), spec("resourceGroup", json!("other")), "spec.resourceGroup: Invalid value"),
        (none(), spec("subscriptionID", json!("other")), "spec.subscriptionID: Invalid value"),
        (none(), spec("azureEnvironment", json!("AzureChinaCloud")), "spec.azureEnvironment: Invalid value"),
        (none(), spec("azureEnvironment", json!("AzurePublicCloud")), ""),
        (none(), host("a"), ""),
        (host("a"), host("b"), "spec.controlPlaneEndpoint.host: Invalid value: \"b\""),
        (none(), bastion(json!({})), ""),
        (bastion(json!({})), none(), "azure bastion cannot be removed"),
        (bastion(json!({})), bastion(json!({ "sku": "Standard" })), "azure bastion cannot be removed"),
        (existing, named("natGateway", "x"), ""),
        (named("natGateway", "x"), named("natGateway", "y"), "natGateway.name: Invalid value: \"y\""),
        (named("routeTable", "x"), named("routeTable", "y"), "routeTable.name: Invalid value: \"y\""),
        (
            named("securityGroup", "x"),
            named("securityGroup", "y"),
            "securityGroup.name: Invalid value: \"y\"",
        ),
        (owned(named("securityGroup", "x")), owned(narrower.clone()), "subnets[1].cidrBlocks: Invalid value"),
        (of_node("role", json!("node")), narrower, ""),
        (three(), zones(json!(["3", "2", "1"])), ""),
        (three(), zones(json!(["1"])), "availabilityZones: Invalid value: [\"1\"]"),
        (three(), none(), "availabilityZones: Invalid value"),
        (none(), zones(json!(["1"])), "availabilityZones: Invalid value"),
        (spec("networkSpec.subnets", subnets(json!({}))), spec("networkSpec.subnets", further), ""),
        (overrides.clone(), overrides.clone(), ""),
        (none(), overrides.clone(), "spec.cloudProviderConfigOverrides: Invalid value"),
    ];
    let changed = |changes: &[(String, Value)]| {
        let changes: Vec<(&str, Value)> =
            changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
        with(&base(), &changes)
    };
    for (old, new, expected) in &cases {
        let errors = change_refused(KIND, changed(old), changed(new), &Context::default());
        if expected.is_empty() {
            assert!(errors.is_empty(), "{old:?} to {new:?} is taken: {errors:#?}");
        } else {
            let found = errors.iter().any(|error| error.contains(expected));
            assert!(found, "{old:?} to {new:?} is refused with {expected:?}: {errors:#?}");
        }
    }
    assert!(refused(KIND, changed(&overrides), &Context::default()).is_empty(), "it may be set at creation");
}

/// S6, CAPZ-073: changes that would delete the network, or abandon resources, are refused; a subnet of workers may be
/// removed. Each case: the old object, the new one, and the refusal (empty if it is admitted).
#[test]
fn what_would_delete_or_orphan_is_refused() {
    let network = |member: &str, value: Value| vec![(format!("spec.networkSpec.{member}"), value)];
    let api = |member: &str, value: Value| network(&format!("apiServerLB.{member}"), value);
    let frontend = |name: &str, ip: &str, dns: &str| {
        api("frontendIPs", json!([{ "name": name, "publicIP": { "name": ip, "dnsName": dns } }]))
    };
    let outbound = |name: &str| network("nodeOutboundLB", json!({ "name": name }));
    let mut listed = subnets(json!({}));
    let one_more = json!({ "role": "node", "name": "m", "cidrBlocks": ["10.2.0.0/16"] });
    listed.as_array_mut().unwrap().push(one_more);
    let roles = |first: &str, second: &str| {
        let mut subnets = listed.clone();
        (subnets[0]["role"], subnets[1]["role"]) = (json!(first), json!(second));
        network("subnets", subnets)
    };
    let mut renamed = subnets(json!({}));
    renamed[0]["name"] = json!("other");
    let none = Vec::new;
    let enabled = |value: bool| vec![("spec.controlPlaneEnabled".to_owned(), json!(value))];
    for (old, new, expected) in [
        (
            none(),
            network("vnet.name", json!("v")),
            "spec.networkSpec.vnet.name: Invalid value: \"v\": field is immutable",
        ),
        (network("vnet.name", json!("v")), none(), "spec.networkSpec.vnet.name: Invalid value"),
        (network("vnet.name", json!("v")), network("vnet.name", json!("v")), ""),
        (
            none(),
            network("vnet.resourceGroup", json!("g")),
            "spec.networkSpec.vnet.resourceGroup: Invalid value",
        ),
        (none(), enabled(false), "spec.controlPlaneEnabled: Invalid value: false"),
        (none(), enabled(true), ""),
        (roles("control-plane", "node"), roles("control-plane", "node"), ""),
        (
            roles("control-plane", "node"),
            roles("node", "control-plane"),
            "subnets[0].role: Invalid value: \"node\"",
        ),
        (roles("control-plane", "node"), network("subnets", subnets(json!({}))), ""),
        (
            network("subnets", subnets(json!({}))),
            network("subnets", renamed),
            "subnet cp holds the control plane (role control-plane) and can be neither removed nor renamed: add it again",
        ),
        (none(), api("backendPool", json!({ "name": "x" })), "apiServerLB.backendPool.name: Invalid value"),
        (frontend("f", "ip", ""), frontend("f", "ip", "a.example.com"), ""),
        (
            frontend("f", "ip", ""),
            frontend("f", "other", ""),
            "frontendIPs[0].publicIP.name: Invalid value: \"other\"",
        ),
        (
            frontend("f", "ip", "a"),
            frontend("f", "ip", "b"),
            "frontendIPs[0].publicIP.dnsName: Invalid value: \"b\"",
        ),
        (frontend("f", "ip", ""), frontend("g", "ip", ""), "frontend f is where the API server answers"),
        (none(), outbound("a"), ""),
        (outbound("a"), none(), ""),
        (outbound("a"), outbound("b"), "nodeOutboundLB.name: Invalid value: \"b\""),
    ] {
        let changed = |changes: &[(String, Value)]| {
            let changes: Vec<(&str, Value)> =
                changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
            with(&base(), &changes)
        };
        let errors = change_refused(KIND, changed(&old), changed(&new), &Context::default());
        let found = errors.iter().any(|error| error.contains(expected));
        let fits = if expected.is_empty() { errors.is_empty() } else { found };
        assert!(fits, "{old:?} to {new:?}, expected {expected:?}: {errors:#?}");
    }
}

/// CAPZ-040, CAPZ-043: an object that an older release has stored without a default may get it, and nothing else may
/// change with that. Each case: a member, its stored value, the new one, and the refusal.
#[test]
fn what_was_stored_without_a_default_may_get_it() {
    let environment = "spec.azureEnvironment";
    let (table, gateway) =
        ("spec.networkSpec.subnets.1.routeTable.name", "spec.networkSpec.subnets.1.natGateway.name");
    let public = json!("AzurePublicCloud");
    let base = with(&base(), &[("spec.networkSpec.subnets", subnets(json!({})))]);
    for (member, stored, wanted, expected) in [
        (environment, json!(""), public.clone(), ""),
        (environment, json!(null), public.clone(), ""),
        (environment, json!(""), json!("AzureChinaCloud"), "spec.azureEnvironment: Invalid value"),
        (environment, json!(null), json!("AzureChinaCloud"), "spec.azureEnvironment: Invalid value"),
        (environment, json!("AzureChinaCloud"), public, "spec.azureEnvironment: Invalid value"),
        (table, json!(""), json!("x"), ""),
        (table, json!(null), json!("x"), ""),
        (table, json!("x"), json!("y"), "subnets[1].routeTable.name: Invalid value: \"y\""),
        (gateway, json!(""), json!("x"), ""),
        (gateway, json!("x"), json!("y"), "subnets[1].natGateway.name: Invalid value: \"y\""),
    ] {
        let new = with(&admitted(KIND, base.clone(), &Context::default()), &[(member, wanted)]);
        let old = with(&new, &[(member, stored.clone())]);
        let errors = said(validate(KIND, &new, Some(&old), &Context::default()));
        if expected.is_empty() {
            assert!(errors.is_empty(), "{member} {stored} is taken: {errors:#?}");
        } else {
            assert!(errors.iter().any(|error| error.contains(expected)), "{member} {stored}: {errors:#?}");
        }
    }
}
