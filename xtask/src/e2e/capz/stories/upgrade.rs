//! Another version of Kubernetes for control plane and workers, and other numbers of control plane machines.

use serde_json::{Value, json};

use crate::e2e::capz::example::{
    CLUSTER, CONTROL_PLANE, OF_CONTROL_PLANE, OF_DEPLOYMENT, WORKERS, larger, small,
};
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::{self, CORE, View};

/// The minor version after that of the example.
const NEXT: &str = "v1.34.3";
/// The new size of the control plane.
const OTHER_SIZE: &str = "Standard_D4s_v3";

fn all_have(view: &View, label: &str, owner: &str, count: usize) -> bool {
    view.machines(label, owner).filter(|it| it["spec"]["version"] == NEXT).count() == count
}

/// The control plane is rolled to the next version, then the workers; it is rolled to larger machines, shrinks and grows.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let example = small()?;
    stage.create(&example).await?;
    stage.until("four nodes are ready", |view| view.runs(4, 0)).await?;
    // The control plane provider connects to each API server, without the load balancer, to read this date.
    stage
        .until("it is known when the certificates of API servers end", |view| {
            let known = |it: &Value| it["status"]["certificatesExpiryDate"].is_string();
            view.machines(OF_CONTROL_PLANE, CONTROL_PLANE).filter(|it| known(it)).count() == 3
        })
        .await?;

    let before = stage.view().await?.names("Machine");
    stage
        .merge(
            view::CONTROL_PLANE,
            "KubeadmControlPlane",
            CONTROL_PLANE,
            &json!({ "spec": { "version": NEXT } }),
        )
        .await?;
    stage
        .until("the control plane runs the next version", |view| {
            all_have(view, OF_CONTROL_PLANE, CONTROL_PLANE, 3) && view.runs(4, 0)
        })
        .await?;
    let version = json!({ "spec": { "template": { "spec": { "version": NEXT } } } });
    stage.merge(CORE, "MachineDeployment", WORKERS, &version).await?;
    stage
        .until("so do the workers, and all machines are others", |view| {
            all_have(view, OF_DEPLOYMENT, WORKERS, 1)
                && view.runs(4, 0)
                && before.is_disjoint(&view.names("Machine"))
        })
        .await?;

    let template = "harbour-control-plane-larger";
    stage.create(&[larger(&example, CONTROL_PLANE, template, OTHER_SIZE)]).await?;
    let larger =
        json!({ "spec": { "machineTemplate": { "spec": { "infrastructureRef": { "name": template } } } } });
    stage.merge(view::CONTROL_PLANE, "KubeadmControlPlane", CONTROL_PLANE, &larger).await?;
    stage
        .until("the control plane has larger machines", |view| {
            view.of_size(OTHER_SIZE) == 3 && view.runs(4, 0)
        })
        .await?;
    stage.scale(view::CONTROL_PLANE, "KubeadmControlPlane", CONTROL_PLANE, 1).await?;
    stage.until("the control plane is one machine", |view| view.runs(2, 0)).await?;
    stage.scale(view::CONTROL_PLANE, "KubeadmControlPlane", CONTROL_PLANE, 3).await?;
    stage.until("the control plane is three machines again", |view| view.runs(4, 0)).await?;
    stage.rests().await?;
    stage.ends(CLUSTER).await
}
