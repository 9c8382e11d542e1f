//! Object metadata and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

/// Namespace and name of an object; the namespace is empty for cluster-scoped ones. Copies share the text: a key goes
/// through many queues, maps and results.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key in an object's metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}

impl fmt::Display for ObjectKey {
    /// `namespace/name`, as Azure tags carry it; the bare name without a namespace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// A message for the owner of a Service, sent as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The Service.
    pub service: ObjectKey,
    /// Whether the owner should act.
    pub warning: bool,
    /// The event's reason.
    pub reason: &'static str,
    /// The event's text.
    pub message: String,
}

/// Whether the object is being deleted.
pub fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// The copy of the whole object that `kubectl apply` stores: as large as the object, and not used here.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Declares the metadata that is read. Other members are skipped and take no memory, not even temporarily: most of an
/// object's metadata is `managedFields`.
macro_rules! used_metadata {
    ($($member:ident: $type:ty,)*) => {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct UsedMetadata { $($member: Option<$type>,)* }

        impl From<UsedMetadata> for ObjectMeta {
            fn from(metadata: UsedMetadata) -> Self {
                Self { $($member: metadata.$member,)* ..Self::default() }
            }
        }
    };
}

used_metadata! {
    annotations: BTreeMap<String, String>,
    creation_timestamp: Time,
    deletion_timestamp: Time,
    finalizers: Vec<String>,
    generate_name: String,
    generation: i64,
    labels: BTreeMap<String, String>,
    name: String,
    namespace: String,
    owner_references: Vec<OwnerReference>,
    resource_version: String,
    uid: String,
}

/// Deserializes metadata without the two parts that are as large as the rest of the object.
pub(crate) fn slim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = UsedMetadata::deserialize(deserializer)?;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    Ok(metadata.into())
}
