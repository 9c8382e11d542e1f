//! Disks come to a machine and leave it when the operation ends (CSI baseline, differences of the simulated Azure 1,
//! 2, 9 and 10; CSI 3.10).

use std::time::Duration;

use crate::common::{Client, Reply, check, compute_id, machine, network_id, scale_set};
use axum::body::Body;
use azure_simulator::imds::MetadataService;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// How long a change of a machine takes.
const CHANGE: Duration = Duration::from_secs(20);
/// How long a disk names a machine that is gone.
const RELEASE: Duration = Duration::from_secs(15);

struct World {
    client: Client,
    /// Two machines of each kind, by the name of the kind.
    machines: Vec<(&'static str, [ResourceId; 2])>,
}

impl World {
    async fn new() -> Self {
        let latency = LatencyProfile::instant()
            .with("*", "*/virtualMachines", CHANGE)
            .with("*", "*/virtualMachines/attachDetachDataDisks", CHANGE)
            .with("POST", "*/disks/release", RELEASE);
        let client = Client::with_group(Options { latency, ..Options::default() }).await;
        let subnet = client.network("10.1.0.0/24").await;
        let alone = ["one", "two"].map(|name| compute_id(&format!("virtualMachines/{name}")));
        for id in &alone {
            let nic = network_id(&format!("networkInterfaces/{}", id.name()));
            let ip = json!({ "name": "ip", "properties": { "subnet": { "id": subnet } } });
            let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [ip] } });
            client.put(&nic, body).await.expect(201);
            client.create(id, machine(&nic)).await;
        }
        let set = |name: &str| compute_id(&format!("virtualMachineScaleSets/{name}"));
        let mut uniform = scale_set(2, &subnet, &[]);
        uniform.as_object_mut().unwrap().remove("zones");
        let mut flexible = uniform.clone();
        client.create(&set("uniform"), uniform).await;
        let storage = machine(&alone[0])["properties"]["storageProfile"].take();
        flexible["properties"]["orchestrationMode"] = json!("Flexible");
        let profile = &mut flexible["properties"]["virtualMachineProfile"];
        profile["storageProfile"] = storage;
        profile["networkProfile"]["networkApiVersion"] = json!("2020-11-01");
        client.create(&set("flexible"), flexible).await;
        let members = client.azure.documents_of_type("Microsoft.Compute/virtualMachines");
        let members: Vec<ResourceId> = members
            .iter()
            .filter(|machine| machine["properties"].get("virtualMachineScaleSet").is_some())
            .map(|machine| ResourceId::parse(machine["id"].as_str().unwrap()).unwrap())
            .collect();
        let uniform = ["0", "1"].map(|number| set("uniform").child("virtualMachines", number));
        let members: [ResourceId; 2] = members.try_into().unwrap();
        Self { client, machines: vec![("standalone", alone), ("flexible", members), ("uniform", uniform)] }
    }

    async fn disk(&self, name: &str) -> ResourceId {
        let id = compute_id(&format!("disks/{name}"));
        let creation = json!({ "createOption": "Empty" });
        let body =
            json!({ "location": "eastus", "properties": { "creationData": creation, "diskSizeGB": 8 } });
        let reply = self.client.put(&id, body).await.expect(202);
        self.client.wait(&reply).await;
        id
    }

    async fn change(&self, way: &str, machine: &ResourceId, disks: &[Value]) -> Reply {
        let path = format!("{machine}?api-version=2025-04-01");
        let body =
            json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": disks } } });
        let body = match way {
            "PATCH" if !machine.as_str().contains("virtualMachineScaleSets") => {
                json!({ "properties": body["properties"] })
            }
            _ => body,
        };
        self.client.send(way, &path, Some(body), &[]).await
    }

    /// The disks that a machine lists: name, and whether it leaves.
    async fn listed(&self, machine: &ResourceId) -> Vec<(String, bool)> {
        let document = self.client.get(machine).await.expect(200).body;
        let list = document["properties"]["storageProfile"]["dataDisks"].as_array().cloned();
        let entry = |entry: Value| {
            (entry["name"].as_str().unwrap().to_owned(), entry["toBeDetached"].as_bool().unwrap())
        };
        list.unwrap_or_default().into_iter().map(entry).collect()
    }

    /// The state of a disk, and who has it.
    async fn held(&self, disk: &ResourceId) -> (String, Option<String>) {
        let document = self.client.get(disk).await.expect(200).body;
        let by = document["managedBy"].as_str().map(str::to_owned);
        (document["properties"]["diskState"].as_str().unwrap().to_owned(), by)
    }

    async fn fail_next(&self) {
        let fault = json!({ "resourceType": "*/virtualMachines", "count": 1,
            "action": { "do": "failOperation", "code": "InternalExecutionError" } });
        self.client.azure.inject(serde_json::from_value(fault).unwrap());
    }
}

fn entry(lun: u64, disk: &ResourceId) -> Value {
    json!({ "lun": lun, "createOption": "Attach", "managedDisk": { "id": disk } })
}

fn leaving(lun: u64, disk: &ResourceId) -> Value {
    let mut entry = entry(lun, disk);
    entry["toBeDetached"] = json!(true);
    entry
}

fn free() -> (String, Option<String>) {
    ("Unattached".into(), None)
}

/// A machine as its disks show it.
fn with(machine: &ResourceId) -> (String, Option<String>) {
    let shown = match machine.as_str().contains("virtualMachineScaleSets") {
        true => machine.parent().unwrap().child("virtualMachines", &format!("uniform_{}", machine.name())),
        false => machine.clone(),
    };
    ("Attached".into(), Some(shown.to_string()))
}

#[tokio::test(start_paused = true)]
async fn disks_come_and_leave_when_the_operation_ends() {
    let world = World::new().await;
    for (kind, [one, two]) in &world.machines {
        for way in ["PUT", "PATCH"] {
            let what = format!("{kind} {way}");
            let (stays, goes) =
                (world.disk(&format!("{kind}-{way}-s")).await, world.disk(&format!("{kind}-{way}-g")).await);
            let listed = |stays_leaves, goes_leaves| {
                vec![(stays.name().to_owned(), stays_leaves), (goes.name().to_owned(), goes_leaves)]
            };
            let reply = world.change(way, one, &[entry(0, &stays), entry(1, &goes)]).await;
            assert!(reply.status < 300, "{what}: {}", reply.body);
            assert_eq!(world.listed(one).await, listed(false, false), "{what}: what is wanted");
            assert_eq!(world.held(&goes).await, free(), "{what}: it comes");
            let taken = Some((409, "ConflictingUserInput", "is already owned by VM"));
            check(world.change(way, two, &[entry(0, &goes)]).await, taken, &what);
            let busy = Some((409, "Conflict", "concurrent request"));
            check(world.change(way, one, &[entry(0, &stays)]).await, busy, &what);
            world.client.delete(&goes).await.refused(409, "OperationNotAllowed");
            world.client.wait(&reply).await;
            assert_eq!(world.held(&goes).await, with(one), "{what}: it came");
            // Marked, or left out of the list: both detach.
            let mut wanted = vec![entry(0, &stays)];
            if way == "PUT" {
                wanted.push(leaving(1, &goes));
            }
            let reply = world.change(way, one, &wanted).await;
            assert!(reply.status < 300, "{what}: {}", reply.body);
            assert_eq!(world.listed(one).await, listed(false, true), "{what}: it leaves");
            assert_eq!(world.held(&goes).await, with(one), "{what}: it leaves");
            let away = Some((409, "AttachDiskWhileBeingDetached", "is currently being detached"));
            check(world.change(way, two, &[entry(0, &goes)]).await, away, &what);
            world.client.delete(&goes).await.refused(409, "OperationNotAllowed");
            world.client.wait(&reply).await;
            assert_eq!(world.listed(one).await, listed(false, true)[..1].to_vec(), "{what}: it left");
            assert_eq!(world.held(&goes).await, free(), "{what}: it left");
            let reply = world.change(way, two, &[entry(0, &goes)]).await;
            world.client.wait(&reply).await;
            assert_eq!(world.held(&goes).await, with(two), "{what}: it moved");
            for machine in [one, two] {
                let reply = world.change(way, machine, &[]).await;
                world.client.wait(&reply).await;
                assert_eq!(world.listed(machine).await, [], "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn disks_come_and_leave_by_the_action_when_it_ends() {
    let world = World::new().await;
    for (kind, [one, two]) in &world.machines {
        let disk = world.disk(kind).await;
        let attach = json!({ "dataDisksToAttach": [{ "diskId": disk }] });
        let detach = json!({ "dataDisksToDetach": [{ "diskId": disk }] });
        let act = async |machine: &ResourceId, body: &Value| {
            world.client.post(machine, "attachDetachDataDisks", body.clone()).await
        };
        let reply = act(one, &attach).await.expect(202);
        assert_eq!(world.held(&disk).await, free(), "{kind}");
        act(two, &attach).await.refused(409, "ConflictingUserInput");
        world.client.wait(&reply).await;
        assert_eq!(world.held(&disk).await, with(one), "{kind}");
        let reply = act(one, &detach).await.expect(202);
        assert_eq!(world.listed(one).await, [(kind.to_string(), true)], "{kind}");
        assert_eq!(world.held(&disk).await, with(one), "{kind}");
        act(two, &attach).await.refused(409, "AttachDiskWhileBeingDetached");
        world.client.wait(&reply).await;
        assert_eq!((world.listed(one).await, world.held(&disk).await), (vec![], free()), "{kind}");
        let shown = world.client.get(one).await.body["properties"]["provisioningState"].take();
        assert_eq!(shown, "Succeeded", "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_changes_nothing() {
    let world = World::new().await;
    for (kind, [one, two]) in &world.machines {
        let (has, wants) = (world.disk(&format!("{kind}-has")).await, world.disk(kind).await);
        let reply = world.change("PUT", one, &[entry(0, &has)]).await;
        world.client.wait(&reply).await;
        let new =
            json!({ "lun": 2, "createOption": "Empty", "name": format!("{kind}-new"), "diskSizeGB": 4 });
        world.fail_next().await;
        let reply = world.change("PUT", one, &[leaving(0, &has), entry(1, &wants), new]).await;
        assert!(reply.status < 300, "{kind}: {}", reply.body);
        assert_eq!(world.listed(one).await.len(), 3, "{kind}");
        assert_eq!(world.client.wait(&reply).await["status"], "Failed", "{kind}");
        assert_eq!(world.listed(one).await, [(format!("{kind}-has"), false)], "{kind}");
        assert_eq!((world.held(&has).await, world.held(&wants).await), (with(one), free()), "{kind}");
        let gone = compute_id(&format!("disks/{kind}-new"));
        assert_eq!(world.client.get(&gone).await.status, 404, "{kind}: what was made for the machine goes");
        let state = world.client.get(one).await.body["properties"]["provisioningState"].take();
        assert_eq!(state, "Failed", "{kind}");
        let reply = world.change("PUT", two, &[entry(0, &wants)]).await;
        world.client.wait(&reply).await;
        assert_eq!(world.held(&wants).await, with(two), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_detached_by_force_while_another_change_is_stuck() {
    let world = World::new().await;
    for (kind, [one, _]) in &world.machines {
        let (stuck, other) = (world.disk(&format!("{kind}-stuck")).await, world.disk(kind).await);
        let reply = world.change("PUT", one, &[entry(0, &stuck), entry(1, &other)]).await;
        world.client.wait(&reply).await;
        let fault =
            json!({ "resourceType": "*/virtualMachines", "count": 1, "action": { "do": "stallOperation" } });
        world.client.azure.inject(serde_json::from_value(fault).unwrap());
        let first = world.change("PUT", one, &[leaving(0, &stuck), entry(1, &other)]).await;
        assert!(first.status < 300, "{kind}: {}", first.body);
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(world.held(&stuck).await, with(one), "{kind}");
        // Without force, other changes wait.
        let again = world.change("PUT", one, &[leaving(0, &stuck), entry(1, &other)]).await;
        again.refused(409, "Conflict");
        let back = |mut entry: Value| {
            entry["detachOption"] = json!("ForceDetach");
            entry
        };
        let attach = world.change("PUT", one, &[entry(0, &stuck), back(leaving(1, &other))]).await;
        attach.refused(409, "AttachDiskWhileBeingDetached");
        let forced = world.change("PUT", one, &[back(leaving(0, &stuck)), entry(1, &other)]).await;
        assert!(forced.status < 300, "{kind}: {}", forced.body);
        let end = world.client.wait(&first).await;
        assert_eq!(
            (&end["status"], &end["error"]["code"]),
            (&json!("Canceled"), &json!("DataDisksForceDetached")),
            "{kind}"
        );
        assert_eq!(world.held(&stuck).await, with(one), "{kind}: until the operation ends");
        assert_eq!(world.client.wait(&forced).await["status"], "Succeeded");
        assert_eq!((world.held(&stuck).await, world.held(&other).await), (free(), with(one)), "{kind}");
        assert_eq!(world.listed(one).await, [(other.name().to_owned(), false)], "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_names_a_machine_that_is_gone_for_a_while() {
    let world = World::new().await;
    for (kind, [one, two]) in &world.machines {
        let disk = world.disk(kind).await;
        let reply = world.change("PUT", one, &[entry(0, &disk)]).await;
        world.client.wait(&reply).await;
        let reply = world.client.delete(one).await;
        world.client.wait(&reply).await;
        assert!(world.client.get(one).await.status >= 400, "{kind}");
        assert_eq!(world.held(&disk).await, with(one), "{kind}");
        world.change("PUT", two, &[entry(0, &disk)]).await.refused(409, "ConflictingUserInput");
        world.client.delete(&disk).await.refused(409, "OperationNotAllowed");
        tokio::time::sleep(RELEASE).await;
        assert_eq!(world.held(&disk).await, free(), "{kind}");
        let reply = world.change("PUT", two, &[entry(0, &disk)]).await;
        world.client.wait(&reply).await;
        assert_eq!(world.held(&disk).await, with(two), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_shows_when_its_owner_changed_last() {
    let world = World::new().await;
    let [one, _] = &world.machines[0].1;
    let disk = world.disk("data").await;
    let last = async || {
        let path = format!("{disk}?api-version=2025-01-02");
        let mut shown = world.client.send("GET", &path, None, &[]).await.expect(200).body;
        shown["properties"]["LastOwnershipUpdateTime"].take().as_str().map(str::to_owned)
    };
    assert_eq!(last().await, None, "no machine has had it");
    let mut before = last().await;
    for step in ["attach", "deallocate", "start", "detach"] {
        let reply = match step {
            "attach" => world.change("PUT", one, &[entry(0, &disk)]).await,
            "detach" => world.change("PUT", one, &[]).await,
            action => world.client.post(one, action, json!({})).await,
        };
        assert_eq!(last().await, before, "{step} has begun");
        world.client.wait(&reply).await;
        let after = last().await;
        assert!(after > before, "{step}: {after:?} after {before:?}");
        before = after;
    }
    let reply = world.client.post(one, "restart", json!({})).await;
    world.client.wait(&reply).await;
    assert_eq!(last().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_machine_reads_the_disks_that_it_has() {
    let world = World::new().await;
    let service = MetadataService::new(world.client.azure.clone()).router();
    for (kind, [one, _]) in &world.machines {
        let disk = world.disk(kind).await;
        let seen = async || {
            let name = match *kind {
                "uniform" => format!("uniform_{}", one.name()),
                _ => one.name().to_owned(),
            };
            let path = "metadata/instance/compute/storageProfile/dataDisks?api-version=2021-10-01";
            let request = Request::builder().uri(format!("/instances/{name}/{path}"));
            let request = request.header("Metadata", "true").body(Body::empty()).unwrap();
            let answer = service.clone().oneshot(request).await.unwrap();
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let disks: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
            disks.len()
        };
        let reply = world.change("PUT", one, &[entry(0, &disk)]).await;
        assert_eq!(seen().await, 0, "{kind}: it comes");
        world.client.wait(&reply).await;
        assert_eq!(seen().await, 1, "{kind}: it came");
        let reply = world.change("PUT", one, &[]).await;
        assert_eq!(seen().await, 1, "{kind}: it leaves");
        world.client.wait(&reply).await;
        assert_eq!(seen().await, 0, "{kind}: it left");
    }
}
