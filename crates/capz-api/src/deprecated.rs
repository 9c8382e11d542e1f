//! Deprecated members, which are still accepted and have a successor.

use serde_json::Value;

use crate::immutable::is_empty;
use crate::webhooks::{Task, Webhook};

/// A member of objects of one kind, by its path with dots, and what to use instead.
type Successor = (&'static str, &'static str, &'static str);

const MEMBERS: [Successor; 13] = [
    ("AzureClusterIdentity", "spec.resourceID", "leave it away: clientID says which identity it is"),
    ("AzureMachine", "spec.acceleratedNetworking", "use networkInterfaces"),
    ("AzureMachine", "spec.image.sharedGallery", "use computeGallery"),
    ("AzureMachine", "spec.roleAssignmentName", "use systemAssignedIdentityRole.name"),
    ("AzureMachine", "spec.subnetName", "use networkInterfaces"),
    ("AzureMachinePool", "spec.roleAssignmentName", "use systemAssignedIdentityRole.name"),
    ("AzureMachinePool", "spec.template.acceleratedNetworking", "use networkInterfaces"),
    ("AzureMachinePool", "spec.template.image.sharedGallery", "use computeGallery"),
    ("AzureMachinePool", "spec.template.subnetName", "use networkInterfaces"),
    ("AzureMachineTemplate", "spec.template.spec.acceleratedNetworking", "use networkInterfaces"),
    ("AzureMachineTemplate", "spec.template.spec.image.sharedGallery", "use computeGallery"),
    ("AzureMachineTemplate", "spec.template.spec.roleAssignmentName", "leave it away: it is of one machine"),
    ("AzureMachineTemplate", "spec.template.spec.subnetName", "use networkInterfaces"),
];

/// A warning for each such member of an object as it was sent. One webhook of a kind returns them: the first that is
/// called.
pub(crate) fn warnings(webhook: &Webhook, object: &Value) -> Vec<String> {
    let asked_first = webhook.task == Task::Default || webhook.kind == "AzureClusterIdentity";
    MEMBERS
        .iter()
        .filter(|(kind, ..)| asked_first && *kind == webhook.kind)
        .filter(|(_, path, _)| {
            path.split('.').try_fold(object, |value, member| value.get(member)).is_some_and(|value| {
                // `false` is set, too.
                value.is_boolean() || !is_empty(value)
            })
        })
        .map(|(_, path, instead)| format!("{path} is deprecated: {instead}"))
        .collect()
}
