//! Two controllers in turn: a change of leader and back, with attaches by hand between.

use serde_json::{Value, json};
use tonic::Code;

use crate::world::World;

/// CSI-071. The baseline's fault that costs data: A attaches one disk, B another one, A a third one. The established driver's third write detaches
/// the second disk, because it is made from a list in memory.
#[tokio::test(start_paused = true)]
async fn a_list_is_never_written_from_memory() {
    let world = World::new();
    let (a, b) = (world.driver(), world.driver());
    let ids = [a.volume("q1").await, a.volume("q2").await, a.volume("q3").await];
    assert_eq!(a.publish(&ids[0], "alone0").await.unwrap(), 0);
    assert_eq!(b.publish(&ids[1], "alone0").await.unwrap(), 1);
    assert_eq!(a.publish(&ids[2], "alone0").await.unwrap(), 2);
    let machine = world.machine("alone0");
    let expected = [("q1", 0), ("q2", 1), ("q3", 2)].map(|(name, lun)| (name.to_owned(), lun));
    assert_eq!(world.listed(&machine), expected);

    // A disk that was attached by hand stays, through attaches and detaches.
    let by_hand = b.volume("by-hand").await;
    let mut list =
        world.azure.document(&machine).unwrap()["properties"]["storageProfile"]["dataDisks"].clone();
    let entry = json!({ "lun": 3, "createOption": "Attach", "managedDisk": { "id": by_hand } });
    list.as_array_mut().unwrap().push(entry);
    world
        .azure
        .edit(&machine, |document: &mut Value| document["properties"]["storageProfile"]["dataDisks"] = list)
        .unwrap();
    a.unpublish(&ids[1], "alone0").await.unwrap();
    b.unpublish(&ids[0], "alone0").await.unwrap();
    let names: Vec<String> = world.listed(&machine).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["q3", "by-hand"]);
}

/// CSI-073. Success is said only for what Azure's list shows: what was detached by hand is attached again.
#[tokio::test(start_paused = true)]
async fn what_was_detached_by_hand_is_attached_again() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    driver.publish(&id, "alone0").await.unwrap();
    world.driver().unpublish(&id, "alone0").await.unwrap();
    assert_eq!(world.listed(&world.machine("alone0")), []);
    assert_eq!(driver.publish(&id, "alone0").await.unwrap(), 0);
    assert_eq!(world.listed(&world.machine("alone0")).len(), 1);
}

/// CSI-071. Both at the same time: the loser of a race reads again, and both disks are there.
#[tokio::test(start_paused = true)]
async fn two_at_once_lose_nothing() {
    let world = World::new();
    let (a, b) = (world.driver(), world.driver());
    let (x, y) = (a.volume("x").await, b.volume("y").await);
    let publish = async |driver: &crate::world::Driver, id: &str| {
        for _ in 0..20 {
            match driver.publish(id, "alone0").await {
                Ok(lun) => return lun,
                Err(status) => assert!(
                    matches!(status.code(), Code::Aborted | Code::Unavailable | Code::Internal),
                    "{status:?}"
                ),
            }
        }
        panic!("never attached")
    };
    let (one, other) = tokio::join!(publish(&a, &x), publish(&b, &y));
    assert_ne!(one, other);
    assert_eq!(world.listed(&world.machine("alone0")).len(), 2);
}
