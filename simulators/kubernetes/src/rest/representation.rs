//! The representations of objects: whole, metadata alone, or as rows of a table (Kubernetes: "API Concepts", alternate
//! representations).

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http::header::ACCEPT;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::object::{Object, to_bytes};
use crate::registry::Kind;
use crate::rest::table;
use crate::status::ApiError;
use crate::verbs::Page;

/// The part of its object that a table row contains, beside the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The representation that the client requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Representation {
    Whole,
    /// PartialObjectMetadata, in this version of meta.k8s.io.
    Metadata(String),
    /// Table, in this version of meta.k8s.io.
    Table(String, Include),
}

/// The `Accept` header; empty if it is missing.
pub(super) fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

impl Representation {
    /// The first supported representation in an `Accept` header.
    pub(super) fn negotiate(accept: &str, include: Option<&str>) -> Result<Self, ApiError> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
                continue;
            }
            let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
            let parameter = |name: &str| parameters.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
            let version = parameter("v").unwrap_or("v1").to_owned();
            let known = parameter("g") == Some("meta.k8s.io") && matches!(version.as_str(), "v1" | "v1beta1");
            match parameter("as") {
                None => return Ok(Self::Whole),
                Some("Table") if known => {
                    let include = match include {
                        None | Some("" | "Metadata") => Include::Metadata,
                        Some("None") => Include::Nothing,
                        Some("Object") => Include::Object,
                        Some(other) => {
                            return Err(ApiError::bad_request(format!(
                                "includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                            )));
                        }
                    };
                    return Ok(Self::Table(version, include));
                }
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") if known => {
                    return Ok(Self::Metadata(version));
                }
                Some(_) => {}
            }
        }
        Err(ApiError::not_acceptable())
    }

    /// One object. `headers` says whether a table names its columns.
    pub(crate) fn object(&self, kind: &Kind, object: &Arc<Object>, now: Timestamp, headers: bool) -> Bytes {
        match self {
            Self::Whole => object.json(),
            Self::Metadata(version) => to_bytes(&metadata_only(object, version)),
            Self::Table(version, include) => {
                let metadata = json!({ "resourceVersion": object.version().to_string() });
                to_bytes(&self::table(
                    kind,
                    metadata,
                    std::iter::once(Arc::clone(object)),
                    version,
                    *include,
                    now,
                    headers,
                ))
            }
        }
    }

    /// One page of a list.
    pub(super) fn list(&self, kind: &Kind, page: &Page, now: Timestamp) -> Bytes {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), Value::from(page.version.to_string()));
        if let Some(token) = &page.token {
            metadata.insert("continue".to_owned(), Value::from(token.as_str()));
        }
        if let Some(remaining) = page.remaining {
            metadata.insert("remainingItemCount".to_owned(), Value::from(remaining));
        }
        let metadata = Value::Object(metadata);
        match self {
            Self::Whole => list_bytes(kind, &metadata, &page.items),
            Self::Metadata(version) => to_bytes(&json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
                "items": page.items.iter().map(|object| metadata_only(&object.for_one_look(), version)).collect::<Vec<_>>(),
            })),
            Self::Table(version, include) => {
                let rows = page.items.iter().map(Object::for_one_look);
                to_bytes(&self::table(kind, metadata, rows, version, *include, now, true))
            }
        }
    }
}

/// A list of whole objects, assembled from their serialized forms. Items of built-in kinds do not repeat their type.
fn list_bytes(kind: &Kind, metadata: &Value, items: &[Arc<Object>]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(256);
    let list_kind = format!("{}List", kind.kind);
    let head =
        json!({ "apiVersion": kind.api_version(), "kind": list_kind, "metadata": metadata }).to_string();
    bytes.put_slice(head.trim_end_matches('}').as_bytes());
    // The closing braces of the head: that of the metadata is put back here, the outer one at the end.
    bytes.put_slice(b"},\"items\":[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            bytes.put_u8(b',');
        }
        match kind.is_custom() {
            true => bytes.put_slice(&item.json()),
            false => item.put_untyped(&mut bytes),
        }
    }
    bytes.put_slice(b"]}\n");
    bytes.freeze()
}

fn metadata_only(object: &Object, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.get("metadata"),
    })
}

fn table(
    kind: &Kind,
    metadata: Value,
    objects: impl Iterator<Item = Arc<Object>>,
    version: &str,
    include: Include,
    now: Timestamp,
    headers: bool,
) -> Value {
    let rows: Vec<Value> = objects
        .map(|object| {
            let about = match include {
                Include::Nothing => Value::Null,
                Include::Metadata => metadata_only(&object, version),
                Include::Object => object.value().clone(),
            };
            json!({ "cells": table::row(kind, &object, now), "object": about })
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
        "columnDefinitions": if headers { table::columns(kind) } else { Value::Null },
        "rows": rows,
    })
}

/// One line of a watch.
pub(crate) fn watch_line(change: &str, object: &Bytes, to: &mut BytesMut) {
    to.reserve(object.len() + 40);
    to.put_slice(b"{\"type\":\"");
    to.put_slice(change.as_bytes());
    to.put_slice(b"\",\"object\":");
    to.put_slice(object);
    to.put_slice(b"}\n");
}

/// The object of a bookmark: a kind and a version, and nothing else.
pub(crate) fn bookmark(
    kind: &Kind,
    representation: &Representation,
    version: u64,
    initial_events_end: bool,
) -> Bytes {
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if initial_events_end {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    to_bytes(&match representation {
        Representation::Whole => {
            json!({ "kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata })
        }
        Representation::Metadata(meta) => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": format!("meta.k8s.io/{meta}"),
            "metadata": metadata,
        }),
        Representation::Table(meta, _) => json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{meta}"),
            "metadata": { "resourceVersion": version.to_string() },
            "columnDefinitions": null,
            "rows": [],
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_served_form_wins() {
        let negotiate = |accept| Representation::negotiate(accept, None);
        assert_eq!(negotiate("").unwrap(), Representation::Whole);
        assert_eq!(
            negotiate("application/vnd.kubernetes.protobuf,application/json").unwrap(),
            Representation::Whole
        );
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(kubectl).unwrap(), Representation::Table("v1".to_owned(), Include::Metadata));
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(negotiate(metadata).unwrap(), Representation::Metadata("v1".to_owned()));
        assert_eq!(negotiate("application/json;as=Unknown;v=v1;g=x, */*").unwrap(), Representation::Whole);
        assert_eq!(negotiate("application/vnd.kubernetes.protobuf").unwrap_err().code, 406);
    }

    #[test]
    fn lists_are_valid_json_with_and_without_items() {
        let kind = crate::registry::Registry::default().by_name("Pod").unwrap();
        let item = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a}" } });
        let item = Arc::new(Object::new(item, 3));
        for items in [vec![], vec![Arc::clone(&item)], vec![Arc::clone(&item), item]] {
            let metadata = json!({ "resourceVersion": "3", "continue": "}}" });
            let bytes = list_bytes(&kind, &metadata, &items);
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(value["items"], json!(vec![json!({ "metadata": { "name": "a}" } }); items.len()]));
            assert_eq!(value["metadata"], metadata);
        }
    }
}
