//! The forms of requests to types and providers.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

/// The optional parts that a read requests (`$expand`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expand {
    /// The instance view of machines.
    pub instance_view: bool,
}

/// The parameters of a list.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// The scope of the list.
    pub scope: &'a ResourceId,
    /// The optional parts.
    pub expand: Expand,
    /// Query options by lower-case name.
    pub query: &'a BTreeMap<String, String>,
}

/// A request about a resource, or a list of them, with its query options.
pub struct ResourceRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The resource, or the scope of a list. It need not exist.
    pub id: &'a ResourceId,
    /// Whether it lists the resources of the type.
    pub list: bool,
    /// The segments behind the resource, such as an action's.
    pub below: &'a [String],
    /// Query options by lower-case name, and headers that name a part of a resource, such as `x-ms-snapshot`.
    pub query: &'a BTreeMap<String, String>,
    /// `Null` where there is no body.
    pub body: &'a Value,
}

/// A write of something below a resource that is kept elsewhere, such as a service's connections, which are kept with
/// the endpoints.
#[derive(Clone, Copy)]
pub struct PartWrite<'a> {
    /// The segments of the path behind the resource.
    pub below: &'a [&'a str],
    /// The document of a PUT; `None` for a DELETE.
    pub body: Option<&'a Value>,
}

/// A request to a provider that is about no resource: `skus`, `locations/{location}/usages`.
pub struct ProviderCall<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The subscription, which exists.
    pub subscription: &'a str,
    /// The resource group, where the path names one; it exists.
    pub group: Option<&'a str>,
    /// The segments behind the namespace, in the caller's spelling.
    pub segments: &'a [&'a str],
    /// Query options by lower-case name.
    pub query: &'a BTreeMap<String, String>,
    /// `Null` where there is no body.
    pub body: &'a Value,
}

/// A request to an extension of a subscription, a group or a resource that belongs to another provider: tags, an
/// identity.
pub struct ExtensionRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// Its scope; groups and resources exist.
    pub scope: &'a ResourceId,
    /// The segments behind the namespace, in the caller's spelling.
    pub segments: &'a [&'a str],
    /// `Null` where there is no body.
    pub body: &'a Value,
    /// The caller's object id, where tokens are verified.
    pub caller: Option<&'a str>,
}

/// The origin of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The client sent a document, or parts of one.
    Put,
    /// The client sent changes, which are in the document already.
    Patch,
    /// A service makes what goes with another resource, for which the client's request was checked.
    Service,
}

/// One act of an actor.
pub struct Act {
    /// From 1.
    pub count: u64,
    /// Drawn from the seed.
    pub draw: u64,
}
