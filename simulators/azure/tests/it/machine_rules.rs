//! What machines and scale sets can be, and what they can take.

use crate::common::{COMPUTE_VERSION, Client, check, compute_id, machine, network_id, scale_set};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

async fn interface(client: &Client, name: &str, subnet: &ResourceId) -> ResourceId {
    let id = network_id(&format!("networkInterfaces/{name}"));
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "ip", "properties": { "subnet": { "id": subnet } } },
    ]}});
    client.put(&id, body).await.expect(201);
    id
}

async fn disk(client: &Client, name: &str, sku: &str, zone: Option<&str>) -> ResourceId {
    let id = compute_id(&format!("disks/{name}"));
    let mut body = json!({ "location": "eastus", "sku": { "name": sku }, "properties": {
        "creationData": { "createOption": "Empty" }, "diskSizeGB": 8,
    }});
    if let Some(zone) = zone {
        body["zones"] = json!([zone]);
    }
    client.put(&id, body).await.expect(202);
    id
}

fn attached(disk: &ResourceId, caching: &str) -> Value {
    json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": [
        { "lun": 0, "createOption": "Attach", "caching": caching, "managedDisk": { "id": disk } },
    ]}}})
}

fn flexible(capacity: u64, subnet: &ResourceId) -> Value {
    let mut body = scale_set(capacity, subnet, &[]);
    let profile = &mut body["properties"]["virtualMachineProfile"];
    profile["storageProfile"] = machine(subnet)["properties"]["storageProfile"].take();
    profile["networkProfile"]["networkApiVersion"] = json!("2020-11-01");
    body["properties"]["orchestrationMode"] = json!("Flexible");
    body
}

#[tokio::test(start_paused = true)]
async fn zones_are_those_of_the_region() {
    let options = Options { zones: vec!["1".into(), "2".into()], ..Options::default() };
    let none = Options { zones: Vec::new(), ..Options::default() };
    let many = Some((400, "ResourceTypeNotSupportMultiZones", "The provided zones are '1,2'"));
    let strange =
        Some((400, "InvalidAvailabilityZone", "The supported zones for location 'eastus' are '1,2'"));
    let unzoned = Some((400, "LocationNotSupportAvailabilityZones", "at location 'eastus'"));
    for (options, zones, single, spread) in [
        (&options, json!([]), None, None),
        (&options, json!(["2"]), None, None),
        (&options, json!(["1", "2"]), many, None),
        (&options, json!(["3"]), strange, strange),
        (&options, json!([7]), strange, strange),
        (&options, json!("1"), Some((400, "BadRequest", "zones")), Some((400, "BadRequest", "zones"))),
        (&none, json!([]), None, None),
        (&none, json!(["1"]), unzoned, unzoned),
    ] {
        let client = Client::with_group(options.clone()).await;
        let subnet = client.network("10.1.0.0/24").await;
        let nic = interface(&client, "nic", &subnet).await;
        let disk = json!({ "location": "eastus", "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 } });
        for (id, mut body, expected) in [
            (compute_id("disks/one"), disk, single),
            (compute_id("virtualMachines/one"), machine(&nic), single),
            (compute_id("virtualMachineScaleSets/one"), scale_set(0, &subnet, &[]), spread),
        ] {
            body["zones"] = zones.clone();
            check(client.put(&id, body).await, expected, &format!("{zones} {}", id.resource_type()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn zones_of_a_scale_set_are_added_and_never_taken() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/set");
    let mut body = scale_set(1, &subnet, &[]);
    let fixed = Some((409, "PropertyChangeNotAllowed", "'zones'"));
    for (zones, expected) in [
        (json!([]), None),
        (json!(["1"]), None),
        (json!(["2", "1"]), None),
        (json!(["2"]), fixed),
        (json!([]), fixed),
        (json!(["1", "2", "3"]), None),
    ] {
        body["zones"] = zones.clone();
        check(client.put(&set, body.clone()).await, expected, &zones);
    }
    check(client.put(&set, json!({ "location": "eastus" })).await, None, &"what is not said stays");
}

#[tokio::test(start_paused = true)]
async fn disks_and_machines_meet_in_one_zone() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let machines = [("regional", None), ("zonal", Some("1"))];
    for (name, zone) in machines {
        let nic = interface(&client, name, &subnet).await;
        let mut body = machine(&nic);
        body["zones"] = zone.map_or(json!([]), |zone| json!([zone]));
        client.create(&compute_id(&format!("virtualMachines/{name}")), body).await;
    }
    for (kind, sku, zone, to_regional, to_zonal) in [
        ("nowhere", "Standard_LRS", None, true, false),
        ("here", "Standard_LRS", Some("1"), false, true),
        ("there", "Standard_LRS", Some("2"), false, false),
        ("everywhere", "StandardSSD_ZRS", None, true, true),
    ] {
        for (name, taken) in [("regional", to_regional), ("zonal", to_zonal)] {
            let disk = disk(&client, &format!("{kind}-{name}"), sku, zone).await;
            let id = compute_id(&format!("virtualMachines/{name}"));
            let expected = (!taken).then_some((400, "BadRequest", "because it is not in zone"));
            check(client.put(&id, attached(&disk, "None")).await, expected, &format!("{kind} to {name}"));
        }
    }
    let redundant = json!({ "location": "eastus", "sku": { "name": "Premium_ZRS" }, "zones": ["1"], "properties": {
        "creationData": { "createOption": "Empty" }, "diskSizeGB": 8,
    }});
    client.put(&compute_id("disks/redundant"), redundant).await.refused(409, "OperationNotAllowed");
    // What comes with a machine is where the machine is, but for kinds that are everywhere.
    let zonal = compute_id("virtualMachines/zonal");
    let new = |lun: u64, kind: &str| json!({ "lun": lun, "name": kind, "diskSizeGB": 8, "createOption": "Empty", "managedDisk": { "storageAccountType": kind } });
    let list = json!([new(0, "Premium_LRS"), new(1, "Premium_ZRS")]);
    client
        .create(
            &zonal,
            json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": list } } }),
        )
        .await;
    assert_eq!(client.get(&compute_id("disks/Premium_LRS")).await.body["zones"], json!(["1"]));
    assert!(client.get(&compute_id("disks/Premium_ZRS")).await.body.get("zones").is_none());
}

#[tokio::test(start_paused = true)]
async fn hosts_cache_neither_fast_nor_shared_disks_and_sizes_take_their_kinds() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let shared = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" }, "properties": {
        "creationData": { "createOption": "Empty" }, "diskSizeGB": 8, "maxShares": 2,
    }});
    client.put(&compute_id("disks/shared"), shared).await.expect(202);
    for sku in ["Premium_LRS", "PremiumV2_LRS", "UltraSSD_LRS", "StandardSSD_LRS"] {
        disk(&client, sku, sku, None).await;
    }
    for (name, size) in
        [("premium", "Standard_D2s_v3"), ("plain", "Standard_D2_v3"), ("unknown", "Standard_X2")]
    {
        let nic = interface(&client, name, &subnet).await;
        let mut body = machine(&nic);
        body["properties"]["hardwareProfile"]["vmSize"] = json!(size);
        client.create(&compute_id(&format!("virtualMachines/{name}")), body).await;
    }
    let storage = "does not support the storage account type Premium_LRS of disk 'Premium_LRS'";
    for (machine, disk, caching, expected) in [
        ("premium", "Premium_LRS", "ReadOnly", None),
        ("premium", "PremiumV2_LRS", "None", None),
        (
            "premium",
            "PremiumV2_LRS",
            "ReadOnly",
            Some((400, "InvalidParameter", "Please use caching type None.")),
        ),
        ("premium", "UltraSSD_LRS", "ReadWrite", Some((400, "InvalidParameter", "caching type ReadWrite"))),
        ("premium", "shared", "ReadOnly", Some((400, "BadRequest", "Shared disk 'shared' with maxShares 2"))),
        ("premium", "shared", "None", None),
        ("plain", "StandardSSD_LRS", "ReadOnly", None),
        ("plain", "Premium_LRS", "None", Some((400, "InvalidParameter", storage))),
        ("unknown", "Premium_LRS", "None", None),
    ] {
        let disk = compute_id(&format!("disks/{disk}"));
        let id = compute_id(&format!("virtualMachines/{machine}"));
        let what = format!("{} {caching} to {machine}", disk.name());
        check(client.put(&id, attached(&disk, caching)).await, expected, &what);
    }
    let nic = interface(&client, "other", &subnet).await;
    let mut body = machine(&nic);
    body["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_D2_v3");
    body["properties"]["storageProfile"]["osDisk"] =
        json!({ "createOption": "FromImage", "managedDisk": { "storageAccountType": "Premium_LRS" } });
    client.put(&compute_id("virtualMachines/other"), body).await.refused(400, "InvalidParameter");
}

#[tokio::test(start_paused = true)]
async fn a_disk_in_use_changes_neither_its_kind_nor_its_shares() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let (id, data) = (compute_id("virtualMachines/vm"), disk(&client, "data", "StandardSSD_LRS", None).await);
    client.create(&id, machine(&interface(&client, "nic", &subnet).await)).await;
    client.create(&id, attached(&data, "None")).await;
    let path = format!("{data}?api-version=2025-01-02");
    let patch = async |change: Value| client.send("PATCH", &path, Some(change), &[]).await;
    let (kind, shares) =
        (json!({ "sku": { "name": "Premium_LRS" } }), json!({ "properties": { "maxShares": 2 } }));
    let runs = patch(kind.clone()).await.refused(409, "OperationNotAllowed");
    assert!(runs.message().contains("attached to running VM"), "{}", runs.message());
    client.post(&id, "deallocate", json!({})).await.expect(202);
    patch(kind).await.expect(202);
    patch(shares.clone()).await.refused(409, "OperationNotAllowed");
    client
        .create(&id, json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": [] } } }))
        .await;
    patch(shares).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_disk_somebody_reads_does_not_start() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let (id, data) = (compute_id("virtualMachines/vm"), disk(&client, "data", "Standard_LRS", None).await);
    let system = client.create(&id, machine(&interface(&client, "nic", &subnet).await)).await;
    client.create(&id, attached(&data, "None")).await;
    client.post(&id, "deallocate", json!({})).await.expect(202);
    let system = system["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"].as_str().unwrap();
    let access = json!({ "access": "Read", "durationInSeconds": 300 });
    for disk in [data, ResourceId::parse(system).unwrap()] {
        client.post(&disk, "beginGetAccess", access.clone()).await.expect(202);
        let refused = client.post(&id, "start", json!({})).await.refused(409, "OperationNotAllowed");
        assert!(refused.message().contains(disk.name()), "{}", refused.message());
        client.post(&disk, "endGetAccess", json!({})).await.expect(202);
    }
    client.post(&id, "start", json!({})).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn interfaces_change_while_a_machine_is_deallocated() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let mut nics = Vec::new();
    for name in ["a", "b", "c"] {
        nics.push(interface(&client, name, &subnet).await);
    }
    let of = |names: &[usize]| {
        let list =
            names.iter().map(|at| json!({ "id": nics[*at], "properties": { "primary": names[0] == *at } }));
        json!({ "networkInterfaces": list.collect::<Vec<_>>() })
    };
    let body =
        |names: &[usize]| json!({ "location": "eastus", "properties": { "networkProfile": of(names) } });
    let id = compute_id("virtualMachines/vm");
    let mut many = machine(&nics[0]);
    many["properties"]["networkProfile"] = of(&[0, 1, 2]);
    let refused = client.put(&id, many).await.refused(400, "NetworkInterfaceCountExceeded");
    assert!(refused.message().contains("is 3 and the maximum allowed is 2"), "{}", refused.message());
    client.create(&id, machine(&nics[0])).await;
    let code = "AddingOrDeletingNetworkInterfacesOnARunningVirtualMachineNotSupported";
    let running = Some((400, code, "must be stop-deallocated"));
    for (state, names, expected) in [
        ("start", &[0][..], None),
        ("start", &[0, 1], running),
        ("start", &[1], running),
        ("powerOff", &[0, 1], running),
        ("deallocate", &[0, 1], None),
        ("deallocate", &[1, 0], None),
        ("deallocate", &[0, 1, 2], Some((400, "NetworkInterfaceCountExceeded", "is 3"))),
        ("start", &[0, 1], None),
        ("start", &[0, 2], running),
        ("start", &[0], running),
    ] {
        client.post(&id, state, json!({})).await.expect(202);
        check(client.put(&id, body(names)).await, expected, &format!("{state} {names:?}"));
    }
    let mut set = scale_set(0, &subnet, &[]);
    let list = set["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
        .as_array_mut()
        .unwrap();
    for name in ["second", "third"] {
        let mut more = list[0].clone();
        (more["name"], more["properties"]["primary"]) = (json!(name), json!(false));
        list.push(more);
    }
    let refused = client.put(&compute_id("virtualMachineScaleSets/set"), set).await;
    refused.refused(400, "NetworkInterfaceCountExceeded");
}

#[tokio::test(start_paused = true)]
async fn systems_are_told_what_they_need_and_nothing_odd() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let nic = interface(&client, "nic", &subnet).await;
    let id = compute_id("virtualMachines/vm");
    let of = |member: &str, value: Value| (format!("/osProfile/{member}"), value);
    let spot = "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines";
    let price = "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines";
    let name = Some((400, "InvalidParameter", "The Admin Username specified is not allowed."));
    let data = Some((400, "InvalidParameter", "must be in Base64 encoding"));
    for ((path, value), expected) in [
        (of("adminUsername", json!("Root")), name),
        (of("adminUsername", json!("support_388945a0")), name),
        (of("adminUsername", json!("rooted")), None),
        (of("customData", json!("I2Nsb3Vk\nLWNvbmZpZw==")), None),
        (of("customData", json!("hidden-Word1")), data),
        (of("customData", json!(17)), data),
        (of("customData", json!("A".repeat(87_384))), data),
        (("/evictionPolicy".into(), json!("Delete")), Some((400, spot, "Spot"))),
        (("/billingProfile".into(), json!({ "maxPrice": 0.1 })), Some((400, price, "Spot"))),
        (("/priority".into(), json!("Spot")), None),
    ] {
        let mut one = machine(&nic);
        let mut set = scale_set(0, &subnet, &[]);
        let member = path.rsplit('/').next().unwrap();
        for properties in [&mut one["properties"], &mut set["properties"]["virtualMachineProfile"]] {
            let parent = path.rsplit_once('/').unwrap().0;
            properties.pointer_mut(parent).unwrap()[member] = value.clone();
        }
        for (id, body) in [(&id, one), (&compute_id("virtualMachineScaleSets/set"), set)] {
            let reply = client.put(id, body).await;
            assert!(!reply.body.to_string().contains("hidden-"), "secrets are not shown");
            check(reply, expected, &format!("{} {path}", id.resource_type()));
            if expected.is_none() {
                client.delete(id).await.expect(202);
            }
        }
    }
    // What spot machines were called before.
    let mut low = scale_set(0, &subnet, &[]);
    let profile = &mut low["properties"]["virtualMachineProfile"];
    (profile["priority"], profile["evictionPolicy"]) = (json!("Low"), json!("Delete"));
    let reply = client.put(&compute_id("virtualMachineScaleSets/low"), low).await;
    check(reply, None, &"Low");
    let mut bare = machine(&nic);
    bare["properties"].as_object_mut().unwrap().remove("osProfile");
    let refused = client.put(&id, bare.clone()).await.refused(400, "InvalidParameter");
    assert_eq!(refused.body["error"]["message"], "Required parameter 'osProfile' is missing (null).");
    // An image of one's own may have its administrator already.
    let own = compute_id("images/own");
    bare["properties"]["storageProfile"]["imageReference"] = json!({ "id": own });
    client.create(&own, json!({ "location": "eastus", "properties": {} })).await;
    client.create(&id, bare).await;
    let available = compute_id("availabilitySets/set");
    client
        .put(&available, json!({ "location": "eastus", "sku": { "name": "Aligned" }, "properties": {} }))
        .await
        .expect(200);
    let mut placed = machine(&interface(&client, "other", &subnet).await);
    placed["properties"]["availabilitySet"] = json!({ "id": available });
    placed["properties"]["priority"] = json!("Spot");
    let other = compute_id("virtualMachines/other");
    client.put(&other, placed).await.refused(400, "AzureSpotVMNotSupportedInAvailabilitySet");
}

#[tokio::test(start_paused = true)]
async fn who_joins_a_flexible_set_stands_where_it_does() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    for (set, zones) in [("zonal", json!(["1", "2"])), ("regional", json!([]))] {
        let mut body = flexible(0, &subnet);
        body["zones"] = zones;
        client.create(&compute_id(&format!("virtualMachineScaleSets/{set}")), body).await;
    }
    for (at, (set, zones, taken)) in [
        ("zonal", json!(["2"]), true),
        ("zonal", json!(["3"]), false),
        ("zonal", json!([]), false),
        ("regional", json!(["1"]), false),
        ("regional", json!([]), true),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = machine(&interface(&client, &format!("nic{at}"), &subnet).await);
        body["zones"] = zones.clone();
        body["properties"]["virtualMachineScaleSet"] =
            json!({ "id": compute_id(&format!("virtualMachineScaleSets/{set}")) });
        let expected =
            (!taken).then_some((400, "InvalidParameter", "cannot be in virtual machine scale set"));
        let reply = client.put(&compute_id(&format!("virtualMachines/vm{at}")), body).await;
        check(reply, expected, &format!("{zones} into {set}"));
    }
}

#[tokio::test(start_paused = true)]
async fn disks_of_a_flexible_set_stay_where_the_model_says_so() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/flex");
    let mut body = flexible(1, &subnet);
    let disk = |lun: u64| json!({ "lun": lun, "createOption": "Empty", "diskSizeGB": 8 });
    let mut stays = disk(1);
    stays["deleteOption"] = json!("Detach");
    body["properties"]["virtualMachineProfile"]["storageProfile"]["dataDisks"] = json!([disk(0), stays]);
    client.create(&set, body).await;
    let count = || client.azure.documents_of_type("Microsoft.Compute/disks").len();
    assert_eq!(count(), 3);
    let gone = client.delete(&set).await.expect(202);
    client.wait(&gone).await;
    assert_eq!(count(), 1);
}

#[tokio::test(start_paused = true)]
async fn systems_are_made_anew() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/set");
    client.create(&set, scale_set(2, &subnet, &[])).await;
    for id in [&set, &set.child("virtualMachines", "0")] {
        let reply = client.post(id, "reimage", json!({})).await.expect(202);
        assert_eq!(client.wait(&reply).await["status"], "Succeeded", "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_size_is_judged_by_the_disks_as_they_are_now() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let nic = interface(&client, "nic", &subnet).await;
    let vm = compute_id("virtualMachines/vm");
    let shown = client.create(&vm, machine(&nic)).await;
    let disk =
        shown["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"].as_str().unwrap().to_owned();
    let disk = ResourceId::parse(&disk).unwrap();
    let patch = async |id: &ResourceId, body: Value| {
        client.send("PATCH", &format!("{id}?api-version={COMPUTE_VERSION}"), Some(body), &[]).await
    };
    let small = json!({ "properties": { "hardwareProfile": { "vmSize": "Standard_D2_v3" } } });
    let reply = patch(&vm, small.clone()).await.refused(400, "InvalidParameter");
    assert!(reply.message().contains("Premium_LRS"), "{}", reply.message());
    let reply = client.post(&vm, "deallocate", Value::Null).await.expect(202);
    client.wait(&reply).await;
    patch(&disk, json!({ "sku": { "name": "StandardSSD_LRS" } })).await.expect(202);
    let shown = client.get(&vm).await.body;
    assert_eq!(
        shown["properties"]["storageProfile"]["osDisk"]["managedDisk"]["storageAccountType"],
        "StandardSSD_LRS"
    );
    client.put(&vm, shown).await.expect(200);
    patch(&vm, small).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_spot_machine_with_an_ephemeral_disk_is_deleted_when_it_is_evicted() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let nic = interface(&client, "nic", &subnet).await;
    let refused = Some((409, "NotSupported", "eviction policy Delete"));
    for (priority, policy, expected) in [
        ("Spot", None, refused),
        ("Spot", Some("Deallocate"), refused),
        ("Spot", Some("Delete"), None),
        ("Regular", None, None),
    ] {
        let mut one = machine(&nic);
        let mut set = scale_set(0, &subnet, &[]);
        for properties in [&mut one["properties"], &mut set["properties"]["virtualMachineProfile"]] {
            properties["priority"] = json!(priority);
            properties["storageProfile"]["osDisk"] = json!({ "createOption": "FromImage", "caching": "ReadOnly",
                "diffDiskSettings": { "option": "Local" } });
            if let Some(policy) = policy {
                properties["evictionPolicy"] = json!(policy);
            }
        }
        let what = format!("{priority} {policy:?}");
        let name = format!("{}-{}", priority.to_lowercase(), policy.unwrap_or("none").to_lowercase());
        check(
            client.put(&compute_id(&format!("virtualMachineScaleSets/{name}")), set).await,
            expected,
            &what,
        );
        let id = compute_id("virtualMachines/vm");
        check(client.put(&id, one).await, expected, &what);
        if expected.is_none() {
            let gone = client.delete(&id).await.expect(202);
            client.wait(&gone).await;
        }
    }
}

/// CSI baseline, difference 8 of the simulated Azure ("Write Accelerator").
#[tokio::test(start_paused = true)]
async fn write_accelerator_is_for_premium_disks_of_the_m_series() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let size = Some((400, "InvalidParameter", "It is supported for the M-series alone."));
    let kind = Some((400, "InvalidParameter", "is for disks of the kinds Premium_LRS and Premium_ZRS"));
    for (number, (vm_size, sku, caching, expected)) in [
        ("Standard_M64ms", "Premium_LRS", "None", None),
        ("Standard_M128s", "Premium_LRS", "ReadOnly", None),
        ("Standard_M128s", "Premium_LRS", "ReadWrite", kind),
        ("Standard_M128s", "Standard_LRS", "None", kind),
        ("Standard_D2s_v3", "Premium_LRS", "None", size),
        ("Standard_Mx", "Premium_LRS", "None", size),
    ]
    .into_iter()
    .enumerate()
    {
        let nic = interface(&client, &format!("nic{number}"), &subnet).await;
        let data = disk(&client, &format!("data{number}"), sku, None).await;
        let mut wanted = machine(&nic);
        wanted["properties"]["hardwareProfile"]["vmSize"] = json!(vm_size);
        let mut disks = attached(&data, caching)["properties"]["storageProfile"]["dataDisks"].take();
        disks[0]["writeAcceleratorEnabled"] = json!(true);
        wanted["properties"]["storageProfile"]["dataDisks"] = disks;
        let id = compute_id(&format!("virtualMachines/vm{number}"));
        check(client.put(&id, wanted).await, expected, &format!("{vm_size} {sku} {caching}"));
    }
}

/// CSI baseline, difference 3 of the simulated Azure.
#[tokio::test(start_paused = true)]
async fn system_disks_and_their_copies_show_their_generation() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    for (name, publisher, offer, sku, generation) in [
        ("ubuntu", "Canonical", "ubuntu-24_04-lts", "server", "V2"),
        ("gen1", "cncf-upstream", "capi", "ubuntu-2204-gen1", "V1"),
        ("windows", "MicrosoftWindowsServer", "WindowsServer", "2022-datacenter", "V1"),
        ("windows2", "MicrosoftWindowsServer", "WindowsServer", "2022-datacenter-g2", "V2"),
    ] {
        let nic = interface(&client, name, &subnet).await;
        let mut wanted = machine(&nic);
        let image = json!({ "publisher": publisher, "offer": offer, "sku": sku, "version": "latest" });
        wanted["properties"]["storageProfile"]["imageReference"] = image;
        let new = json!([{ "lun": 0, "createOption": "Empty", "diskSizeGB": 4 }]);
        wanted["properties"]["storageProfile"]["dataDisks"] = new;
        let vm = client.create(&compute_id(&format!("virtualMachines/{name}")), wanted).await;
        let of = async |entry: &Value| {
            let id = ResourceId::parse(entry["managedDisk"]["id"].as_str().unwrap()).unwrap();
            let shown = client.get(&id).await.expect(200).body;
            (id, shown["properties"].get("hyperVGeneration").cloned())
        };
        let storage = &vm["properties"]["storageProfile"];
        let (system, shown) = of(&storage["osDisk"]).await;
        assert_eq!(shown, Some(json!(generation)), "{name}");
        assert_eq!(of(&storage["dataDisks"][0]).await.1, None, "{name}: a data disk has none");
        let copy = compute_id(&format!("disks/{name}-copy"));
        let creation = json!({ "createOption": "Copy", "sourceResourceId": system });
        client
            .put(&copy, json!({ "location": "eastus", "properties": { "creationData": creation } }))
            .await
            .expect(202);
        assert_eq!(client.get(&copy).await.body["properties"]["hyperVGeneration"], generation, "{name}");
    }
}
