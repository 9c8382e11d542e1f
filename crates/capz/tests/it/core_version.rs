//! Cluster API's core is replaced while the manager runs.

use std::time::Duration;

use arm::Transport;
use capz::RunError;
use kube::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{World, definition};

/// C9: the version of the core's kinds is chosen at the start; when it is no longer served, the manager ends with a
/// message, and its next start chooses the version that is. A core that is absent for a moment does not end it.
#[tokio::test(start_paused = true)]
async fn a_core_of_another_version_ends_the_manager() {
    let world = World::bare(1, |_| {});
    let old = |kind: &str| {
        let mut definition = definition(kind);
        definition["spec"]["versions"][0]["name"] = json!("v1beta1");
        definition
    };
    const KINDS: [&str; 3] = ["Cluster", "Machine", "MachinePool"];
    KINDS.into_iter().for_each(|kind| drop(world.create(old(kind))));
    let since = Duration::try_from(world.kubernetes.now().as_duration()).unwrap();
    let clock = arm::Clock::following_tokio(since);
    let transport = Transport::in_process(world.azure.router());
    let azure = capz::Azure::new(transport, clock.clone(), world.settings.clone());
    let client = Client::new(world.kubernetes.router(), "default");
    let workloads = capz::Workloads::only(client.clone());
    let stop = CancellationToken::new();
    let settings = world.settings.clone();
    let running = tokio::spawn(capz::run(client, azure, settings, clock, workloads, None, stop));
    let name = |kind: &str| format!("{}s.cluster.x-k8s.io", kind.to_lowercase());
    tokio::time::sleep(Duration::from_secs(90)).await;
    for kind in KINDS {
        world.kubernetes.delete("CustomResourceDefinition", "", &name(kind)).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!running.is_finished(), "nothing is served: it may be on its way");
    KINDS.into_iter().for_each(|kind| drop(world.create(definition(kind))));
    let ended = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    let Err(RunError::CoreVersionGone(version)) = ended else { panic!("{ended:?}") };
    assert_eq!(version, "v1beta1");
}
