//! Members of raw resources that other objects decide. A user may state them, too, but not differently.

use serde_json::{Map, Value};

use crate::terminal::Terminal;

/// A raw resource states a member that another object decides, with another value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "{path} of {object} is {stated}, which is incompatible with {wanted} from {from}: remove it from the resource, or change {from}"
)]
pub struct Incompatible {
    /// The kind and name of the resource.
    pub object: String,
    /// The path of the member.
    pub path: String,
    /// The value in the resource.
    pub stated: Value,
    /// The value that counts.
    pub wanted: Value,
    /// Which member of which object it is from.
    pub from: &'static str,
}

impl From<Box<Incompatible>> for Terminal {
    fn from(error: Box<Incompatible>) -> Self {
        Self::configuration(error.to_string())
    }
}

/// Sets a member that an object of Cluster API decides.
///
/// # Errors
/// The resource states another value.
pub(super) fn set(
    object: &mut Map<String, Value>,
    path: &[&str],
    wanted: Value,
    from: &'static str,
) -> Result<(), Box<Incompatible>> {
    let stated = path.iter().try_fold(Value::Object(object.clone()), |value, name| value.get(*name).cloned());
    match stated.filter(|stated| !stated.is_null()) {
        Some(stated) if stated != wanted => {
            let path = path.join(".");
            Err(Box::new(Incompatible { object: name_of(object), path, stated, wanted, from }))
        }
        _ => {
            put(object, path, wanted);
            Ok(())
        }
    }
}

/// Sets a member; what is no object on the way to it is replaced.
pub(super) fn put(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    let [name, rest @ ..] = path else { return };
    if rest.is_empty() {
        object.insert((*name).to_owned(), value);
        return;
    }
    let place = object.entry((*name).to_owned()).or_insert_with(|| Value::Object(Map::new()));
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    if let Some(place) = place.as_object_mut() {
        put(place, rest, value);
    }
}

/// The kind and name of a resource: `ManagedCluster my-cluster`.
pub(super) fn name_of(object: &Map<String, Value>) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    format!("{} {}", text(object.get("kind")), text(name))
}

/// Whether an object is of this kind of the operator's group for AKS.
pub(super) fn is_of(object: &Map<String, Value>, kind: &str) -> bool {
    const GROUP: &str = "containerservice.azure.com";
    let group =
        object.get("apiVersion").and_then(Value::as_str).and_then(|version| version.split('/').next());
    group == Some(GROUP) && object.get("kind").and_then(Value::as_str) == Some(kind)
}
