//! What disks and snapshots are made of, and what each kind of disk can be asked for.

use std::time::Duration;

use crate::common::{Client, check, compute_id, machine, network_id};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

async fn made(client: &Client, id: &ResourceId, body: Value) {
    let reply = client.put(id, body).await.expect(202);
    assert_eq!(client.wait(&reply).await["status"], "Succeeded");
}

fn body(location: &str, sku: Option<&str>, properties: Value) -> Value {
    let mut body = json!({ "location": location, "properties": properties });
    if let Some(sku) = sku {
        body["sku"] = json!({ "name": sku });
    }
    body
}

fn empty(gib: u64, sku: &str) -> Value {
    body("eastus", Some(sku), json!({ "creationData": { "createOption": "Empty" }, "diskSizeGB": gib }))
}

fn copy(source: &ResourceId, incremental: bool) -> Value {
    let creation = json!({ "createOption": "Copy", "sourceResourceId": source });
    body("eastus", None, json!({ "creationData": creation, "incremental": incremental }))
}

#[tokio::test(start_paused = true)]
async fn what_a_disk_or_snapshot_is_made_of_stays() {
    let client = Client::with_group(Options::default()).await;
    let (one, two) = (compute_id("disks/one"), compute_id("disks/two"));
    for disk in [&one, &two] {
        made(&client, disk, empty(100, "StandardSSD_LRS")).await;
    }
    let snapshot = compute_id("snapshots/of-one");
    made(&client, &snapshot, copy(&one, true)).await;
    let clone = compute_id("disks/clone");
    made(&client, &clone, body("eastus", None, copy(&one, true)["properties"].take())).await;
    let loud = one.as_str().to_ascii_uppercase().replace("SUBSCRIPTIONS", "subscriptions");
    let of = |creation: Value| json!({ "creationData": creation });
    let fixed = |words: &'static str| Some((400, "BadRequest", words));
    for (id, properties, expected) in [
        (&snapshot, of(json!({ "createOption": "copy", "sourceResourceId": one })), None),
        (&snapshot, of(json!({ "createOption": "Copy", "sourceResourceId": loud })), None),
        (&snapshot, json!({}), None),
        (
            &snapshot,
            of(json!({ "createOption": "Copy", "sourceResourceId": two })),
            fixed("Changing property 'sourceResourceId' is not allowed for existing disk 'of-one'."),
        ),
        (
            &snapshot,
            of(json!({ "createOption": "Copy", "sourceUri": "https://a.test/b.vhd" })),
            fixed("Changing property 'sourceUri' is not allowed for existing disk 'of-one'."),
        ),
        (
            &snapshot,
            of(json!({ "createOption": "Empty" })),
            fixed("Changing property 'createOption' is not allowed for existing disk 'of-one'."),
        ),
        (
            &snapshot,
            json!({ "incremental": false }),
            fixed("Changing property 'incremental' is not allowed for existing disk 'of-one'."),
        ),
        (&snapshot, json!({ "diskSizeGB": 120 }), None),
        (
            &snapshot,
            json!({ "diskSizeGB": 119 }),
            Some((409, "OperationNotAllowed", "cannot be made smaller")),
        ),
        (&clone, of(json!({ "createOption": "Copy", "sourceResourceId": loud })), None),
        (
            &clone,
            of(json!({ "createOption": "Copy", "sourceResourceId": two })),
            fixed("Changing property 'sourceResourceId' is not allowed for existing disk 'clone'."),
        ),
        (
            &clone,
            of(json!({ "createOption": "Empty" })),
            fixed("'createOption' is not allowed for existing disk"),
        ),
    ] {
        check(client.put(id, body("eastus", None, properties.clone())).await, expected, &properties);
    }
    let kept = client.get(&snapshot).await.expect(200).body;
    assert_eq!(kept["properties"]["creationData"]["sourceResourceId"], json!(one));
}

#[tokio::test(start_paused = true)]
async fn bytes_of_fast_disks_are_copied_in_the_background() {
    let client = Client::with_group(Options::default()).await;
    let percent = async |id: &ResourceId| {
        client.get(id).await.expect(200).body["properties"]["completionPercent"].clone()
    };
    for (sku, incremental, at_first) in [
        ("Standard_LRS", true, json!(100.0)),
        ("Premium_LRS", true, json!(100.0)),
        ("Premium_LRS", false, Value::Null),
        ("PremiumV2_LRS", true, json!(0.0)),
        ("UltraSSD_LRS", true, json!(0.0)),
    ] {
        let name = format!("{sku}-{incremental}");
        let (disk, snapshot) =
            (compute_id(&format!("disks/{name}")), compute_id(&format!("snapshots/{name}")));
        made(&client, &disk, empty(100, sku)).await;
        made(&client, &snapshot, copy(&disk, incremental)).await;
        assert_eq!(percent(&snapshot).await, at_first, "{name}");
    }
    let fast = compute_id("snapshots/PremiumV2_LRS-true");
    let second = compute_id("snapshots/second");
    made(&client, &second, copy(&fast, true)).await;
    assert_eq!(percent(&second).await, 0.0, "a snapshot of a snapshot of a fast disk is one of it");
    let restored = compute_id("disks/restored");
    let restore = |sku: &str| {
        body(
            "eastus",
            Some(sku),
            json!({ "creationData": { "createOption": "Copy", "sourceResourceId": fast } }),
        )
    };
    let early = client.put(&restored, restore("Premium_LRS")).await.refused(409, "OperationNotAllowed");
    assert!(early.message().contains("PremiumV2_LRS-true"), "{}", early.message());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(percent(&fast).await, 100.0);
    made(&client, &restored, restore("Premium_LRS")).await;
}

#[tokio::test(start_paused = true)]
async fn snapshots_with_instant_access_become_fast_disks_at_once() {
    let client = Client::with_group(Options::default()).await;
    let (disk, snapshot) = (compute_id("disks/fast"), compute_id("snapshots/fast"));
    made(&client, &disk, empty(4_000, "PremiumV2_LRS")).await;
    let mut wanted = copy(&disk, true);
    wanted["properties"]["creationData"]["instantAccessDurationMinutes"] = json!(5);
    made(&client, &snapshot, wanted).await;
    for (wait, sku, expected) in [
        (0, "PremiumV2_LRS", None),
        (0, "Premium_LRS", Some((409, "OperationNotAllowed", "0 percent"))),
        (300, "PremiumV2_LRS", Some((409, "OperationNotAllowed", "37 percent"))),
    ] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let id = compute_id(&format!("disks/of-{wait}-{sku}"));
        let creation = json!({ "createOption": "Copy", "sourceResourceId": snapshot });
        let reply = client.put(&id, body("eastus", Some(sku), json!({ "creationData": creation }))).await;
        check(reply, expected, &id);
    }
}

#[tokio::test(start_paused = true)]
async fn not_everything_can_be_copied_in_every_way() {
    let client = Client::with_group(Options::default()).await;
    let (disk, fast) = (compute_id("disks/usual"), compute_id("disks/fast"));
    made(&client, &disk, empty(64, "Premium_LRS")).await;
    made(&client, &fast, empty(64, "UltraSSD_LRS")).await;
    let (full, part) = (compute_id("snapshots/full"), compute_id("snapshots/part"));
    made(&client, &full, copy(&disk, false)).await;
    made(&client, &part, copy(&disk, true)).await;
    let set = compute_id("availabilitySets/set");
    client.put(&set, json!({ "location": "eastus", "properties": {} })).await.expect(200);
    let missing = |words: &'static str| Some((400, "InvalidParameter", words));
    let (far, near) = ("westus2", "eastus");
    let start = |source: &ResourceId, incremental: bool| json!({ "creationData": { "createOption": "CopyStart", "sourceResourceId": source }, "incremental": incremental });
    let small = |mut properties: Value| {
        properties["diskSizeGB"] = json!(32);
        properties
    };
    let plain = |source: &ResourceId, incremental: bool| copy(source, incremental)["properties"].take();
    for (kind, location, properties, expected) in [
        ("disks", near, json!({ "diskSizeGB": 4 }), missing("'disk.creationData' is missing")),
        (
            "disks",
            near,
            json!({ "creationData": {} }),
            missing("'disk.creationData.createOption' is missing"),
        ),
        (
            "disks",
            near,
            json!({ "creationData": { "createOption": "Copy" } }),
            missing("'disk.creationData.sourceResourceId' is missing"),
        ),
        (
            "snapshots",
            near,
            json!({ "creationData": { "createOption": "Copy" } }),
            missing("'snapshot.creationData.sourceResourceId' is missing"),
        ),
        (
            "disks",
            near,
            plain(&compute_id("disks/none"), false),
            Some((404, "NotFound", "disks/none is not found")),
        ),
        ("disks", near, plain(&set, false), missing("neither a disk nor a snapshot")),
        ("disks", far, plain(&part, false), Some((404, "NotFound", "Resource part is not found."))),
        ("snapshots", far, plain(&disk, true), Some((404, "NotFound", "Resource usual is not found."))),
        ("snapshots", far, plain(&part, true), Some((404, "NotFound", "Resource part is not found."))),
        ("snapshots", far, start(&part, true), None),
        ("snapshots", near, start(&part, true), None),
        ("snapshots", far, start(&disk, true), missing("'CopyStart'")),
        ("snapshots", far, start(&full, true), missing("'CopyStart'")),
        ("snapshots", far, start(&part, false), missing("'CopyStart'")),
        ("snapshots", near, plain(&fast, false), missing("incremental snapshots only")),
        ("snapshots", near, plain(&fast, true), None),
        ("snapshots", near, plain(&part, false), None),
        ("snapshots", near, small(plain(&disk, true)), missing("smaller than the 64 GiB of its source")),
        ("disks", near, small(plain(&part, false)), missing("smaller than the 64 GiB of its source")),
    ] {
        let id = compute_id(&format!("{kind}/new"));
        check(client.put(&id, body(location, None, properties.clone())).await, expected, &properties);
        if expected.is_none() {
            let gone = client.delete(&id).await.expect(202);
            client.wait(&gone).await;
        }
    }
    let sku = body(near, Some("StandardSSD_LRS"), plain(&disk, true));
    client.put(&compute_id("snapshots/new"), sku).await.refused(400, "InvalidParameter");
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_asked_for_what_its_kind_can_do() {
    let client = Client::with_group(Options::default()).await;
    let id = compute_id("disks/new");
    let shares = Some((400, "BadRequest", "MaxShares"));
    let alone = Some((400, "InvalidParameter", "is not allowed"));
    for (sku, gib, member, value, expected) in [
        ("Standard_LRS", 4_096, "maxShares", json!(1), None),
        ("Standard_LRS", 4_096, "maxShares", json!(2), shares),
        ("StandardSSD_LRS", 4, "maxShares", json!(3), None),
        ("StandardSSD_LRS", 512, "maxShares", json!(4), shares),
        ("Premium_ZRS", 513, "maxShares", json!(5), None),
        ("Premium_LRS", 4_096, "maxShares", json!(6), shares),
        ("Premium_LRS", 8_192, "maxShares", json!(10), None),
        ("Premium_LRS", 8_192, "maxShares", json!(11), shares),
        ("PremiumV2_LRS", 4, "maxShares", json!(15), None),
        ("UltraSSD_LRS", 4, "maxShares", json!(16), shares),
        ("UltraSSD_LRS", 4, "maxShares", json!(0), Some((400, "BadRequest", "MaxShares '0' for disk 'new'"))),
        ("UltraSSD_LRS", 64, "diskIOPSReadWrite", json!(1_000), None),
        ("PremiumV2_LRS", 64, "diskMBpsReadWrite", json!(200), None),
        ("Premium_LRS", 64, "diskIOPSReadWrite", json!(1_000), alone),
        ("StandardSSD_LRS", 64, "diskMBpsReadWrite", json!(200), alone),
    ] {
        let mut wanted = empty(gib, sku);
        wanted["properties"][member] = value.clone();
        let what = format!("{sku} {gib} {member} {value}");
        check(client.put(&id, wanted).await, expected, &what);
        if expected.is_none() {
            assert_eq!(client.get(&id).await.body["properties"][member], value, "{what}");
            client.delete(&id).await.expect(202);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_sends_back_what_a_disk_shows_asks_for_nothing() {
    let client = Client::with_group(Options::default()).await;
    let id = compute_id("disks/data");
    made(&client, &id, empty(64, "Premium_LRS")).await;
    let mut shown = client.get(&id).await.expect(200).body;
    shown["properties"]["diskSizeGB"] = json!(256);
    made(&client, &id, shown).await;
    let mut grown = client.get(&id).await.expect(200).body;
    let seen = |document: &Value| {
        let properties = &document["properties"];
        (properties["tier"].clone(), properties["diskIOPSReadWrite"].clone())
    };
    assert_eq!(seen(&grown), (json!("P15"), json!(1_100)), "figures follow the size");
    grown["sku"]["name"] = json!("StandardSSD_LRS");
    made(&client, &id, grown).await;
    let mut slow = client.get(&id).await.expect(200).body;
    assert_eq!(seen(&slow), (Value::Null, json!(500)));
    slow["properties"]["diskIOPSReadWrite"] = json!(501);
    client.put(&id, slow).await.refused(400, "InvalidParameter");
}

#[tokio::test(start_paused = true)]
async fn kinds_change_but_for_the_fast_ones() {
    let client = Client::with_group(Options::default()).await;
    let id = compute_id("disks/data");
    let path = format!("{id}?api-version=2025-01-02");
    for (from, to, allowed) in [
        ("Standard_LRS", "Premium_LRS", true),
        ("Premium_LRS", "PremiumV2_LRS", true),
        ("PremiumV2_LRS", "Premium_LRS", false),
        ("UltraSSD_LRS", "Premium_LRS", false),
        ("Premium_LRS", "UltraSSD_LRS", false),
    ] {
        made(&client, &id, empty(64, from)).await;
        let change = Some(json!({ "sku": { "name": to } }));
        let expected = (!allowed).then_some((409, "OperationNotAllowed", to));
        check(client.send("PATCH", &path, change, &[]).await, expected, &format!("{from} to {to}"));
        client.delete(&id).await.expect(202);
    }
}

#[tokio::test(start_paused = true)]
async fn sizes_follow_from_what_comes_from_outside() {
    let client = Client::with_group(Options::default()).await;
    let import = json!({ "createOption": "Import", "sourceUri": "https://somewhere/disk.vhd", "storageAccountId": "/x" });
    for (id, creation, gib) in
        [(compute_id("disks/c"), import.clone(), 30), (compute_id("snapshots/d"), import, 30)]
    {
        made(&client, &id, body("eastus", None, json!({ "creationData": creation }))).await;
        assert_eq!(client.get(&id).await.body["properties"]["diskSizeGB"], gib, "{id}");
    }
    let nothing = body("eastus", None, json!({ "creationData": { "createOption": "Empty" } }));
    client.put(&compute_id("disks/e"), nothing).await.refused(400, "InvalidParameter");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_becomes_fast_begins_with_the_figures_of_its_kind() {
    let client = Client::with_group(Options::default()).await;
    let disk = compute_id("disks/d");
    made(&client, &disk, empty(512, "Premium_LRS")).await;
    let mut shown = client.get(&disk).await.body;
    shown["sku"]["name"] = json!("PremiumV2_LRS");
    made(&client, &disk, shown).await;
    let properties = client.get(&disk).await.body["properties"].take();
    assert_eq!(
        (&properties["diskIOPSReadWrite"], &properties["diskMBpsReadWrite"]),
        (&json!(3_000), &json!(125))
    );
}

/// CSI baseline, difference 4 of the simulated Azure; "Expand virtual hard disks on a Linux VM".
#[tokio::test(start_paused = true)]
async fn a_disk_in_use_does_not_grow_across_4_tib() {
    let client = Client::with_group(Options { budgets: None, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/24").await;
    let nic = network_id("networkInterfaces/nic");
    let ip = json!({ "name": "ip", "properties": { "subnet": { "id": subnet } } });
    let with_ip = json!({ "location": "eastus", "properties": { "ipConfigurations": [ip] } });
    client.put(&nic, with_ip).await.expect(201);
    let vm = compute_id("virtualMachines/vm");
    let mut wanted = machine(&nic);
    wanted["zones"] = json!(["1"]);
    client.create(&vm, wanted).await;
    let refused = Some((409, "OperationNotAllowed", "cannot be resized to"));
    for (sku, from, to, power, expected) in [
        ("Premium_LRS", 1_024, 4_096, "start", None),
        ("Premium_LRS", 1_024, 4_097, "start", refused),
        ("Premium_LRS", 4_096, 8_192, "start", refused),
        ("Premium_LRS", 4_097, 8_192, "start", None),
        ("PremiumV2_LRS", 1_024, 8_192, "start", None),
        ("Premium_LRS", 1_024, 8_192, "powerOff", refused),
        ("Premium_LRS", 1_024, 8_192, "deallocate", None),
    ] {
        let what = format!("{sku} {from} to {to}, {power}");
        let disk = compute_id("disks/disk");
        let mut new = empty(from, sku);
        new["zones"] = json!(["1"]);
        made(&client, &disk, new).await;
        let disks = |list: Value| json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": list } } });
        let entry = json!([{ "lun": 0, "createOption": "Attach", "managedDisk": { "id": disk } }]);
        client.create(&vm, disks(entry)).await;
        client.post(&vm, power, json!({})).await.expect(202);
        let path = format!("{disk}?api-version=2025-01-02");
        let growth = json!({ "properties": { "diskSizeGB": to } });
        check(client.send("PATCH", &path, Some(growth.clone()), &[]).await, expected, &what);
        client.create(&vm, disks(json!([]))).await;
        check(client.send("PATCH", &path, Some(growth), &[]).await, None, &what);
        client.delete(&disk).await.expect(202);
    }
}

/// CSI baseline, difference 7 of the simulated Azure.
#[tokio::test(start_paused = true)]
async fn keys_and_private_access_are_there_and_fit() {
    let client = Client::with_group(Options::default()).await;
    let (keys, both) = (compute_id("diskEncryptionSets/keys"), compute_id("diskEncryptionSets/both"));
    let [customer, double, platform] = [
        "EncryptionAtRestWithCustomerKey",
        "EncryptionAtRestWithPlatformAndCustomerKeys",
        "EncryptionAtRestWithPlatformKey",
    ];
    for (set, way) in [(&keys, None), (&both, Some(double))] {
        client.create(set, body("eastus", None, json!({ "encryptionType": way }))).await;
    }
    let access = compute_id("diskAccesses/access");
    made(&client, &access, body("eastus", None, json!({}))).await;
    let gone = |kind: &str| compute_id(&format!("{kind}/none"));
    let encryption = |set: Option<&ResourceId>, way: Option<&str>| json!({ "encryption": { "diskEncryptionSetId": set, "type": way } });
    let absent = |what: &'static str| Some((400, "InvalidResourceReference", what));
    let wrong = |what: &'static str| Some((400, "InvalidParameter", what));
    let (no_set, no_access) = (gone("diskEncryptionSets"), gone("diskAccesses"));
    for (properties, expected) in [
        (encryption(Some(&keys), Some(customer)), None),
        (encryption(Some(&keys), None), None),
        (encryption(Some(&both), Some(double)), None),
        (encryption(None, Some(platform)), None),
        (encryption(Some(&no_set), Some(customer)), absent("diskEncryptionSets/none")),
        (
            encryption(Some(&keys), Some(double)),
            wrong("it is not the encryption type of the disk encryption set"),
        ),
        (
            encryption(Some(&keys), Some(platform)),
            wrong("it is not the encryption type of the disk encryption set"),
        ),
        (encryption(None, Some(customer)), wrong("'disk.encryption.diskEncryptionSetId' is missing")),
        (json!({ "networkAccessPolicy": "AllowPrivate", "diskAccessId": access }), None),
        (json!({ "networkAccessPolicy": "AllowPrivate" }), wrong("'disk.diskAccessId' is missing")),
        (
            json!({ "networkAccessPolicy": "AllowPrivate", "diskAccessId": no_access }),
            absent("diskAccesses/none"),
        ),
        (
            json!({ "networkAccessPolicy": "DenyAll", "diskAccessId": access }),
            wrong("for AllowPrivate alone"),
        ),
    ] {
        let disk = compute_id("disks/disk");
        let mut wanted = empty(8, "Premium_LRS");
        for (member, value) in properties.as_object().unwrap() {
            wanted["properties"][member] = value.clone();
        }
        check(client.put(&disk, wanted).await, expected, &properties);
        if expected.is_none() {
            let shown = client.get(&disk).await.expect(200).body;
            for used in [&keys, &both, &access] {
                let uses = shown["properties"].to_string().contains(used.as_str());
                let held = Some((409, "OperationNotAllowed", "while it is used by"));
                if uses {
                    check(client.delete(used).await, held, &properties);
                }
            }
            client.delete(&disk).await.expect(202);
        }
    }
    let gone = client.delete(&access).await.expect(202);
    client.wait(&gone).await;
    client.get(&access).await.refused(404, "ResourceNotFound");
}

/// CSI 3.13: a change of kind copies in the background, one at a time.
#[tokio::test(start_paused = true)]
async fn a_disk_that_becomes_fast_is_copied_in_the_background() {
    let client = Client::with_group(Options::default()).await;
    let (disk, snapshot, restored) =
        (compute_id("disks/disk"), compute_id("snapshots/snapshot"), compute_id("disks/restored"));
    made(&client, &disk, empty(100, "Premium_LRS")).await;
    made(&client, &snapshot, copy(&disk, true)).await;
    let percent = async |id: &ResourceId| {
        client.get(id).await.expect(200).body["properties"]["completionPercent"].as_f64()
    };
    assert_eq!(percent(&disk).await, None);
    let kind = |sku: &str| json!({ "sku": { "name": sku } });
    let path = format!("{disk}?api-version=2025-01-02");
    let patch = async |change: Value| client.send("PATCH", &path, Some(change), &[]).await;
    patch(kind("PremiumV2_LRS")).await.expect(202);
    made(
        &client,
        &restored,
        body("eastus", Some("PremiumV2_LRS"), copy(&snapshot, true)["properties"].take()),
    )
    .await;
    for changed in [&disk, &restored] {
        assert_eq!(percent(changed).await, Some(0.0), "{changed}");
    }
    let copied = Some((409, "OperationNotAllowed", "while its data are copied in the background"));
    check(patch(kind("Premium_LRS")).await, copied, &"another kind");
    check(patch(json!({ "properties": { "diskSizeGB": 200 } })).await, copied, &"another size");
    check(patch(json!({ "properties": { "diskIOPSReadWrite": 4_000 } })).await, None, &"other figures");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(percent(&disk).await, Some(25.0));
    tokio::time::sleep(Duration::from_secs(15)).await;
    for changed in [&disk, &restored] {
        assert_eq!(percent(changed).await, Some(100.0), "{changed}");
    }
    check(patch(json!({ "properties": { "diskSizeGB": 200 } })).await, None, &"it is complete");
}
