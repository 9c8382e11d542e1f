//! Machines that are lost or stopped in Azure, and the health checks that replace them.

use anyhow::Context as _;
use azure_simulator::PowerState;
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::e2e::capz::example::{
    CLUSTER, CONTROL_PLANE, OF_CONTROL_PLANE, OF_DEPLOYMENT, WORKERS, edited, small,
};
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::CORE;
use crate::world::World;

/// How long a node may be silent, in seconds, in addition to the node monitor grace period.
const SILENCE: u32 = 5;

/// A failure of a machine in Azure.
struct Accident {
    what: &'static str,
    /// Label and value of the machines, of which one fails.
    of: (&'static str, &'static str),
    happens: fn(&World, &ResourceId) -> anyhow::Result<()>,
}

const ACCIDENTS: [Accident; 5] = [
    Accident { what: "a worker is deleted in Azure", of: (OF_DEPLOYMENT, WORKERS), happens: delete },
    Accident { what: "a worker is stopped in Azure", of: (OF_DEPLOYMENT, WORKERS), happens: stop },
    Accident { what: "a worker is deallocated in Azure", of: (OF_DEPLOYMENT, WORKERS), happens: deallocate },
    Accident {
        what: "a machine of the control plane is deleted in Azure",
        of: (OF_CONTROL_PLANE, CONTROL_PLANE),
        happens: delete,
    },
    Accident {
        what: "a machine of the control plane is stopped in Azure",
        of: (OF_CONTROL_PLANE, CONTROL_PLANE),
        happens: stop,
    },
];

fn delete(place: &World, machine: &ResourceId) -> anyhow::Result<()> {
    place.azure.azure.delete(machine).map_err(|refusal| anyhow::anyhow!("{machine}: {refusal:?}"))
}

fn switch(place: &World, machine: &ResourceId, state: PowerState) -> anyhow::Result<()> {
    let done = place.azure.azure.set_power_state(machine, state);
    done.map_err(|refusal| anyhow::anyhow!("{machine}: {refusal:?}"))
}

fn stop(place: &World, machine: &ResourceId) -> anyhow::Result<()> {
    switch(place, machine, PowerState::Stopped)
}

fn deallocate(place: &World, machine: &ResourceId) -> anyhow::Result<()> {
    switch(place, machine, PowerState::Deallocated)
}

/// A health check for the machines with this label.
fn health_check(name: &str, cluster: &str, (label, value): (&str, &str)) -> Value {
    let silent = |status: &str| json!({ "type": "Ready", "status": status, "timeoutSeconds": SILENCE });
    json!({ "apiVersion": CORE, "kind": "MachineHealthCheck",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "clusterName": cluster, "selector": { "matchLabels": { label: value } },
            "checks": { "unhealthyNodeConditions": [silent("Unknown"), silent("False")] } } })
}

/// Runs one failure after the other; a health check must detect each.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let mut example = small()?;
    edited(&mut example, "MachineDeployment", WORKERS, |it| it["spec"]["replicas"] = 2.into());
    stage.create(&example).await?;
    stage.until("five nodes are ready", |view| view.runs(5, 0)).await?;
    stage
        .create(&[
            health_check("workers", CLUSTER, (OF_DEPLOYMENT, WORKERS)),
            health_check("control-plane", CLUSTER, (OF_CONTROL_PLANE, CONTROL_PLANE)),
        ])
        .await?;
    for Accident { what, of: (label, owner), happens } in ACCIDENTS {
        let before = stage.view().await?;
        let victim = before.machines(label, owner).next().context("there is no such machine")?;
        let name = victim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let id = victim["spec"]["providerID"].as_str().unwrap_or_default();
        happens(stage.place, &ResourceId::parse(id.trim_start_matches("azure://"))?)?;
        stage
            .until(&format!("{what}, and another one comes"), |view| {
                !view.names("Machine").contains(&name) && view.runs(5, 0)
            })
            .await?;
    }
    stage.rests().await?;
    stage.ends(CLUSTER).await
}
