//! How requests about one resource type are answered: the parts that are the same for every resource.

use serde::{Deserialize, Serialize};

/// How a provider words its etags, operations and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireDialect {
    /// Weak GUID etags; `operations` and `operationResults`.
    Network,
    /// Counters as strong etags, also on PUT answers; one operations URL with `monitor=true`.
    Compute,
    /// ARM itself: no etags; operations known by an opaque key of the subscription.
    Manager,
}

/// What a second write does to a resource whose operation still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// The first operation ends `Canceled`; the second write counts.
    Supersede,
    /// The second write is refused with 429 until the first is done.
    Busy,
    /// The second write is refused with 409.
    Conflict,
}

/// A collection of child documents inside a document's `properties`.
#[derive(Debug, Clone, Copy)]
pub struct ChildCollection {
    /// Member of `properties` and path segment, such as `backendAddressPools`.
    pub name: &'static str,
    /// Whether clients may write children one by one.
    pub writable: bool,
    /// Members that list who refers to the child: (member, type segment of the referrer; an empty one
    /// means any).
    pub back_references: &'static [(&'static str, &'static str)],
}

/// How operations on a type are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling {
    /// The path segment of operation URLs; `operations` nearly everywhere.
    pub segment: &'static str,
    /// Whether the answer to a write also carries `Location`.
    pub location_on_writes: bool,
    /// Whether the status of a write that succeeded holds the resource (`properties.output`).
    pub output: bool,
}

/// How requests about one resource type are answered. Each provider has a usual one, from which a type
/// differs in few members.
#[derive(Debug)]
pub struct Protocol {
    /// The type in Azure's spelling, such as `Microsoft.Network/loadBalancers`.
    pub resource_type: &'static str,
    /// What operations and refusals call it, such as `LoadBalancer`.
    pub noun: &'static str,
    /// API versions for strict mode and for the provider record, newest first.
    pub api_versions: &'static [&'static str],
    /// How the provider words its answers.
    pub dialect: WireDialect,
    /// What a second write does while an operation runs.
    pub concurrency: Concurrency,
    /// Child collections inside the document.
    pub child_collections: &'static [ChildCollection],
    /// Whether it is a resource with location and tags, rather than a part of its parent.
    pub tracked: bool,
    /// Whether clients may create it by PUT; scale set instances come from their set.
    pub creatable: bool,
    /// Whether a PATCH changes tags and nothing else, at once.
    pub only_tags: bool,
    /// Whether documents carry an etag.
    pub etagged: bool,
    /// Whether a write that takes no time is answered as `Succeeded` at once.
    pub immediate: bool,
    /// Whether a write is over before it is answered, and its answer names no operation.
    pub synchronous: bool,
    /// Whether the same holds for a deletion.
    pub synchronous_delete: bool,
    /// Whether the answer to a PUT that creates names the resource's own URL in `Location`.
    pub located: bool,
    /// The status of a PUT that creates.
    pub create_status: u16,
    /// The status of a PUT on an existing resource.
    pub update_status: u16,
    /// The status of a PATCH.
    pub patch_status: u16,
    /// The status of a DELETE of an existing resource.
    pub delete_status: u16,
    /// How operations on the type are polled.
    pub polling: Polling,
}

impl Protocol {
    /// What most types of a dialect have in common.
    pub const fn new(
        resource_type: &'static str,
        noun: &'static str,
        api_versions: &'static [&'static str],
        dialect: WireDialect,
        concurrency: Concurrency,
    ) -> Self {
        Self {
            resource_type,
            noun,
            api_versions,
            dialect,
            concurrency,
            child_collections: &[],
            tracked: true,
            creatable: true,
            only_tags: matches!(dialect, WireDialect::Network),
            etagged: !matches!(dialect, WireDialect::Manager),
            immediate: false,
            synchronous: false,
            synchronous_delete: false,
            located: false,
            create_status: 201,
            update_status: 200,
            patch_status: 200,
            delete_status: 202,
            polling: Polling { segment: "operations", location_on_writes: false, output: false },
        }
    }

    /// The child collection of a name, in whatever case.
    pub fn child_collection(&self, name: &str) -> Option<&'static ChildCollection> {
        self.child_collections.iter().find(|collection| collection.name.eq_ignore_ascii_case(name))
    }
}
