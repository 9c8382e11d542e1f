//! Accounts are found, made once, and passed over when they are full.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Fault, FaultAction, Options};
use serde_json::json;
use tonic::Code;

use crate::world::{ACCOUNTS, World, create};

const NO_KEY: (&str, &str) = ("storeAccountKey", "false");

/// FILE-020. Requests at once list the accounts of their group once, and make one account together.
#[tokio::test(start_paused = true)]
async fn many_requests_make_one_account() {
    let world = World::new();
    let driver = Arc::new(world.driver());
    let create = |number: usize| {
        let driver = Arc::clone(&driver);
        async move { driver.create_at_last(create(&format!("pvc-{number}"), 8, &[NO_KEY])).await }
    };
    let all: Vec<_> = (0..50).map(|number| tokio::spawn(create(number))).collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!((world.accounts().len(), world.shares().len()), (1, 50));
    let lists = world.calls("GET", "/storageAccounts") - world.calls("GET", "/storageAccounts/");
    assert!(lists <= 3, "{lists} lists of accounts");
}

/// FILE-021. Section 4.5, steps 7 and 9: 500 volumes need no more accounts than Azure's limits force, and full ones are marked.
#[tokio::test(start_paused = true)]
async fn five_hundred_volumes_make_the_accounts_that_limits_force() {
    let world = World::with(Options { budgets: None, ..Options::default() });
    let driver = Arc::new(world.driver());
    let class = [NO_KEY, ("skuName", "Premium_LRS")];
    let all: Vec<_> = (0..500)
        .map(|number| {
            let driver = Arc::clone(&driver);
            let request = create(&format!("pvc-{number}"), 1024, &class);
            tokio::spawn(async move { driver.create_at_last(request).await })
        })
        .collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
    // An account takes 100 of them.
    let accounts = world.accounts();
    assert_eq!((accounts.len(), world.shares().len()), (5, 500));
    let marked = accounts.iter().filter(|account| account["tags"]["skip-matching"] == "true").count();
    assert_eq!(marked, 4, "the last one has not refused any");
}

/// FILE-022. A repeated request finds its share in an account that is full meanwhile; a deleted share makes room again.
#[tokio::test(start_paused = true)]
async fn a_share_is_found_in_a_full_account() {
    let world = World::with(Options {
        limits: [("storage.premiumGibPerAccount".to_owned(), 200)].into(),
        ..Options::default()
    });
    let class = [NO_KEY, ("skuName", "Premium_LRS"), ("disableDeleteRetentionPolicy", "true")];
    let driver = world.driver();
    let first = driver.create(create("a", 100, &class)).await.unwrap();
    driver.create(create("b", 100, &class)).await.unwrap();
    let third = driver.create(create("c", 100, &class)).await.unwrap();
    assert_eq!(world.accounts().len(), 2);
    assert_eq!(world.driver().create(create("a", 100, &class)).await.unwrap().volume_id, first.volume_id);
    assert_ne!(account_of(&third.volume_id), account_of(&first.volume_id));

    tokio::time::sleep(Duration::from_secs(3600)).await;
    driver.delete(&first.volume_id).await.unwrap();
    let marked =
        |world: &World| world.accounts().iter().any(|account| account["tags"].get("skip-matching").is_some());
    assert!(!marked(&world), "the mark is taken away");
    assert_eq!(driver.expand(&third.volume_id, 300).await.unwrap_err().code(), Code::ResourceExhausted);
}

fn account_of(id: &str) -> &str {
    id.split('#').nth(1).unwrap()
}

/// FILE-023. An account of others that suits is taken; one that does not is left alone.
#[tokio::test(start_paused = true)]
async fn an_account_that_suits_is_taken() {
    let world = World::new();
    let seed = |name: &str, sku: &str| {
        let id = world.group().resource("Microsoft.Storage", "storageAccounts", name);
        let document = json!({ "location": world.shape.region, "kind": "StorageV2", "sku": { "name": sku } });
        world.azure.put(&id, document).unwrap();
    };
    seed("ours", "Standard_LRS");
    seed("other", "Standard_GRS");
    let driver = world.driver();
    let id = driver.create(create("a", 8, &[NO_KEY, ("skuName", "Standard_LRS")])).await.unwrap().volume_id;
    assert_eq!(account_of(&id), "ours");
    // One for the class alone, whatever others there are.
    let class = [NO_KEY, ("skuName", "Standard_LRS"), ("createAccount", "true")];
    let id = driver.create(create("b", 8, &class)).await.unwrap().volume_id;
    assert_ne!(account_of(&id), "ours");
    let again = driver.create(create("c", 8, &class)).await.unwrap().volume_id;
    assert_eq!(account_of(&again), account_of(&id));
    let class = [NO_KEY, ("storageAccount", "other")];
    assert_eq!(account_of(&driver.create(create("d", 8, &class)).await.unwrap().volume_id), "other");
    assert_eq!(world.azure.documents_of_type(ACCOUNTS).len(), 3);
}

/// FILE-024. Two replicas, and a cluster beside this one in the same group, make one account at the same time.
#[tokio::test(start_paused = true)]
async fn replicas_and_neighbours_make_one_account_together() {
    let world = World::new();
    let (one, other) = (world.driver(), world.driver());
    let same = create("pvc-1", 8, &[NO_KEY]);
    let (first, second) = tokio::join!(one.create_at_last(same.clone()), other.create_at_last(same));
    assert_eq!(first.unwrap().volume_id, second.unwrap().volume_id);
    let (first, second) = tokio::join!(
        one.create_at_last(create("pvc-2", 8, &[NO_KEY])),
        other.create_at_last(create("pvc-3", 8, &[NO_KEY]))
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((world.accounts().len(), world.shares().len()), (1, 3));
    other.delete(&second.volume_id).await.unwrap();
    assert!(one.expand(&first.volume_id, 9).await.is_ok(), "the neighbour's volume is its own");
}

/// FILE-025. Section 2.3, FIX: a throttled call ends at once, as Aborted with the time after which Azure takes requests again.
#[tokio::test(start_paused = true)]
async fn a_throttled_call_ends_at_once() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    world.azure.inject(Fault::new(FaultAction::Throttle { retry_after: Some(70) }).on_method("PATCH"));
    let begun = tokio::time::Instant::now();
    let status = driver.expand(&id, 9).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{status}");
    assert!(status.message().contains("client throttled for"), "{status}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
