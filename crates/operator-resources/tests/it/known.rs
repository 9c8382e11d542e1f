//! What a test knows of other objects.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use operator_resources::{Document, Location, Lookup, ObjectName, Resource};
use serde_json::Value;

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";

/// IDs, Secrets and ConfigMaps.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) ids: BTreeMap<ObjectName, String>,
    pub(crate) secrets: BTreeMap<(String, String), String>,
    pub(crate) config_maps: BTreeMap<(String, String), String>,
}

impl Lookup for Table {
    fn id(&self, object: &ObjectName) -> Option<String> {
        self.ids.get(object).cloned()
    }

    fn secret(&self, name: &str, key: &str) -> Option<String> {
        self.secrets.get(&(name.to_owned(), key.to_owned())).cloned()
    }

    fn whole_secret(&self, name: &str) -> Option<Vec<(String, String)>> {
        let of = self.secrets.iter().filter(|((of, _), _)| of == name);
        let pairs: Vec<_> = of.map(|((_, key), value)| (key.clone(), value.clone())).collect();
        (!pairs.is_empty()).then_some(pairs)
    }

    fn config_map(&self, name: &str, key: &str) -> Option<String> {
        self.config_maps.get(&(name.to_owned(), key.to_owned())).cloned()
    }
}

impl Table {
    /// Remembers where a resource is.
    pub(crate) fn add(&mut self, resource: &Resource) -> ResourceId {
        let id = id(resource, self);
        self.ids.insert(resource.object(), id.to_string());
        id
    }

    pub(crate) fn with_id(mut self, group: &str, kind: &str, name: &str, id: &str) -> Self {
        self.ids.insert(object(group, kind, name), id.to_owned());
        self
    }
}

pub(crate) fn object(group: &str, kind: &str, name: &str) -> ObjectName {
    ObjectName { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

pub(crate) fn parse(object: &Value) -> Resource {
    Resource::parse(object, "default").unwrap_or_else(|refusal| panic!("{object} is refused: {refusal}"))
}

pub(crate) fn id(resource: &Resource, lookup: &dyn Lookup) -> ResourceId {
    match resource.id(SUBSCRIPTION, lookup) {
        Ok(Location::At(id)) => id,
        other => panic!("{resource:?}: {other:?}"),
    }
}

pub(crate) fn document(resource: &Resource, lookup: &dyn Lookup) -> Document {
    let id = ResourceId::group(SUBSCRIPTION, "any");
    resource.document(&id, lookup).unwrap_or_else(|refusal| panic!("{resource:?} is refused: {refusal}"))
}
