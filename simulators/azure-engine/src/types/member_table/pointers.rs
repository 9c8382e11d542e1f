//! What tables say about stored documents: their references, and their hidden members.

use azure_types::ResourceId;
use serde_json::Value;

use super::member::{Holds, Member};
use crate::document::{Object, name, stored_reference};
use crate::store::reference::{Reference, Role};

/// All references of a stored document.
pub fn pointers(table: &[Member], id: &ResourceId, document: &Value) -> Vec<Reference> {
    document
        .get("properties")
        .map_or_else(Vec::new, |properties| pointers_below(table, id, properties, Role::Uses))
}

/// All references of an object that a table describes; `from` is the referrer.
pub fn pointers_below(table: &[Member], from: &ResourceId, object: &Value, role: Role) -> Vec<Reference> {
    let mut all = Vec::new();
    collect(table, from, object, role, &mut all);
    all
}

fn collect(table: &[Member], from: &ResourceId, object: &Value, role: Role, all: &mut Vec<Reference>) {
    for member in table {
        let pointer = |to: ResourceId| {
            let address = object.get("privateIPAddress").filter(|_| member.addressed);
            let address = address.and_then(Value::as_str).and_then(|address| address.parse().ok());
            Reference { from: from.clone(), to, role: member.role.unwrap_or(role), address }
        };
        let Some(value) = object.get(member.name) else { continue };
        let each = || value.as_array().into_iter().flatten();
        match member.holds {
            Holds::Uses(_) => all.extend(stored_reference(value, "id").map(pointer)),
            Holds::UsesAll(_) => {
                all.extend(each().filter_map(|item| stored_reference(item, "id")).map(pointer))
            }
            Holds::UsesId(_) => {
                all.extend(value.as_str().and_then(|id| ResourceId::parse(id.trim()).ok()).map(pointer));
            }
            Holds::Object(table) => collect(table, from, value, role, all),
            Holds::Objects(table) => each().for_each(|item| collect(table, from, item, role, all)),
            Holds::Children(table) => {
                for child in each() {
                    let id = from.child(member.name, name(child));
                    if let Some(properties) = child.get("properties") {
                        collect(table, &id, properties, role, all);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Removes secret members from a document.
pub(crate) fn conceal(table: &[Member], object: &mut Object) {
    for member in table {
        if member.secret {
            object.remove(member.name);
            continue;
        }
        let below = match member.holds {
            Holds::Object(table) | Holds::Objects(table) | Holds::Children(table) if has_secrets(table) => {
                table
            }
            _ => continue,
        };
        let children = matches!(member.holds, Holds::Children(_));
        match object.get_mut(member.name) {
            Some(Value::Object(object)) => conceal(below, object),
            Some(Value::Array(items)) => {
                for item in items {
                    let inner = if children { item.get_mut("properties") } else { Some(item) };
                    if let Some(Value::Object(object)) = inner {
                        conceal(below, object);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The names of the secret members of a table and all tables below it.
pub fn secrets(table: &'static [Member]) -> Vec<&'static str> {
    let mut all = Vec::new();
    for member in table {
        match member.holds {
            _ if member.secret => all.push(member.name),
            Holds::Object(table) | Holds::Objects(table) | Holds::Children(table) => {
                all.extend(secrets(table))
            }
            _ => {}
        }
    }
    all
}

fn has_secrets(table: &[Member]) -> bool {
    table.iter().any(|member| {
        member.secret
            || match member.holds {
                Holds::Object(table) | Holds::Objects(table) | Holds::Children(table) => has_secrets(table),
                _ => false,
            }
    })
}

/// The table of a collection of child documents.
pub(crate) fn table_of_children(table: &[Member], collection: &str) -> &'static [Member] {
    let found = table.iter().find(|member| member.name == collection);
    match found.map(|member| member.holds) {
        Some(Holds::Children(table)) => table,
        _ => &[],
    }
}
