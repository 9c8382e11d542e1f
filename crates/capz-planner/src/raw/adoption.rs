//! The adoption of existing clusters: a user gives a ManagedCluster or ManagedClustersAgentPool of Azure Service Operator
//! to Cluster API with an annotation. Here it becomes the objects that stand for it from then on.
//!
//! ```text
//!  ManagedCluster + its ResourceGroup ──▶ Cluster, AzureASOManagedCluster, AzureASOManagedControlPlane
//!  ManagedClustersAgentPool           ──▶ MachinePool, AzureASOManagedMachinePool
//! ```
//!
//! The operator's object then gets the policy `skip` and an owner, and is taken over like those that the established
//! provider has created ([`crate::operator`]).

use std::collections::BTreeMap;

use capz_api::azure_aso_managed::RawResource;
use serde_json::{Map, Value, json};

use super::place::ADOPT;
use super::pool::MANAGED_BY_AKS;
use super::record::OWNED_KINDS;
use crate::operator::{OperatorKind, kinds, policy_of, skipped};
use crate::pool::EXTERNAL_REPLICAS;

/// The group of our kinds.
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The group of Cluster API's kinds.
const CORE: &str = "cluster.x-k8s.io";
/// The annotation with the name of the Secret that holds a resource's credential.
const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
/// Members of stored objects that no served version has.
const STORED_ONLY: [&str; 2] = ["originalVersion", "$propertyBag"];

/// A kind of the operator's whose objects can be adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoptable {
    /// A managed cluster.
    Cluster,
    /// A node pool.
    Pool,
}

impl Adoptable {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Pool];

    /// The operator's kind.
    pub fn kind(self) -> Option<&'static OperatorKind> {
        let name = match self {
            Self::Cluster => "ManagedCluster",
            Self::Pool => "ManagedClustersAgentPool",
        };
        operator_kind("containerservice.azure.com", name)
    }

    /// The kind of the object of ours that owns an adopted one.
    pub fn owner(self) -> &'static str {
        match self {
            Self::Cluster => "AzureASOManagedControlPlane",
            Self::Pool => "AzureASOManagedMachinePool",
        }
    }

    /// Whether an object with this metadata is offered: it has the annotation, is not being deleted, and no object of ours
    /// owns it.
    pub fn is_offered(self, metadata: &Value) -> bool {
        let is_owner = |owner: &Value| is_in(owner, GROUP) && owner["kind"] == self.owner();
        metadata["annotations"][ADOPT] == "true"
            && metadata["deletionTimestamp"].is_null()
            && !references(metadata).iter().any(is_owner)
    }
}

/// The operator's kind of resource groups.
pub fn group_kind() -> Option<&'static OperatorKind> {
    operator_kind("resources.azure.com", "ResourceGroup")
}

fn operator_kind(group: &str, kind: &str) -> Option<&'static OperatorKind> {
    kinds().iter().find(|known| (known.group, known.kind) == (group, kind))
}

/// The name of the operator's object, in the same namespace, in whose resource this one's lies.
pub fn around(object: &Value) -> Option<&str> {
    object["spec"]["owner"]["name"].as_str()
}

/// Whether the operator has brought Azure to what the object declares now: a condition `Ready` of an earlier generation
/// says nothing of it.
pub fn is_current(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    ready.is_some_and(|ready| {
        ready["status"] == "True" && ready["observedGeneration"].as_i64().unwrap_or_default() >= generation
    })
}

/// The version of an object if this release does not know it: as a raw resource it would be refused.
pub fn unknown_version(object: &Value) -> Option<String> {
    let api = served(object);
    let (group, version) = api.split_once('/').unwrap_or_default();
    let kind = operator_resources::find(group, object["kind"].as_str().unwrap_or_default());
    let known = operator_resources::api_version(version)
        .is_some_and(|version| kind.is_some_and(|kind| kind.versions.contains(&version.as_str())));
    (!known).then_some(api)
}

/// Whether raw resources hold the one of this kind and name.
pub fn lists(resources: &[RawResource], kind: &OperatorKind, name: &str) -> bool {
    resources.iter().any(|resource| {
        let group =
            resource.0.get("apiVersion").and_then(Value::as_str).and_then(|api| api.split('/').next());
        let own = resource.0.get("kind").and_then(Value::as_str);
        let named = resource.0.get("metadata").and_then(|metadata| metadata.get("name")?.as_str());
        (group, own, named) == (Some(kind.group), Some(kind.kind), Some(name))
    })
}

/// What adopting objects have in common.
#[derive(Debug, Clone, Copy)]
pub struct Adoption<'a> {
    /// The version of Cluster API's kinds, such as `v1beta2`.
    pub core_version: &'a str,
    /// The version of our kinds.
    pub version: &'a str,
    /// Labels of all new objects.
    pub labels: &'a BTreeMap<String, String>,
}

impl Adoption<'_> {
    /// The Cluster, AzureASOManagedCluster and AzureASOManagedControlPlane for a managed cluster and its resource group.
    pub fn cluster(&self, cluster: &Value, group: &Value) -> [Value; 3] {
        let spec = json!({
            "infrastructureRef": self.reference("AzureASOManagedCluster", cluster),
            "controlPlaneRef": self.reference("AzureASOManagedControlPlane", cluster),
        });
        // The pools are declared by objects of their own.
        let owned = entry(cluster, &["agentPoolProfiles"]);
        [
            self.core("Cluster", cluster, spec),
            self.own("AzureASOManagedCluster", cluster, json!({ "resources": [entry(group, &[])] }), None),
            self.own(
                "AzureASOManagedControlPlane",
                cluster,
                json!({ "resources": [owned] }),
                Some(kind_in_use(cluster)),
            ),
        ]
    }

    /// The MachinePool and AzureASOManagedMachinePool for a node pool of a Cluster.
    pub fn pool(&self, pool: &Value, cluster: &str) -> [Value; 2] {
        let mut spec = json!({
            "clusterName": cluster,
            "template": { "spec": {
                "clusterName": cluster,
                "bootstrap": { "dataSecretName": "" },
                "infrastructureRef": self.reference("AzureASOManagedMachinePool", pool),
            } },
        });
        if let Some(count) = pool["spec"].get("count").filter(|count| count.is_number()) {
            spec["replicas"] = count.clone();
        }
        let mut owner = self.core("MachinePool", pool, spec);
        if pool["spec"]["enableAutoScaling"] == true {
            owner["metadata"]["annotations"] = json!({ EXTERNAL_REPLICAS: MANAGED_BY_AKS });
        }
        let resources = json!({ "resources": [entry(pool, &["count"])] });
        [owner, self.own("AzureASOManagedMachinePool", pool, resources, Some(kind_in_use(pool)))]
    }

    fn core(&self, kind: &str, like: &Value, spec: Value) -> Value {
        let api = format!("{CORE}/{}", self.core_version);
        json!({ "apiVersion": api, "kind": kind, "metadata": self.metadata(like), "spec": spec })
    }

    fn own(&self, kind: &str, like: &Value, spec: Value, kinds: Option<String>) -> Value {
        let api = format!("{GROUP}/{}", self.version);
        let mut object =
            json!({ "apiVersion": api, "kind": kind, "metadata": self.metadata(like), "spec": spec });
        // By it the owner looks for the operator's object, and takes it over.
        if let Some(kinds) = kinds {
            object["metadata"]["annotations"] = json!({ OWNED_KINDS: kinds });
        }
        object
    }

    fn metadata(&self, like: &Value) -> Value {
        let metadata = &like["metadata"];
        let mut made = json!({ "name": metadata["name"], "namespace": metadata["namespace"] });
        if !self.labels.is_empty() {
            made["labels"] = json!(self.labels);
        }
        made
    }

    fn reference(&self, kind: &str, like: &Value) -> Value {
        let name = &like["metadata"]["name"];
        match self.core_version {
            "v1beta1" => {
                let api = format!("{GROUP}/{}", self.version);
                json!({ "apiVersion": api, "kind": kind, "name": name })
            }
            _ => json!({ "apiGroup": GROUP, "kind": kind, "name": name }),
        }
    }
}

/// Whether an existing object refers to what adoption makes for this one, so that both belong together: a Cluster by its
/// infrastructure and control plane, a MachinePool by its infrastructure.
pub fn refers(existing: &Value, wanted: &Value) -> bool {
    const REFERENCES: [&str; 3] =
        ["/spec/infrastructureRef", "/spec/controlPlaneRef", "/spec/template/spec/infrastructureRef"];
    REFERENCES.iter().filter_map(|path| Some((existing.pointer(path), wanted.pointer(path)?))).all(
        |(existing, wanted)| {
            existing.is_some_and(|it| it["kind"] == wanted["kind"] && it["name"] == wanted["name"])
        },
    )
}

/// The patch that hands an object of the operator's over: the operator does nothing for it any more, and `owner`, if there
/// is one, takes it over. `None` if nothing is to be changed.
///
/// # Errors
/// Another object controls it, which may undo this: its kind and name.
pub fn handed_over(object: &Value, owner: Option<&Value>) -> Result<Option<Value>, String> {
    let metadata = &object["metadata"];
    let mut owners = references(metadata);
    let is_ours = |known: &Value| owner.is_some_and(|owner| known["uid"] == owner["uid"]);
    if let Some(other) = owners.iter().find(|known| known["controller"] == true && !is_ours(known)) {
        let text = |member: &str| other[member].as_str().unwrap_or_default().to_owned();
        return Err(format!("{} {}", text("kind"), text("name")));
    }
    let mut patch = Map::new();
    if let Some(annotations) = skipped(metadata) {
        patch.insert("annotations".to_owned(), annotations);
    }
    if let Some(owner) = owner.filter(|_| !owners.iter().any(is_ours)) {
        owners.push(owner.clone());
        patch.insert("ownerReferences".to_owned(), owners.into());
    }
    if patch.is_empty() {
        return Ok(None);
    }
    // They name other versions than the stored one, to each of which the API server would convert the object.
    patch.insert("managedFields".to_owned(), json!([{}]));
    patch.insert("resourceVersion".to_owned(), metadata["resourceVersion"].clone());
    Ok(Some(json!({ "metadata": patch })))
}

fn references(metadata: &Value) -> Vec<Value> {
    metadata["ownerReferences"].as_array().cloned().unwrap_or_default()
}

fn is_in(reference: &Value, group: &str) -> bool {
    reference["apiVersion"].as_str().and_then(|api| api.split('/').next()) == Some(group)
}

/// An object of the operator's as an entry of `spec.resources`: named, with its spec, with the annotations that decide what
/// may be done to the resource, and with the consent to take what exists.
fn entry(object: &Value, without: &[&str]) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = Map::new();
    annotations.insert(ADOPT.to_owned(), json!("true"));
    if let Some(name) = metadata["annotations"].get(CREDENTIAL) {
        annotations.insert(CREDENTIAL.to_owned(), name.clone());
    }
    if let Some((name, policy)) = policy_of(metadata).filter(|(_, policy)| !matches!(*policy, "" | "manage"))
    {
        annotations.insert(name.to_owned(), json!(policy));
    }
    let mut spec = object["spec"].clone();
    clean(&mut spec);
    for member in without {
        spec.as_object_mut().map(|members| members.remove(*member));
    }
    json!({
        "apiVersion": served(object),
        "kind": object["kind"],
        "metadata": { "name": metadata["name"], "annotations": annotations },
        "spec": spec,
    })
}

/// Removes what only stored objects have.
fn clean(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in STORED_ONLY {
                members.remove(name);
            }
            members.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

/// The version of an object without the suffix of stored ones: both have the same members.
fn served(object: &Value) -> String {
    let api = object["apiVersion"].as_str().unwrap_or_default();
    api.strip_suffix("storage").unwrap_or(api).to_owned()
}

/// The kind of an object as [`OWNED_KINDS`] names it.
fn kind_in_use(object: &Value) -> String {
    let api = served(object);
    let (group, version) = api.split_once('/').unwrap_or_default();
    format!("{}.{version}.{group}", object["kind"].as_str().unwrap_or_default())
}
