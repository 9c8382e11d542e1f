//! The cluster of `examples/clusters`, as a whole or in part.

use serde_json::Value;

use super::objects::read_all;
use crate::program::root;

/// The name of the cluster.
pub const CLUSTER: &str = "harbour";
/// Its control plane, of three machines.
pub const CONTROL_PLANE: &str = "harbour-control-plane";
/// One of its three deployments of one worker each.
pub const WORKERS: &str = "harbour-workers-1";
/// Its machine pool.
pub const POOL: &str = "harbour-spot";
/// The number of machines in the pool.
pub const POOLED: usize = 3;
/// The label with a deployment's name on its machines.
pub const OF_DEPLOYMENT: &str = "cluster.x-k8s.io/deployment-name";
/// The label with a control plane's name on its machines.
pub const OF_CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane-name";

/// Kinds and names of the objects of the pool, and of the workers other than the first.
const REST: [(&str, &str); 5] = [
    ("MachineDeployment", "harbour-workers-2"),
    ("MachineDeployment", "harbour-workers-3"),
    ("MachinePool", POOL),
    ("AzureMachinePool", POOL),
    ("KubeadmConfig", POOL),
];

/// All objects.
///
/// # Errors
/// A file cannot be read.
pub fn whole() -> anyhow::Result<Vec<Value>> {
    read_all(&root().join("examples/clusters"))
}

/// The objects of the control plane, and of one deployment of one worker.
///
/// # Errors
/// A file cannot be read.
pub fn small() -> anyhow::Result<Vec<Value>> {
    let is_rest = |it: &Value| REST.iter().any(|(kind, name)| is(it, kind, name));
    Ok(whole()?.into_iter().filter(|it| !is_rest(it)).collect())
}

/// Whether the object has this kind and name.
pub fn is(object: &Value, kind: &str, name: &str) -> bool {
    object["kind"] == kind && object["metadata"]["name"] == name
}

/// Edits one of the objects.
pub fn edited(objects: &mut [Value], kind: &str, name: &str, edit: impl FnOnce(&mut Value)) {
    if let Some(object) = objects.iter_mut().find(|it| is(it, kind, name)) {
        edit(object);
    }
}

/// A copy of a machine template with another name and another size.
pub fn larger(objects: &[Value], template: &str, name: &str, size: &str) -> Value {
    let found = objects.iter().find(|it| is(it, "AzureMachineTemplate", template));
    let mut copy = found.cloned().unwrap_or_default();
    copy["metadata"]["name"] = name.into();
    copy["spec"]["template"]["spec"]["vmSize"] = size.into();
    copy
}
