//! Where the key of a mount comes from.

use std::time::Duration;

use tonic::Code;
use volumes_node::simulated::FileService;

use crate::world::{HOST, KEY, SECOND_KEY, SECRET, STAGING, TARGET, TOKENS, World, fails, publish, stage};

fn listed(world: &World, keys: &[(&str, &str)]) {
    let keys = keys.iter().map(|(key, time)| ((*key).to_owned(), (*time).to_owned()));
    world.played.0.lock().keys = keys.collect();
}

/// FILE-121. Section 4.6, step 7: a key of three minutes, then the Secret, then Azure.
#[tokio::test(start_paused = true)]
async fn the_key_is_remembered_read_or_listed() {
    let world = World::new();
    world.stage(stage(&[])).await.unwrap();
    assert_eq!(world.played.take_calls(), [format!("secret {SECRET}")]);
    // A key that is used stays as old as it was read.
    for (after, calls) in [(170, vec![]), (20, vec![format!("secret {SECRET}")])] {
        tokio::time::advance(Duration::from_secs(after)).await;
        world.unstage().await.unwrap();
        world.stage(stage(&[])).await.unwrap();
        assert_eq!(world.played.take_calls(), calls, "after {after} s");
    }

    let world = World::new();
    world.played.0.lock().secrets.clear();
    listed(&world, &[(KEY, "2026-01-01T00:00:00Z"), (SECOND_KEY, "2026-02-01T00:00:00Z")]);
    world.stage(stage(&[])).await.unwrap();
    assert_eq!(world.played.take_calls(), [format!("secret {SECRET}"), "keys g/acc".to_owned()]);
}

/// Section 4.3, `getLatestAccountKey`.
#[tokio::test]
async fn the_newest_key_is_taken_on_request() {
    let world = World::new();
    world.played.0.lock().secrets.clear();
    listed(&world, &[(KEY, "2026-01-01T00:00:00Z"), (SECOND_KEY, "2026-02-01T00:00:00Z")]);
    world.machine.serve(HOST, FileService::new("acc", SECOND_KEY, &["share"]));
    world.stage(stage(&[("getLatestAccountKey", "true")])).await.unwrap();
    assert!(world.mounted(STAGING).is_some());
}

/// Section 4.6: an error names every place where the key was looked for.
#[tokio::test]
async fn a_missing_key_names_all_places() {
    let world = World::new();
    world.played.0.lock().secrets.clear();
    let words =
        format!("there is no key for account \"acc\": Secret {SECRET} does not exist; cannot list the keys");
    fails(world.stage(stage(&[])).await, Code::InvalidArgument, &words);
    let only = stage(&[("getAccountKeyFromSecret", "true")]);
    fails(world.stage(only).await, Code::InvalidArgument, "Azure is not asked");
}

/// Section 4.6, step 5, and 4.7: a volume that needs the pod's token is mounted for the pod, once.
#[tokio::test]
async fn a_key_by_the_pods_token_is_listed_when_published() {
    let world = World::new();
    listed(&world, &[(KEY, "")]);
    let context = [("clientID", "client")];
    world.stage(stage(&context)).await.unwrap();
    assert!(world.mounted(STAGING).is_none());
    let context = [("clientID", "client"), ("csi.storage.k8s.io/serviceAccount.tokens", TOKENS)];
    for _ in 0..2 {
        world.publish(publish(&context, TARGET)).await.unwrap();
    }
    assert_eq!(world.played.take_calls(), ["keys of acc by client"]);
    assert!(world.mounted(TARGET).unwrap().contains("username=acc"));
}
