//! References from one document to another.

use std::net::IpAddr;

use azure_types::ResourceId;

/// The role of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A configuration uses it: a rule its probe, a subnet its security group, an IP configuration its
    /// subnet or pool.
    Uses,
    /// A scale set's model names it: blocks deletion, but shows in no back-reference.
    Model,
    /// The target may be anywhere and may be absent: the type of the referrer checks it.
    Names,
}

/// A reference from one document (or child document) to another.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The referrer: a document, or a child in it.
    pub from: ResourceId,
    /// The target.
    pub to: ResourceId,
    /// Its role.
    pub role: Role,
    /// The address that `from` holds in the subnet `to`.
    pub address: Option<IpAddr>,
}

impl Reference {
    /// A reference that uses its target.
    pub fn uses(from: &ResourceId, to: ResourceId) -> Self {
        Self { from: from.clone(), to, role: Role::Uses, address: None }
    }

    /// A reference to what may be absent.
    pub fn names(from: &ResourceId, to: ResourceId) -> Self {
        Self { role: Role::Names, ..Self::uses(from, to) }
    }

    /// A reference in a scale set's model.
    pub fn in_model(from: &ResourceId, to: ResourceId) -> Self {
        Self { role: Role::Model, ..Self::uses(from, to) }
    }
}

/// Whether the last (type, name) pair of an id is of a type, given as `/type/` in lower case.
pub fn is_of(id: &ResourceId, wanted: &str) -> bool {
    let text = id.to_lower();
    text.rfind('/').is_some_and(|at| text[..=at].ends_with(wanted))
}
