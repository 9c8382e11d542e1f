//! Machine pools of both orchestration modes. Health checks are left out: the core marks machines of pools, but does
//! not replace them.

use anyhow::Context as _;
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::e2e::capz::example::{CLUSTER, CONTROL_PLANE, POOL, edited, is, whole};
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::{CORE, View};

/// The second pool, whose scale set has flexible orchestration.
const FLEXIBLE: &str = "harbour-flexible";
const POOLS: [&str; 2] = [POOL, FLEXIBLE];
/// The next version of the pools, which is that of the control plane.
const NEXT: &str = "v1.33.2";
/// The label with a pool's name on its Machines.
const OF_POOL: &str = "cluster.x-k8s.io/pool-name";

/// A copy of the pool's objects, with another name and with flexible orchestration.
fn flexible(example: &[Value]) -> Vec<Value> {
    let mut copies: Vec<Value> = example
        .iter()
        .filter(|it| {
            ["MachinePool", "AzureMachinePool", "KubeadmConfig"].iter().any(|kind| is(it, kind, POOL))
        })
        .cloned()
        .collect();
    for copy in &mut copies {
        copy["metadata"]["name"] = FLEXIBLE.into();
    }
    edited(&mut copies, "MachinePool", FLEXIBLE, |it| {
        let template = &mut it["spec"]["template"]["spec"];
        template["bootstrap"]["configRef"]["name"] = FLEXIBLE.into();
        template["infrastructureRef"]["name"] = FLEXIBLE.into();
    });
    edited(&mut copies, "AzureMachinePool", FLEXIBLE, |it| {
        it["spec"]["orchestrationMode"] = "Flexible".into()
    });
    edited(&mut copies, "KubeadmConfig", FLEXIBLE, |it| {
        it["spec"]["files"][0]["contentFrom"]["secret"]["name"] = format!("{FLEXIBLE}-azure-json").into();
    });
    copies
}

/// The Machines of a pool.
fn of_pool<'a>(view: &'a View, pool: &'a str) -> impl Iterator<Item = &'a Value> {
    view.machines(OF_POOL, pool)
}

/// Each pool grows, gets another version, loses an instance in Azure and one in Kubernetes, and shrinks.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let mut example = whole()?;
    example.retain(|it| it["kind"] != "MachineDeployment");
    edited(&mut example, "KubeadmControlPlane", CONTROL_PLANE, |it| it["spec"]["replicas"] = 1.into());
    edited(&mut example, "MachinePool", POOL, |it| it["spec"]["replicas"] = 2.into());
    let copies = flexible(&example);
    stage.create(&example).await?;
    stage.create(&copies).await?;
    stage.until("a control plane and two pools of two run", |view| view.runs(1, 4)).await?;

    for (at, pool) in POOLS.into_iter().enumerate() {
        stage.scale(CORE, "MachinePool", pool, 3).await?;
        stage.until(&format!("{pool} grows"), |view| view.runs(1, 5 + at)).await?;
    }
    for pool in POOLS {
        let before: Vec<String> = of_pool(&stage.view().await?, pool).map(name).collect();
        let version = json!({ "spec": { "template": { "spec": { "version": NEXT } } } });
        stage.merge(CORE, "MachinePool", pool, &version).await?;
        stage
            .until(&format!("{pool} has other machines, of another version"), |view| {
                of_pool(view, pool).all(|it| !before.contains(&name(it))) && view.runs(1, 6)
            })
            .await?;
    }
    for pool in POOLS {
        let (machine, id) = victim(&stage.view().await?, pool)?;
        stage.place.azure.azure.delete(&id).map_err(|refusal| anyhow::anyhow!("{id}: {refusal:?}"))?;
        stage
            .until(&format!("an instance of {pool} is deleted in Azure, and another one comes"), |view| {
                !view.names("Machine").contains(&machine) && view.runs(1, 6)
            })
            .await?;
        let (machine, _) = victim(&stage.view().await?, pool)?;
        stage.delete(CORE, "Machine", &machine).await?;
        stage
            .until(&format!("a Machine of {pool} is deleted, and another one comes"), |view| {
                !view.names("Machine").contains(&machine) && view.runs(1, 6)
            })
            .await?;
    }
    stage.rests().await?;
    for (at, pool) in POOLS.into_iter().enumerate() {
        stage.scale(CORE, "MachinePool", pool, 1).await?;
        stage.until(&format!("{pool} shrinks"), |view| view.runs(1, 4 - 2 * at)).await?;
    }
    stage.delete(CORE, "MachinePool", FLEXIBLE).await?;
    stage
        .until(&format!("{FLEXIBLE} goes"), |view| {
            view.runs(1, 1) && view.get("AzureMachinePool", FLEXIBLE).is_null()
        })
        .await?;
    stage.ends(CLUSTER).await
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// A machine of a pool, and its instance in Azure.
fn victim(view: &View, pool: &str) -> anyhow::Result<(String, ResourceId)> {
    let found = of_pool(view, pool).next().context("the pool has no machine")?;
    let id = found["spec"]["providerID"].as_str().unwrap_or_default();
    Ok((name(found), ResourceId::parse(id.trim_start_matches("azure://"))?))
}
