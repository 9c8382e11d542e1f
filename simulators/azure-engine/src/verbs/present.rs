//! Documents as a GET shows them.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::document::{Object, items, name, take_properties};
use crate::provider::{AzureState, Expand, Record};
use crate::store::reference::{Role, is_of};
use crate::types::member_table::{Holds, conceal, table_of_children};
use crate::types::protocol::ChildCollection;
use crate::verbs::system_data;

impl AzureState {
    /// The child document that an id names inside a record.
    pub fn find_child<'a>(
        &self,
        record: &'a Record,
        id: &ResourceId,
    ) -> Option<(&'static ChildCollection, &'a Value)> {
        let rest = id.as_str().get(record.id.as_str().len() + 1..)?;
        let (collection, child) = rest.split_once('/')?;
        let collection = record.resource_type.protocol().child_collection(collection)?;
        let found = items(record.body.get("properties")?, collection.name)
            .iter()
            .find(|item| name(item).eq_ignore_ascii_case(child))?;
        Some((collection, found))
    }

    /// A document as a GET shows it.
    pub fn present(&self, record: &Record, expand: Expand) -> Value {
        let mut document = record.body.as_object().cloned().unwrap_or_default();
        document.insert("id".into(), record.id.as_str().into());
        document.insert("name".into(), record.id.name().into());
        document.insert("type".into(), record.resource_type.name().into());
        for member in self.providers.iter().flat_map(|provider| provider.envelope) {
            if document.contains_key(member.name) {
                (member.present)(self, record, &mut document);
            }
        }
        if let (true, Some(written)) =
            (record.resource_type.protocol().system_data, record.hidden.get(system_data::MEMBER))
        {
            document.insert(system_data::MEMBER.into(), written.clone());
        }
        let etag = self.etag(record);
        let mut properties = take_properties(&mut document);
        if record.resource_type.protocol().shows_state {
            properties.insert("provisioningState".into(), self.state_name(record).into());
        }
        let members = record.resource_type.protocol().members;
        self.present_users(members, &record.id, &mut properties);
        conceal(members, &mut properties);
        for member in members {
            let value = match member.holds {
                Holds::Guid => self.seed.guid("resource", record.id.as_str(), record.incarnation),
                Holds::Created => record.created.to_string(),
                _ => continue,
            };
            properties.insert(member.name.into(), value.into());
        }
        for collection in record.resource_type.protocol().child_collections {
            if let Some(Value::Array(children)) = properties.get_mut(collection.name) {
                for child in children {
                    self.complete_child(record, collection, &etag, child);
                }
            }
        }
        document.insert("properties".into(), Value::Object(properties));
        if record.resource_type.protocol().etagged {
            document.insert("etag".into(), etag.into());
        }
        record.resource_type.present(self, record, &mut document, expand);
        Value::Object(document)
    }

    /// A child document as a GET shows it.
    pub fn present_child(
        &self,
        record: &Record,
        collection: &'static ChildCollection,
        child: &Value,
    ) -> Value {
        let mut child = child.clone();
        self.complete_child(record, collection, &self.etag(record), &mut child);
        child
    }

    fn complete_child(
        &self,
        record: &Record,
        collection: &'static ChildCollection,
        etag: &str,
        child: &mut Value,
    ) {
        let id = record.id.child(collection.name, name(child));
        let Value::Object(document) = child else { return };
        let mut properties: Object = take_properties(document);
        properties.insert("provisioningState".into(), self.state_name(record).into());
        for (member, segment) in collection.back_references {
            let wanted = format!("/{}/", segment.to_ascii_lowercase());
            let list: Vec<Value> = self
                .store
                .referrers(&id)
                .filter(|referrer| referrer.role == Role::Uses)
                .filter(|referrer| segment.is_empty() || is_of(&referrer.from, &wanted))
                .map(|referrer| json!({ "id": referrer.from }))
                .collect();
            if !list.is_empty() {
                properties.insert((*member).into(), list.into());
            }
        }
        let table = table_of_children(record.resource_type.protocol().members, collection.name);
        self.present_users(table, &id, &mut properties);
        record.resource_type.present_child(self, record, &id, &mut properties);
        document.insert("id".into(), id.as_str().into());
        document.insert("type".into(), format!("{}/{}", record.resource_type.name(), collection.name).into());
        document.insert("etag".into(), etag.into());
        document.insert("properties".into(), Value::Object(properties));
    }
}
