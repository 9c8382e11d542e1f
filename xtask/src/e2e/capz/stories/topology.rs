//! A cluster of a class: the flavors `clusterclass` and `topology`.

use serde_json::{Value, json};

use crate::e2e::capz::example::larger;
use crate::e2e::capz::flavor::rendered;
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::{CORE, View, is_true};

/// The cluster, named after its flavor.
const CLUSTER: &str = "topology";
const CLASS: &str = "class";
const NEXT: &str = "v1.34.3";
const OTHER_SIZE: &str = "Standard_D4s_v3";

/// Changes of the class: the replaced template, the name of the new one, and its path in the class.
const TEMPLATES: [(&str, &str, &str); 2] = [
    (
        "topology-md-0",
        "topology-md-0-larger",
        "/workers/machineDeployments/0/infrastructure/templateRef/name",
    ),
    (
        "topology-control-plane",
        "topology-control-plane-larger",
        "/controlPlane/machineInfrastructure/templateRef/name",
    ),
];

/// The cluster is created from its class, and gets more workers, another version, and larger machines by another
/// template in the class.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    stage.place.create_identity_for_machines()?;
    stage.azure_has_more();
    let class = rendered(stage, "clusterclass", CLUSTER)?;
    stage.create(&class).await?;
    stage.create(&rendered(stage, "topology", CLUSTER)?).await?;
    stage.until("a control plane and two workers run", |view| view.runs(3, 0)).await?;
    stage.rests().await?;

    let topology = |patch: Value| json!({ "spec": { "topology": patch } });
    let three = topology(json!({ "workers": { "machineDeployments": [
        { "class": "topology-worker", "name": "md-0", "replicas": 3 }] } }));
    stage.merge(CORE, "Cluster", CLUSTER, &three).await?;
    stage.until("there are three workers", |view| view.runs(4, 0)).await?;
    let next = topology(json!({ "version": NEXT }));
    stage.merge(CORE, "Cluster", CLUSTER, &next).await?;
    stage
        .until("all machines run the next version", |view| {
            view.all("Machine").all(|it| it["spec"]["version"] == NEXT) && reconciled(view) && view.runs(4, 0)
        })
        .await?;
    let mut sized = 0;
    for (template, name, place) in TEMPLATES {
        stage.create(&[larger(&class, template, name, OTHER_SIZE)]).await?;
        // A merge patch would replace the whole list.
        let patch = json!([{ "op": "replace", "path": format!("/spec{place}"), "value": name }]);
        stage.patch(CORE, "ClusterClass", CLASS, &patch).await?;
        sized += if template.ends_with("control-plane") { 1 } else { 3 };
        stage
            .until(&format!("machines of {template} are replaced by those of {name}"), |view| {
                view.of_size(OTHER_SIZE) == sized && view.runs(4, 0)
            })
            .await?;
    }
    stage.rests().await?;
    stage.ends(CLUSTER).await
}

fn reconciled(view: &View) -> bool {
    is_true(view.get("Cluster", CLUSTER), "TopologyReconciled")
}
