//! Keys of accounts in Secrets.

use arm::{ApiVersion, Class};
use serde_json::{Value, json};
use testkit::KillSwitch;
use tonic::Code;

use crate::world::{World, create};

const SHOP: (&str, &str) = ("csi.storage.k8s.io/pvc/namespace", "shop");

/// FILE-026. Section 4.5, step 11, and its FIX: the driver's Secret follows the key; that of others stays.
#[tokio::test(start_paused = true)]
async fn a_secret_follows_the_key() {
    let world = World::new();
    let driver = world.driver();
    world
        .kubernetes
        .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }))
        .unwrap();
    let id = driver.create(create("a", 8, &[SHOP])).await.unwrap().volume_id;
    let account = id.split('#').nth(1).unwrap().to_owned();
    let name = format!("azure-storage-account-{account}-secret");
    let secret = || world.kubernetes.get("Secret", "shop", &name).unwrap();
    let first = secret();
    assert_eq!(first["metadata"]["labels"]["app.kubernetes.io/managed-by"], "file.csi.azure.com");
    assert!(first["data"]["azurestorageaccountname"].is_string());

    driver.create(create("b", 8, &[SHOP])).await.unwrap();
    assert_eq!(
        secret()["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"],
        "nothing to write"
    );

    let account_id = world.group().resource("Microsoft.Storage", "storageAccounts", &account);
    let body = json!({ "keyName": "key1" });
    let client = world.arm(&KillSwitch::never());
    client
        .post::<_, Value>(&account_id, "regenerateKey", ApiVersion::STORAGE, Some(&body), Class::Create)
        .await
        .unwrap();
    driver.create(create("c", 8, &[SHOP])).await.unwrap();
    assert_ne!(secret()["data"]["azurestorageaccountkey"], first["data"]["azurestorageaccountkey"]);

    let theirs = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "own", "namespace": "shop" }, "stringData": { "a": "b" } });
    world.kubernetes.create(theirs).unwrap();
    driver.create(create("d", 8, &[SHOP, ("secretName", "own")])).await.unwrap();
    assert!(world.kubernetes.get("Secret", "shop", "own").unwrap()["metadata"].get("labels").is_none());
}

/// FILE-027. A namespace that is missing is the class's mistake; the repeated request goes on where it was.
#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_said() {
    let world = World::new();
    let driver = world.driver();
    let status = driver.create(create("a", 8, &[("secretNamespace", "absent")])).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("absent"));
    world
        .kubernetes
        .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "absent" } }))
        .unwrap();
    driver.create(create("a", 8, &[("secretNamespace", "absent")])).await.unwrap();
    assert_eq!(world.shares().len(), 1);
}
