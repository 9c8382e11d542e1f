//! The cluster of `examples/clusters`, whole or in part.

use serde_json::Value;

use super::objects::read_all;
use crate::program::root;

/// The cluster.
pub const CLUSTER: &str = "harbour";
/// Its control plane, of three machines.
pub const CONTROL_PLANE: &str = "harbour-control-plane";
/// One of its three deployments of one worker each.
pub const WORKERS: &str = "harbour-workers-1";
/// Its machine pool.
pub const POOL: &str = "harbour-spot";
/// How many machines it has in the pool.
pub const POOLED: usize = 3;
/// The label of machines of a deployment.
pub const OF_DEPLOYMENT: &str = "cluster.x-k8s.io/deployment-name";
/// The label of machines of a control plane, with its name.
pub const OF_CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane-name";

/// Kinds and names of what belongs to the workers but for the first, and to the pool.
const REST: [(&str, &str); 5] = [
    ("MachineDeployment", "harbour-workers-2"),
    ("MachineDeployment", "harbour-workers-3"),
    ("MachinePool", POOL),
    ("AzureMachinePool", POOL),
    ("KubeadmConfig", POOL),
];

/// All of it.
///
/// # Errors
/// A file cannot be read.
pub fn whole() -> anyhow::Result<Vec<Value>> {
    read_all(&root().join("examples/clusters"))
}

/// The control plane, and one deployment of one worker.
///
/// # Errors
/// A file cannot be read.
pub fn small() -> anyhow::Result<Vec<Value>> {
    let is_rest = |it: &Value| REST.iter().any(|(kind, name)| is(it, kind, name));
    Ok(whole()?.into_iter().filter(|it| !is_rest(it)).collect())
}

/// Whether this is the object of that kind and name.
pub fn is(object: &Value, kind: &str, name: &str) -> bool {
    object["kind"] == kind && object["metadata"]["name"] == name
}

/// One of the objects, after an edit.
pub fn edited(objects: &mut [Value], kind: &str, name: &str, edit: impl FnOnce(&mut Value)) {
    if let Some(object) = objects.iter_mut().find(|it| is(it, kind, name)) {
        edit(object);
    }
}

/// A copy of a template of machines, under another name and of another size.
pub fn larger(objects: &[Value], template: &str, name: &str, size: &str) -> Value {
    let found = objects.iter().find(|it| is(it, "AzureMachineTemplate", template));
    let mut copy = found.cloned().unwrap_or_default();
    copy["metadata"]["name"] = name.into();
    copy["spec"]["template"]["spec"]["vmSize"] = size.into();
    copy
}
