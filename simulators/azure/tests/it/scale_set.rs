//! Uniform scale sets: model, instances, NICs, power, membership in pools.

use std::time::Duration;

use crate::common::{COMPUTE_VERSION, Client, compute_id, load_balancer, network_id, scale_set};
use azure_simulator::{Azure, LatencyProfile, Options, PowerState};
use azure_types::ResourceId;
use serde_json::{Value, json};

struct Set {
    client: Client,
    id: ResourceId,
    subnet: ResourceId,
    balancer: ResourceId,
    pool: ResourceId,
}

async fn set_of(capacity: u64, options: Options) -> Set {
    let client = Client::with_group(options).await;
    let subnet = client.network("10.1.0.0/16").await;
    let pip = client.public_ip("a").await;
    let balancer = network_id("loadBalancers/lb");
    client.create(&balancer, load_balancer(&balancer, &pip, &[80])).await;
    let id = compute_id("virtualMachineScaleSets/set");
    client.create(&id, scale_set(capacity, &subnet, &[])).await;
    let pool = balancer.child("backendAddressPools", "p");
    Set { client, id, subnet, balancer, pool }
}

impl Set {
    fn instance(&self, number: u64) -> ResourceId {
        self.id.child("virtualMachines", &number.to_string())
    }

    async fn instances(&self) -> Vec<Value> {
        let path = format!("{}/virtualMachines?api-version={COMPUTE_VERSION}&$expand=instanceView", self.id);
        self.client.send("GET", &path, None, &[]).await.expect(200).body["value"].as_array().unwrap().clone()
    }

    async fn ids(&self) -> Vec<String> {
        self.instances().await.iter().map(|i| i["instanceId"].as_str().unwrap().to_owned()).collect()
    }

    async fn members(&self) -> usize {
        let pool = self.client.get(&self.pool).await.body;
        pool["properties"]["backendIPConfigurations"].as_array().map_or(0, Vec::len)
    }

    /// What upstream writes to a model: its network profile alone.
    fn profile(&self, in_pool: bool) -> Value {
        let pools: &[ResourceId] = if in_pool { std::slice::from_ref(&self.pool) } else { &[] };
        let whole = scale_set(0, &self.subnet, pools);
        whole["properties"]["virtualMachineProfile"]["networkProfile"].clone()
    }

    async fn join_model(&self, in_pool: bool) {
        let body = json!({ "location": "eastus", "properties": { "virtualMachineProfile": { "networkProfile": self.profile(in_pool) } } });
        self.client.create(&self.id, body).await;
    }
}

#[tokio::test(start_paused = true)]
async fn instances_come_from_the_model() {
    let set = set_of(4, Options::default()).await;
    let instances = set.instances().await;
    let zones: Vec<_> = instances.iter().map(|i| i["zones"][0].as_str().unwrap()).collect();
    assert_eq!(zones, ["1", "2", "3", "1"], "round robin");
    for (number, instance) in instances.iter().enumerate() {
        assert_eq!(instance["name"], format!("set_{number}"));
        let properties = &instance["properties"];
        assert_eq!(properties["osProfile"]["computerName"], format!("node00000{number}"));
        assert_eq!(properties["latestModelApplied"], true);
        assert_eq!(properties["provisioningState"], "Succeeded");
        assert_eq!(properties["instanceView"]["statuses"][1]["code"], "PowerState/running");
    }
    let nics = format!("{}/networkInterfaces?api-version=2018-10-01", set.id)
        .replace("Microsoft.Compute", "microsoft.Compute");
    let nics = set.client.send("GET", &nics, None, &[]).await.expect(200).body;
    let addresses: Vec<_> = nics["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|nic| {
            nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(addresses, ["10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"]);
    let nic = set.instance(2).child("networkInterfaces", "NIC");
    assert_eq!(
        set.client.get(&nic).await.expect(200).body["properties"]["virtualMachine"]["id"],
        set.instance(2).as_str()
    );
    let ip = nic.child("ipconfigurations", "ipconfig");
    assert_eq!(set.client.get(&ip).await.expect(200).body["properties"]["privateIPAddress"], "10.1.0.6");
    assert_eq!(set.client.azure.document(&ip).unwrap()["properties"]["privateIPAddress"], "10.1.0.6");
    let kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces";
    assert_eq!(set.client.azure.documents_of_type(kind).len(), 4);
    let view = format!("{}/instanceView?api-version={COMPUTE_VERSION}", set.instance(0));
    assert_eq!(set.client.send("GET", &view, None, &[]).await.expect(200).body["computerName"], "node000000");
}

#[tokio::test(start_paused = true)]
async fn a_model_change_reaches_instances_only_when_they_are_updated() {
    let set = set_of(3, Options::default()).await;
    set.join_model(true).await;
    let model = set.client.get(&set.id).await.body;
    assert_eq!(model["sku"]["capacity"], 3, "what was not sent is kept");
    assert_eq!(model["properties"]["virtualMachineProfile"]["osProfile"]["computerNamePrefix"], "node");
    assert_eq!(set.members().await, 0);
    assert!(set.instances().await.iter().all(|i| i["properties"]["latestModelApplied"] == false));
    // The guard holds for the model alone, too.
    set.client.delete(&set.balancer).await.refused(400, "LoadBalancerInUseByVirtualMachineScaleSet");

    let first = set.client.get(&set.instance(0)).await;
    let etag = first.header("etag").unwrap().to_owned();
    assert_eq!(etag, "\"1\"");
    let body =
        json!({ "location": "eastus", "properties": { "networkProfileConfiguration": set.profile(true) } });
    let reply = set.client.put_if(&set.instance(0), body.clone(), &etag).await.expect(200);
    assert_eq!(reply.header("etag"), Some("\"2\""));
    set.client.wait(&reply).await;
    assert_eq!(set.members().await, 1);
    let refused = set.client.put_if(&set.instance(0), body, &etag).await.refused(412, "PreconditionFailed");
    assert!(refused.body["error"].get("details").is_none());
    let shown = set.client.get(&set.instance(0)).await.body;
    assert_eq!(shown["properties"]["latestModelApplied"], true);
    assert_eq!(shown["properties"]["modelDefinitionApplied"], "VirtualMachineScaleSet");

    let reply =
        set.client.post(&set.id, "manualupgrade", json!({ "instanceIds": ["1", "2"] })).await.expect(202);
    set.client.wait(&reply).await;
    assert_eq!(set.members().await, 3);
    assert!(set.instances().await.iter().all(|i| i["properties"]["latestModelApplied"] == true));

    // The way back: the model, then each instance, then the balancer may go.
    set.join_model(false).await;
    for number in 0..3 {
        let body = json!({ "properties": { "networkProfileConfiguration": set.profile(false) } });
        let reply = set.client.put(&set.instance(number), body).await.expect(200);
        set.client.wait(&reply).await;
    }
    assert_eq!(set.members().await, 0);
    set.client.delete(&set.balancer).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn automatic_sets_follow_their_model() {
    let set = set_of(2, Options::default()).await;
    let policy = json!({ "location": "eastus", "properties": { "upgradePolicy": { "mode": "automatic" } } });
    set.client.create(&set.id, policy).await;
    set.join_model(true).await;
    assert_eq!(set.members().await, 2);
    let before = set.instances().await[0]["properties"]["networkProfileConfiguration"].clone();
    set.join_model(true).await;
    assert_eq!(set.instances().await[0]["properties"]["networkProfileConfiguration"], before);
}

#[tokio::test(start_paused = true)]
async fn capacity_makes_and_removes_machines_and_their_membership() {
    let set = set_of(3, Options::default()).await;
    set.join_model(true).await;
    let azure: &Azure = &set.client.azure;
    azure.scale(&set.id, 5).unwrap();
    assert_eq!(set.ids().await, ["0", "1", "2", "3", "4"]);
    assert_eq!(set.members().await, 2, "new machines have the new model");
    azure.scale(&set.id, 2).unwrap();
    assert_eq!(set.ids().await, ["0", "1"], "zones stay in balance, the newest go first");
    assert_eq!(set.members().await, 0);
    azure.remove_instance(&set.id, "0").unwrap();
    assert_eq!(set.client.get(&set.id).await.body["sku"]["capacity"], 1);
    azure.scale(&set.id, 2).unwrap();
    assert_eq!(set.ids().await, ["1", "5"], "numbers are never used twice");
    set.client.get(&set.instance(0)).await.refused(400, "InvalidParameter");
    let path = format!("{}/virtualMachines/x?api-version={COMPUTE_VERSION}", set.id);
    set.client.send("GET", &path, None, &[]).await.refused(400, "InvalidParameter");
    assert!(azure.remove_instance(&set.id, "0").is_err());

    let reply = set.client.post(&set.id, "delete", json!({ "instanceIds": ["5"] })).await.expect(202);
    set.client.wait(&reply).await;
    assert_eq!(set.ids().await, ["1"]);
    assert_eq!(set.client.get(&set.id).await.body["sku"]["capacity"], 1);
    set.client
        .post(&set.id, "delete", json!({ "instanceIds": ["5"] }))
        .await
        .refused(400, "InvalidParameter");
    set.client.post(&set.id, "delete", json!({})).await.refused(400, "InvalidParameter");
    let reply = set.client.delete(&set.instance(1)).await.expect(202);
    set.client.wait(&reply).await;
    assert!(set.ids().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn machines_are_switched_on_and_off() {
    let latency = LatencyProfile::instant().with("POST", "*", Duration::from_secs(30));
    let set = set_of(2, Options { latency, ..Options::default() }).await;
    let state = |all: &[Value], number: usize| {
        all[number]["properties"]["instanceView"]["statuses"][1]["code"].as_str().unwrap().to_owned()
    };
    let reply = set.client.post(&set.id, "deallocate", json!({ "instanceIds": ["1"] })).await.expect(202);
    assert_eq!(state(&set.instances().await, 1), "PowerState/deallocating");
    let shown = set.client.azure.document(&set.instance(1)).unwrap();
    assert_eq!(shown["properties"]["provisioningState"], "Updating");
    set.client.post(&set.id, "start", json!({})).await.refused(409, "Conflict");
    set.client.wait(&reply).await;
    let all = set.instances().await;
    assert_eq!(
        (state(&all, 0), state(&all, 1)),
        ("PowerState/running".into(), "PowerState/deallocated".into())
    );
    let reply = set.client.post(&set.instance(1), "start", json!({})).await.expect(202);
    set.client.wait(&reply).await;
    assert_eq!(state(&set.instances().await, 1), "PowerState/running");
    set.client.azure.set_power_state(&set.instance(0), PowerState::Stopped).unwrap();
    assert_eq!(state(&set.instances().await, 0), "PowerState/stopped");
    let view = format!("{}/instanceView?api-version={COMPUTE_VERSION}", set.id);
    let summary =
        set.client.send("GET", &view, None, &[]).await.body["virtualMachine"]["statusesSummary"].clone();
    assert!(
        summary.as_array().unwrap().contains(&json!({ "code": "PowerState/stopped", "count": 1 })),
        "{summary}"
    );
    assert!(set.client.azure.set_power_state(&set.id, PowerState::Running).is_err());
}

#[tokio::test(start_paused = true)]
async fn machines_are_made_while_the_operation_runs() {
    let latency = LatencyProfile::instant().with("PUT", "*/virtualMachineScaleSets", Duration::from_secs(60));
    let client = Client::with_group(Options { latency, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/16").await;
    let id = compute_id("virtualMachineScaleSets/set");
    let reply = client.put(&id, scale_set(2, &subnet, &[])).await.expect(201);
    assert_eq!(reply.header("etag"), Some("\"1\""));
    assert_eq!(reply.body["properties"]["provisioningState"], "Creating");
    let set = Set { client, pool: subnet.clone(), balancer: subnet.clone(), subnet, id };
    let making = set.instances().await;
    assert_eq!(making[0]["properties"]["provisioningState"], "Creating");
    assert_eq!(
        making[0]["properties"]["instanceView"]["statuses"].as_array().unwrap().len(),
        1,
        "no power state yet"
    );
    set.client.put(&set.id, scale_set(3, &set.subnet, &[])).await.refused(409, "Conflict");
    set.client.wait(&reply).await;
    assert_eq!(set.instances().await[1]["properties"]["provisioningState"], "Succeeded");
    let reply = set.client.delete(&set.id).await.expect(202);
    assert!(reply.header("location").unwrap().contains("monitor=true"));
    set.client.wait(&reply).await;
    assert!(
        set.client
            .azure
            .documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines")
            .is_empty()
    );
    assert!(set.client.get(&set.subnet).await.body["properties"].get("ipConfigurations").is_none());
}

#[tokio::test(start_paused = true)]
async fn lists_of_instances_come_in_pages() {
    let set = set_of(23, Options { page_size: 10, ..Options::default() }).await;
    let mut path = format!("{}/virtualMachines?api-version={COMPUTE_VERSION}&%24expand=instanceView", set.id);
    let (mut names, mut pages) = (Vec::new(), 0);
    loop {
        let page = set.client.send("GET", &path, None, &[]).await.expect(200).body;
        for instance in page["value"].as_array().unwrap() {
            assert!(
                instance["properties"]["instanceView"].is_object(),
                "the option goes on to the next page"
            );
            names.push(instance["instanceId"].as_str().unwrap().to_owned());
        }
        pages += 1;
        match page.get("nextLink") {
            Some(next) => path = next.as_str().unwrap().to_owned(),
            None => break,
        }
    }
    assert_eq!(pages, 3);
    assert_eq!(names, (0..23).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn scale_sets_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/29").await;
    let id = compute_id("virtualMachineScaleSets/set");
    client.put(&id, scale_set(4, &subnet, &[])).await.refused(400, "SubnetIsFull");
    let nowhere = network_id("loadBalancers/none/backendAddressPools/p");
    client.put(&id, scale_set(1, &subnet, &[nowhere])).await.refused(400, "InvalidResourceReference");
    client.create(&id, scale_set(3, &subnet, &[])).await;
    client.put(&id, scale_set(4, &subnet, &[])).await.refused(400, "SubnetIsFull");
    let instance = id.child("virtualMachines", "7");
    client.put(&instance, json!({ "location": "eastus" })).await.refused(400, "InvalidParameter");
    let strange = json!({ "location": "eastus", "sku": { "name": "x" }, "properties": { "orchestrationMode": "Loose" } });
    client.put(&compute_id("virtualMachineScaleSets/flex"), strange).await.refused(400, "InvalidParameter");
    let provider = format!(
        "/subscriptions/{}/providers/Microsoft.Compute?api-version=2021-04-01",
        crate::common::SUBSCRIPTION
    );
    let types = client.send("GET", &provider, None, &[]).await.expect(200).body["resourceTypes"].clone();
    let machines = types.as_array().unwrap().iter().find(|t| t["resourceType"] == "virtualMachines").unwrap();
    assert_eq!(machines["zoneMappings"][0], json!({ "location": "East US", "zones": ["3", "2", "1"] }));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_scaled_in_goes_whatever_runs_on_it() {
    let of_instance = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
    let latency = LatencyProfile::instant().with("PUT", of_instance, Duration::from_secs(60));
    let set = set_of(3, Options { latency, ..Options::default() }).await;
    let put =
        set.client.put(&set.instance(2), json!({ "location": "eastus", "properties": {} })).await.expect(200);
    let smaller = json!({ "location": "eastus", "sku": { "name": "Standard_D2s_v3", "capacity": 2 } });
    set.client.create(&set.id, smaller).await;
    assert_eq!(set.ids().await, ["0", "1"]);
    assert_eq!(set.client.wait(&put).await["status"], "Canceled");
    // Taken out twice, it counts once.
    let body = json!({ "instanceIds": ["1", "1"] });
    set.client.post(&set.id, "delete", body).await.expect(202);
    assert_eq!(set.client.get(&set.id).await.body["sku"]["capacity"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_update_replaces_tags_and_takes_identities_away() {
    let set = set_of(1, Options::default()).await;
    let body =
        json!({ "location": "eastus", "tags": { "a": "1" }, "identity": { "type": "SystemAssigned" } });
    let shown = set.client.create(&set.id, body).await;
    assert!(shown["identity"]["principalId"].is_string());
    let shown = set.client.create(&set.id, json!({ "location": "eastus", "tags": { "b": "2" } })).await;
    assert_eq!(shown["tags"], json!({ "b": "2" }));
    assert!(shown["identity"].is_object(), "what is not said stays");
    let path = format!("{}?api-version={COMPUTE_VERSION}", set.id);
    let patch = json!({ "tags": {}, "identity": { "type": "None" } });
    set.client.send("PATCH", &path, Some(patch), &[]).await.expect(200);
    let shown = set.client.get(&set.id).await.body;
    assert!(shown.get("tags").is_none() && shown.get("identity").is_none(), "{shown}");
    let bounds = json!({ "location": "eastus", "properties": { "platformFaultDomainCount": u64::MAX } });
    assert_eq!(set.client.put(&set.id, bounds).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn secrets_of_a_model_do_not_come_back() {
    let set = set_of(0, Options::default()).await;
    let profile = json!({
        "extensionProfile": { "extensions": [{ "name": "e", "properties": {
            "publisher": "P", "type": "T", "settings": { "shown": 1 }, "protectedSettings": { "k": "hidden-Word1" } } }] },
        "osProfile": { "windowsConfiguration": { "additionalUnattendContent": [{ "content": "hidden-Word1" }] } },
    });
    let body = json!({ "location": "eastus", "properties": { "virtualMachineProfile": profile } });
    let shown = set.client.create(&set.id, body).await;
    assert!(shown.to_string().contains("shown"));
    let saved = serde_json::to_string(&set.client.azure.save().unwrap()).unwrap();
    assert!(!shown.to_string().contains("hidden-Word1") && !saved.contains("hidden-Word1"));
}

#[tokio::test(start_paused = true)]
async fn the_switch_of_the_control_api_says_what_it_takes() {
    let set = set_of(1, Options::default()).await;
    let switch = async |body: Value| {
        let headers = [("content-type", "application/json")];
        let reply = set.client.send("POST", "/_cerulean/power", Some(body), &headers).await;
        (reply.status, reply.body["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let states = "starting, running, stopping, stopped, deallocating, deallocated";
    let machine = set.instance(0);
    for (body, status, words) in [
        (json!({"id": machine, "state": "off"}), 400, format!("state is 'off', and must be one of {states}")),
        (json!({"id": machine}), 400, format!("state is missing, one of {states}")),
        (
            json!({"id": "pool_0", "state": "stopped"}),
            400,
            "id is \"pool_0\", and must be a full resource id".to_owned(),
        ),
        (json!({"state": "stopped"}), 400, "id is missing, the full resource id".to_owned()),
        (json!({"id": set.id, "state": "stopped"}), 400, "has no power state".to_owned()),
        (json!({"id": set.instance(7), "state": "stopped"}), 404, "was not found".to_owned()),
        (json!({"id": machine, "state": "Stopped"}), 204, String::new()),
    ] {
        let (answered, text) = switch(body.clone()).await;
        assert!(answered == status && text.contains(&words), "{body}: {answered} {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn sizes_and_machines_are_told_by_number_and_bad_ones_by_name() {
    let set = set_of(3, Options::default()).await;
    for (path, body, status, words) in [
        ("scale", json!({"capacity": "4"}), 400, "capacity is \"4\", and must be a whole number"),
        ("scale", json!({"capacity": -1}), 400, "capacity is -1, and must be a whole number"),
        ("scale", json!({}), 400, "capacity is missing"),
        ("scale", json!({"capacity": 4}), 204, ""),
        ("remove-instance", json!({"instance": [1]}), 400, "instance is [1], and must be its number"),
        ("remove-instance", json!({"instance": 1}), 204, ""),
        ("remove-instance", json!({"instance": "2"}), 204, ""),
    ] {
        let mut body = body;
        body["id"] = json!(set.id);
        let headers = [("content-type", "application/json")];
        let path = format!("/_cerulean/{path}");
        let reply = set.client.send("POST", &path, Some(body.clone()), &headers).await;
        let text = reply.body["error"]["message"].as_str().unwrap_or_default();
        assert!(reply.status == status && text.contains(words), "{path} {body}: {} {text}", reply.status);
    }
}

fn with_data_disks(mut set: Value, disks: Value) -> Value {
    set["properties"]["virtualMachineProfile"]["storageProfile"]["dataDisks"] = disks;
    set
}

#[tokio::test(start_paused = true)]
async fn data_disks_of_a_model_are_checked_before_machines_are_made_of_it() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let id = compute_id("virtualMachineScaleSets/set");
    let disk = |lun: i64, more: Value| {
        let mut disk = json!({ "lun": lun, "createOption": "Empty", "diskSizeGB": 4 });
        set_members(&mut disk, more);
        disk
    };
    let largest = 32_768;
    for (disks, word) in [
        (json!({}), "must be an array"),
        (json!([disk(0, json!({})), disk(0, json!({}))]), "more than one data disk uses lun 0"),
        (json!([disk(i64::MAX, json!({}))]), "'dataDisk.lun' is out of range"),
        (json!([disk(-1, json!({}))]), "between 0 and 63"),
        (json!([{ "createOption": "Empty", "diskSizeGB": 4 }]), "'dataDisk.lun' is missing"),
        (json!([disk(0, json!({ "diskSizeGB": null }))]), "needs diskSizeGB"),
        (json!([disk(0, json!({ "diskSizeGB": 0 }))]), "'dataDisk.diskSizeGB' is out of range"),
        (json!([disk(0, json!({ "diskSizeGB": largest }))]), "between 1 and 32767"),
        (
            json!([disk(0, json!({ "managedDisk": { "id": compute_id("disks/one") } }))]),
            "cannot be in the model",
        ),
        (
            json!([0, 1, 2, 3, 4].map(|lun| disk(lun, json!({})))),
            "allowed to be attached to a VM of this size is 4",
        ),
    ] {
        let reply = client.put(&id, with_data_disks(scale_set(1, &subnet, &[]), disks.clone())).await;
        assert!(reply.status >= 400 && reply.message().contains(word), "{disks}: {}", reply.body);
    }
    let disks = json!([disk(1, json!({ "caching": "readonly" })), disk(5, json!({}))]);
    let mut body = with_data_disks(scale_set(1, &subnet, &[]), disks);
    body["tags"] = json!({ "team": "blue" });
    body["properties"]["virtualMachineProfile"]["diagnosticsProfile"] =
        json!({ "bootDiagnostics": { "enabled": true } });
    let set = client.create(&id, body).await;
    let model = &set["properties"]["virtualMachineProfile"]["storageProfile"]["dataDisks"];
    assert_eq!((&model[0]["lun"], &model[0]["caching"]), (&json!(1), &json!("ReadOnly")));
    assert_eq!(model[1]["managedDisk"]["storageAccountType"], "Standard_LRS");

    let instance = id.child("virtualMachines", "0");
    let shown = client.get(&instance).await.expect(200).body;
    assert_eq!(shown["tags"], json!({ "team": "blue" }), "its set's");
    assert_eq!(shown["properties"]["diagnosticsProfile"]["bootDiagnostics"]["enabled"], true);
    let disks = &shown["properties"]["storageProfile"]["dataDisks"];
    for (at, begin) in [(0, "set_set_0_disk2_"), (1, "set_set_0_disk3_")] {
        assert!(disks[at]["name"].as_str().unwrap().starts_with(begin), "{disks}");
    }
    // It can be written as it was read.
    let reply = client.put(&instance, shown).await;
    assert!(reply.status < 300, "{}", reply.body);
}

/// Sets members, also to null.
fn set_members(base: &mut Value, more: Value) {
    for (member, value) in more.as_object().unwrap() {
        base[member] = value.clone();
    }
}

#[tokio::test(start_paused = true)]
async fn system_disks_have_a_size_that_there_is() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let nic = network_id("networkInterfaces/one");
    let configuration = json!({ "name": "c", "properties": { "subnet": { "id": subnet } } });
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [configuration] } });
    client.put(&nic, body).await.expect(201);
    let (set, machine) = (compute_id("virtualMachineScaleSets/set"), compute_id("virtualMachines/one"));
    for (gib, fits) in [(-1_i64, false), (0, false), (4_096, false), (i64::MAX, false), (64, true)] {
        let mut of_set = scale_set(0, &subnet, &[]);
        of_set["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"] =
            json!({ "createOption": "FromImage", "diskSizeGB": gib });
        let mut of_machine = crate::common::machine(&nic);
        of_machine["properties"]["storageProfile"]["osDisk"] =
            json!({ "createOption": "FromImage", "diskSizeGB": gib });
        for (id, body) in [(&set, of_set), (&machine, of_machine)] {
            let reply = client.put(id, body).await;
            if fits {
                assert!(reply.status < 300, "{gib}: {}", reply.body);
            } else {
                let reply = reply.refused(400, "InvalidParameter");
                assert!(
                    reply.message().contains("'osDisk.diskSizeGB' is out of range"),
                    "{}",
                    reply.message()
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn extensions_of_a_model_are_written_one_by_one() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let set = compute_id("virtualMachineScaleSets/set");
    client.create(&set, scale_set(1, &subnet, &[])).await;
    let of = |name: &str| set.child("extensions", name);
    let extension = |settings: Value| {
        json!({ "properties": { "publisher": "p", "type": "t", "typeHandlerVersion": "1.0",
            "settings": settings, "protectedSettings": { "secret": "s" } } })
    };
    for name in ["one", "two"] {
        let made = client.put(&of(name), extension(json!({ "of": name }))).await.expect(200).body;
        assert_eq!((&made["name"], &made["properties"]["settings"]["of"]), (&json!(name), &json!(name)));
        assert_eq!(made["properties"].get("protectedSettings"), None);
    }
    client.put(&of("one"), extension(json!({ "of": "me" }))).await.expect(200);
    let model = client.get(&set).await.body;
    let all = model["properties"]["virtualMachineProfile"]["extensionProfile"]["extensions"].clone();
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(all[0]["properties"]["settings"]["of"], "me");
    client.delete(&of("two")).await.expect(202);
    client.delete(&of("two")).await.expect(204);
    client.get(&of("two")).await.refused(404, "ResourceNotFound");
    client.get(&of("one")).await.expect(200);
    let absent = compute_id("virtualMachineScaleSets/absent").child("extensions", "e");
    assert_eq!(client.put(&absent, extension(json!({}))).await.status, 404);
}
