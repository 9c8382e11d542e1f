//! The resources that an object with raw resources has recorded: what it recorded before creating it is its own, also
//! after its declaration has gone.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

/// The annotation with the recorded resources.
pub const RAW_RESOURCES: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-raw-resources";
/// The annotation with the resources of objects that have gone before their cluster: they are deleted with this object. Only
/// those objects write it.
pub const INHERITED: &str = "sigs.k8s.io/cluster-api-provider-azure-inherited-raw-resources";
/// The annotation with the operator's kinds in use, as the established provider writes and reads it:
/// `Kind.version.group;…`.
pub const OWNED_KINDS: &str = "sigs.k8s.io/cluster-api-provider-azure-owned-aso-kinds";

/// A recorded resource: the object that stands for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recorded {
    /// The operator's group.
    pub group: String,
    /// The operator's version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// Whether it is deleted with the object: the user did not declare that it stays.
    pub is_managed: bool,
}

/// The recorded resources by their IDs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record(pub BTreeMap<ResourceId, Recorded>);

impl Record {
    /// Reads the annotation; what is no ID is dropped.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        Self::read(annotations, RAW_RESOURCES)
    }

    /// The same, with what the object has inherited.
    pub fn with_inherited(annotations: &BTreeMap<String, String>) -> Self {
        let mut all = Self::read(annotations, INHERITED);
        all.0.extend(Self::of(annotations).0);
        all
    }

    /// The annotation [`INHERITED`] of an object with these annotations that inherits the resources, too.
    pub fn bequeathed_to(&self, annotations: &BTreeMap<String, String>) -> (String, String) {
        let mut all = Self::read(annotations, INHERITED);
        all.0.extend(self.0.clone());
        (INHERITED.to_owned(), all.text())
    }

    fn read(annotations: &BTreeMap<String, String>, name: &str) -> Self {
        let listed: Option<Value> = annotations.get(name).and_then(|text| serde_json::from_str(text).ok());
        let entries = listed.as_ref().and_then(Value::as_array);
        let entry = |entry: &Value| {
            let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
            let id = ResourceId::parse(entry["id"].as_str()?).ok()?;
            let recorded = Recorded {
                group: text("group"),
                version: text("version"),
                kind: text("kind"),
                name: text("name"),
                is_managed: entry["stays"] != true,
            };
            Some((id, recorded))
        };
        Self(entries.into_iter().flatten().filter_map(entry).collect())
    }

    /// Whether a resource is recorded as one that is created and deleted.
    pub fn has(&self, id: &ResourceId) -> bool {
        self.0.get(id).is_some_and(|recorded| recorded.is_managed)
    }

    /// The annotations with this record.
    pub fn annotations(&self) -> [(String, String); 2] {
        [(RAW_RESOURCES.to_owned(), self.text()), (OWNED_KINDS.to_owned(), self.kinds())]
    }

    fn text(&self) -> String {
        let entry = |(id, it): (&ResourceId, &Recorded)| {
            let mut entry = json!({
                "id": id.as_str(), "group": it.group, "version": it.version, "kind": it.kind, "name": it.name,
            });
            if !it.is_managed {
                entry["stays"] = json!(true);
            }
            entry
        };
        let entries: Vec<Value> = self.0.iter().map(entry).collect();
        Value::from(entries).to_string()
    }

    /// The operator's kinds in use, as [`OWNED_KINDS`] names them.
    pub fn kinds(&self) -> String {
        let kinds: BTreeSet<String> =
            self.0.values().map(|it| format!("{}.{}.{}", it.kind, it.version, it.group)).collect();
        kinds.into_iter().collect::<Vec<_>>().join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_annotation() {
        let id = |name: &str| ResourceId::group("s", name);
        let recorded = |is_managed| Recorded {
            group: "resources.azure.com".into(),
            version: "v1api20200601".into(),
            kind: "ResourceGroup".into(),
            name: "rg".into(),
            is_managed,
        };
        let record = Record([(id("a"), recorded(true)), (id("b"), recorded(false))].into());
        let annotations = BTreeMap::from(record.annotations());
        assert_eq!(Record::of(&annotations), record);
        assert_eq!((record.has(&id("a")), record.has(&id("b")), record.has(&id("c"))), (true, false, false));
        assert_eq!(annotations[OWNED_KINDS], "ResourceGroup.v1api20200601.resources.azure.com");
        for text in ["", "{}", "[{}]", r#"[{"id":"no id"}]"#] {
            let annotations = BTreeMap::from([(RAW_RESOURCES.to_owned(), text.to_owned())]);
            assert_eq!(Record::of(&annotations), Record::default(), "{text}");
        }
    }

    /// What an object inherits is added to what it has inherited, and is not part of its own record.
    #[test]
    fn an_inheritance_grows() {
        let recorded = |name: &str| Recorded {
            group: "network.azure.com".into(),
            version: "v1api20240301".into(),
            kind: "PublicIPPrefix".into(),
            name: name.into(),
            is_managed: true,
        };
        let of = |name: &str| Record([(ResourceId::group("s", name), recorded(name))].into());
        let mut annotations = BTreeMap::from(of("own").annotations());
        for name in ["a", "b", "a"] {
            annotations.extend([of(name).bequeathed_to(&annotations)]);
        }
        let names = |record: Record| record.0.into_values().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names(Record::of(&annotations)), ["own"]);
        assert_eq!(names(Record::with_inherited(&annotations)), ["a", "b", "own"]);
    }
}
