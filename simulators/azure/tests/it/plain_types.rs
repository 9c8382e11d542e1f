//! Types that are tables: images, galleries, placement groups, reservations, hosts, encryption sets, bastion hosts; the
//! catalogue of images, and the health of resources.

use crate::common::*;
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

async fn read(client: &Client, path: &str) -> Reply {
    client.send("GET", &format!("{path}?api-version={COMPUTE_VERSION}"), None, &[]).await
}

#[tokio::test(start_paused = true)]
async fn documents_are_kept_filled_in_and_refused() {
    let client = Client::with_group(Options::default()).await;
    let gallery = compute_id("galleries/g");
    let image = gallery.child("images", "i");
    let reservations = compute_id("capacityReservationGroups/c");
    let hosts = compute_id("hostGroups/h");
    let properties = |properties: Value| json!({ "location": "eastus", "properties": properties });
    let identifier = json!({ "publisher": "p", "offer": "o", "sku": "s" });
    let sized = json!({ "location": "eastus", "sku": { "name": "Standard_D2s_v3", "capacity": 3 }, "properties": {} });
    for (id, body, path, expected) in [
        (
            compute_id("images/own"),
            properties(json!({ "storageProfile": {} })),
            "/properties/hyperVGeneration",
            json!("V1"),
        ),
        (gallery.clone(), properties(json!({ "description": "d" })), "/properties/description", json!("d")),
        (
            image.clone(),
            properties(json!({ "osType": "linux", "identifier": identifier })),
            "/properties/osType",
            json!("Linux"),
        ),
        (
            image.child("versions", "1.0.0"),
            properties(json!({ "storageProfile": { "source": {} } })),
            "/properties/provisioningState",
            json!("Succeeded"),
        ),
        (
            compute_id("proximityPlacementGroups/p"),
            properties(json!({})),
            "/properties/proximityPlacementGroupType",
            json!("Standard"),
        ),
        (
            compute_id("diskEncryptionSets/d"),
            properties(json!({ "activeKey": { "keyUrl": "https://v.vault.azure.net/keys/k/1" } })),
            "/properties/encryptionType",
            json!("EncryptionAtRestWithCustomerKey"),
        ),
        (reservations.clone(), properties(json!({})), "/location", json!("eastus")),
        (reservations.child("capacityReservations", "r"), sized.clone(), "/sku/capacity", json!(3)),
        (
            hosts.clone(),
            properties(json!({ "platformFaultDomainCount": 2 })),
            "/properties/platformFaultDomainCount",
            json!(2),
        ),
        (hosts.child("hosts", "one"), sized, "/properties/autoReplaceOnFailure", json!(true)),
    ] {
        let made = client.put(&id, body).await;
        assert!(made.status < 300, "{id}: {}", made.body);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let read = client.get(&id).await.expect(200).body;
        assert_eq!(read.pointer(path), Some(&expected), "{read}");
    }
    let listed = client.get(&reservations).await.body;
    let reservation = reservations.child("capacityReservations", "r");
    assert_eq!(listed["properties"]["capacityReservations"], json!([{ "id": reservation }]));
    for (id, body) in [
        (gallery.child("images", "bad"), properties(json!({ "osType": "Linux" }))),
        (gallery.child("images", "bad"), properties(json!({ "osType": "BeOS", "identifier": {} }))),
        (compute_id("hostGroups/bad"), properties(json!({ "platformFaultDomainCount": 9 }))),
        (hosts.child("hosts", "bad"), properties(json!({}))),
    ] {
        assert_eq!(client.put(&id, body).await.status, 400, "{id}");
    }
    // What has children stays until they are gone.
    for id in [&gallery, &image, &reservations, &hosts] {
        client.delete(id).await.refused(409, "CannotDeleteResource");
    }
    client.delete(&image.child("versions", "1.0.0")).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(client.delete(&image).await.status < 300);
}

#[tokio::test(start_paused = true)]
async fn machines_name_images_and_groups_that_are_there() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let nic = network_id("networkInterfaces/n");
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "ip", "properties": { "subnet": { "id": subnet } } }] } });
    client.put(&nic, body).await.expect(201);
    let image = compute_id("galleries/g").child("images", "i");
    let id = compute_id("virtualMachines/m");
    let mut model = machine(&nic);
    let reference = |id: &ResourceId| json!({ "id": id });
    model["properties"]["storageProfile"]["imageReference"] = reference(&image.child("versions", "1.0.0"));
    client.put(&id, model.clone()).await.refused(404, "GalleryImageNotFound");
    let mut own = model.clone();
    own["properties"]["storageProfile"]["imageReference"] = reference(&compute_id("images/absent"));
    client.put(&id, own).await.refused(404, "ImageNotFound");
    let mut set = scale_set(1, &subnet, &[]);
    set["properties"]["virtualMachineProfile"]["storageProfile"] =
        json!({ "imageReference": reference(&image) });
    client
        .put(&compute_id("virtualMachineScaleSets/s"), set.clone())
        .await
        .refused(404, "GalleryImageNotFound");
    client.create(&compute_id("galleries/g"), json!({ "location": "eastus" })).await;
    let definition = json!({ "location": "eastus", "properties": { "osType": "Linux",
        "identifier": { "publisher": "p", "offer": "o", "sku": "s" } } });
    client.create(&image, definition).await;
    client.create(&compute_id("virtualMachineScaleSets/s"), set).await;
    model["properties"]["storageProfile"]["imageReference"] =
        json!({ "communityGalleryImageId": "/CommunityGalleries/c/Images/i/Versions/1.30.0" });
    let placement = compute_id("proximityPlacementGroups/p");
    model["properties"]["proximityPlacementGroup"] = reference(&placement);
    assert!(client.put(&id, model.clone()).await.status >= 400, "there is no such group");
    client.put(&placement, json!({ "location": "eastus" })).await.expect(201);
    client.create(&id, model).await;
    let shown = client.get(&placement).await.body;
    assert_eq!(shown["properties"]["virtualMachines"], json!([{ "id": id }]));
    client.delete(&placement).await.refused(409, "OperationNotAllowed");
    // The machine's health follows its power.
    let health = format!("{id}/providers/Microsoft.ResourceHealth/availabilityStatuses/current");
    let state =
        async || read(&client, &health).await.expect(200).body["properties"]["availabilityState"].clone();
    assert_eq!(state().await, "Available");
    let off = client.post(&id, "deallocate", Value::Null).await.expect(202);
    client.wait(&off).await;
    assert_eq!(state().await, "Unavailable");
    let all =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ResourceHealth/availabilityStatuses");
    assert_eq!(read(&client, &all).await.expect(200).body["value"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_bastion_host_uses_a_subnet_and_an_address() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let ip = client.public_ip("ip").await;
    let id = network_id("bastionHosts/b");
    let configured = |subnet: &ResourceId| {
        json!({ "location": "eastus", "sku": { "name": "standard" }, "properties": { "enableTunneling": true,
            "ipConfigurations": [{ "name": "c", "properties": {
                "subnet": { "id": subnet }, "publicIPAddress": { "id": ip } } }] } })
    };
    let nowhere = network_id("virtualNetworks/net").child("subnets", "absent");
    client.put(&id, configured(&nowhere)).await.refused(400, "InvalidResourceReference");
    let made = client.create(&id, configured(&subnet)).await;
    assert_eq!((&made["sku"]["name"], &made["properties"]["scaleUnits"]), (&json!("Standard"), &json!(2)));
    client.delete(&ip).await.refused(400, "PublicIPAddressCannotBeDeleted");
    assert!(client.delete(&id).await.status < 300);
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_leads_from_publishers_to_versions() {
    let client = Client::with_group(Options::default()).await;
    let base =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/eastus/publishers");
    let capi = format!("{base}/cncf-upstream/artifacttypes/vmimage/offers");
    for (path, expected) in [
        (base.clone(), vec!["Canonical", "Debian", "MicrosoftWindowsServer", "cncf-upstream"]),
        (capi.clone(), vec!["capi", "capi-windows"]),
        (format!("{capi}/capi/skus"), vec!["ubuntu-2204-gen1"]),
        (format!("{capi}/capi/skus/ubuntu-2204-gen1/versions"), vec!["129.7.20240717", "130.3.20240717"]),
    ] {
        let reply = read(&client, &path).await.expect(200);
        let names: Vec<&str> =
            reply.body.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{path}");
    }
    let version = format!("{capi}/capi/skus/ubuntu-2204-gen1/versions/130.3.20240717");
    let shown = read(&client, &version).await.expect(200).body;
    assert_eq!(shown["properties"]["osDiskImage"]["operatingSystem"], "Linux");
    read(&client, &format!("{base}/nobody/artifacttypes/vmimage/offers")).await.refused(404, "NotFound");
}

/// What `locations/{location}/{below}` answers.
async fn at_location(client: &Client, location: &str, below: &str) -> Reply {
    let path =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/{location}/{below}");
    client.send("GET", &format!("{path}?api-version=2024-03-03"), None, &[]).await
}

fn names(reply: Reply) -> Vec<String> {
    let list = reply.expect(200).body;
    list["value"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn machines_are_made_of_images_in_community_galleries() {
    const GALLERY: &str = "ClusterAPI-f72ceb4f-5159-4c26-a0fe-2ea738f0d019";
    let client = Client::with_group(Options::default()).await;
    let image = format!("communityGalleries/{GALLERY}/images/capi-ubun2-2404");
    let version =
        at_location(&client, "westeurope", &format!("{image}/versions/1.34.1")).await.expect(200).body;
    let unique = format!("/CommunityGalleries/{GALLERY}/Images/capi-ubun2-2404/Versions/1.34.1");
    assert_eq!(version["identifier"]["uniqueId"], unique);
    assert_eq!(version["location"], "westeurope");
    let definition = at_location(&client, "eastus", &image).await.expect(200).body;
    assert_eq!(definition["properties"]["osType"], "Linux");
    assert_eq!(names(at_location(&client, "eastus", "communityGalleries").await), [GALLERY]);
    assert!(
        names(at_location(&client, "eastus", &format!("{image}/versions")).await).contains(&"1.30.4".into())
    );
    for absent in [format!("{image}/versions/1.30.3"), format!("communityGalleries/{GALLERY}/images/none")] {
        at_location(&client, "eastus", &absent).await.refused(404, "NotFound");
    }
    let subnet = client.network("10.0.0.0/16").await;
    let nic = network_id("networkInterfaces/n");
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "ip", "properties": { "subnet": { "id": subnet } } }] } });
    client.put(&nic, body).await.expect(201);
    for (version, known) in [("1.34.1", true), ("1.30.3", false), ("1.99.0", false), ("latest", true)] {
        let id = format!("/CommunityGalleries/{GALLERY}/Images/capi-ubun2-2404/Versions/{version}");
        let reference = json!({ "communityGalleryImageId": id });
        let mut set = scale_set(1, &subnet, &[]);
        set["properties"]["virtualMachineProfile"]["storageProfile"] = json!({ "imageReference": reference });
        let mut model = machine(&nic);
        model["properties"]["storageProfile"]["imageReference"] = reference;
        for (id, body) in [("virtualMachineScaleSets/s", set), ("virtualMachines/m", model)] {
            let id = compute_id(id);
            let reply = client.put(&id, body).await;
            match known {
                true => {
                    reply.expect(201);
                    client.delete(&id).await.expect(202);
                }
                false => {
                    let refused = reply.refused(404, "GalleryImageNotFound");
                    assert!(refused.message().contains("is not available in eastus region"));
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn galleries_are_shared_with_others_and_with_everybody() {
    let client = Client::with_group(Options::default()).await;
    for (name, profile) in [
        ("own", json!({})),
        ("ours", json!({ "permissions": "Groups" })),
        (
            "all",
            json!({ "permissions": "Community", "communityGalleryInfo": { "publicNamePrefix": "open" } }),
        ),
    ] {
        let gallery = compute_id(&format!("galleries/{name}"));
        let body = json!({ "location": "eastus", "properties": { "sharingProfile": profile } });
        client.create(&gallery, body).await;
        let image = gallery.child("images", "i");
        let definition = json!({ "location": "eastus", "properties": { "osType": "Linux",
            "identifier": { "publisher": "p", "offer": "o", "sku": "s" } } });
        client.create(&image, definition).await;
        let version = json!({ "location": "eastus", "properties": { "storageProfile": { "osDiskImage": {} },
            "publishingProfile": { "targetRegions": [{ "name": "West Europe" }] } } });
        client.create(&image.child("versions", "1.0.0"), version).await;
    }
    let shared = names(at_location(&client, "eastus", "sharedGalleries").await);
    assert_eq!(shared, [format!("{SUBSCRIPTION}-OURS")]);
    let community = names(at_location(&client, "eastus", "communityGalleries").await);
    let open = community.iter().find(|name| name.starts_with("open-")).unwrap();
    for (location, some) in [("eastus", true), ("westeurope", true), ("westus", false)] {
        let versions =
            at_location(&client, location, &format!("communityGalleries/{open}/images/i/versions")).await;
        assert_eq!(names(versions).len(), usize::from(some), "{location}");
    }
    let subnet = client.network("10.0.0.0/16").await;
    for (member, id, known) in [
        ("sharedGalleryImageId", format!("/SharedGalleries/{}/Images/i/Versions/1.0.0", shared[0]), true),
        ("sharedGalleryImageId", format!("/SharedGalleries/{}/Images/i/Versions/2.0.0", shared[0]), false),
        ("communityGalleryImageId", format!("/CommunityGalleries/{open}/Images/i/Versions/1.0.0"), true),
        ("communityGalleryImageId", format!("/CommunityGalleries/{open}/Images/j/Versions/1.0.0"), false),
    ] {
        let mut set = scale_set(1, &subnet, &[]);
        set["properties"]["virtualMachineProfile"]["storageProfile"] =
            json!({ "imageReference": { member: id } });
        let reply = client.put(&compute_id(&format!("virtualMachineScaleSets/s-{known}")), set).await;
        match known {
            true => assert!(matches!(reply.status, 200 | 201), "{id}"),
            false => drop(reply.refused(404, "GalleryImageNotFound")),
        }
    }
}
