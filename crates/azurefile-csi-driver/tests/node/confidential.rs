//! Confidential containers.

use azurefile_csi_driver::node::NodeOptions;

use crate::world::{HOST, KEY, STAGING, TARGET, World, publish, stage};

/// FILE-130. Section 4.7: what the pod's virtual machine mounts is in a private file of the runtime, and the machine binds nothing.
#[tokio::test]
async fn a_confidential_container_mounts_the_share_itself() {
    let world = World::with(NodeOptions { has_confidential: true, ..NodeOptions::default() });
    {
        let mut played = world.played.0.lock();
        played.labels.push("kubernetes.azure.com/kata-cc-isolation".to_owned());
        played.handler = "kata-cc".to_owned();
    }
    world.stage(stage(&[])).await.unwrap();
    let pod = [("csi.storage.k8s.io/pod.name", "pod"), ("csi.storage.k8s.io/pod.namespace", "team")];
    world.publish(publish(&pod, TARGET)).await.unwrap();
    assert!(world.mounted(TARGET).is_none());
    let name = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE, TARGET);
    let file = format!("/run/kata-containers/shared/direct-volumes/{name}/mountInfo.json");
    assert_eq!(world.machine.mode(&file), 0o600);
    let text = world.machine.text(&file);
    for part in [
        r#""volume-type":"azurefile""#,
        &format!(r#""device":"//{HOST}/share""#),
        r#""fstype":"cifs""#,
        &format!("username=acc,password={KEY}"),
        "addr=10.0.0.9",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    world.unpublish(TARGET).await.unwrap();
    assert!(!world.machine.exists(&file));

    // A pod of another class is served as on any node.
    world.played.0.lock().handler = "runc".to_owned();
    world.publish(publish(&pod, TARGET)).await.unwrap();
    assert!(world.mounted(TARGET).is_some() && world.mounted(STAGING).is_some());
}
