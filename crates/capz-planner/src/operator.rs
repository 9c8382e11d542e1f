//! Azure Service Operator: the established provider writes some resources of a cluster through the operator's objects,
//! and if such an object is deleted, the operator deletes the resource in Azure. So when a cluster is taken over, its
//! objects are first made harmless and then deleted. The established provider creates them again for existing resources
//! in Azure when it comes back.
//!
//! ```text
//!  manage, detach-on-delete, … ──Skip──▶ skip ──Delete──▶ being deleted ──Release──▶ gone
//!                                         └─ stays while the cluster is paused
//! ```
//!
//! The next step follows from one observation of an object alone, regardless of earlier steps: a third party may have
//! restored its policy.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

/// The annotation of AzureClusters with the resources that the operator must not delete, and their policies:
/// `{"<id>": "skip"}`. Such resources are used unchanged, and neither written nor deleted.
pub const KEPT: &str = "sigs.k8s.io/cluster-api-provider-azure-kept-resources";

/// The annotation with the operator's rights to the resource of an object. Without it, the operator may write and
/// delete the resource.
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
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

/// A kind of the operator's objects.
#[derive(Debug, PartialEq, Eq)]
pub struct OperatorKind {
    /// Its group.
    pub group: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its plural.
    pub plural: &'static str,
}

impl OperatorKind {
    /// The name of its CustomResourceDefinition.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

const NETWORK: &str = "network.azure.com";

const fn of_network(kind: &'static str, plural: &'static str) -> OperatorKind {
    OperatorKind { group: NETWORK, kind, plural }
}

/// The kinds of the objects that the established provider creates for an AzureCluster.
pub const KINDS: [OperatorKind; 6] = [
    OperatorKind { group: "resources.azure.com", kind: "ResourceGroup", plural: "resourcegroups" },
    of_network("VirtualNetwork", "virtualnetworks"),
    of_network("VirtualNetworksSubnet", "virtualnetworkssubnets"),
    of_network("NatGateway", "natgateways"),
    of_network("BastionHost", "bastionhosts"),
    of_network("PrivateEndpoint", "privateendpoints"),
];

/// How the objects of a kind are converted between versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Converter {
    /// Only the version's name changes.
    Nothing,
    /// By a webhook behind a Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// By a webhook outside the cluster.
    Elsewhere,
}

/// The definition of a kind: what is needed to read and write objects without the operator. Its webhooks match the
/// versions other than the storage version, and only these are converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The storage version.
    pub storage: String,
    /// Another served version, to which stored objects are converted.
    pub other: Option<String>,
    /// How objects are converted that are stored in an older version, or read in another one.
    pub converter: Converter,
}

impl Definition {
    /// Reads a CustomResourceDefinition; `None` if it has no storage version.
    pub fn of(definition: &Value) -> Option<Self> {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array()?;
        let storage = versions.iter().find(|version| version["storage"] == true)?;
        let other = versions.iter().find(|version| version["storage"] != true && version["served"] == true);
        let service = &spec["conversion"]["webhook"]["clientConfig"]["service"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let converter = match (text(&service["namespace"]), text(&service["name"])) {
            _ if spec["conversion"]["strategy"] != "Webhook" => Converter::Nothing,
            (Some(namespace), Some(name)) => Converter::Service { namespace, name },
            _ => Converter::Elsewhere,
        };
        let other = other.and_then(|version| text(&version["name"]));
        Some(Self { storage: text(&storage["name"])?, other, converter })
    }

    /// The patch that turns off the conversion.
    pub fn without_converter() -> Value {
        json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } })
    }
}

/// The next step for an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Makes the object harmless with this merge patch.
    Skip(Value),
    /// Deletes the object; its dependants in Kubernetes stay.
    Delete,
    /// Removes the operator's finalizer with this merge patch.
    Release(Value),
}

/// An object of the operator that belongs to an AzureCluster.
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
    /// The UID of the AzureCluster.
    pub owner: String,
    policy: Option<String>,
    policy_before: Option<String>,
    finalizers: Vec<String>,
    is_deleted: bool,
    resource: Option<ResourceId>,
    is_there: bool,
}

impl OperatorObject {
    /// Reads an object; `None` unless an AzureCluster owns and controls it.
    pub fn of(kind: &'static OperatorKind, object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|owner| {
            owner["controller"] == true
                && owner["kind"] == "AzureCluster"
                && owner["apiVersion"]
                    .as_str()
                    .is_some_and(|it| it.starts_with("infrastructure.cluster.x-k8s.io/"))
        })?;
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
            policy: annotation(POLICY),
            policy_before: annotation(POLICY_BEFORE),
            finalizers: metadata["finalizers"].as_array().into_iter().flatten().map(text).collect(),
            is_deleted: metadata["deletionTimestamp"].is_string(),
            resource: resource.and_then(|id| ResourceId::parse(&id).ok()),
            is_there: ready.is_some_and(|ready| ready["reason"] != NOT_FOUND),
        })
    }

    /// Whether the operator does nothing with the resource in Azure, whatever happens to the object.
    pub fn is_harmless(&self) -> bool {
        self.policy.as_deref() == Some(SKIP)
    }

    /// Whether it is being deleted.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Returns the next step; `None` while the object must stay (`is_paused`), or waits only for foreign finalizers.
    pub fn next(&self, is_paused: bool) -> Option<Step> {
        if !self.is_harmless() {
            return Some(Step::Skip(self.patch(json!({ "annotations": {
                POLICY: SKIP, POLICY_BEFORE: self.policy.as_deref().unwrap_or_default() } }))));
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

    /// The resource in Azure that must not be deleted, with the policy that says so. A new object has the policy `skip`
    /// until the existence of its resource is known, and while the resource does not exist: then no resource is kept.
    pub fn kept(&self) -> Option<(&ResourceId, &str)> {
        let policy = match self.policy_before.as_deref().filter(|_| self.is_harmless()) {
            Some(before) => before,
            None => self.policy.as_deref()?,
        };
        let keeps = policy == DETACH_ON_DELETE || (policy == SKIP && self.is_there);
        self.resource.as_ref().filter(|_| keeps).zip(Some(policy))
    }
}

/// The kept resources in the annotations of an AzureCluster.
pub fn kept_of(annotations: &BTreeMap<String, String>) -> BTreeSet<ResourceId> {
    kept_with_policies(annotations).into_keys().collect()
}

fn kept_with_policies(annotations: &BTreeMap<String, String>) -> BTreeMap<ResourceId, String> {
    let listed = annotations.get(KEPT).and_then(|text| serde_json::from_str(text).ok());
    let listed: BTreeMap<String, String> = listed.unwrap_or_default();
    listed.into_iter().filter_map(|(id, policy)| Some((ResourceId::parse(&id).ok()?, policy))).collect()
}

/// The value of the annotation [`KEPT`] with the kept resources of these objects added; `None` if they add no resource.
pub fn keeping(annotations: &BTreeMap<String, String>, objects: &[OperatorObject]) -> Option<String> {
    let mut kept = kept_with_policies(annotations);
    let before = kept.len();
    for (id, policy) in objects.iter().filter_map(OperatorObject::kept) {
        kept.entry(id.clone()).or_insert_with(|| policy.to_owned());
    }
    let listed: BTreeMap<&str, &String> = kept.iter().map(|(id, policy)| (id.as_str(), policy)).collect();
    (kept.len() > before).then(|| json!(listed).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/natGateways/n";

    fn object(annotations: Value, finalizers: &[&str], is_deleted: bool, reason: &str) -> OperatorObject {
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
        OperatorObject::of(&KINDS[3], &object).unwrap()
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
    fn what_is_kept_stays_so() {
        let before = format!(r#"{{"{}x":"skip","no id":"skip"}}"#, ID);
        let annotations = BTreeMap::from([(KEPT.to_owned(), before)]);
        let found = [object(json!({ POLICY: "skip" }), &[], false, "Succeeded")];
        let text = keeping(&annotations, &found).unwrap();
        assert_eq!(text, format!(r#"{{"{ID}":"skip","{ID}x":"skip"}}"#));
        let annotations = BTreeMap::from([(KEPT.to_owned(), text)]);
        assert_eq!(kept_of(&annotations).len(), 2);
        assert_eq!(keeping(&annotations, &found), None);
        assert_eq!(keeping(&BTreeMap::new(), &[]), None);
    }

    #[test]
    fn objects_of_others_are_not_looked_at() {
        for owner in [
            json!([]),
            json!([{ "apiVersion": "resources.azure.com/v1", "kind": "ResourceGroup", "uid": "u" }]),
            json!([{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster", "uid": "u" }]),
            json!([{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "AzureASOManagedCluster",
                "uid": "u", "controller": true }]),
        ] {
            let object = json!({ "metadata": { "name": "n", "ownerReferences": owner } });
            assert_eq!(OperatorObject::of(&KINDS[0], &object), None, "{object}");
        }
    }

    #[test]
    fn a_definition_says_how_objects_are_read_without_the_operator() {
        let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage });
        let service = json!({ "service": { "namespace": "capz-system", "name": "webhooks" } });
        for (conversion, converter) in [
            (json!({ "strategy": "None" }), Converter::Nothing),
            (
                json!({ "strategy": "Webhook", "webhook": { "clientConfig": { "url": "https://x" } } }),
                Converter::Elsewhere,
            ),
            (
                json!({ "strategy": "Webhook", "webhook": { "clientConfig": service } }),
                Converter::Service { namespace: "capz-system".into(), name: "webhooks".into() },
            ),
        ] {
            let versions = [version("v1", false), version("v1storage", true)];
            let definition = json!({ "spec": { "versions": versions, "conversion": conversion } });
            let expected = Definition { storage: "v1storage".into(), other: Some("v1".into()), converter };
            assert_eq!(Definition::of(&definition), Some(expected));
        }
        assert_eq!(Definition::of(&json!({ "spec": { "versions": [version("v1", false)] } })), None);
    }
}
