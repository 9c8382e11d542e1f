//! The cluster of all stories.

use azure_types::ResourceId;
use kube::Client;
use serde_json::{Value, json};
use simulated_cluster::Shape;

use crate::record::apply;
use crate::world::World;

/// Applies the flavor's cluster as a user, with a private endpoint added.
///
/// # Errors
/// Azure or the API server refuses a request.
pub async fn apply_cluster(
    world: &World,
    client: &Client,
    flavor: &str,
    shape: &Shape,
) -> anyhow::Result<()> {
    let shared = ResourceId::group(&shape.subscription, "shared");
    let account = shared.resource("Microsoft.Storage", "storageAccounts", "sharedfiles");
    let of_account = json!({ "location": "eastus", "sku": { "name": "Standard_LRS" }, "kind": "StorageV2" });
    for (id, body) in [(&shared, json!({ "location": "eastus" })), (&account, of_account)] {
        world.azure.azure.put(id, body).map_err(|refusal| anyhow::anyhow!("{id}: {refusal:?}"))?;
    }
    apply(world, client, flavor, shape, |object| add_private_endpoint(object, &account)).await
}

/// Adds a private endpoint, which no flavor has, to a cluster's subnet for nodes.
fn add_private_endpoint(object: &mut Value, account: &ResourceId) {
    let subnets = object.pointer_mut("/spec/networkSpec/subnets").and_then(Value::as_array_mut);
    for subnet in subnets.into_iter().flatten().filter(|subnet| subnet["role"] == "node") {
        subnet["privateEndpoints"] = json!([{ "name": "files", "location": "eastus", "privateLinkServiceConnections": [
            { "name": "to-files", "privateLinkServiceID": account.as_str(), "groupIDs": ["file"] }] }]);
    }
}
