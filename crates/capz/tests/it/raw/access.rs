//! Secrets: what resources take from them, what is exported to them, and the credential.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    CLUSTER, CLUSTERS, CONTROL_PLANE, POOL, agent_pool, cluster, credential, flavor, group, is_up,
    managed_cluster, nodes, pool, resource, said,
};
use crate::world::World;

const PASSWORD: &str = "hunter2-Hunter2";

fn aks(world: &World, more: Value) {
    credential(world);
    cluster(
        world,
        "aks",
        &[group("aks")],
        json!({ "version": "v1.33.2", "resources": [managed_cluster("aks", more)] }),
    );
    pool(world, "aks", "aks-pool0", agent_pool("aks", "aks-pool0", "pool0", json!({})));
    nodes(world, "pool0", &["n0", "n1"]);
}

/// A value from a Secret is waited for, is written, is not written again before the Secret changes, and is shown nowhere.
#[tokio::test(start_paused = true)]
async fn a_value_from_a_secret_is_written_once_and_never_shown() {
    let mut world = World::new();
    let windows = json!({ "adminUsername": "me", "adminPassword": { "name": "windows", "key": "password" } });
    aks(&world, json!({ "windowsProfile": windows }));
    world.start();
    let waits = |world: &World| {
        let found = world.get(CONTROL_PLANE, "aks").unwrap()["status"]["conditions"].to_string();
        found.contains("key password of Secret windows")
    };
    world.until("it waits for the Secret", waits).await;
    assert!(world.azure.documents_of_type(CLUSTERS).is_empty());
    world.put_secret("windows", &[("password", PASSWORD)]);
    world.until("up", is_up).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let begin = world.sequence();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let writes = |world: &World, begin: u64| {
        world.calls_after(begin).into_iter().filter(|it| it.starts_with("PUT")).count()
    };
    assert_eq!(writes(&world, begin), 0);
    world.kill().await;
    world.start();
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert_eq!(writes(&world, begin), 0);
    world.put_secret("windows", &[("password", "another-Password1")]);
    world.until("the new password", |world| writes(world, begin) == 1).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(writes(&world, begin), 1);
    // Another change brings the password along, and its words do not.
    let more = json!({ "windowsProfile": windows, "tags": { "team": "a" } });
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "resources": [managed_cluster("aks", more)] } }));
    world.until("the tag", |world| world.azure.documents_of_type(CLUSTERS)[0]["tags"]["team"] == "a").await;
    for kind in ["Event", CLUSTER, CONTROL_PLANE, POOL] {
        for object in world.kubernetes.list(kind) {
            let text = object.value().to_string();
            assert!(!text.contains(PASSWORD) && !text.contains("another-Password1"), "{text}");
        }
    }
}

/// A missing credential is reported with what to do, and a credential that has changed takes effect.
#[tokio::test(start_paused = true)]
async fn a_missing_credential_is_named() {
    let mut world = World::new();
    flavor(&world);
    world.delete("Secret", "credential");
    world.start();
    let named = |world: &World| {
        said(world, CLUSTER, "aks").iter().any(|it| it.contains("there is no Secret default/credential"))
    };
    world.until("the event", named).await;
    assert_eq!(world.azure.documents().len(), 0);
    credential(&world);
    world.until("up", is_up).await;
    world.put_secret("credential", &[("AZURE_CLIENT_SECRET", "rotated")]);
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(world.client_secrets.lock().last().map(String::as_str), Some("rotated"));
}

/// One object uses one credential.
#[tokio::test(start_paused = true)]
async fn several_credentials_of_an_object_are_refused() {
    let mut world = World::new();
    credential(&world);
    let mut second = group("second");
    second["metadata"]["annotations"]["serviceoperator.azure.com/credential-from"] = json!("another");
    cluster(
        &world,
        "aks",
        &[group("aks"), second],
        json!({ "resources": [managed_cluster("aks", json!({}))] }),
    );
    world.start();
    let words =
        |world: &World| said(world, CLUSTER, "aks").iter().any(|it| it.contains("name several credentials"));
    world.until("the refusal", words).await;
    assert_eq!(world.azure.documents().len(), 0);
}

/// A Secret of a user is not replaced by an export.
#[tokio::test(start_paused = true)]
async fn a_foreign_secret_of_the_name_of_an_export_is_refused() {
    let mut world = World::new();
    world.put_secret("aks-kubeconfig", &[("value", "mine")]);
    aks(&world, json!({}));
    world.start();
    let words = |world: &World| {
        said(world, CONTROL_PLANE, "aks").iter().any(|it| it.contains("Secret aks-kubeconfig exists already"))
    };
    world.until("the refusal", words).await;
    assert_eq!(world.secret("aks-kubeconfig", "value").as_deref(), Some("mine"));
    world.delete("Secret", "aks-kubeconfig");
    world.until("up", is_up).await;
}

/// Two objects of a cluster export to one Secret and one ConfigMap under different keys, and one of them beside its own
/// kubeconfig: each keeps its keys, and nothing is written for ever.
#[tokio::test(start_paused = true)]
async fn exports_of_several_objects_share_a_secret() {
    let mut world = World::new();
    credential(&world);
    let to = |name: &str, key: &str| json!({ "name": name, "key": key });
    let identity = resource(
        "managedidentity.azure.com/v1api20230131",
        "UserAssignedIdentity",
        "nodes",
        json!({ "location": "eastus", "owner": { "name": "aks" }, "operatorSpec": {
            "secrets": { "clientId": to("shared", "client"), "tenantId": to("aks-kubeconfig", "tenant") },
            "configMaps": { "principalId": to("facts", "nodes") } } }),
    );
    let exports = json!({ "operatorSpec": {
        "secrets": { "adminCredentials": to("shared", "admin"), "userCredentials": to("shared", "user") },
        "configMaps": { "principalId": to("facts", "cluster") } } });
    cluster(
        &world,
        "aks",
        &[group("aks"), identity],
        json!({ "version": "v1.33.2", "resources": [managed_cluster("aks", exports)] }),
    );
    pool(&world, "aks", "aks-pool0", agent_pool("aks", "aks-pool0", "pool0", json!({})));
    nodes(&world, "pool0", &["n0", "n1"]);
    world.start();
    world.until("up", is_up).await;
    tokio::time::sleep(Duration::from_secs(700)).await;
    let keys = |kind: &str, name: &str| {
        let data = world.get(kind, name).unwrap()["data"].clone();
        data.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys("Secret", "shared"), ["admin", "client", "user"]);
    assert_eq!(keys("Secret", "aks-kubeconfig"), ["tenant", "value"]);
    assert_eq!(keys("ConfigMap", "facts"), ["cluster", "nodes"]);
    let version = |name: &str| world.get("Secret", name).unwrap()["metadata"]["resourceVersion"].clone();
    let before = (version("shared"), version("aks-kubeconfig"));
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!((version("shared"), version("aks-kubeconfig")), before);
    assert!(world.secret("shared", "admin").unwrap().contains("https://"));
}

/// A cluster whose people sign in with Microsoft Entra ID alone, by a kubeconfig in this Secret.
fn without_local_accounts(world: &World, secret: &str) {
    aks(
        world,
        json!({
            "aadProfile": { "managed": true }, "disableLocalAccounts": true,
            "operatorSpec": { "secrets": { "userCredentials": { "name": secret, "key": "value" } } },
        }),
    );
}

/// CAPZ-212: a kubeconfig with a token, which is renewed before it expires.
#[tokio::test(start_paused = true)]
async fn the_token_of_a_kubeconfig_is_renewed() {
    let mut world = World::new();
    world.token_life = Some(Duration::from_secs(3600));
    without_local_accounts(&world, "aks-user");
    world.start();
    world.until("up", is_up).await;
    crate::tokens::are_renewed(&mut world, "aks-kubeconfig").await;
}

/// CAPZ-212: a kubeconfig with a token; its Secret must not be the export's.
#[tokio::test(start_paused = true)]
async fn a_cluster_without_local_accounts_gets_a_token() {
    for (name, is_refused) in [("aks-user", false), ("aks-kubeconfig", true)] {
        let mut world = World::new();
        without_local_accounts(&world, name);
        world.start();
        if is_refused {
            let words = |world: &World| {
                said(world, CONTROL_PLANE, "aks").iter().any(|it| it.contains("name another Secret"))
            };
            world.until("the refusal", words).await;
            continue;
        }
        world.until("up", is_up).await;
        assert!(world.secret("aks-kubeconfig", "value").unwrap().contains("token: token"));
        assert!(world.secret("aks-user", "value").unwrap().contains("exec"));
    }
}
