//! AzureMachines that fail, take long, or are changed by others.

use std::time::Duration;

use azure_simulator::{Consistency, Fault, FaultAction, LatencyProfile};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::world::World;

const MACHINE: &str = "AzureMachine";

fn vm(world: &World, name: &str) -> ResourceId {
    world.group("my-cluster").resource("Microsoft.Compute", "virtualMachines", name)
}

fn is_ready(world: &World, name: &str) -> bool {
    world.get(MACHINE, name).is_some_and(|it| it["status"]["ready"] == true)
}

async fn cluster(latency: LatencyProfile) -> World {
    let mut world = World::with(latency, 1);
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world
}

/// CAPZ-109, CAPZ-110, CAPZ-111: a terminal failure is reported in status and event, and not retried.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_had_is_told_and_not_tried_again() {
    let world = cluster(LatencyProfile::instant()).await;
    let ephemeral = json!({ "vmSize": "Standard_D2s_v5",
        "osDisk": { "osType": "Linux", "diskSizeGB": 30, "diffDiskSettings": { "option": "Local" }, "cachingType": "ReadOnly" } });
    for (name, spec, reason, event) in [
        ("tiny", json!({ "vmSize": "Standard_B1s" }), "CreateError", "ReconcileError"),
        ("unknown", json!({ "vmSize": "Standard_Unknown" }), "InvalidConfiguration", "SKUNotFound"),
        ("ephemeral", ephemeral, "CreateError", "ReconcileError"),
    ] {
        world.machine("my-cluster", name, json!({}), spec);
        world
            .until(name, |world| world.get(MACHINE, name).unwrap()["status"]["failureReason"] == reason)
            .await;
        let status = world.get(MACHINE, name).unwrap()["status"].clone();
        assert!(status["failureMessage"].as_str().is_some_and(|words| !words.is_empty()));
        assert_eq!(status["ready"], false);
        let conditions = status["conditions"].as_array().unwrap();
        let told = |it: &Value| {
            it["type"] == "Ready" && it["severity"] == "Error" && it["message"] == status["failureMessage"]
        };
        assert!(conditions.iter().any(told), "kubectl get -o wide shows the condition Ready: {status:#}");
        world.until(event, |world| world.events(MACHINE, name).contains(&event.to_owned())).await;
        assert!(world.azure.document(&vm(&world, name)).is_none());
    }
    let sequence = world.sequence();
    let events = world.events(MACHINE, "tiny");
    tokio::time::sleep(Duration::from_secs(550)).await;
    assert_eq!(world.machine_calls_after(sequence), Vec::<String>::new());
    assert_eq!(world.requests_after(sequence).1, 0);
    assert_eq!(world.events(MACHINE, "tiny"), events);
}

fn message(world: &World, name: &str, condition: &str) -> String {
    let status = world.get(MACHINE, name).unwrap()["status"].clone();
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|it| it["type"] == condition);
    found.and_then(|it| it["message"].as_str()).unwrap_or_default().to_owned()
}

/// Cores beyond the quota are refused with the code that also means "busy". That is reported at once, and retried.
#[tokio::test(start_paused = true)]
async fn a_used_up_quota_is_told_in_azures_words() {
    let world = cluster(LatencyProfile::instant()).await;
    world.azure.set_limits([("compute.coresPerRegion".to_owned(), 1)].into()).unwrap();
    world.machine("my-cluster", "worker", json!({}), json!({}));
    let waited = world
        .until("reported", |world| message(world, "worker", "VMRunning").contains("exceeding approved"))
        .await;
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    assert_eq!(world.condition(MACHINE, "worker", "VMRunning"), Some(("False".into(), "Failed".into())));
    world
        .until("an event", |world| world.events(MACHINE, "worker").contains(&"ReconcileError".to_owned()))
        .await;
    world.azure.set_limits([("compute.coresPerRegion".to_owned(), 100)].into()).unwrap();
    world.until("ready", |world| is_ready(world, "worker")).await;
}

/// A disk that another machine holds is "busy" for as long as it does: that is reported, and retried.
#[tokio::test(start_paused = true)]
async fn what_stays_busy_is_told() {
    let world = cluster(LatencyProfile::instant()).await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("ready", |world| is_ready(world, "worker")).await;
    let attached = "Disk worker_OSDisk is attached to VM other.";
    let busy =
        FaultAction::Fail { status: 409, code: "OperationNotAllowed".into(), message: attached.into() };
    world.azure.inject(Fault::new(busy).on_method("DELETE").on_resource("worker_OSDisk"));
    world.delete(MACHINE, "worker");
    let waited =
        world.until("reported", |world| message(world, "worker", "DisksReady").contains(attached)).await;
    assert!(waited < Duration::from_secs(300), "{waited:?}");
    assert_eq!(
        world.condition(MACHINE, "worker", "DisksReady"),
        Some(("False".into(), "DeletionFailed".into()))
    );
    world
        .until("an event", |world| world.events(MACHINE, "worker").contains(&"ReconcileError".to_owned()))
        .await;
    world.azure.clear_faults();
    world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
}

/// CAPZ-121: a failed machine is left alone, whatever happens to it, until it is deleted.
#[tokio::test(start_paused = true)]
async fn a_failed_machine_is_left_alone() {
    let world = cluster(LatencyProfile::instant()).await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("ready", |world| is_ready(world, "worker")).await;
    let status = json!({ "status": { "failureReason": "UpdateError", "failureMessage": "by hand" } });
    world.kubernetes.merge_status(MACHINE, "default", "worker", &status).unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = world.get(MACHINE, "worker").unwrap();
    let tags = world.azure.document(&vm(&world, "worker")).unwrap()["tags"].clone();
    world.merge(MACHINE, "worker", json!({ "spec": { "additionalTags": { "a": "1" } } }));
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(world.get(MACHINE, "worker").unwrap()["status"], before["status"]);
    assert_eq!(world.azure.document(&vm(&world, "worker")).unwrap()["tags"], tags);
    world.delete(MACHINE, "worker");
    world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
    assert!(world.azure.document(&vm(&world, "worker")).is_none());
}

/// CAPZ-115: a running machine does not count as gone because a list omits it for a while, or reports that its group
/// does not exist. Changes that are declared meanwhile are applied once lists show it again.
#[tokio::test(start_paused = true)]
async fn a_machine_that_a_list_lacks_is_not_gone() {
    let world = cluster(LatencyProfile::instant()).await;
    world.azure.set_consistency(Consistency { reads_ms: 0, lists_ms: 600_000, share: 1.0 });
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("ready", |world| is_ready(world, "worker")).await;
    let id = vm(&world, "worker");
    let change = async |value: &str| {
        let sequence = world.sequence();
        world.merge(MACHINE, "worker", json!({ "spec": { "additionalTags": { "a": value } } }));
        world.until(value, |world| world.azure.document(&id).unwrap()["tags"]["a"] == value).await;
        let status = world.get(MACHINE, "worker").unwrap()["status"].clone();
        assert_eq!((&status["failureReason"], &status["vmState"]), (&Value::Null, &json!("Succeeded")));
        let journal = world.azure.journal_after(sequence);
        let lists = journal.entries.iter().filter(|entry| entry.path.ends_with("/virtualMachines"));
        assert!(lists.count() > 1, "no list lacked the machine");
    };
    change("lagging").await;
    world.azure.set_consistency(Consistency::default());
    let lost =
        FaultAction::Fail { status: 404, code: "ResourceGroupNotFound".into(), message: String::new() };
    let list = Fault::new(lost).on_method("GET").on_type("Microsoft.Compute/virtualMachines").on_resource("");
    world.azure.inject(list.times(1));
    change("without a group").await;
}

/// CAPZ-117: a machine is not ready before its bootstrapping has ended, which the condition reports.
#[tokio::test(start_paused = true)]
async fn a_machine_is_ready_once_its_bootstrapping_has_ended() {
    let latency = LatencyProfile::instant().with(
        "CREATE",
        "Microsoft.Compute/virtualMachines/extensions",
        Duration::from_secs(200),
    );
    let world = cluster(latency).await;
    world.machine("my-cluster", "worker", json!({}), json!({ "disableVMBootstrapExtension": false }));
    world
        .until("creating", |world| {
            world.condition(MACHINE, "worker", "BootstrapSucceeded")
                == Some(("False".into(), "Creating".into()))
        })
        .await;
    let object = world.get(MACHINE, "worker").unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let told = conditions.iter().find(|it| it["type"] == "BootstrapSucceeded").unwrap();
    assert!(told["message"].as_str().unwrap().contains("still being installed"), "{told}");
    assert!(!is_ready(&world, "worker"));
    world.until("ready", |world| is_ready(world, "worker")).await;
    assert_eq!(
        world.condition(MACHINE, "worker", "BootstrapSucceeded"),
        Some(("True".into(), String::new()))
    );
}

/// C7: a created machine has its provider ID, whatever becomes of its extensions: its node is known, and a machine that
/// is deleted meanwhile is not created a second time from the same bootstrap data.
#[tokio::test(start_paused = true)]
async fn a_machine_has_its_provider_id_before_its_extensions_succeed() {
    for deleted in [false, true] {
        let latency = LatencyProfile::instant().with(
            "CREATE",
            "Microsoft.Compute/virtualMachines/extensions",
            Duration::from_secs(120),
        );
        let world = cluster(latency).await;
        let fails = azure_simulator::FaultAction::FailOperation {
            code: "VMExtensionProvisioningError".into(),
            message: "the script ended with 1".into(),
        };
        let fault =
            Fault::new(fails).on_method("PUT").on_type("Microsoft.Compute/virtualMachines/extensions");
        world.azure.inject(fault.times(1));
        world.machine("my-cluster", "worker", json!({}), json!({ "disableVMBootstrapExtension": false }));
        let id = vm(&world, "worker");
        let known = |world: &World| {
            let object = world.get(MACHINE, "worker").unwrap();
            object["spec"]["providerID"].as_str().is_some_and(|it| it.ends_with("/virtualMachines/worker"))
        };
        let waited = world.until("its id", known).await;
        assert!(waited < Duration::from_secs(60), "{waited:?}");
        assert!(!is_ready(&world, "worker"));
        if deleted {
            world.azure.delete(&id).unwrap();
            world
                .until("reported", |world| {
                    world.get(MACHINE, "worker").unwrap()["status"]["failureReason"] == "UpdateError"
                })
                .await;
        }
        tokio::time::sleep(Duration::from_secs(900)).await;
        assert!(known(&world));
        assert_eq!(world.azure.document(&id).is_none(), deleted);
    }
}

/// CAPZ-119: additional tags of a machine follow the declaration; foreign tags stay, and a machine that was given up is
/// not ours. Unlike in the case, an owner tag that was only removed is written again (D10).
#[tokio::test(start_paused = true)]
async fn tags_of_a_machine_follow_what_is_declared() {
    let world = cluster(LatencyProfile::instant()).await;
    world.machine("my-cluster", "worker", json!({}), json!({ "additionalTags": { "a": "1", "b": "2" } }));
    world.until("ready", |world| is_ready(world, "worker")).await;
    let id = vm(&world, "worker");
    world.azure.edit(&id, |document| document["tags"]["policy"] = json!("p")).unwrap();
    let tags = |world: &World| world.azure.document(&id).unwrap()["tags"].clone();
    world.merge(MACHINE, "worker", json!({ "spec": { "additionalTags": { "a": "3", "b": null } } }));
    world.until("changed", |world| tags(world)["a"] == "3").await;
    assert_eq!((&tags(&world)["b"], &tags(&world)["policy"]), (&Value::Null, &json!("p")));
    let remembered = |world: &World| {
        let object = world.get(MACHINE, "worker").unwrap();
        let name = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-vm";
        object["metadata"]["annotations"][name].as_str().unwrap_or_default().to_owned()
    };
    world
        .until("remembered", |world| {
            let text = remembered(world);
            text.contains("\"a\":\"3\"") && !text.contains("\"b\"")
        })
        .await;
    let owned = "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster";
    world
        .azure
        .edit(&id, |document| {
            document["tags"].as_object_mut().unwrap().remove(owned);
        })
        .unwrap();
    world.until("the tag", |world| tags(world)[owned] == "owned").await;
    world.azure.edit(&id, |document| document["tags"][owned] = json!("shared")).unwrap();
    world.merge(MACHINE, "worker", json!({ "spec": { "additionalTags": { "a": "4" } } }));
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(tags(&world)["a"], "3");
}

/// CAPZ-078: a resource that is gone before its deletion counts as deleted.
#[tokio::test(start_paused = true)]
async fn what_is_gone_already_is_as_good_as_deleted() {
    let world = cluster(LatencyProfile::instant()).await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("ready", |world| is_ready(world, "worker")).await;
    let lost = FaultAction::Fail { status: 404, code: "ResourceNotFound".into(), message: String::new() };
    world.azure.inject(Fault::new(lost).on_method("DELETE").on_resource("worker-nic"));
    world.delete(MACHINE, "worker");
    let waited = world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    assert!(world.azure.document(&vm(&world, "worker")).is_none());
}

/// Deleting a machine that was never created deletes no foreign disk, whatever the disk's name is.
#[tokio::test(start_paused = true)]
async fn a_disk_of_somebody_elses_outlives_a_machine_that_never_was() {
    let world = cluster(LatencyProfile::instant()).await;
    let disk = world.group("my-cluster").resource("Microsoft.Compute", "disks", "worker_OSDisk");
    let document = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" },
        "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 } });
    world.azure.put(&disk, document).unwrap();
    world.machine("my-cluster", "worker", json!({}), json!({ "vmSize": "Standard_Unknown" }));
    world
        .until("refused", |world| {
            world.get(MACHINE, "worker").unwrap()["status"]["failureReason"] == "InvalidConfiguration"
        })
        .await;
    world.delete(MACHINE, "worker");
    world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
    assert!(world.azure.document(&disk).is_some());
}

/// Machines that are deleted together delete their availability set with them: the last one sees that the others are
/// gone.
#[tokio::test(start_paused = true)]
async fn an_availability_set_goes_with_the_last_of_its_machines() {
    let mut world = World::tuned(1, |azure| {
        azure.zones = Vec::new();
        azure.latency = LatencyProfile::instant().with(
            "DELETE",
            "Microsoft.Compute/virtualMachines",
            Duration::from_secs(30),
        );
    });
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    let names = ["one", "two"];
    for name in names {
        let labels = json!({ "cluster.x-k8s.io/deployment-name": "md-0" });
        world.machine("my-cluster", name, labels, json!({}));
    }
    world.until("ready", |world| names.iter().all(|name| is_ready(world, name))).await;
    let set =
        world.group("my-cluster").resource("Microsoft.Compute", "availabilitySets", "my-cluster_md-0-as");
    assert!(world.azure.document(&set).is_some());
    for name in names {
        world.delete(MACHINE, name);
    }
    world.until("gone", |world| names.iter().all(|name| world.get(MACHINE, name).is_none())).await;
    assert!(world.azure.document(&set).is_none());
}

/// A machine that lists omit when it is deleted is deleted all the same, and not only its object.
#[tokio::test(start_paused = true)]
async fn a_machine_that_lists_lack_is_deleted_all_the_same() {
    let world = cluster(LatencyProfile::instant()).await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("ready", |world| is_ready(world, "worker")).await;
    let lost =
        FaultAction::Fail { status: 404, code: "ResourceGroupNotFound".into(), message: String::new() };
    for kind in ["Microsoft.Compute/virtualMachines", "Microsoft.Network/networkInterfaces"] {
        let list = Fault::new(lost.clone()).on_method("GET").on_type(kind).on_resource("");
        world.azure.inject(list.times(1));
    }
    world.delete(MACHINE, "worker");
    world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
    assert!(world.azure.document(&vm(&world, "worker")).is_none());
    let interface =
        world.group("my-cluster").resource("Microsoft.Network", "networkInterfaces", "worker-nic");
    assert!(world.azure.document(&interface).is_none());
}
