//! Acts of the demo with a problem that the controller manager did not cause: a load balancer is deleted by hand, and a
//! Service asks for an address that the program's identity may not use.

use anyhow::{Context as _, ensure};
use azure_simulator::packet::{Protocol, Source};
use azure_types::ResourceId;
use k8s::ObjectKey;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use simulated_cluster::manifests;
use tokio::time::Instant;

use super::acts::{address_of, expect};
use super::report;
use super::stage::{CLUSTER_NAME, Stage};

/// Built-in roles of Azure.
const NETWORK_CONTRIBUTOR: &str = "4d97b98b-1d4f-4787-a291-c67834d212e7";
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
/// The resource group of another team, with its public IP.
const OTHER_GROUP: &str = "other-team";
const OTHER_ADDRESS: &str = "front";
/// Services that are applied together; the first asks for the other team's address.
const REFUSED: &str = "borrowed";
const SERVED: [&str; 2] = ["alpha", "beta"];

/// Deletes the load balancer of all public Services by hand. The next resync with Azure detects that, and it is created
/// again.
pub async fn delete_a_load_balancer(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading(format_args!("The load balancer {CLUSTER_NAME} is deleted by hand"));
    let web = address_of(stage, "shop", "web").await?;
    let balancer = stage.shape.group().resource("Microsoft.Network", "loadBalancers", CLUSTER_NAME);
    let client = || -> anyhow::Result<Source> { Ok(Source::Internet { address: "203.0.113.10".parse()? }) };
    drop(stage.writes.take());
    let deleted = Instant::now();
    take_out_of_pools(stage, &balancer)?;
    stage
        .screen
        .moment(deleted.elapsed(), "the machines are taken out of its pools: Azure asks for that first");
    stage.cluster.azure.delete(&balancer)?;
    stage.screen.moment(deleted.elapsed(), "it is deleted, and the traffic of all its Services ends");
    let verdict = stage.send(client()?, &web, 80, Protocol::Tcp)?;
    expect(stage, &verdict, false)?;
    stage
        .until("the load balancer is back", async |stage: &Stage| {
            Ok(stage.cluster.azure.document(&balancer).map(|_| ()))
        })
        .await?;
    stage
        .screen
        .moment(deleted.elapsed(), "the controller manager has looked at Azure again, and writes it anew");
    let verdict = stage
        .until("packets arrive again", async |stage: &Stage| {
            let verdict = stage.send(client()?, &web, 80, Protocol::Tcp)?;
            Ok(verdict.arrives.then_some(verdict))
        })
        .await?;
    stage.screen.moment(deleted.elapsed(), "packets arrive again, at the same address");
    expect(stage, &verdict, true)?;
    stage
        .until("Azure has finished", async |stage: &Stage| {
            Ok(stage.writes.hold("/loadBalancers/").then_some(()))
        })
        .await?;
    report::writes(stage, "Changes in Azure");
    Ok(())
}

/// Removes all machines from the pools of a load balancer, which Azure requires before it can be deleted.
fn take_out_of_pools(stage: &Stage, balancer: &ResourceId) -> anyhow::Result<()> {
    fn leave(value: &mut Value, balancer: &ResourceId) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|member| leave(member, balancer)),
            Value::Array(items) => {
                let is_pool = |item: &Value| {
                    let id = item["id"].as_str().and_then(|id| ResourceId::parse(id).ok());
                    id.is_some_and(|id| id.is_within(balancer))
                };
                items.retain(|item| !is_pool(item));
                items.iter_mut().for_each(|item| leave(item, balancer));
            }
            _ => {}
        }
    }
    let azure = &stage.cluster.azure;
    for kind in ["virtualMachineScaleSets", "virtualMachineScaleSets/virtualMachines"] {
        for document in azure.documents_of_type(&format!("Microsoft.Compute/{kind}")) {
            let id = document["id"].as_str().context("a document has no id")?;
            azure.edit(&ResourceId::parse(id)?, |held| leave(held, balancer))?;
        }
    }
    Ok(())
}

/// Creates three Services at once. One asks for a public IP of another team, which the program's identity may not join:
/// Azure refuses it, and the other two get their addresses.
pub async fn refuse_one_of_three(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("Three Services at once, one of which asks for another team's address");
    let address = restrict(stage)?;
    let annotation = |name: &str| format!("service.beta.kubernetes.io/{name}");
    let service = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "default", "name": name, "annotations": annotations},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"},
                "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]},
        })
    };
    let borrowed = json!({
        annotation("azure-load-balancer-resource-group"): OTHER_GROUP,
        annotation("azure-pip-name"): OTHER_ADDRESS,
    });
    let mut objects = vec![service(REFUSED, borrowed)];
    objects.extend(SERVED.map(|name| service(name, json!({}))));
    drop(stage.writes.take());
    let applied = Instant::now();
    manifests::apply(&stage.cluster.client, &objects).await?;
    for name in SERVED {
        let key = ObjectKey::new("default", name);
        stage
            .until("the good Services have their addresses", async |stage: &Stage| {
                let service = stage.service(&key).await?.context("the Service is gone")?;
                Ok((!service.status.load_balancer.ingress.is_empty()).then_some(()))
            })
            .await?;
        let address = address_of(stage, "default", name).await?;
        stage.screen.moment(applied.elapsed(), format_args!("{key} has the address {address}"));
    }
    let key = ObjectKey::new("default", REFUSED);
    let warning = stage
        .until("the refused Service has its warning", async |stage: &Stage| {
            let service = stage.service(&key).await?.context("the Service is gone")?;
            stage.latest_warning(&key, service.uid()).await
        })
        .await?;
    stage.screen.moment(applied.elapsed(), format_args!("{key} has a warning: {warning}"));
    let reason_is_azures = warning.contains(OTHER_ADDRESS) || warning.contains("AuthorizationFailed");
    stage.screen.verdict(reason_is_azures, "the warning has Azure's own words");
    ensure!(reason_is_azures, "the warning does not say why: {warning}");
    let untouched = stage
        .cluster
        .azure
        .document(&address)
        .is_some_and(|held| held["tags"].as_object().is_none_or(serde_json::Map::is_empty));
    stage.screen.claim(untouched, "the other team's address is as it was")?;
    report::writes(stage, "Changes in Azure");
    for name in SERVED.into_iter().chain([REFUSED]) {
        stage.services_in("default").delete(name, &DeleteParams::default()).await?;
    }
    stage
        .until("the three Services are gone", async |stage: &Stage| {
            for name in SERVED.into_iter().chain([REFUSED]) {
                if stage.service(&ObjectKey::new("default", name)).await?.is_some() {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await?;
    stage.screen.verdict(true, "all three can be deleted");
    stage.cluster.azure.enforce_authorization(false);
    drop(stage.writes.take());
    Ok(())
}

/// Creates another team's public IP, and restricts the program's identity to its own group; it may read everything.
fn restrict(stage: &Stage) -> anyhow::Result<ResourceId> {
    let azure = &stage.cluster.azure;
    let subscription = ResourceId::subscription(&stage.shape.subscription);
    let group = ResourceId::group(&stage.shape.subscription, OTHER_GROUP);
    let address = group.resource("Microsoft.Network", "publicIPAddresses", OTHER_ADDRESS);
    let body = json!({"location": "westeurope", "sku": {"name": "Standard"},
        "properties": {"publicIPAllocationMethod": "Static"}});
    azure.put(&address, body)?;
    for assignment in azure.documents_of_type("Microsoft.Authorization/roleAssignments") {
        let is_own = assignment["properties"]["principalId"] == json!(stage.shape.object_id);
        if let Some(id) = assignment["id"].as_str().filter(|_| is_own) {
            azure.delete(&ResourceId::parse(id)?)?;
        }
    }
    let own_group = stage.shape.group();
    for (scope, role) in
        [(&own_group, CONTRIBUTOR), (&own_group, NETWORK_CONTRIBUTOR), (&subscription, READER)]
    {
        azure.assign_role(scope, role, &stage.shape.object_id)?;
    }
    azure.enforce_authorization(true);
    Ok(address)
}
