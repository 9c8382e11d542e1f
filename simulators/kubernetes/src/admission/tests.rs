use serde_json::{Value, json};

use super::*;
use crate::kinds::shared::allocators::Allocators;
use crate::object::invalid::Invalid;
use crate::registry::{Kind, Registry};

fn kind(name: &str) -> std::sync::Arc<Kind> {
    Registry::default().by_name(name).unwrap()
}

/// Admits an object and takes its allocations, or returns the first error.
fn admitted(
    name: &str,
    old: Option<&Value>,
    object: &mut Value,
    allocators: &mut Allocators,
) -> Result<(), Invalid> {
    let kind = kind(name);
    prepare(&kind, object);
    admit(&kind, old, object, allocators).map_err(|causes| causes.into_iter().next().unwrap())?;
    let before = old.map(|old| allocations(&kind, old)).unwrap_or_default();
    assert!(allocators.exchange(&before, &allocations(&kind, object)), "what was chosen is free");
    Ok(())
}

fn on_create(name: &str, object: &mut Value, allocators: &mut Allocators) -> Result<(), Invalid> {
    admitted(name, None, object, allocators)
}

fn on_update(
    name: &str,
    old: &Value,
    object: &mut Value,
    allocators: &mut Allocators,
) -> Result<(), Invalid> {
    admitted(name, Some(old), object, allocators)
}

fn on_delete(name: &str, object: &Value, allocators: &mut Allocators) {
    allocators.release(&allocations(&kind(name), object));
}

fn service(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": spec})
}

fn created(spec: Value, allocators: &mut Allocators) -> Value {
    let mut object = service(spec);
    on_create("Service", &mut object, allocators).unwrap();
    object
}

fn refused(spec: Value) -> (String, String) {
    let mut allocators = Allocators::default();
    let error = on_create("Service", &mut service(spec), &mut allocators).unwrap_err();
    assert_eq!(format!("{allocators:?}"), format!("{:?}", Allocators::default()), "a refusal takes nothing");
    (error.field, error.message)
}

fn node_port(object: &Value, index: usize) -> u16 {
    object["spec"]["ports"][index]["nodePort"].as_u64().unwrap().try_into().unwrap()
}

#[test]
fn service_defaults_by_type() {
    let mut allocators = Allocators::default();
    let plain = created(json!({"ports": [{"port": 80}]}), &mut allocators);
    let address = plain["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10.0."));
    assert!(allocators.holds_address(address.parse().unwrap()));
    assert_eq!(
        plain["spec"],
        json!({
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "clusterIP": address, "clusterIPs": [address],
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
        })
    );
    let balanced = created(json!({"type": "LoadBalancer", "ports": [{"port": 80}]}), &mut allocators);
    assert_eq!(balanced["spec"]["externalTrafficPolicy"], "Cluster");
    assert_eq!(balanced["spec"]["allocateLoadBalancerNodePorts"], true);
    assert_eq!(balanced["spec"].get("healthCheckNodePort"), None);
    assert!(allocators.holds_node_port(node_port(&balanced, 0)));
    let headless = created(json!({"clusterIP": "None"}), &mut allocators);
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    let named = created(json!({"type": "ExternalName", "externalName": "a.example.com"}), &mut allocators);
    assert_eq!(
        named["spec"],
        json!({"type": "ExternalName", "externalName": "a.example.com", "sessionAffinity": "None"})
    );
    let sticky = created(json!({"sessionAffinity": "ClientIP", "ports": [{"port": 80}]}), &mut allocators);
    assert_eq!(sticky["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"], 10800);
    let mut plain = sticky.clone();
    plain["spec"]["sessionAffinity"] = json!("None");
    on_update("Service", &sticky, &mut plain, &mut allocators).unwrap();
    assert_eq!(plain["spec"].get("sessionAffinityConfig"), None);
}

#[test]
fn local_traffic_has_a_health_check_port_for_as_long_as_it_is_local() {
    let mut allocators = Allocators::default();
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    let old = created(spec, &mut allocators);
    let port = old["spec"]["healthCheckNodePort"].as_u64().unwrap().try_into().unwrap();
    assert!(allocators.holds_node_port(port));
    let mut new = old.clone();
    new["spec"]["healthCheckNodePort"] = json!(30999);
    let error = on_update("Service", &old, &mut new, &mut allocators).unwrap_err();
    assert_eq!(error.field, "spec.healthCheckNodePort");
    let mut new = old.clone();
    new["spec"]["externalTrafficPolicy"] = json!("Cluster");
    on_update("Service", &old, &mut new, &mut allocators).unwrap();
    assert_eq!(new["spec"].get("healthCheckNodePort"), None);
    assert!(!allocators.holds_node_port(port));
}

#[test]
fn a_change_of_type_takes_and_gives_back_ports() {
    let mut allocators = Allocators::default();
    let old = created(json!({"ports": [{"port": 80}]}), &mut allocators);
    let mut balanced = old.clone();
    balanced["spec"]["type"] = json!("LoadBalancer");
    on_update("Service", &old, &mut balanced, &mut allocators).unwrap();
    let port = node_port(&balanced, 0);
    assert!(allocators.holds_node_port(port));
    let mut plain = balanced.clone();
    plain["spec"]["type"] = json!("ClusterIP");
    on_update("Service", &balanced, &mut plain, &mut allocators).unwrap();
    assert!(!allocators.holds_node_port(port));
    assert_eq!(plain["spec"], old["spec"], "as if it had never been anything else");
    let mut named = plain.clone();
    named["spec"]["type"] = json!("ExternalName");
    named["spec"]["externalName"] = json!("a.b");
    on_update("Service", &plain, &mut named, &mut allocators).unwrap();
    assert_eq!(named["spec"].get("clusterIP"), None);
    assert!(!allocators.holds_address(plain["spec"]["clusterIP"].as_str().unwrap().parse().unwrap()));
}

#[test]
fn an_update_without_what_was_allocated_keeps_it() {
    let mut allocators = Allocators::default();
    let declared =
        json!({"type": "LoadBalancer", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]});
    let old = created(declared.clone(), &mut allocators);
    let mut new = service(declared);
    new["spec"]["ports"].as_array_mut().unwrap().push(json!({"port": 82, "name": "c"}));
    on_update("Service", &old, &mut new, &mut allocators).unwrap();
    assert_eq!(new["spec"]["clusterIP"], old["spec"]["clusterIP"]);
    assert_eq!((node_port(&new, 0), node_port(&new, 1)), (node_port(&old, 0), node_port(&old, 1)));
    assert!(allocators.holds_node_port(node_port(&new, 2)));
    let mut moved = new.clone();
    moved["spec"]["clusterIP"] = json!("10.0.9.9");
    let error = on_update("Service", &new, &mut moved, &mut allocators).unwrap_err();
    assert_eq!(error.message, "Invalid value: [\"10.0.9.9\"]: may not change once set");
    on_delete("Service", &new, &mut allocators);
    assert_eq!(format!("{allocators:?}"), format!("{:?}", Allocators::default()));
}

#[test]
fn one_port_number_serves_two_protocols() {
    let spec = json!({"type": "NodePort", "ports": [
        {"port": 53, "protocol": "TCP", "name": "t"}, {"port": 53, "protocol": "UDP", "name": "u"},
        {"port": 80, "name": "w"}]});
    let object = created(spec, &mut Allocators::default());
    assert_eq!(node_port(&object, 0), node_port(&object, 1));
    assert_ne!(node_port(&object, 0), node_port(&object, 2));
}

#[test]
fn load_balancers_may_do_without_node_ports() {
    let spec =
        json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]});
    let object = created(spec, &mut Allocators::default());
    assert_eq!(object["spec"]["ports"][0].get("nodePort"), None);
}

#[test]
fn dual_stack_gets_an_address_of_each_family() {
    let spec = json!({"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]});
    let object = created(spec, &mut Allocators::default());
    assert_eq!(object["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert!(object["spec"]["clusterIPs"][1].as_str().unwrap().starts_with("fd00:10::"));
}

#[test]
fn a_cluster_of_one_family_has_no_addresses_of_the_other() {
    let single = || Allocators::default().dual_stack(false);
    let refused = |spec: Value| {
        let error = on_create("Service", &mut service(spec), &mut single()).unwrap_err();
        (error.field, error.message)
    };
    for (spec, field, message) in [
        (
            json!({"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}),
            "spec.ipFamilyPolicy",
            "Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
        ),
        (
            json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"], "ports": [{"port": 80}]}),
            "spec.ipFamilies[1]",
            "Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"ipFamilies": ["IPv6"], "ports": [{"port": 80}]}),
            "spec.ipFamilies[0]",
            "Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"clusterIP": "fd00:10::7", "ports": [{"port": 80}]}),
            "spec.clusterIPs[0]",
            "Invalid value: [\"fd00:10::7\"]: IPv6 is not configured on this cluster",
        ),
    ] {
        assert_eq!(refused(spec.clone()), (field.to_owned(), message.to_owned()), "{spec}");
    }
    let mut allocators = single();
    let preferred =
        created(json!({"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]}), &mut allocators);
    assert_eq!(preferred["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(preferred["spec"]["clusterIPs"].as_array().unwrap().len(), 1);
    let mut required = preferred.clone();
    required["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
    let error = on_update("Service", &preferred, &mut required, &mut allocators).unwrap_err();
    assert_eq!(error.field, "spec.ipFamilyPolicy");
    // Endpoints that others write may have any address.
    let headless =
        json!({"clusterIP": "None", "ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]});
    assert_eq!(created(headless, &mut allocators)["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
}

#[test]
fn allocation_is_the_same_for_the_same_seed_and_never_twice() {
    let draw = |seed| {
        let mut allocators = Allocators::new(seed);
        (0..200)
            .map(|_| {
                node_port(&created(json!({"type": "NodePort", "ports": [{"port": 80}]}), &mut allocators), 0)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    let distinct: std::collections::BTreeSet<u16> = draw(7).into_iter().collect();
    assert_eq!(distinct.len(), 200);
}

#[test]
fn node_ports_run_out() {
    let mut allocators = Allocators::default();
    for _ in 0..2768 {
        created(json!({"type": "NodePort", "ports": [{"port": 80}]}), &mut allocators);
    }
    let mut one_more = service(json!({"type": "NodePort", "ports": [{"port": 80}]}));
    assert!(
        on_create("Service", &mut one_more, &mut allocators).unwrap_err().message.contains("range is full")
    );
}

#[test]
fn service_refusals_read_as_the_api_server_words_them() {
    let port = |port: Value| json!({"ports": [port]});
    for (spec, field, message) in [
        (json!({}), "spec.ports", "Required value"),
        (
            port(json!({"port": 0})),
            "spec.ports[0].port",
            "Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            port(json!({"port": 80, "protocol": "XYZ"})),
            "spec.ports[0].protocol",
            "Unsupported value: \"XYZ\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (json!({"ports": [{"port": 80}, {"port": 81}]}), "spec.ports[0].name", "Required value"),
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}),
            "spec.ports[1].name",
            "Duplicate value: \"a\"",
        ),
        (
            port(json!({"port": 80, "targetPort": "Bad_Name"})),
            "spec.ports[0].targetPort",
            "Invalid value: \"Bad_Name\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            json!({"type": "Foo", "ports": [{"port": 1}]}),
            "spec.type",
            "Unsupported value: \"Foo\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ),
        (
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
            "spec.ports[0].nodePort",
            "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767",
        ),
        (
            json!({"type": "NodePort", "ports": [
                {"port": 80, "name": "a", "nodePort": 30082}, {"port": 81, "name": "b", "nodePort": 30082}]}),
            "spec.ports[1].nodePort",
            "Duplicate value: 30082",
        ),
        (
            port(json!({"port": 80, "nodePort": 30100})),
            "spec.ports[0].nodePort",
            "Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8", "foo"], "ports": [{"port": 80}]}),
            "spec.LoadBalancerSourceRanges",
            "Invalid value: \"[10.0.0.0/8 foo]\": must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ",
        ),
        (
            json!({"loadBalancerSourceRanges": ["10.0.0.0/8"], "ports": [{"port": 80}]}),
            "spec.LoadBalancerSourceRanges",
            "Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
        (json!({"type": "ExternalName"}), "spec.externalName", "Required value"),
        (
            json!({"clusterIP": "None", "type": "NodePort", "ports": [{"port": 80}]}),
            "spec.clusterIPs[0]",
            "Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            json!({"clusterIP": "foo", "ports": [{"port": 80}]}),
            "spec.clusterIPs[0]",
            "Invalid value: \"foo\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            json!({"clusterIP": "1.2.3.4", "ports": [{"port": 80}]}),
            "spec.clusterIPs",
            "Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: provided IP is not in the valid \
             range. The range of valid IPs is 10.0.0.0/16",
        ),
        (
            json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
                "ports": [{"port": 80}]}),
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
            "Invalid value: 0: must be greater than 0 and less than 86400",
        ),
        (
            json!({"externalIPs": ["127.0.0.1"], "ports": [{"port": 80}]}),
            "spec.externalIPs[0]",
            "Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8)",
        ),
    ] {
        assert_eq!(refused(spec.clone()), (field.to_owned(), message.to_owned()), "{spec}");
    }
}

#[test]
fn taken_ports_and_addresses_are_refused() {
    let mut allocators = Allocators::default();
    let spec =
        json!({"type": "NodePort", "clusterIP": "10.0.7.7", "ports": [{"port": 80, "nodePort": 30080}]});
    created(spec, &mut allocators);
    let mut same_port = service(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}));
    assert_eq!(
        on_create("Service", &mut same_port, &mut allocators).unwrap_err(),
        Invalid::new("spec.ports[0].nodePort", "Invalid value: 30080: provided port is already allocated")
    );
    let mut same_address = service(json!({"clusterIP": "10.0.7.7", "ports": [{"port": 80}]}));
    let error = on_create("Service", &mut same_address, &mut allocators).unwrap_err();
    assert!(error.message.ends_with("provided IP is already allocated"));
}

#[test]
fn names_labels_and_finalizers() {
    let check = |kind: &str, metadata: Value| {
        let mut object = json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}});
        on_create(kind, &mut object, &mut Allocators::default())
    };
    assert!(check("Service", json!({"name": "1abc"})).is_ok());
    assert!(check("Service", json!({"name": "a_b"})).unwrap_err().message.contains("RFC 1123 label"));
    assert!(check("Service", json!({"name": "a.b"})).unwrap_err().message.contains("must not contain dots"));
    assert!(
        check("Service", json!({"name": "a".repeat(64)})).unwrap_err().message.contains("no more than 63")
    );
    assert!(check("Node", json!({"name": "n0.example"})).is_ok());
    assert!(check("Node", json!({"name": "Bad_N"})).unwrap_err().message.contains("RFC 1123 subdomain"));
    assert!(check("Namespace", json!({"name": "a_b"})).unwrap_err().message.contains("RFC 1123 label"));
    assert!(check("Event", json!({"name": "web.ABC", "namespace": "default"})).is_ok());
    assert_eq!(
        check("Service", json!({"name": "a", "labels": {"a b": "c"}})).unwrap_err().field,
        "metadata.labels"
    );
    assert_eq!(
        check("Service", json!({"name": "a", "annotations": {"A b": "c"}})).unwrap_err().field,
        "metadata.annotations"
    );
    assert_eq!(
        check("Service", json!({"name": "a", "finalizers": ["x"]})).unwrap_err(),
        Invalid::new(
            "metadata.finalizers[0]",
            "Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
        )
    );
    assert!(check("Service", json!({"name": "a", "finalizers": ["a.b/c"]})).is_ok());
}

#[test]
fn nodes_start_tainted_and_keep_their_identity() {
    let mut allocators = Allocators::default();
    let mut node = json!({"metadata": {"name": "n0"}});
    on_create("Node", &mut node, &mut allocators).unwrap();
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    );
    let mut with_id = node.clone();
    with_id["spec"]["providerID"] = json!("azure:///a");
    on_update("Node", &node, &mut with_id, &mut allocators).unwrap();
    let mut other_id = with_id.clone();
    other_id["spec"]["providerID"] = json!("azure:///b");
    let error = on_update("Node", &with_id, &mut other_id, &mut allocators).unwrap_err();
    assert_eq!(error.field, "spec.providerID");
    let mut twice = node.clone();
    twice["spec"]["taints"] =
        json!([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]);
    assert!(
        on_update("Node", &node, &mut twice, &mut allocators).unwrap_err().message.contains("unique by key")
    );
    twice["spec"]["taints"] = json!([{"key": "a", "effect": "X"}]);
    assert_eq!(
        on_update("Node", &node, &mut twice, &mut allocators).unwrap_err().field,
        "metadata.taints[0].effect"
    );
}

#[test]
fn smaller_kinds() {
    let check = |kind: &str, mut object: Value| {
        object["metadata"] = json!({"name": "x", "namespace": "default"});
        on_create(kind, &mut object, &mut Allocators::default()).map(|()| object)
    };
    let lease = |spec: Value| check("Lease", json!({"spec": spec}));
    assert_eq!(
        lease(json!({"leaseDurationSeconds": 0})).unwrap_err().message,
        "Invalid value: 0: must be greater than 0"
    );
    assert!(lease(json!({"leaseDurationSeconds": 15, "holderIdentity": ""})).is_ok());
    assert_eq!(check("EndpointSlice", json!({})).unwrap_err(), Invalid::new("addressType", "Required value"));
    let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["::1"]}]});
    assert_eq!(check("EndpointSlice", slice).unwrap_err().field, "endpoints[0].addresses[0]");
    let slice = check("EndpointSlice", json!({"addressType": "IPv4", "ports": [{"port": 80}]})).unwrap();
    assert_eq!(slice["ports"], json!([{"port": 80, "name": "", "protocol": "TCP"}]));
    let secret = check("Secret", json!({"stringData": {"a": "c"}})).unwrap();
    assert_eq!((&secret["data"]["a"], &secret["type"]), (&json!("Yw=="), &json!("Opaque")));
    assert_eq!(check("ConfigMap", json!({"data": {"a b": ""}})).unwrap_err().field, "data[a b]");
    let event = json!({"involvedObject": {"kind": "Service", "namespace": "other"}});
    assert_eq!(check("Event", event).unwrap_err().field, "involvedObject.namespace");
    let event_of_its_group = Registry::default().by_type("events.k8s.io/v1", "Event").unwrap();
    let mut event = json!({"metadata": {"name": "x"}, "type": "Normal"});
    let causes = admit(&event_of_its_group, None, &mut event, &mut Allocators::default()).unwrap_err();
    assert_eq!(causes, [Invalid::new("eventTime", "Required value")]);
    assert!(check("Pod", json!({"spec": {"containers": [{"name": "c", "image": "i"}]}})).is_ok());
}

#[test]
fn ingress_addresses_default_to_virtual_ips() {
    let mut allocators = Allocators::default();
    let old = created(json!({"type": "LoadBalancer", "ports": [{"port": 80}]}), &mut allocators);
    let mut new = old.clone();
    new["status"] = json!({"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}});
    on_update("Service", &old, &mut new, &mut allocators).unwrap();
    assert_eq!(new["status"]["loadBalancer"]["ingress"], json!([{"ip": "20.0.0.1", "ipMode": "VIP"}]));
    new["status"] = json!({"loadBalancer": {"ingress": [{"ip": "x"}]}});
    let error = on_update("Service", &old, &mut new, &mut allocators).unwrap_err();
    assert_eq!(
        error.to_string(),
        "status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address"
    );
}
