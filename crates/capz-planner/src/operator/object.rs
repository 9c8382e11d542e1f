//! An object of the operator's, and the next step for it.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::kind::OperatorKind;
use super::owner;

/// The annotation with the operator's rights to the resource of an object. Without it, the operator may write and
/// delete the resource.
pub(super) const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
/// The policy with which the operator does nothing, neither when the object is changed nor when it is deleted.
const SKIP: &str = "skip";
/// The policy with which the operator writes the resource, but does not delete it.
const DETACH_ON_DELETE: &str = "detach-on-delete";
/// The annotation in which the established provider saves the policy of an object while its cluster is paused. It
/// restores the policy from here when it reconciles the cluster again.
const POLICY_BEFORE: &str = "sigs.k8s.io/cluster-api-provider-azure-pre-pause-reconcile-policy";
/// The annotation with the resource's id in Azure.
const RESOURCE: &str = "serviceoperator.azure.com/resource-id";
/// The operator's finalizer.
const FINALIZER: &str = "serviceoperator.azure.com/finalizer";
/// The reason of the condition `Ready` if the resource does not exist in Azure.
const NOT_FOUND: &str = "AzureResourceNotFound";

/// The field manager of the established provider.
const ESTABLISHED: &str = "capz-manager";

/// The annotation with the policy of an object, and the policy: the one before it was made harmless, if it is harmless.
pub(crate) fn policy_of(metadata: &Value) -> Option<(&'static str, &str)> {
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let now = annotation(POLICY);
    let policy = match annotation(POLICY_BEFORE).filter(|_| now == Some(SKIP)) {
        Some(before) => Some(before),
        None => now,
    };
    policy.map(|policy| (POLICY, policy))
}

/// The annotations that make an object harmless and remember its policy; `None` if it is harmless.
pub(crate) fn skipped(metadata: &Value) -> Option<Value> {
    let policy = metadata["annotations"][POLICY].as_str();
    (policy != Some(SKIP)).then(|| json!({ POLICY: SKIP, POLICY_BEFORE: policy.unwrap_or_default() }))
}

/// The next step for an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Makes the object harmless with this merge patch.
    Skip(Value),
    /// Gives the policy of a harmless object to the established provider with this merge patch: what only it manages, it
    /// removes when it applies the object again.
    Yield(Value),
    /// Deletes the object; its dependants in Kubernetes stay.
    Delete,
    /// Removes the operator's finalizer with this merge patch.
    Release(Value),
}

/// A Secret or ConfigMap that the operator writes for an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Export {
    /// The Secret with this name.
    Secret(String),
    /// The ConfigMap with this name.
    ConfigMap(String),
}

/// An object of the operator that belongs to an object of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorObject {
    /// Its kind.
    pub kind: &'static OperatorKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its resource version when it was read.
    pub resource_version: String,
    /// The UID of the owner.
    pub owner: String,
    /// What the operator writes for it.
    pub exports: BTreeSet<Export>,
    api_version: String,
    policy: Option<String>,
    policy_before: Option<String>,
    finalizers: Vec<String>,
    is_deleted: bool,
    resource: Option<ResourceId>,
    is_there: bool,
    is_applied: bool,
    is_policy_of_owner: bool,
}

impl OperatorObject {
    /// Reads an object; `None` unless an object of ours owns and controls it.
    pub fn of(kind: &'static OperatorKind, object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true && owner::is_ours(owner))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let annotation = |key: &str| metadata["annotations"][key].as_str().map(str::to_owned);
        let resource = annotation(RESOURCE).or_else(|| object["status"]["id"].as_str().map(str::to_owned));
        let conditions = object["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
        Some(Self {
            kind,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            resource_version: text(&metadata["resourceVersion"]),
            owner: text(&owner["uid"]),
            exports: exports(&object["spec"]["operatorSpec"]),
            api_version: text(&object["apiVersion"]),
            policy: annotation(POLICY),
            policy_before: annotation(POLICY_BEFORE),
            finalizers: metadata["finalizers"].as_array().into_iter().flatten().map(text).collect(),
            is_deleted: metadata["deletionTimestamp"].is_string(),
            resource: resource.and_then(|id| ResourceId::parse(&id).ok()),
            is_there: ready.is_some_and(|ready| ready["reason"] != NOT_FOUND),
            is_applied: owner::declares_policies(owner),
            is_policy_of_owner: owner::declares_policies(owner) && has_policy_of_owner(metadata),
        })
    }

    /// Whether the operator does nothing with the resource in Azure, whatever happens to the object.
    pub fn is_harmless(&self) -> bool {
        self.policy.as_deref() == Some(SKIP)
    }

    /// Whether it is harmless, and the established provider would restore the policy that it had before. It restores the
    /// policies of most objects from an annotation. Those of raw owners it applies: they lose the policy `skip` only if
    /// it alone manages that.
    pub fn is_restorable(&self) -> bool {
        let is_given = !self.is_applied || self.policy_before.is_none() || self.is_policy_of_owner;
        self.is_harmless() && (is_given || self.is_deleted)
    }

    /// Whether it is being deleted.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Returns the next step; `None` while the object must stay (`is_paused`), or waits only for foreign finalizers.
    pub fn next(&self, is_paused: bool) -> Option<Step> {
        if let Some(annotations) = skipped(&json!({ "annotations": { POLICY: self.policy } })) {
            return Some(Step::Skip(self.patch(json!({ "annotations": annotations }))));
        }
        if !self.is_restorable() {
            return Some(Step::Yield(self.yielded()));
        }
        if is_paused {
            return None;
        }
        if !self.is_deleted {
            return Some(Step::Delete);
        }
        let is_held = self.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        is_held.then(|| {
            let rest: Vec<&String> = self.finalizers.iter().filter(|it| *it != FINALIZER).collect();
            Step::Release(self.patch(json!({ "finalizers": rest })))
        })
    }

    /// A patch for exactly this resource version. It clears `managedFields`: they name other versions than the stored
    /// one, and the API server would convert the object to each of these.
    fn patch(&self, mut metadata: Value) -> Value {
        metadata["resourceVersion"] = json!(self.resource_version);
        metadata["managedFields"] = json!([{}]);
        json!({ "metadata": metadata })
    }

    /// The patch that makes the established provider the only manager of the policy, in the stored version.
    fn yielded(&self) -> Value {
        let annotations = json!({ format!("f:{POLICY}"): {}, format!("f:{POLICY_BEFORE}"): {} });
        json!({ "metadata": { "resourceVersion": self.resource_version, "managedFields": [{
            "manager": ESTABLISHED, "operation": "Apply", "apiVersion": self.api_version,
            "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": { "f:annotations": annotations } },
        }] } })
    }

    /// The version in which it is stored, without the operator's suffix.
    pub fn version(&self) -> &str {
        self.api_version.rsplit('/').next().unwrap_or_default().trim_end_matches("storage")
    }

    /// The resource in Azure that must not be deleted, with the policy that says so. A new object has the policy `skip`
    /// until the existence of its resource is known, and while the resource does not exist: then no resource is kept.
    pub fn kept(&self) -> Option<(&ResourceId, &str)> {
        let policy = match self.policy_before.as_deref().filter(|_| self.is_harmless()) {
            Some(before) => before,
            // The owner declares it again, or has been paused.
            None if self.is_policy_of_owner => return None,
            None => self.policy.as_deref()?,
        };
        let keeps = policy == DETACH_ON_DELETE || (policy == SKIP && self.is_there);
        self.resource.as_ref().filter(|_| keeps).zip(Some(policy))
    }

    /// The resource in Azure that the operator has created, or was to write and delete.
    pub fn managed(&self) -> Option<&ResourceId> {
        self.resource.as_ref().filter(|_| self.is_there && self.kept().is_none())
    }
}

/// What `operatorSpec` exports: named in members of an object, or in items of a list.
fn exports(operator_spec: &Value) -> BTreeSet<Export> {
    let of = |members: [&str; 2], export: fn(String) -> Export| {
        let all: Vec<&Value> = members.iter().flat_map(|member| items(&operator_spec[*member])).collect();
        all.into_iter().filter_map(move |item| Some(export(item["name"].as_str()?.to_owned())))
    };
    let secrets = of(["secrets", "secretExpressions"], Export::Secret);
    secrets.chain(of(["configMaps", "configMapExpressions"], Export::ConfigMap)).collect()
}

fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether the established provider alone has set the policy: it applies what the owner declares, and `skip` while the
/// owner is paused.
fn has_policy_of_owner(metadata: &Value) -> bool {
    let member = format!("f:{POLICY}");
    let entries = metadata["managedFields"].as_array();
    let mut managers = entries.into_iter().flatten().filter(|entry| {
        let annotations = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
        annotations.get(&member).is_some()
    });
    managers.next().is_some_and(|first| first["manager"] == ESTABLISHED)
        && managers.all(|other| other["manager"] == ESTABLISHED)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::operator::kinds;

    pub const ID: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/natGateways/n";

    pub fn object(annotations: Value, finalizers: &[&str], is_deleted: bool, reason: &str) -> OperatorObject {
        let mut object = json!({
            "metadata": {
                "namespace": "default", "name": "n", "uid": "u", "resourceVersion": "7", "annotations": annotations,
                "finalizers": finalizers,
                "ownerReferences": [{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
                    "name": "c", "uid": "c-uid", "controller": true }],
            },
            "status": { "id": ID, "conditions": [{ "type": "Ready", "status": "True", "reason": reason }] },
        });
        if is_deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-29T12:00:00Z");
        }
        OperatorObject::of(&kinds()[3], &object).unwrap()
    }

    /// S3: from any state, no step leads to a deletion in Azure by the operator.
    #[test]
    fn an_object_becomes_harmless_before_it_goes() {
        for (policy, before) in [
            (json!({}), ""),
            (json!({ POLICY: "manage" }), "manage"),
            (json!({ POLICY: "manage", POLICY_BEFORE: "skip" }), "manage"),
            (json!({ POLICY: "detach-on-delete" }), "detach-on-delete"),
            (json!({ POLICY: "Skip" }), "Skip"),
        ] {
            for is_deleted in [false, true] {
                for is_paused in [false, true] {
                    let object = object(policy.clone(), &[FINALIZER], is_deleted, "Succeeded");
                    assert!(!object.is_harmless());
                    let patch = json!({ "metadata": { "resourceVersion": "7", "managedFields": [{}],
                        "annotations": { POLICY: "skip", POLICY_BEFORE: before } } });
                    assert_eq!(object.next(is_paused), Some(Step::Skip(patch)), "{policy}");
                }
            }
        }
        let skip = json!({ POLICY: "skip" });
        let other = "example.com/other";
        let release =
            json!({ "metadata": { "resourceVersion": "7", "managedFields": [{}], "finalizers": [other] } });
        for (finalizers, is_deleted, is_paused, next) in [
            (vec![FINALIZER], false, true, None),
            (vec![FINALIZER], true, true, None),
            (vec![FINALIZER], false, false, Some(Step::Delete)),
            (vec![FINALIZER, other], true, false, Some(Step::Release(release))),
            (vec!["orphan"], true, false, None),
        ] {
            let object = object(skip.clone(), &finalizers, is_deleted, "Succeeded");
            assert_eq!(object.next(is_paused), next, "{finalizers:?}");
        }
    }

    #[test]
    fn what_the_operator_was_not_to_delete_is_kept() {
        for (annotations, reason, policy) in [
            (json!({ POLICY: "skip" }), "Succeeded", Some("skip")),
            (json!({ POLICY: "skip" }), NOT_FOUND, None),
            (json!({ POLICY: "skip", POLICY_BEFORE: "manage" }), "Succeeded", None),
            (json!({ POLICY: "skip", POLICY_BEFORE: "" }), "Succeeded", None),
            (json!({ POLICY: "skip", POLICY_BEFORE: "skip" }), "Succeeded", Some("skip")),
            (json!({ POLICY: "skip", POLICY_BEFORE: DETACH_ON_DELETE }), "Succeeded", Some(DETACH_ON_DELETE)),
            (json!({ POLICY: DETACH_ON_DELETE }), "Failed", Some(DETACH_ON_DELETE)),
            (json!({ POLICY: "manage" }), "Succeeded", None),
            // A third party has restored it since.
            (json!({ POLICY: "manage", POLICY_BEFORE: "skip" }), "Succeeded", None),
        ] {
            let object = object(annotations.clone(), &[], false, reason);
            assert_eq!(object.kept().map(|(_, policy)| policy), policy, "{annotations} {reason}");
        }
    }

    #[test]
    fn objects_of_others_are_not_looked_at() {
        for owner in [
            json!([]),
            json!([{ "apiVersion": "resources.azure.com/v1", "kind": "ResourceGroup", "uid": "u" }]),
            json!([{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster", "uid": "u" }]),
            json!([{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureManagedCluster", "uid": "u",
                "controller": true }]),
            json!([{ "apiVersion": "example.com/v1", "kind": "AzureASOManagedCluster", "uid": "u", "controller": true }]),
        ] {
            let object = json!({ "metadata": { "name": "n", "ownerReferences": owner } });
            assert_eq!(OperatorObject::of(&kinds()[0], &object), None, "{object}");
        }
    }

    /// The established provider applies the objects of raw owners: it removes the policy `skip` only if it alone manages
    /// that. A policy of the user's stays.
    #[test]
    fn the_policy_of_a_raw_owners_object_is_given_to_the_established_provider() {
        let ours = json!([{ "manager": "capz-controller-manager", "operation": "Update",
            "fieldsV1": { "f:metadata": { "f:annotations": { format!("f:{POLICY}"): {} } } } }]);
        for (owner, annotations, yields) in [
            ("AzureASOManagedCluster", json!({ POLICY: "skip", POLICY_BEFORE: "" }), true),
            (
                "AzureASOManagedMachinePool",
                json!({ POLICY: "skip", POLICY_BEFORE: "detach-on-delete" }),
                true,
            ),
            ("AzureASOManagedCluster", json!({ POLICY: "skip" }), false),
            ("AzureManagedControlPlane", json!({ POLICY: "skip", POLICY_BEFORE: "manage" }), false),
        ] {
            let object = |managers: &Value| {
                let object = json!({
                    "apiVersion": "resources.azure.com/v1api20200601storage",
                    "metadata": { "annotations": annotations, "managedFields": managers, "resourceVersion": "7",
                        "ownerReferences": [{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": owner, "uid": "u",
                            "controller": true }] },
                });
                OperatorObject::of(&kinds()[0], &object).unwrap()
            };
            let before = object(&ours);
            assert_eq!(before.is_restorable(), !yields, "{owner} {annotations}");
            let Some(Step::Yield(patch)) = before.next(true) else {
                assert_eq!(before.next(true), None);
                assert!(!yields, "{owner} {annotations}");
                continue;
            };
            let after = object(&patch["metadata"]["managedFields"]);
            assert!(yields && after.is_restorable(), "{owner} {annotations}");
            assert_eq!((after.next(true), after.next(false)), (None, Some(Step::Delete)));
            assert_eq!(after.kept().is_some(), before.kept().is_some());
        }
    }

    /// The established provider applies `skip` to the objects of a paused raw owner: this is no wish of the user's.
    #[test]
    fn the_policy_of_a_paused_owner_is_not_the_users() {
        let by = |manager: &str| {
            let annotations = json!({ format!("f:{POLICY}"): {} });
            json!({ "manager": manager, "fieldsV1": { "f:metadata": { "f:annotations": annotations } } })
        };
        let other = json!({ "manager": "kubectl", "fieldsV1": { "f:metadata": { "f:annotations": { "f:else": {} } } } });
        for (owner, managers, is_kept) in [
            ("AzureASOManagedControlPlane", json!([by("capz-manager"), other]), false),
            ("AzureASOManagedControlPlane", json!([by("capz-manager"), by("kubectl")]), true),
            ("AzureASOManagedMachinePool", json!([by("kubectl-annotate")]), true),
            ("AzureASOManagedCluster", json!([other]), true),
            ("AzureASOManagedCluster", json!([{}]), true),
            ("AzureManagedControlPlane", json!([by("capz-manager")]), true),
        ] {
            let object = json!({
                "apiVersion": "containerservice.azure.com/v1api20240901storage",
                "metadata": { "annotations": { POLICY: "skip" }, "managedFields": managers,
                    "ownerReferences": [{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": owner, "uid": "u",
                        "controller": true }] },
                "spec": { "operatorSpec": { "secrets": { "adminCredentials": { "name": "a", "key": "k" }, "userCredentials": null },
                    "configMapExpressions": [{ "name": "b", "key": "k", "value": "self.x" }] } },
                "status": { "id": ID, "conditions": [{ "type": "Ready", "status": "True", "reason": "Succeeded" }] },
            });
            let object = OperatorObject::of(&kinds()[0], &object).unwrap();
            assert_eq!(object.kept().is_some(), is_kept, "{owner} {managers}");
            assert_eq!(object.managed().is_some(), !is_kept, "{owner} {managers}");
            assert_eq!(object.version(), "v1api20240901");
            let exports = [Export::Secret("a".into()), Export::ConfigMap("b".into())];
            assert_eq!(object.exports, BTreeSet::from(exports));
        }
    }
}
