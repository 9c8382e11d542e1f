//! The subject of a request's path.

use azure_engine::answer::data_plane::{DataRequest, DataSubject};
use azure_engine::provider::AzureState;

use super::super::host;
use super::super::item::Kind;

/// The subject of a path: a kind, whether deleted items are meant, and the segments behind.
pub(super) struct ItemPath<'a> {
    pub(super) kind: Kind,
    pub(super) deleted: bool,
    pub(super) rest: Vec<&'a str>,
}

impl<'a> ItemPath<'a> {
    /// Reads a path. Names in it have no characters that are percent-encoded. Clients name the latest version by an
    /// empty segment at the end.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let (kind, deleted) = match segments.next()?.to_ascii_lowercase().as_str() {
            "secrets" => (Kind::Secrets, false),
            "deletedsecrets" => (Kind::Secrets, true),
            "keys" => (Kind::Keys, false),
            "deletedkeys" => (Kind::Keys, true),
            _ => return None,
        };
        Some(Self { kind, deleted, rest: segments.collect() })
    }
}

/// The resource that a request is about, and whether it lists.
pub(super) fn locate(azure: &AzureState, request: &DataRequest<'_>) -> DataSubject {
    let path = ItemPath::parse(request.path);
    let below = path.as_ref().map_or(String::new(), |path| format!("/{}", path.kind.collection()));
    let vault = host::find(azure, request.account);
    let resource = vault.map(|vault| match &path {
        Some(ItemPath { kind, rest, .. }) if !rest.is_empty() => {
            vault.id.child(kind.collection(), rest.first().unwrap_or(&""))
        }
        _ => vault.id.clone(),
    });
    DataSubject {
        resource_type: format!("{}{below}", host::RESOURCE_TYPE),
        resource,
        list: path.is_some_and(|path| path.rest.is_empty() || path.rest.last() == Some(&"versions")),
    }
}
