//! Checks that Azure does not change while a cluster changes providers.

use std::collections::BTreeMap;

use anyhow::ensure;
use azure_simulator::Azure;
use serde_json::{Value, json};

use crate::print;

/// The tag that our manager writes on the resource group of a cluster that it takes over.
const ID: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster-id";

/// Azure since a moment.
pub struct Watch {
    azure: Azure,
    documents: BTreeMap<String, Value>,
    since: u64,
}

impl Watch {
    /// Remembers the current documents.
    pub fn begin(azure: &Azure) -> Self {
        let since = azure.journal().entries.last().map_or(0, |entry| entry.sequence);
        Self { azure: azure.clone(), documents: documents(azure), since }
    }

    /// Checks that nothing was deleted in Azure since then, and no document changed, except for the tag with the
    /// cluster's id.
    ///
    /// # Errors
    /// The deleted or changed documents.
    pub fn is_as_it_was(&self) -> anyhow::Result<()> {
        let entries = self.azure.journal_after(self.since).entries;
        let deleted: Vec<&String> =
            entries.iter().filter(|entry| entry.method == "DELETE").map(|entry| &entry.path).collect();
        ensure!(deleted.is_empty(), "deleted in Azure: {deleted:?}");
        let (mut changed, now) = (Vec::new(), documents(&self.azure));
        for (id, document) in &self.documents {
            match now.get(id) {
                None => changed.push(format!("{id} is gone")),
                Some(found) if plain(found) != plain(document) => {
                    changed.push(format!("{id}: {} became {}", plain(document), plain(found)));
                }
                Some(_) => {}
            }
        }
        changed.extend(
            now.keys().filter(|id| !self.documents.contains_key(*id)).map(|id| format!("{id} is new")),
        );
        ensure!(changed.is_empty(), "changed in Azure: {}", changed.join("\n"));
        let writes = entries.iter().filter(|entry| entry.method != "GET").count();
        print::line(format_args!(
            "  Azure is as it was: nothing deleted, {writes} writes that changed nothing but the id"
        ));
        Ok(())
    }
}

/// All of Azure's documents, by id in lower case.
pub fn documents(azure: &Azure) -> BTreeMap<String, Value> {
    let all = azure.documents().into_iter();
    all.map(|it| (it["id"].as_str().unwrap_or_default().to_lowercase(), it)).collect()
}

/// A document without the members that change with each write, without our tag, and without members that say nothing: the
/// established provider also writes them.
fn plain(document: &Value) -> Value {
    let mut plain = document.clone();
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|member, _| member != "etag" && member != ID);
                // The operator writes a subnet's prefix into both of the members for it.
                let alone = members.get("addressPrefix").map(|prefix| json!([prefix]));
                if alone.is_some() && members.get("addressPrefixes") == alone.as_ref() {
                    members.remove("addressPrefixes");
                }
                members.values_mut().for_each(strip);
                members.retain(|_, value| !says_nothing(value));
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut plain);
    plain
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
