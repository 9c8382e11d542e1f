//! Machines of their own: their life, what belongs to them, and scale sets made of them.

use std::time::Duration;

use crate::common::{Client, compute_id, network_id, scale_set};
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use serde_json::{Value, json};

fn image() -> Value {
    json!({ "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" })
}

fn machine(nic: &ResourceId) -> Value {
    json!({ "location": "eastus", "properties": {
        "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
        "storageProfile": { "imageReference": image() },
        "osProfile": { "computerName": "one", "adminUsername": "x", "adminPassword": "hidden-Word1" },
        "networkProfile": { "networkInterfaces": [{ "id": nic }] },
    }})
}

async fn interface(client: &Client, name: &str, subnet: &ResourceId) -> ResourceId {
    let id = network_id(&format!("networkInterfaces/{name}"));
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "ip", "properties": { "subnet": { "id": subnet } } },
    ]}});
    client.put(&id, body).await.expect(201);
    id
}

async fn disk(client: &Client, name: &str, more: Value) -> ResourceId {
    let id = compute_id(&format!("disks/{name}"));
    let mut body = json!({ "location": "eastus", "properties": {
        "creationData": { "createOption": "Empty" }, "diskSizeGB": 8,
    }});
    for (member, value) in more.as_object().into_iter().flatten() {
        body["properties"][member] = value.clone();
    }
    // The usual kind cannot be shared.
    if more.get("maxShares").is_some() {
        body["sku"] = json!({ "name": "StandardSSD_LRS" });
    }
    let reply = client.put(&id, body).await.expect(202);
    client.wait(&reply).await;
    id
}

fn attached(disks: &[(u64, &ResourceId)]) -> Value {
    let list: Vec<Value> = disks
        .iter()
        .map(|(lun, id)| json!({ "lun": lun, "createOption": "Attach", "managedDisk": { "id": id } }))
        .collect();
    json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": list } } })
}

#[tokio::test(start_paused = true)]
async fn a_machine_lives() {
    let latency = LatencyProfile::instant().with("*", "*/virtualMachines", Duration::from_secs(20));
    let client = Client::with_group(Options { latency, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/24").await;
    let nic = interface(&client, "nic", &subnet).await;
    let id = compute_id("virtualMachines/vm");
    let made = client.put(&id, machine(&nic)).await.expect(201);
    assert_eq!(
        (made.etag().as_str(), &made.body["properties"]["provisioningState"]),
        ("\"1\"", &json!("Creating"))
    );
    assert!(made.body["properties"]["storageProfile"]["osDisk"]["managedDisk"].get("id").is_none());
    client.put(&id, machine(&nic)).await.refused(409, "Conflict");
    client.wait(&made).await;
    let ready = client.get(&id).await.expect(200);
    assert_eq!(ready.etag(), "\"2\"", "the end of the creation is a change");
    assert!(!ready.body.to_string().contains("hidden-Word1"), "secrets do not come back");
    let view = client.get(&id.child("instanceView", "").parent().unwrap_or_else(|| id.clone())).await;
    assert!(view.body["properties"].get("instanceView").is_none());
    let power = async || {
        let path = format!("{id}/instanceView?api-version=2025-04-01");
        let view = client.send("GET", &path, None, &[]).await.expect(200).body;
        let codes: Vec<String> = view["statuses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["code"].as_str().unwrap().to_owned())
            .collect();
        codes.last().unwrap().clone()
    };
    assert_eq!(power().await, "PowerState/running");
    let stop = client.post(&id, "deallocate", json!({})).await.expect(202);
    assert_eq!(power().await, "PowerState/deallocating");
    client.wait(&stop).await;
    assert_eq!(power().await, "PowerState/deallocated");
    let nic_document = client.get(&nic).await.expect(200).body;
    assert_eq!(nic_document["properties"]["virtualMachine"]["id"], json!(id));
    assert!(nic_document["properties"]["macAddress"].is_string());
    client.delete(&nic).await.refused(400, "NicInUse");
    let other = compute_id("virtualMachines/other");
    client.put(&other, machine(&nic)).await.refused(400, "NicInUse");
    client.put_if(&id, machine(&nic), "\"1\"").await.refused(412, "PreconditionFailed");
    let mut renamed = machine(&nic);
    renamed["properties"]["osProfile"]["computerName"] = json!("two");
    client.put(&id, renamed).await.refused(409, "PropertyChangeNotAllowed");
    let system = ready.body["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"].clone();
    let gone = client.delete(&id).await.expect(202);
    client.wait(&gone).await;
    client.get(&id).await.refused(404, "ResourceNotFound");
    let left = client.get(&ResourceId::parse(system.as_str().unwrap()).unwrap()).await.expect(200).body;
    assert_eq!(left["properties"]["diskState"], "Unattached", "a system disk stays unless it is to go");
    client.delete(&nic).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn disks_are_attached_and_detached() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let (one, two) = (compute_id("virtualMachines/one"), compute_id("virtualMachines/two"));
    for id in [&one, &two] {
        let nic = interface(&client, &format!("nic-{}", id.name()), &subnet).await;
        client.create(id, machine(&nic)).await;
    }
    let data = disk(&client, "data", json!({})).await;
    let shared = disk(&client, "shared", json!({ "maxShares": 2 })).await;
    client.create(&one, attached(&[(0, &data), (1, &shared)])).await;
    let held = client.get(&data).await.expect(200).body;
    assert_eq!((&held["managedBy"], &held["properties"]["diskState"]), (&json!(one), &json!("Attached")));
    client.delete(&data).await.refused(409, "OperationNotAllowed");
    client.put(&two, attached(&[(0, &data)])).await.refused(409, "ConflictingUserInput");
    client.create(&two, attached(&[(5, &shared)])).await;
    let both = client.get(&shared).await.expect(200).body;
    assert_eq!(both["managedByExtended"].as_array().map(Vec::len), Some(2));
    client.put(&two, attached(&[(5, &shared), (5, &data)])).await.refused(400, "InvalidParameter");
    let missing = compute_id("disks/none");
    client.put(&two, attached(&[(5, &shared), (6, &missing)])).await.refused(404, "NotFound");
    client.post(&one, "deallocate", json!({})).await.expect(202);
    assert_eq!(client.get(&data).await.body["properties"]["diskState"], "Reserved");
    let mut leaving = attached(&[(0, &data), (1, &shared)]);
    leaving["properties"]["storageProfile"]["dataDisks"][0]["toBeDetached"] = json!(true);
    client.create(&one, leaving).await;
    let free = client.get(&data).await.expect(200).body;
    assert!(free.get("managedBy").is_none());
    assert_eq!(free["properties"]["diskState"], "Unattached");
    let body =
        json!({ "dataDisksToAttach": [{ "diskId": data }], "dataDisksToDetach": [{ "diskId": shared }] });
    client.post(&one, "attachDetachDataDisks", body).await.expect(202);
    let now = client.get(&one).await.expect(200).body;
    let disks = now["properties"]["storageProfile"]["dataDisks"].as_array().unwrap().clone();
    assert_eq!((disks.len(), &disks[0]["lun"], &disks[0]["managedDisk"]["id"]), (1, &json!(0), &json!(data)));
    let many: Vec<ResourceId> = {
        let mut many = Vec::new();
        for n in 0..5 {
            many.push(disk(&client, &format!("many{n}"), json!({})).await);
        }
        many
    };
    let all: Vec<(u64, &ResourceId)> = many.iter().enumerate().map(|(lun, id)| (lun as u64, id)).collect();
    let refused = client.put(&two, attached(&all)).await.refused(409, "OperationNotAllowed");
    assert!(refused.message().contains("attached to a VM of this size is 4"), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn instances_of_uniform_sets_take_disks_too() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/set");
    let mut body = scale_set(2, &subnet, &[]);
    body.as_object_mut().unwrap().remove("zones");
    client.create(&set, body).await;
    let data = disk(&client, "data", json!({})).await;
    let (first, second) = (set.child("virtualMachines", "0"), set.child("virtualMachines", "1"));
    client.create(&first, attached(&[(3, &data)])).await;
    let shown = json!(set.child("virtualMachines", "set_0"));
    assert_eq!(
        client.get(&data).await.body["managedBy"],
        shown,
        "disks show instances with their full names"
    );
    client.put(&second, attached(&[(3, &data)])).await.refused(409, "ConflictingUserInput");
    let upgrade = client.post(&set, "manualupgrade", json!({ "instanceIds": ["*"] })).await.expect(202);
    client.wait(&upgrade).await;
    assert_eq!(client.get(&data).await.body["managedBy"], shown, "what an instance holds outlives its model");
    let away = json!({ "dataDisksToDetach": [{ "diskId": data }] });
    client.post(&first, "attachDetachDataDisks", away.clone()).await.expect(202);
    assert!(client.get(&data).await.body.get("managedBy").is_none());
    client.post(&first, "attachDetachDataDisks", away).await.refused(400, "InvalidParameter");
}

fn flexible(capacity: u64, subnet: &ResourceId) -> Value {
    let mut body = scale_set(capacity, subnet, &[]);
    body["properties"]["orchestrationMode"] = json!("Flexible");
    body["properties"]["virtualMachineProfile"]["storageProfile"] = json!({ "imageReference": image() });
    body["properties"]["virtualMachineProfile"]["networkProfile"]["networkApiVersion"] = json!("2020-11-01");
    body
}

#[tokio::test(start_paused = true)]
async fn flexible_sets_are_made_of_machines() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/flex");
    let mut old = flexible(1, &subnet);
    old["properties"]["virtualMachineProfile"]["networkProfile"]["networkApiVersion"] = json!("2018-10-01");
    client.put(&set, old).await.refused(400, "InvalidParameter");
    client.create(&set, flexible(3, &subnet)).await;
    let count = |kind: &str| client.azure.documents_of_type(kind).len();
    let kinds = [
        "Microsoft.Compute/virtualMachines",
        "Microsoft.Network/networkInterfaces",
        "Microsoft.Compute/disks",
    ];
    assert_eq!(kinds.map(count), [3, 3, 3]);
    let members = client.azure.documents_of_type("Microsoft.Compute/virtualMachines");
    for member in &members {
        let name = member["name"].as_str().unwrap();
        assert!(name.starts_with("flex_") && name.len() == "flex_".len() + 8, "{name}");
        assert_eq!(member["properties"]["virtualMachineScaleSet"]["id"], json!(set));
    }
    let listed = client
        .send("GET", &format!("{set}/virtualMachines?api-version=2025-04-01"), None, &[])
        .await
        .expect(200)
        .body;
    assert_eq!(listed["value"].as_array().unwrap().len(), 3);
    assert_eq!(listed["value"][0]["instanceId"], listed["value"][0]["name"]);
    let below = set.child("virtualMachines", listed["value"][0]["name"].as_str().unwrap());
    assert_eq!(listed["value"][0]["id"], json!(below), "a member is known below its set, too");
    let one = client.get(&below).await.expect(200).body;
    assert_eq!(one["name"], listed["value"][0]["name"]);
    client.create(&set, flexible(2, &subnet)).await;
    assert_eq!(kinds.map(count), [2, 2, 2], "what a member had goes with it");
    let member = ResourceId::parse(members[0]["id"].as_str().unwrap()).unwrap();
    let one = client.azure.document(&member).map(|_| member).unwrap_or_else(|| {
        let left = client.azure.documents_of_type("Microsoft.Compute/virtualMachines");
        ResourceId::parse(left[0]["id"].as_str().unwrap()).unwrap()
    });
    let gone = client.delete(&one).await.expect(202);
    client.wait(&gone).await;
    assert_eq!(client.get(&set).await.body["sku"]["capacity"], 1);
    let nic = interface(&client, "own", &subnet).await;
    let mut joins = machine(&nic);
    joins["zones"] = json!(["2"]);
    joins["properties"]["virtualMachineScaleSet"] = json!({ "id": set });
    client.create(&compute_id("virtualMachines/joins"), joins).await;
    assert_eq!(client.get(&set).await.body["sku"]["capacity"], 2);
    let mut uniform = flexible(2, &subnet);
    uniform["properties"]["orchestrationMode"] = json!("Uniform");
    client.put(&set, uniform).await.refused(409, "PropertyChangeNotAllowed");
    let gone = client.delete(&set).await.expect(202);
    client.wait(&gone).await;
    assert_eq!(count("Microsoft.Compute/virtualMachines"), 0);
}

#[tokio::test(start_paused = true)]
async fn who_goes_first_is_the_policy_s_to_say() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    for (name, rules, protected, left) in [
        ("newest", json!(["NewestVM"]), None, ["0", "1"]),
        ("oldest", json!(["OldestVM"]), None, ["2", "3"]),
        ("guarded", json!(["Default"]), Some("3"), ["0", "3"]),
    ] {
        let set = compute_id(&format!("virtualMachineScaleSets/{name}"));
        let body = |capacity| {
            let mut body = scale_set(capacity, &subnet, &[]);
            body.as_object_mut().unwrap().remove("zones");
            body["properties"]["scaleInPolicy"] = json!({ "rules": rules });
            body
        };
        client.create(&set, body(4)).await;
        if let Some(protected) = protected {
            let policy = json!({ "location": "eastus", "properties": { "protectionPolicy": { "protectFromScaleIn": true } } });
            client.create(&set.child("virtualMachines", protected), policy).await;
        }
        client.create(&set, body(2)).await;
        let list = format!("{set}/virtualMachines?api-version=2025-04-01");
        let list = client.send("GET", &list, None, &[]).await.expect(200).body;
        let ids: Vec<&str> =
            list["value"].as_array().unwrap().iter().map(|one| one["instanceId"].as_str().unwrap()).collect();
        assert_eq!(ids, left, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn flexible_sets_let_the_oldest_go_where_the_policy_says_so() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/flex");
    let body = |capacity| {
        let mut body = flexible(capacity, &subnet);
        body["properties"]["scaleInPolicy"] = json!({ "rules": ["OldestVM"] });
        body.as_object_mut().unwrap().remove("zones");
        body
    };
    let names = || -> Vec<String> {
        let machines = client.azure.documents_of_type("Microsoft.Compute/virtualMachines");
        machines.iter().map(|machine| machine["name"].as_str().unwrap().to_owned()).collect()
    };
    client.create(&set, body(1)).await;
    let first = names();
    client.create(&set, body(2)).await;
    client.create(&set, body(1)).await;
    assert_eq!(names().len(), 1);
    assert_ne!(names(), first);
    let mut uniform = body(0);
    uniform["properties"]["orchestrationMode"] = json!("Uniform");
    let other = compute_id("virtualMachineScaleSets/uniform");
    client.create(&other, uniform).await;
    let nic = interface(&client, "own", &subnet).await;
    let mut joins = machine(&nic);
    joins["properties"]["virtualMachineScaleSet"] = json!({ "id": other });
    client.put(&compute_id("virtualMachines/joins"), joins).await.refused(400, "InvalidParameter");
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_is_made_of_stays() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let nic = interface(&client, "nic", &subnet).await;
    let id = compute_id("virtualMachines/vm");
    client.create(&id, machine(&nic)).await;
    for (path, value) in [
        ("/zones", json!(["1"])),
        ("/properties/osProfile/adminUsername", json!("other")),
        ("/properties/osProfile/computerName", json!("two")),
        ("/properties/storageProfile/imageReference/sku", json!("minimal")),
    ] {
        let mut changed = machine(&nic);
        changed["zones"] = json!([]);
        *changed.pointer_mut(path).unwrap() = value;
        let refusal = client.put(&id, changed).await.refused(409, "PropertyChangeNotAllowed");
        let called = path.rsplit('/').nth(usize::from(path.ends_with("sku"))).unwrap();
        assert!(refusal.message().contains(called), "{}", refusal.message());
    }
}

/// The fault and update domain of a machine, from its instance view.
async fn domains(client: &Client, id: &ResourceId) -> [Value; 2] {
    let path = format!("{id}/instanceView?api-version=2025-04-01");
    let view = client.send("GET", &path, None, &[]).await.expect(200).body;
    ["platformFaultDomain", "platformUpdateDomain"].map(|member| view[member].clone())
}

#[tokio::test(start_paused = true)]
async fn machines_of_availability_sets_are_spread() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("availabilitySets/set");
    let body = |sku: &str| {
        json!({ "location": "eastus", "sku": { "name": sku }, "properties":
            { "platformFaultDomainCount": 2, "platformUpdateDomainCount": 3 } })
    };
    client.put(&set, body("Classic")).await.expect(200);
    let nic = interface(&client, "nic", &subnet).await;
    let mut machine = machine(&nic);
    machine["properties"]["availabilitySet"] = json!({ "id": set });
    let id = compute_id("virtualMachines/vm0");
    client.put(&id, machine.clone()).await.refused(409, "OperationNotAllowed");
    client.put(&set, body("Aligned")).await.expect(200);
    machine["zones"] = json!(["1"]);
    client.put(&id, machine.clone()).await.refused(400, "BadRequest");
    machine.as_object_mut().unwrap().remove("zones");
    for (number, wanted) in [(0, [0, 0]), (1, [1, 1]), (2, [0, 2]), (3, [1, 0])] {
        let nic = interface(&client, &format!("nic{number}"), &subnet).await;
        let id = compute_id(&format!("virtualMachines/vm{number}"));
        machine["properties"]["networkProfile"]["networkInterfaces"][0]["id"] = json!(nic);
        client.create(&id, machine.clone()).await;
        assert_eq!(domains(&client, &id).await, wanted.map(Value::from));
    }
    let listed =
        "/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Compute/virtualMachines";
    let path = format!("{listed}?api-version=2025-04-01&statusOnly=true");
    let all = client.send("GET", &path, None, &[]).await.expect(200).body;
    assert_eq!(all["value"][3]["properties"]["instanceView"]["platformFaultDomain"], 1);
    for (location, count) in [("eastus", 4), ("West US", 0)] {
        let listed = listed.replace("/virtualMachines", &format!("/locations/{location}/virtualMachines"));
        let path = format!("{}?api-version=2025-04-01", listed.replace(' ', "%20"));
        let here = client.send("GET", &path, None, &[]).await.expect(200).body;
        assert_eq!(here["value"].as_array().unwrap().len(), count, "{location}");
    }
}

#[tokio::test(start_paused = true)]
async fn interfaces_and_addresses_come_and_go_with_their_machine() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let id = compute_id("virtualMachines/vm");
    let mut body = machine(&subnet);
    let configuration = |name: &str| {
        json!({ "name": name, "properties": { "primary": true, "deleteOption": "Delete", "ipConfigurations": [
            { "name": "ip", "properties": { "subnet": { "id": subnet }, "publicIPAddressConfiguration":
                { "name": "outside", "properties": { "dnsSettings": { "domainNameLabel": "here" } } } } },
        ]}})
    };
    body["properties"]["networkProfile"] =
        json!({ "networkInterfaceConfigurations": [configuration("front")] });
    client.put(&id, body.clone()).await.refused(400, "InvalidParameter");
    body["properties"]["networkProfile"]["networkApiVersion"] = json!("2022-11-01");
    let mut lost = body.clone();
    lost["properties"]["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"]
        [0]["properties"]["subnet"]["id"] = json!(network_id("virtualNetworks/none/subnets/none"));
    let refused = client.put(&id, lost).await;
    assert!((400..500).contains(&refused.status), "{}", refused.message());
    let made = client.create(&id, body.clone()).await;
    let profile = &made["properties"]["networkProfile"];
    assert!(profile.get("networkInterfaceConfigurations").is_none());
    let nic = ResourceId::parse(profile["networkInterfaces"][0]["id"].as_str().unwrap()).unwrap();
    assert!(nic.name().starts_with("front-"));
    let shown = client.get(&nic).await.expect(200).body;
    assert_eq!(shown["properties"]["virtualMachine"]["id"], json!(id));
    let address = &shown["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"]["id"];
    let address = ResourceId::parse(address.as_str().unwrap()).unwrap();
    let public = client.get(&address).await.expect(200).body;
    assert!(public["properties"]["ipAddress"].is_string());
    assert!(public["properties"]["dnsSettings"]["fqdn"].as_str().unwrap().starts_with("here-"));
    // Sent once more, the configurations stand for what is there.
    client.create(&id, body).await;
    assert_eq!(client.azure.documents_of_type("Microsoft.Network/networkInterfaces").len(), 1);
    let gone = client.delete(&id).await.expect(202);
    client.wait(&gone).await;
    client.get(&nic).await.expect(404);
    client.get(&address).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn members_of_flexible_sets_have_public_addresses_and_fault_domains() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/flex");
    let mut body = flexible(2, &subnet);
    body["properties"]["platformFaultDomainCount"] = json!(2);
    body["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]
        ["ipConfigurations"][0]["properties"]["publicIPAddressConfiguration"] = json!({ "name": "outside" });
    client.create(&set, body).await;
    let addresses = client.azure.documents_of_type("Microsoft.Network/publicIPAddresses");
    assert_eq!(addresses.len(), 2);
    assert!(addresses.iter().all(|one| one["properties"]["ipConfiguration"]["id"].is_string()));
    let mut seen = Vec::new();
    for member in client.azure.documents_of_type("Microsoft.Compute/virtualMachines") {
        let id = ResourceId::parse(member["id"].as_str().unwrap()).unwrap();
        seen.push(domains(&client, &id).await[0].as_u64());
    }
    seen.sort();
    assert_eq!(seen, [Some(0), Some(1)]);
    let gone = client.delete(&set).await.expect(202);
    client.wait(&gone).await;
    assert_eq!(client.azure.documents_of_type("Microsoft.Network/publicIPAddresses").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn flexible_sets_grow_while_the_network_is_busy_or_refuse_to() {
    let latency = LatencyProfile::instant().with("PUT", "*/loadBalancers", Duration::from_secs(600));
    let client = Client::with_group(Options { latency, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/24").await;
    let pip = client.public_ip("a").await;
    let balancer = network_id("loadBalancers/lb");
    client.put(&balancer, crate::common::load_balancer(&balancer, &pip, &[80])).await.expect(201);
    tokio::time::sleep(Duration::from_secs(601)).await;
    let mut changed = crate::common::load_balancer(&balancer, &pip, &[80, 443]);
    changed["tags"] = json!({ "a": "b" });
    client.put(&balancer, changed).await.expect(200);
    let set = compute_id("virtualMachineScaleSets/flex");
    let mut body = flexible(2, &subnet);
    let interfaces =
        "/properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/0/properties";
    let ip = format!("{interfaces}/ipConfigurations/0/properties");
    body.pointer_mut(&ip).unwrap()["loadBalancerBackendAddressPools"] =
        json!([{ "id": balancer.child("backendAddressPools", "p") }]);
    client.create(&set, body.clone()).await;
    let count = |kind: &str| client.azure.documents_of_type(kind).len();
    assert_eq!(count("Microsoft.Compute/virtualMachines"), 2);
    // A model that no machine can be made from is refused, and leaves nothing.
    let mut odd = body.clone();
    odd["sku"]["capacity"] = json!(4);
    odd["properties"]["virtualMachineProfile"]["storageProfile"]["dataDisks"] =
        json!([{ "lun": 0, "createOption": "Empty" }]);
    client.put(&set, odd).await.refused(400, "InvalidParameter");
    assert_eq!(
        (count("Microsoft.Compute/virtualMachines"), count("Microsoft.Network/networkInterfaces")),
        (2, 2)
    );
    // Names of disks in a model are not shared by its machines.
    body["sku"]["capacity"] = json!(3);
    body["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"] =
        json!({ "name": "same", "createOption": "FromImage" });
    client.create(&set, body).await;
    assert_eq!(count("Microsoft.Compute/disks"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_flexible_set_without_a_model_keeps_its_machines() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/flex");
    let body = json!({ "location": "eastus", "properties": { "orchestrationMode": "Flexible", "platformFaultDomainCount": 1 } });
    client.create(&set, body.clone()).await;
    let nic = interface(&client, "own", &subnet).await;
    let mut joins = machine(&nic);
    joins["properties"]["virtualMachineScaleSet"] = json!({ "id": set });
    client.create(&compute_id("virtualMachines/joins"), joins).await;
    client.create(&set, body).await;
    assert_eq!(client.azure.documents_of_type("Microsoft.Compute/virtualMachines").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_has_one_owner() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let (one, two) = (compute_id("virtualMachines/one"), compute_id("virtualMachines/two"));
    let named = |nic: &ResourceId| {
        let mut body = machine(nic);
        body["properties"]["storageProfile"]["osDisk"] =
            json!({ "name": "system", "createOption": "FromImage" });
        body
    };
    client.create(&one, named(&interface(&client, "n1", &subnet).await)).await;
    let nic = interface(&client, "n2", &subnet).await;
    client.put(&two, named(&nic)).await.refused(409, "ConflictingUserInput");
    client.create(&two, machine(&nic)).await;
    // Whose bytes are shared out is neither attached nor deleted, until that ends.
    let data = disk(&client, "data", json!({})).await;
    let access = json!({ "access": "Read", "durationInSeconds": 300 });
    client.post(&data, "beginGetAccess", access).await.expect(202);
    client.put(&two, attached(&[(0, &data)])).await.refused(409, "OperationNotAllowed");
    client.delete(&data).await.refused(409, "OperationNotAllowed");
    tokio::time::sleep(Duration::from_secs(301)).await;
    client.create(&two, attached(&[(0, &data)])).await;
}
