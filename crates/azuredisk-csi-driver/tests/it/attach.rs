//! Attach and detach (sections 3.9 to 3.12 of the specification of the drivers).

use std::collections::BTreeSet;
use std::time::Duration;

use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use azuredisk_csi_driver::controller::ControllerOptions;
use futures::future::join_all;
use serde_json::json;
use simulated_cluster::{Shape, StandaloneMachine};
use testkit::KillSwitch;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use crate::world::{DRIVER, MACHINE, World};

/// Section 3.9: on each kind of machine a disk is attached at the lowest free LUN, found again by a repeated request without a write,
/// and detached; a repeated detach writes nothing, either.
#[tokio::test(start_paused = true)]
async fn a_disk_comes_and_goes_on_each_kind_of_machine() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    for node in ["alone0", "uniform000000", "flexible000000"] {
        let node = world
            .machines()
            .into_iter()
            .map(|(name, _)| name)
            .find(|name| name.starts_with(&node[..5]))
            .unwrap();
        let writes = world.writes();
        assert_eq!(driver.publish(&id, &node).await.unwrap(), 0, "{node}");
        assert_eq!(world.writes(), writes + 1, "{node}");
        assert_eq!(world.listed(&world.machine(&node)), [("a".to_owned(), 0)]);
        assert_eq!(driver.publish(&id, &node).await.unwrap(), 0);
        assert_eq!(world.writes(), writes + 1, "a repeated attach of {node}");
        driver.unpublish(&id, &node).await.unwrap();
        assert_eq!((world.writes(), world.listed(&world.machine(&node)).len()), (writes + 2, 0), "{node}");
        driver.unpublish(&id, &node).await.unwrap();
        assert_eq!(
            world.writes(),
            writes + 2,
            "section 3.10, FIX: nothing is sent where nothing is to be detached"
        );
    }
}

/// CSI-072. Section 3.9, FIX: all that waits for a machine is one write, attaches and detaches alike; and nothing waits for a fixed time: the
/// answer comes soon after the operation's end.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_machine_is_one_write() {
    let world = World::new();
    let driver = &world.driver();
    let names: Vec<String> = (0..12).map(|number| format!("v{number}")).collect();
    let ids = join_all(names.iter().map(|name| driver.volume(name))).await;
    let nodes = ["alone0", "alone1"];
    let (first, second) = ids.split_at(6);
    let before = (world.machine_writes(), Instant::now());
    let luns = join_all(first.iter().map(|id| driver.publish(id, nodes[0]))).await;
    let luns: BTreeSet<u32> = luns.into_iter().map(|lun| lun.unwrap()).collect();
    assert_eq!(luns, (0..6).collect());
    assert_eq!(world.machine_writes(), before.0 + 1);
    assert!(before.1.elapsed() < MACHINE * 23 / 20, "{:?}", before.1.elapsed());

    // Two leave the full machine of eight, and four come: one write for the leaving, one for the coming that need their slots.
    let before = world.machine_writes();
    let leaving = join_all(first[..2].iter().map(|id| driver.unpublish(id, nodes[0])));
    let coming = join_all(second[..2].iter().map(|id| driver.publish(id, nodes[0])));
    let (left, came) = tokio::join!(leaving, coming);
    assert!(left.iter().all(Result::is_ok) && came.iter().all(Result::is_ok), "{left:?} {came:?}");
    assert_eq!(world.machine_writes(), before + 1);
    assert_eq!(world.listed(&world.machine(nodes[0])).len(), 6);

    // Detaches come some milliseconds apart, as over a socket.
    let before = (world.machine_writes(), Instant::now());
    let left = join_all(first[2..].iter().enumerate().map(|(at, id)| async move {
        sleep(Duration::from_millis(5) * u32::try_from(at).unwrap()).await;
        driver.unpublish(id, nodes[0]).await
    }));
    assert!(left.await.iter().all(Result::is_ok));
    assert_eq!(world.machine_writes(), before.0 + 1);
    assert!(before.1.elapsed() < MACHINE * 23 / 20, "{:?}", before.1.elapsed());
}

/// CSI-072. The baseline: 100 volumes to four machines are four writes. 40 volumes for 32 slots: 32 are attached, and 8 get ResourceExhausted, the
/// newest ones.
#[tokio::test(start_paused = true)]
async fn many_volumes_are_one_write_for_each_machine_and_a_full_machine_says_so() {
    let mut shape = simulated_cluster::Shape { zones: Vec::new(), ..simulated_cluster::Shape::default() };
    shape.pools = vec![simulated_cluster::NodePool::new("p", "p", 4).of_size("Standard_D16s_v3")];
    let latency = LatencyProfile::instant().with("*", "*/virtualMachines", MACHINE);
    let world = World::of(shape, Options { latency, budgets: None, ..Options::default() });
    let driver = world.driver();
    let nodes: Vec<String> = world.machines().into_iter().map(|(name, _)| name).collect();
    let names: Vec<String> = (0..140).map(|number| format!("v{number}")).collect();
    let ids = join_all(names.iter().map(|name| driver.volume(name))).await;
    let before = (world.machine_writes(), Instant::now());
    let attached =
        join_all(ids[..100].iter().enumerate().map(|(at, id)| driver.publish(id, &nodes[at % 4]))).await;
    assert!(attached.iter().all(Result::is_ok), "{attached:?}");
    assert_eq!(world.machine_writes(), before.0 + 4);
    assert!(before.1.elapsed() < MACHINE * 23 / 20, "{:?}", before.1.elapsed());

    // 25 disks are on the first machine: 7 of 40 find a slot.
    let answers = join_all(ids[100..].iter().map(|id| driver.publish(id, &nodes[0]))).await;
    let codes: Vec<Option<Code>> =
        answers.iter().map(|answer| answer.as_ref().err().map(|it| it.code())).collect();
    assert_eq!(codes[..7], [None; 7]);
    assert!(codes[7..].iter().all(|code| *code == Some(Code::ResourceExhausted)), "{codes:?}");
    assert_eq!(world.listed(&world.machine(&nodes[0])).len(), 32);
}

/// Section 3.9, step 3, and 3.21: what does not exist is not found; what is missing in a request is named.
#[tokio::test(start_paused = true)]
async fn what_does_not_exist_is_not_found() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    let gone = id.replace("/a", "/gone");
    for (volume, node, code) in [
        ("", "alone0", Code::InvalidArgument),
        (&*id, "", Code::InvalidArgument),
        ("fake", "alone0", Code::NotFound),
        (&gone, "alone0", Code::NotFound),
        (&id, "fake-node", Code::NotFound),
    ] {
        let answer = driver.publish(volume, node).await;
        assert_eq!(answer.unwrap_err().code(), code, "{volume} {node}");
    }
    assert_eq!(driver.unpublish("", "alone0").await.unwrap_err().code(), Code::InvalidArgument);
    driver.unpublish("fake", "alone0").await.unwrap();
    driver.unpublish(&gone, "alone0").await.unwrap();
    driver.unpublish(&id, "fake-node").await.unwrap();
}

/// Section 3.9, step 5: a disk that another machine has is taken from there only if Kubernetes does not want it there.
#[tokio::test(start_paused = true)]
async fn a_disk_elsewhere_is_moved_only_if_it_is_not_wanted_there() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    driver.publish(&id, "alone0").await.unwrap();
    world.persistent_volume("pv", &id);
    let name = attachment_name(&id, "alone0");
    world.attachment(&name, "alone0", "pv", Some(0)).await;
    let refused = driver.publish(&id, "alone1").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    assert_eq!(world.listed(&world.machine("alone0")).len(), 1);
    // Without Kubernetes, whether it is wanted is unknown.
    let refused = world.driver_alone().publish(&id, "alone1").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");

    world.kubernetes.delete("VolumeAttachment", "", &name).unwrap();
    driver.publish(&id, "alone1").await.unwrap();
    assert_eq!(world.listed(&world.machine("alone0")).len(), 0);
    assert_eq!(world.listed(&world.machine("alone1")).len(), 1);
}

fn attachment_name(id: &str, node: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest([id, DRIVER, node].concat());
    format!("csi-{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// Section 3.9, FIX: a LUN that a VolumeAttachment names is kept for its disk, which the node may still have mounted.
#[tokio::test(start_paused = true)]
async fn a_lun_that_an_attachment_names_is_not_given_to_another_disk() {
    let world = World::new();
    let driver = world.driver();
    let (a, b) = (driver.volume("a").await, driver.volume("b").await);
    world.persistent_volume("pv-a", &a);
    world.attachment("csi-a", "alone0", "pv-a", Some(0)).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(driver.publish(&b, "alone0").await.unwrap(), 1);
    assert_eq!(driver.publish(&a, "alone0").await.unwrap(), 0);
}

/// CSI-074. Section 3.11, step 1: from a machine that is gone a disk is detached as soon as Azure names no manager of it any more.
#[tokio::test(start_paused = true)]
async fn a_disk_is_free_when_its_machine_is_gone() {
    let world = World::new();
    let driver = world.driver();
    for node in ["alone0", "uniform000000"] {
        let id = driver.volume(&format!("of-{node}")).await;
        let name = world
            .machines()
            .into_iter()
            .map(|(name, _)| name)
            .find(|name| name.starts_with(&node[..6]))
            .unwrap();
        driver.publish(&id, &name).await.unwrap();
        let machine = world.machine(&name);
        let pairs = machine.type_and_name_pairs();
        match pairs.as_slice() {
            [_] => world.azure.delete(&machine).unwrap(),
            [(_, set), (_, number)] => {
                let set = world.shape.scale_set(set);
                world.azure.remove_instance(&set, number).unwrap();
            }
            _ => unreachable!(),
        }
        timeout(Duration::from_secs(90), driver.unpublish(&id, &name)).await.unwrap().unwrap();
        driver.publish(&id, "alone1").await.unwrap();
    }
}

/// CSI-045. Section 3.11, FIX: a detach that does not end is forced only when the node is known not to be ready, and the volume does not
/// forbid it.
#[tokio::test(start_paused = true)]
async fn a_detach_is_forced_only_if_the_node_is_not_ready_and_the_volume_permits_it() {
    for (ready, says, is_forced) in [
        ("True", None, false),
        ("Unknown", None, true),
        ("Unknown", Some("true"), true),
        ("Unknown", Some("false"), false),
        ("True", Some("true"), false),
    ] {
        let world = World::new();
        let machine = world.machine("alone0");
        world.node("alone0", &machine, ready);
        let driver = world.driver();
        let id = driver.volume("a").await;
        world.persistent_volume("a", &id);
        if let Some(says) = says {
            world.annotate("PersistentVolume", "a", "force-detach", says).await;
        }
        driver.publish(&id, "alone0").await.unwrap();
        // The next change of the machine does not end for an hour.
        let slow = LatencyProfile::instant().with("PUT", "*/virtualMachines", Duration::from_secs(3600));
        world.azure.set_latency(slow);
        let answer = timeout(Duration::from_secs(590), async {
            let detach = driver.unpublish(&id, "alone0");
            let quick_again = async {
                sleep(Duration::from_secs(100)).await;
                world.azure.set_latency(LatencyProfile::instant());
                std::future::pending::<()>().await;
            };
            tokio::select! {
                answer = detach => answer,
                () = quick_again => unreachable!(),
            }
        })
        .await;
        assert_eq!(answer.is_ok(), is_forced, "{ready} {says:?}: {answer:?}");
        assert_eq!(world.listed(&machine).is_empty(), is_forced, "{ready} {says:?}");
    }
}

/// CSI-075. A write that Azure refuses because of one disk fails for this disk alone: the others are attached.
#[tokio::test(start_paused = true)]
async fn one_disk_that_azure_refuses_does_not_keep_others_from_their_machine() {
    let world = World::new();
    let driver = world.driver();
    let good = join_all((0..3).map(|number| {
        let name = format!("good{number}");
        let driver = &driver;
        async move { driver.volume(&name).await }
    }))
    .await;
    // It is in a zone, and the machine in none.
    let bad = world.shape.group().resource("Microsoft.Compute", "disks", "bad");
    let creation = json!({ "createOption": "Empty" });
    let properties = json!({ "creationData": creation, "diskSizeGB": 8 });
    let document = json!({ "location": world.shape.region, "zones": ["1"], "properties": properties });
    world.azure.put(&bad, document).unwrap();
    let bad = bad.to_string();
    let (bad_answer, answers) = tokio::join!(
        driver.publish(&bad, "alone0"),
        join_all(good.iter().map(|id| driver.publish(id, "alone0")))
    );
    assert!(bad_answer.is_err(), "{bad_answer:?}");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

/// CSI-076. A full group of machines of one cluster is no place for another cluster's disks: a neighbour with nodes of the same names in another
/// group attaches its own disks alone.
#[tokio::test(start_paused = true)]
async fn a_neighbour_with_the_same_names_keeps_its_disks() {
    let world = World::new();
    let mut shape = world.shape.clone();
    shape.resource_group = "other".to_owned();
    shape.lay_out(&world.azure).unwrap();
    let neighbour = World {
        azure: world.azure.clone(),
        kubernetes: kubernetes_simulator::Kubernetes::new(kubernetes_simulator::Options::default()),
        client: world.client.clone(),
        shape,
    };
    let neighbour =
        World { client: kube::Client::new(neighbour.kubernetes.router(), "default"), ..neighbour };
    let (own, other) = (world.driver_alone(), neighbour.driver_alone());
    let (a, b) = (own.volume("same").await, other.volume("same").await);
    assert_ne!(a, b);
    own.publish(&a, "alone0").await.unwrap();
    other.publish(&b, "alone0").await.unwrap();
    own.unpublish(&a, "alone0").await.unwrap();
    let theirs = neighbour.shape.machine(&neighbour.shape.machines[0]);
    assert_eq!(world.listed(&theirs), [("same".to_owned(), 0)]);
}

/// CSI-079. Section 3.10: a disk that is deleted before the write is not found, and the others are attached. A disk that is made under its name
/// afterwards is another one: what was proven once does not stay so.
#[tokio::test(start_paused = true)]
async fn a_disk_that_was_absent_once_is_attached_when_it_is_there_again() {
    let world = World::new();
    let options = ControllerOptions { batch_window: Duration::from_secs(2), ..ControllerOptions::default() };
    let driver = world.driver_with(&KillSwitch::never(), options);
    let (gone, stays) = (driver.volume("gone").await, driver.volume("stays").await);
    let id = azure_types::ResourceId::parse(&gone).unwrap();
    let deletion = async {
        sleep(Duration::from_secs(1)).await;
        world.azure.delete(&id).unwrap();
    };
    let (missing, attached, ()) =
        tokio::join!(driver.publish(&gone, "alone0"), driver.publish(&stays, "alone0"), deletion);
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    assert!(attached.is_ok(), "{attached:?}");
    assert_eq!(driver.volume("gone").await, gone);
    driver.publish(&gone, "alone0").await.unwrap();
    assert_eq!(world.listed(&world.machine("alone0")).len(), 2);
}

/// CSI-080. Section 3.11: a machine in another group, whose Node is gone, is found by the disk: success is said when its list does not have the
/// disk any more.
#[tokio::test(start_paused = true)]
async fn a_disk_is_detached_from_a_machine_whose_node_is_gone() {
    let mut shape = Shape { zones: Vec::new(), pools: Vec::new(), ..Shape::default() };
    shape.machines = vec![StandaloneMachine::new("far").of_size("Standard_D4s_v3").in_group("elsewhere")];
    let latency = LatencyProfile::instant().with("*", "*/virtualMachines", MACHINE);
    let world = World::of(shape, Options { latency, ..Options::default() });
    let driver = world.driver();
    let id = driver.volume("a").await;
    driver.publish(&id, "far").await.unwrap();
    let machine = world.machine("far");
    assert_eq!(world.listed(&machine).len(), 1);
    world.kubernetes.delete("Node", "", "far").unwrap();
    let restarted = world.driver();
    sleep(Duration::from_secs(1)).await;
    restarted.unpublish(&id, "far").await.unwrap();
    assert_eq!(world.listed(&machine), []);
}

/// CSI-080. The same where the machine's name is not its node's: its host name is. A detach from another node leaves it.
#[tokio::test(start_paused = true)]
async fn a_disk_is_detached_from_a_machine_by_its_host_name() {
    let mut world = World::new();
    let driver = world.driver();
    let is_flexible = |machine: &ResourceId| machine.name().starts_with("flexible_");
    let (node, machine) = world.machines().into_iter().find(|(_, machine)| is_flexible(machine)).unwrap();
    assert_ne!(node, machine.name());
    let id = driver.volume("a").await;
    driver.publish(&id, &node).await.unwrap();
    world.kubernetes.delete("Node", "", &node).unwrap();
    world.shape.resource_group = "elsewhere".to_owned();
    let restarted = world.driver();
    sleep(Duration::from_secs(1)).await;
    restarted.unpublish(&id, "other").await.unwrap();
    assert_eq!(world.listed(&machine).len(), 1);
    restarted.unpublish(&id, &node).await.unwrap();
    assert_eq!(world.listed(&machine), []);
}
