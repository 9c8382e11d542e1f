//! Both sides of each limit, and each way of a rule with several conditions, as far as the corpus (`corpus.rs`) holds cases
//! on one side only.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_api::azure_cluster_identity::{AllowedNamespaces, is_allowed};
use capz_api::crd::{Kind, definition};
use serde_json::{Value, json};

use super::applied_again::{applied, merged};
use super::{admitted, context, judge};

fn cluster(subnets: &Value) -> Value {
    json!({
        "metadata": { "name": "c1" },
        "spec": {
            "location": "l",
            "identityRef": { "kind": "AzureClusterIdentity", "name": "id" },
            "networkSpec": { "vnet": { "cidrBlocks": ["10.0.0.0/8", "2001:db8::/56"] }, "subnets": subnets }
        }
    })
}

fn dual_stack(kind: &str) -> Value {
    json!([
        { "role": "control-plane", "name": "cp", "cidrBlocks": ["10.0.0.0/16"] },
        { "role": kind, "name": "n", "cidrBlocks": ["10.1.0.0/16", "2001:db8::/64"] }
    ])
}

/// CAPZ-030: outbound load balancers have up to 16 addresses.
#[test]
fn outbound_addresses_are_counted_up_to_the_limit() {
    let count = |count: i32| [("spec.networkSpec.nodeOutboundLB.frontendIPsCount", json!(count))];
    let cases = [
        (count(-1), "there cannot be fewer front end ips than none"),
        (count(0), ""),
        (count(1), ""),
        (count(16), ""),
        (count(17), "Max front end ips allowed is 16"),
    ];
    let cases: Vec<(&[(&str, Value)], &str)> =
        cases.iter().map(|(changes, words)| (&changes[..], *words)).collect();
    judge("AzureCluster", &cluster(&dual_stack("node")), &cases, &context());
}

/// Workers with IPv6 need an outbound load balancer where the API server is public, and may be without one otherwise.
#[test]
fn a_template_with_an_internal_api_server_needs_no_outbound_load_balancer() {
    let template = |api_server: &str| {
        let network = json!({
            "vnet": { "cidrBlocks": ["10.0.0.0/8", "2001:db8::/56"] },
            "subnets": dual_stack("node"),
            "apiServerLB": { "type": api_server, "sku": "Standard", "idleTimeoutInMinutes": 4 }
        });
        let spec = json!({ "template": { "spec": { "location": "l", "networkSpec": network } } });
        json!({ "metadata": { "name": "t" }, "spec": spec })
    };
    for (api_server, words) in
        [("Internal", None), ("Public", Some("Node outbound load balancer cannot be nil"))]
    {
        let object = template(api_server);
        let refused = capz_api::admission::validate("AzureClusterTemplate", &object, None, &context());
        let refused = refused.map_err(|denied| denied.to_string()).err();
        match words {
            Some(words) => assert!(refused.as_ref().is_some_and(|text| text.contains(words)), "{refused:?}"),
            None => assert_eq!(refused, None),
        }
    }
}

/// A key names its algorithm, in its own length, and has something behind the name.
#[test]
fn a_key_is_of_the_algorithm_that_its_line_names() {
    let blob = |name: &str, length: u32, rest: &[u8]| {
        STANDARD.encode([&length.to_be_bytes()[..], name.as_bytes(), rest].concat())
    };
    let name = "ssh-ed25519";
    let whole = blob(name, 11, &[0; 8]);
    for (line, fits) in [
        (format!("{name} {whole}"), true),
        (format!("{name} {whole} me@example"), true),
        (format!("restrict {name} {whole}"), true),
        (format!("# mine\n{name} {whole}"), true),
        // Without a key after the name.
        (format!("{name} {}", blob(name, 11, &[])), false),
        // Of another algorithm, or of another length.
        (format!("ssh-rsa {whole}"), false),
        (format!("{name} {}", blob("ssh-ed25510", 11, &[0; 8])), false),
        (format!("{name} {}", blob(name, 12, &[0; 8])), false),
        (format!("{name} {}", blob(name, 10, &[0; 8])), false),
        (format!("{name} {}", blob(name, u32::MAX, &[0; 8])), false),
        (format!("{name} AAAA"), false),
        (format!("{name} {whole}!"), false),
        (format!("ssh-unknown {whole}"), false),
        (whole.clone(), false),
        (name.to_owned(), false),
    ] {
        let base = json!({
            "metadata": { "name": "m" },
            "spec": { "vmSize": "s", "osDisk": { "osType": "Linux" }, "sshPublicKey": STANDARD.encode(&line) }
        });
        let words = if fits { "" } else { "the SSH public key is not valid" };
        judge("AzureMachine", &base, &[(&[], words)], &context());
    }
}

/// CAPZ-157: each operator, for labels that have the value, another one, or none.
#[test]
fn selectors_read_labels_as_kubernetes_does() {
    let labels = |value: Option<&str>| -> BTreeMap<String, String> {
        value.map(|value| ("team".to_owned(), value.to_owned())).into_iter().collect()
    };
    let states = [Some("a"), Some("b"), None];
    for (operator, expected) in [
        ("In", [true, false, false]),
        ("NotIn", [false, true, true]),
        ("Exists", [true, true, false]),
        ("DoesNotExist", [false, false, true]),
        ("Likes", [false, false, false]),
    ] {
        let requirement = json!({ "key": "team", "operator": operator, "values": ["a"] });
        let allowed = json!({ "selector": { "matchExpressions": [requirement] } });
        let allowed: AllowedNamespaces = serde_json::from_value(allowed).unwrap();
        let found = states.map(|state| is_allowed(Some(&allowed), "n", &labels(state)));
        assert_eq!(found, expected, "{operator}");
    }
    let both = json!({ "selector": {
        "matchLabels": { "team": "a" }, "matchExpressions": [{ "key": "team", "operator": "DoesNotExist" }]
    } });
    let both: AllowedNamespaces = serde_json::from_value(both).unwrap();
    assert!(states.iter().all(|state| !is_allowed(Some(&both), "n", &labels(*state))));
}

/// Sets the member `id` of every part of a network that can have one.
fn set_ids(schema: &Value, value: &mut Value, count: &mut usize) {
    match value {
        Value::Object(members) => {
            if schema["properties"].get("id").is_some() {
                *count += 1;
                members.insert("id".to_owned(), json!(format!("/subscriptions/s/resourceGroups/g/{count}")));
            }
            for (name, member) in members {
                set_ids(&schema["properties"][name.as_str()], member, count);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| set_ids(&schema["items"], entry, count)),
        _ => {}
    }
}

/// The controller writes the id of each part into the object; a file that does not contain them is applied again.
#[test]
fn ids_of_all_parts_of_a_network_stay_when_a_file_is_applied_again() {
    let subnets = json!([
        { "role": "control-plane", "name": "cp", "securityGroup": { "name": "sg" } },
        {
            "role": "node", "name": "n", "natGateway": { "name": "gateway" }, "routeTable": { "name": "table" },
            "securityGroup": { "name": "sg-n" }
        }
    ]);
    let file = cluster(&subnets);
    let mut live = admitted("AzureCluster", file.clone(), &context());
    let definition = definition(Kind::named("AzureCluster").unwrap());
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut count = 0;
    let network = &mut live["spec"]["networkSpec"];
    set_ids(&schema["properties"]["networkSpec"], network, &mut count);
    assert!(count >= 7, "{network:#}");
    assert_eq!(applied("AzureCluster", merged(&live, &file), &live), live);
}
