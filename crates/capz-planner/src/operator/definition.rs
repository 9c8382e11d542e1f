//! The definition of a kind of the operator's.

use serde_json::{Value, json};

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

#[cfg(test)]
mod tests {
    use super::*;

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
