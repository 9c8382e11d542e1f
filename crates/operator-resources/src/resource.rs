//! An object of the operator's kinds, read.

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::member::{object_of, optional_text, text_of, word_of};
use crate::reference::{ObjectName, Reference};
use crate::role;
use crate::table::{KINDS, Kind, Place, api_version, find};

/// The annotation with what the operator may do to the resource.
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
/// The annotation with the name of the Secret that holds the credential.
const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";

/// What may be done to the resource in Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// It is created, changed and deleted.
    #[default]
    Manage,
    /// It is only read.
    Skip,
    /// It is created and changed, and stays when the object is deleted.
    DetachOnDelete,
}

impl Policy {
    /// Its value in the annotation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Skip => "skip",
            Self::DetachOnDelete => "detach-on-delete",
        }
    }

    fn of(annotation: Option<&str>, path: &str) -> Result<Self, Refusal> {
        let Some(text) = annotation else { return Ok(Self::Manage) };
        let all = [Self::Manage, Self::Skip, Self::DetachOnDelete];
        all.into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| Refusal::value(path, text, "write manage, skip or detach-on-delete"))
    }

    /// What a merge patch of an object's metadata makes of the policy; absent if it does not touch it.
    pub(crate) fn patched(metadata: &Value) -> Result<Option<Self>, Refusal> {
        let path = format!("metadata.annotations[{POLICY}]");
        match metadata.get("annotations").and_then(|annotations| annotations.get(POLICY)) {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(Self::Manage)),
            Some(value) => Self::of(Some(&text_of(value, &path)?), &path).map(Some),
        }
    }
}

/// An object of the operator's kinds.
#[derive(Clone, PartialEq)]
pub struct Resource {
    /// Its kind.
    pub kind: &'static Kind,
    /// The operator's version, such as `v1api20240901`.
    pub version: String,
    /// Azure's API version for it, such as `2024-09-01`.
    pub api_version: String,
    /// Its namespace in Kubernetes.
    pub namespace: String,
    /// Its name in Kubernetes.
    pub name: String,
    /// Its name in Azure.
    pub azure_name: String,
    /// What it lies in; absent for a resource group.
    pub owner: Option<Reference>,
    /// What may be done to it.
    pub policy: Policy,
    /// The Secret with its credential, if it names one.
    pub credential: Option<String>,
    /// Its `spec` without `azureName`, `owner` and `operatorSpec`.
    pub(crate) spec: Map<String, Value>,
    /// `operatorSpec`, if there is one.
    pub(crate) operator_spec: Map<String, Value>,
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The specification may hold secrets.
        write!(f, "{} ({}, {})", self.object(), self.version, self.azure_name)
    }
}

impl Resource {
    /// Reads an object. Its namespace is `namespace`, regardless of what it says.
    ///
    /// # Errors
    ///
    /// The kind is not served, or a member cannot be read.
    pub fn parse(object: &Value, namespace: &str) -> Result<Self, Refusal> {
        let members = object.as_object().ok_or_else(|| {
            Refusal::value("the resource", word_of(object), "write an object of the operator")
        })?;
        let text = |name: &str, remedy: &str| {
            optional_text(members, name, "")
                .and_then(|text| text.ok_or_else(|| Refusal::missing(name, remedy)))
        };
        let api = text("apiVersion", "write <group>/<version> of a kind of the operator")?;
        let kind_name = text("kind", "write a kind of the operator")?;
        let (group, version) = api.split_once('/').ok_or_else(|| {
            Refusal::value(
                "apiVersion",
                &api,
                "write <group>/<version>, such as resources.azure.com/v1api20200601",
            )
        })?;
        let kind = find(group, &kind_name).ok_or_else(|| Refusal::Kind {
            path: "kind".to_owned(),
            group: group.to_owned(),
            kind: kind_name.clone(),
            served: served(),
        })?;
        let api_version = api_version(version).ok_or_else(|| {
            let remedy = format!("write a version with a date; the kind has {}", kind.versions.join(", "));
            Refusal::value("apiVersion", &api, remedy)
        })?;
        let nothing = Map::new();
        let part = |of: &'_ Map<String, Value>, name: &str, path: &str| match of.get(name) {
            None | Some(Value::Null) => Ok(nothing.clone()),
            Some(value) => object_of(value, path).cloned(),
        };
        let metadata = part(members, "metadata", "metadata")?;
        let name = optional_text(&metadata, "name", "metadata")?
            .ok_or_else(|| Refusal::missing("metadata.name", "write the object's name"))?;
        let annotations = part(&metadata, "annotations", "metadata.annotations")?;
        let annotation = |key: &str| optional_text(&annotations, key, "metadata.annotations");
        let mut spec = part(members, "spec", "spec")?;
        let operator_spec = part(&spec, "operatorSpec", "spec.operatorSpec")?;
        let owner = owner(kind, spec.get("owner"))?;
        let given = optional_text(&spec, "azureName", "spec")?;
        let azure_name = match given {
            Some(given) => given,
            None if kind.kind == "RoleAssignment" => {
                role::assignment_name(kind, namespace, &name, owner.as_ref(), &operator_spec)?
            }
            None => name.clone(),
        };
        for taken in ["azureName", "owner", "operatorSpec"] {
            spec.remove(taken);
        }
        Ok(Self {
            kind,
            version: version.to_owned(),
            api_version,
            namespace: namespace.to_owned(),
            name,
            azure_name,
            owner,
            policy: Policy::of(annotation(POLICY)?.as_deref(), &format!("metadata.annotations[{POLICY}]"))?,
            credential: annotation(CREDENTIAL)?,
            spec,
            operator_spec,
        })
    }

    /// Its object, as others refer to it.
    pub fn object(&self) -> ObjectName {
        ObjectName {
            group: self.kind.group.to_owned(),
            kind: self.kind.kind.to_owned(),
            name: self.name.clone(),
        }
    }

    /// Whether the operator is known to have served the kind in this version. Another version is sent to Azure as it is.
    pub fn has_known_version(&self) -> bool {
        self.kind.versions.contains(&self.api_version.as_str())
    }
}

/// The kinds that are served, for messages.
fn served() -> String {
    let mut kinds: Vec<&str> = KINDS.iter().map(|kind| kind.kind).collect();
    kinds.sort_unstable();
    kinds.join(", ")
}

/// The owner: `{name}` of the kind that the table says, `{armId}`, or `{group, kind, name}` of an extension.
fn owner(kind: &'static Kind, given: Option<&Value>) -> Result<Option<Reference>, Refusal> {
    let path = "spec.owner";
    let given = given.filter(|given| !given.is_null());
    let (group, owner) = match kind.place {
        Place::Subscription => {
            return match given {
                None => Ok(None),
                Some(given) => Err(Refusal::value(path, given, "remove it: a resource group has no owner")),
            };
        }
        Place::Group => ("resources.azure.com", "ResourceGroup"),
        Place::Child(group, owner) => (group, owner),
        Place::Extension => {
            let given = given.ok_or_else(|| {
                Refusal::missing(path, "write {armId: <ID>} or {group, kind, name} of what it belongs to")
            })?;
            return Reference::of(given, path).map(Some);
        }
    };
    let remedy = format!("write {{name: <name of its {owner}>}} or {{armId: <ID in Azure>}}");
    let given = given.ok_or_else(|| Refusal::missing(path, remedy.clone()))?;
    let members = given.as_object().ok_or_else(|| Refusal::value(path, word_of(given), remedy.clone()))?;
    let mut members: Map<String, Value> =
        members.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    // The operator's definitions have no group and kind here; users write them, and the right ones do no harm.
    for (name, expected) in [("group", group), ("kind", owner)] {
        if members.get(name).is_some_and(|value| value != expected) {
            return Err(Refusal::value(&format!("{path}.{name}"), &members[name], remedy));
        }
    }
    if members.contains_key("name") {
        members.insert("group".to_owned(), group.into());
        members.insert("kind".to_owned(), owner.into());
    }
    match Reference::of(&Value::Object(members), path) {
        Ok(reference) => Ok(Some(reference)),
        Err(Refusal::Value { path, .. }) if path == "spec.owner" => Err(Refusal::value(&path, given, remedy)),
        Err(refusal) => Err(refusal),
    }
}
