//! Applying a file twice changes nothing: whatever admission and the controller have set, a file that is applied again
//! as it is in git changes no member. `kubectl apply` sends what the file contains and the object lacks, and lists as a
//! whole.

use capz_api::Context;
use capz_api::admission::{complete, review, validate};
use capz_api::crd::{fill_defaults, fill_required};
use capz_api::webhooks::{Task, WEBHOOKS};
use serde_json::{Value, json};

use super::{Fixed, SSH_KEY, admitted, context};

/// Another key and another name each time, so that a new random value shows.
struct Drawn(u32);

impl capz_api::Random for Drawn {
    fn guid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-0000-0000-{:012}", self.0)
    }
    fn ssh_public_key(&mut self) -> String {
        self.0 += 1;
        // The same key with another comment.
        format!("{}bWE{}", SSH_KEY.strip_suffix("bWU=").unwrap(), self.0 % 10)
    }
}

/// Merges objects member by member, everything else as a whole, as a merge patch does.
pub fn merged(live: &Value, file: &Value) -> Value {
    let (Value::Object(live), Value::Object(file)) = (live, file) else { return file.clone() };
    let mut all = live.clone();
    for (name, value) in file {
        let known = live.get(name).cloned().unwrap_or_default();
        all.insert(name.clone(), merged(&known, value));
    }
    Value::Object(all)
}

/// The object after the file is applied again.
pub fn applied(kind: &str, sent: Value, live: &Value) -> Value {
    let mut sent = sent;
    fill_defaults(kind, &mut sent);
    let mut object = complete(kind, sent, Some(live), &context(), &mut Drawn(100)).unwrap();
    fill_required(kind, &mut object);
    if let Err(denied) = validate(kind, &object, Some(live), &context()) {
        panic!("{kind} is refused: {denied}");
    }
    object
}

fn object(kind: &str, spec: Value) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "metadata": { "name": "c-1" }, "spec": spec })
}

fn machine(more: Value) -> Value {
    merged(&json!({ "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 64 } }), &more)
}

/// Files as users write them, with deprecated members, and without members that have a default.
fn files() -> Vec<Value> {
    let forms = [
        json!({}),
        json!({ "subnetName": "nodes" }),
        json!({ "acceleratedNetworking": true, "subnetName": "nodes", "sshPublicKey": "" }),
        json!({ "networkInterfaces": [{ "subnetName": "a" }, { "subnetName": "b" }] }),
        json!({ "networkInterfaces": [{}] }),
        json!({ "dataDisks": [{ "nameSuffix": "a", "diskSizeGB": 10 }, { "nameSuffix": "b", "diskSizeGB": 20 }] }),
        json!({ "spotVMOptions": { "maxPrice": "-1" }, "sshPublicKey": SSH_KEY }),
    ];
    let mut files = Vec::new();
    for form in forms {
        let of = |more: &Value| machine(merged(more, &form));
        let identity = json!({ "identity": "SystemAssigned" });
        files.push(object("AzureMachineTemplate", json!({ "template": { "spec": of(&json!({})) } })));
        files.push(object("AzureMachineTemplate", json!({ "template": { "spec": of(&identity) } })));
        files.push(object("AzureMachine", of(&json!({}))));
        files.push(object("AzureMachine", of(&identity)));
        let former =
            merged(&identity, &json!({ "roleAssignmentName": "6d4f2b8a-0c1e-4f5a-9b3c-7d8e9f0a1b2c" }));
        files.push(object("AzureMachine", of(&former)));
        let pool = |more: &Value| {
            object("AzureMachinePool", merged(&json!({ "location": "l", "template": of(&json!({})) }), more))
        };
        files.push(pool(&json!({})));
        files.push(pool(&identity));
        files.push(pool(&former));
    }
    files.extend(managed());
    files.extend(managed_pools());
    for network in networks() {
        let spec = json!({ "location": "eastus", "identityRef": { "kind": "AzureClusterIdentity", "name": "id" },
            "networkSpec": network });
        files.push(object("AzureCluster", spec));
    }
    let subnets = json!([{ "name": "cp", "role": "control-plane" }, { "name": "nodes", "role": "node",
        "securityGroup": { "securityRules": [{ "name": "r", "protocol": "Tcp", "priority": 200 }] } }]);
    files.push(object(
        "AzureClusterTemplate",
        json!({ "template": { "spec": { "location": "l", "networkSpec": { "subnets": subnets } } } }),
    ));
    files
}

/// Pools of clusters that Azure manages, and raw resources.
fn managed_pools() -> Vec<Value> {
    let pool =
        |more: Value| merged(&json!({ "mode": "System", "sku": "Standard_D2s_v3", "name": "pool1" }), &more);
    let resource =
        json!({ "kind": "ResourceGroup", "metadata": { "name": "rg" }, "spec": { "location": "l" } });
    let mut files = Vec::new();
    for more in [
        json!({}),
        json!({ "subnetName": "nodes", "availabilityZones": ["2", "1"], "enableFIPS": false }),
        json!({ "osType": "Windows", "mode": "User", "scaling": { "minSize": 1, "maxSize": 3 } }),
        json!({ "kubeletConfig": { "failSwapOn": false }, "linuxOSConfig": { "swapFileSizeMB": 1 } }),
    ] {
        files.push(object("AzureManagedMachinePool", pool(more.clone())));
        files.push(object("AzureManagedMachinePoolTemplate", json!({ "template": { "spec": pool(more) } })));
    }
    for kind in ["Cluster", "ControlPlane", "MachinePool"] {
        let spec = json!({ "resources": [resource] });
        files.push(object(&format!("AzureASOManaged{kind}"), spec.clone()));
        files
            .push(object(&format!("AzureASOManaged{kind}Template"), json!({ "template": { "spec": spec } })));
    }
    files
}

/// Managed clusters and their templates.
fn managed() -> Vec<Value> {
    let extension =
        json!({ "name": "e", "extensionType": "t", "plan": { "product": "p", "publisher": "x" } });
    let forms = [
        json!({}),
        json!({ "version": "1.31.1", "sku": { "tier": "Paid" } }),
        json!({ "sshPublicKey": "" }),
        json!({ "sshPublicKey": SSH_KEY, "dnsPrefix": "mine" }),
        json!({ "networkPluginMode": "overlay", "autoscalerProfile": {} }),
        json!({ "networkPluginMode": "overlay", "virtualNetwork": { "name": "v" } }),
        json!({ "virtualNetwork": { "resourceGroup": "other", "subnet": { "name": "nodes" } } }),
        json!({ "extensions": [extension], "addonProfiles": [{ "name": "azurepolicy", "enabled": true }] }),
        json!({ "fleetsMember": { "managerName": "m", "managerResourceGroup": "g" } }),
        json!({ "oidcIssuerProfile": { "enabled": true }, "apiServerAccessProfile": { "enablePrivateCluster": true } }),
    ];
    let base = json!({ "location": "l", "resourceGroupName": "g", "version": "v1.31.1", "identityRef": { "name": "id" } });
    let mut files = vec![
        object("AzureManagedCluster", json!({})),
        object("AzureManagedClusterTemplate", json!({ "template": { "spec": {} } })),
    ];
    for form in forms {
        let spec = merged(&base, &form);
        let template = json!({ "template": { "spec": spec } });
        files.push(object("AzureManagedControlPlaneTemplate", template));
        // Cluster API sets the label; the group may be that of the Cluster.
        let mut labelled = object("AzureManagedControlPlane", spec);
        files.push(labelled.clone());
        labelled["metadata"]["labels"] = json!({ "cluster.x-k8s.io/cluster-name": "c-1" });
        labelled["spec"].as_object_mut().unwrap().remove("resourceGroupName");
        files.push(labelled);
    }
    files
}

fn networks() -> Vec<Value> {
    let rules = json!([{ "name": "mine", "description": "d", "protocol": "Tcp", "direction": "Inbound",
        "priority": 2300, "source": "*", "sourcePorts": "*", "destination": "*", "destinationPorts": "8080" }]);
    vec![
        json!({}),
        json!({ "subnets": [{ "role": "node" }] }),
        json!({ "subnets": [{ "role": "cluster", "name": "all" }] }),
        json!({ "subnets": [{ "name": "cps", "role": "control-plane" }, { "name": "nodes", "role": "node" }] }),
        json!({ "subnets": [{ "name": "cps", "role": "control-plane", "securityGroup": { "name": "g", "securityRules": rules } },
            { "name": "nodes", "role": "node", "routeTable": { "name": "r" }, "natGateway": { "name": "way" } }],
            "vnet": { "peerings": [{ "remoteVnetName": "hub" }] } }),
        json!({ "apiServerLB": { "type": "Internal", "frontendIPs": [{ "name": "front", "privateIP": "10.0.0.7" }] },
            "controlPlaneOutboundLB": { "frontendIPsCount": 1 } }),
        json!({ "apiServerLB": { "frontendIPs": [{ "name": "front", "publicIP": { "name": "address" } }] } }),
        json!({ "subnets": [{ "role": "node", "cidrBlocks": ["10.1.0.0/16", "fd00::/64"], "name": "six" },
            { "name": "cps", "role": "control-plane" }], "vnet": { "cidrBlocks": ["10.0.0.0/8", "fd00::/48"] } }),
    ]
}

/// The values that the controllers write into the spec of a reconciled object.
fn at_work(kind: &str, live: &Value) -> Value {
    let mut live = live.clone();
    let spec = &mut live["spec"];
    match kind {
        "AzureCluster" => {
            spec["controlPlaneEndpoint"] = json!({ "host": "h", "port": 6443 });
            let network = &mut spec["networkSpec"];
            network["vnet"]["id"] = json!("/v");
            network["vnet"]["tags"] = json!({ "t": "v" });
            if let Some(ip) = network.pointer_mut("/apiServerLB/frontendIPs/0/publicIP") {
                ip["dnsName"] = json!("c.eastus.cloudapp.azure.com");
            }
            for subnet in network["subnets"].as_array_mut().unwrap() {
                subnet["id"] = json!(format!("/v/{}", subnet["name"]));
                if subnet.get("natGateway").is_some() {
                    subnet["natGateway"]["id"] = json!("/n");
                }
                if subnet["role"] != "node" {
                    let rules = &mut subnet["securityGroup"]["securityRules"];
                    if rules.is_null() {
                        *rules = json!([]);
                    }
                    for (name, port) in [("allow_ssh", "22"), ("allow_apiserver", "6443")] {
                        let rule = json!({ "name": name, "description": "d", "protocol": "Tcp", "direction": "Inbound",
                            "action": "Allow", "destinationPorts": port });
                        rules.as_array_mut().unwrap().push(rule);
                    }
                }
            }
        }
        "AzureMachine" | "AzureMachinePool" => {
            let machine = if kind == "AzureMachine" { &mut *spec } else { &mut spec["template"] };
            let first = &mut machine["networkInterfaces"][0];
            if first.get("subnetName").is_none() {
                first["subnetName"] = json!("found-out");
            }
            spec["providerID"] = json!("azure:///subscriptions/1/x");
        }
        "AzureManagedControlPlane" => spec["controlPlaneEndpoint"] = json!({ "host": "h", "port": 443 }),
        "AzureManagedMachinePool" => {
            spec["providerIDList"] = json!(["azure:///subscriptions/1/x"]);
            if spec.get("subnetName").is_none() {
                spec["subnetName"] = json!("found-out");
            }
        }
        _ => {}
    }
    live
}

/// D8 and D9: with `kubectl apply`, whose patch is merged, and with `kubectl replace`, which omits what the file does
/// not contain.
#[test]
fn a_file_that_is_applied_again_changes_nothing() {
    let mut count = 0;
    for file in files() {
        let kind = file["kind"].as_str().unwrap().to_owned();
        let mut live = file.clone();
        fill_defaults(&kind, &mut live);
        let live = complete(&kind, live, None, &context(), &mut Drawn(0)).unwrap();
        validate(&kind, &live, None, &context()).unwrap_or_else(|denied| panic!("{file:#}: {denied}"));
        for live in [live.clone(), at_work(&kind, &live)] {
            assert_eq!(applied(&kind, merged(&live, &file), &live), live, "applied again: {file:#}");
            assert_eq!(applied(&kind, file.clone(), &live), live, "replaced by itself: {file:#}");
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// D8: a cluster that uses a load balancer for outbound traffic, because its subnet existed before it, gets no NAT
/// gateway from a file without IDs. One that the file asks for is added; a subnet that the file adds gets the default
/// of a new one.
#[test]
fn a_subnet_that_exists_keeps_its_way_out_without_its_id_in_the_file() {
    let subnets = |nodes: Value| {
        let nodes =
            merged(&json!({ "name": "nodes", "role": "node", "cidrBlocks": ["10.1.0.0/16"] }), &nodes);
        let spec = json!({ "location": "eastus", "identityRef": { "kind": "AzureClusterIdentity", "name": "id" },
            "networkSpec": { "subnets": [{ "name": "cps", "role": "control-plane" }, nodes],
                "nodeOutboundLB": { "frontendIPsCount": 1 } } });
        object("AzureCluster", spec)
    };
    let live = admitted("AzureCluster", subnets(json!({ "id": "/subscriptions/1/x" })), &Context::default());
    assert!(live["spec"]["networkSpec"]["subnets"][1].get("natGateway").is_none());
    let in_git = subnets(json!({}));
    assert_eq!(applied("AzureCluster", merged(&live, &in_git), &live), live);

    let asked_for = subnets(json!({ "natGateway": { "name": "mine" } }));
    let changed = applied("AzureCluster", merged(&live, &asked_for), &live);
    assert_eq!(changed["spec"]["networkSpec"]["subnets"][1]["natGateway"]["name"], "mine");

    let mut more = in_git;
    let further = json!({ "name": "more", "role": "node", "cidrBlocks": ["10.2.0.0/16"] });
    more["spec"]["networkSpec"]["subnets"].as_array_mut().unwrap().push(further);
    let changed = applied("AzureCluster", merged(&live, &more), &live);
    let subnets = &changed["spec"]["networkSpec"]["subnets"];
    assert!(subnets[1].get("natGateway").is_none());
    assert_eq!(subnets[2]["natGateway"]["name"], "c-1-node-natgw-2");
}

/// A change of a deprecated member is a change of its successor.
#[test]
fn a_change_of_a_member_that_came_before_another_is_seen() {
    let webhook = |kind: &str, task: Task| {
        WEBHOOKS.iter().find(|webhook| webhook.kind == kind && webhook.task == task).unwrap()
    };
    for kind in ["AzureMachineTemplate", "AzureMachine"] {
        let file = |subnet: &str| {
            let spec = machine(json!({ "subnetName": subnet }));
            object(kind, if kind == "AzureMachine" { spec } else { json!({ "template": { "spec": spec } }) })
        };
        let live = admitted(kind, file("a"), &context());
        let sent = merged(&live, &file("b"));
        let default = webhook(kind, Task::Default);
        let changed = review(default, sent, Some(&live), &context(), &mut Fixed).unwrap().object;
        let judge = webhook(kind, Task::Validate);
        let said = review(judge, changed, Some(&live), &context(), &mut Fixed).unwrap_err().to_string();
        assert!(said.contains("immutable") && said.contains("\"subnetName\":\"b\""), "{kind}: {said}");
    }
}

/// An object that was stored before a default existed is compared as if it had the default.
#[test]
fn what_was_stored_before_there_was_a_default_stays() {
    let stored = machine(json!({ "sshPublicKey": SSH_KEY, "subnetName": "nodes", "spotVMOptions": {},
        "dataDisks": [{ "nameSuffix": "a", "diskSizeGB": 10 }] }));
    for kind in ["AzureMachine", "AzureMachineTemplate"] {
        let spec = stored.clone();
        let file =
            object(kind, if kind == "AzureMachine" { spec } else { json!({ "template": { "spec": spec } }) });
        let mut stored = file.clone();
        fill_defaults(kind, &mut stored);
        let once = applied(kind, merged(&stored, &file), &stored);
        assert_eq!(applied(kind, merged(&once, &file), &once), once, "{kind}");
    }
}
