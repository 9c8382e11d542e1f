//! What a resource provider tells the engine about one resource type.
//!
//! A provider is a module with a list of resource types; the engine knows none of them by name. Adding
//! one means writing its types and naming the module in `providers.rs`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use super::answer::Answer;
use super::budget::policy::Policy;
use super::document::Object;
use super::error::Refusal;
use super::limits::Limit;
use super::names::NameRule;
use super::operation::Completion;
pub(crate) use super::protocol::{ChildCollection, Concurrency, Polling, Protocol, WireDialect};
use super::schema::Members;
use super::state::AzureState;
use super::store::Record;
use super::version::Since;
use crate::options::Options;

/// Why one document points at another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A configuration uses it: a rule its probe, a subnet its security group, an IP configuration its
    /// subnet or pool.
    Uses,
    /// A scale set's model names it: blocks deletion, but shows in no back-reference.
    Model,
    /// It is named, may be anywhere and may be absent: the type that names it checks what it must be.
    Names,
}

/// A pointer from one document (or child document) to another.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) from: ResourceId,
    pub(crate) to: ResourceId,
    pub(crate) role: Role,
    /// The address that `from` holds in the subnet `to`.
    pub(crate) address: Option<IpAddr>,
}

impl Reference {
    pub(crate) fn uses(from: &ResourceId, to: ResourceId) -> Self {
        Self { from: from.clone(), to, role: Role::Uses, address: None }
    }
}

/// Where a write comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The client sent a document, or parts of one.
    Put,
    /// The client sent changes, which are in the document already.
    Patch,
    /// A service makes what goes with another resource, for which the client's request was checked.
    Service,
}

/// A write that asks to be normalised and checked.
pub(crate) struct Proposal<'a> {
    /// Canonical id of the resource.
    pub(crate) id: &'a ResourceId,
    /// The stored document, where the resource exists.
    pub(crate) old: Option<&'a Record>,
    /// What the client sent, nulls dropped: `location` settled, read-only envelope members removed.
    pub(crate) body: Object,
    pub(crate) source: Source,
    /// Members of the envelope that the client emptied: the body has none of them.
    pub(crate) emptied: Vec<&'static str>,
}

impl<'a> Proposal<'a> {
    /// What a service makes anew.
    pub(crate) fn of_service(id: &'a ResourceId, body: Object) -> Self {
        Self { id, old: None, body, source: Source::Service, emptied: Vec::new() }
    }
}

impl Proposal<'_> {
    /// A member of the stored document by path.
    pub(crate) fn old_member(&self, path: &str) -> Option<&Value> {
        super::document::at(&self.old?.body, path)
    }
}

/// Which optional parts a read asked for (`$expand`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expand {
    pub(crate) instance_view: bool,
}

/// What a list was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) expand: Expand,
    /// Query options by lower-case name.
    pub(crate) query: &'a BTreeMap<String, String>,
}

/// What a POST action starts.
pub(crate) struct Action {
    /// Passed back to [`ResourceType::after_operation`] when the operation is over.
    pub(crate) completion: Completion,
    /// What to answer at once; otherwise the action is a long-running operation.
    pub(crate) answer: Option<Answer>,
}

/// One resource type of a provider.
pub(crate) trait ResourceType: Send + Sync + 'static {
    /// How requests about the type are answered.
    fn protocol(&self) -> &'static Protocol;

    /// The type in Azure's spelling, such as `Microsoft.Network/loadBalancers`.
    fn name(&self) -> &'static str {
        self.protocol().resource_type
    }

    /// How the provider words its answers.
    fn dialect(&self) -> WireDialect {
        self.protocol().dialect
    }

    /// What an operation on it is called: `Put` gives `PutLoadBalancerOperation`.
    fn operation_name(&self, verb: &str) -> String {
        format!("{verb}{}Operation", self.protocol().noun.replace(' ', ""))
    }

    /// Changes the document in the answer to a write whose operation still runs.
    fn accepted(&self, _azure: &AzureState, _record: &Record, _document: &mut Object) {}

    /// The resources that a list below a scope holds, where they are kept elsewhere.
    fn gather<'a>(&self, _azure: &'a AzureState, _scope: &ResourceId) -> Option<Vec<&'a Record>> {
        None
    }

    /// What a list shows of a resource; `None` leaves it out.
    fn listed(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        Some(azure.present(record, listing.expand))
    }

    /// Most items of one page of a list.
    fn page_size(&self, _options: &Options, _listing: &Listing<'_>) -> usize {
        usize::MAX
    }

    /// Checks a write and gives the document to store: defaults filled, derived members removed.
    fn write(&self, azure: &AzureState, proposal: Proposal<'_>) -> Result<Value, Refusal>;

    /// Everything the document points at.
    fn references(&self, _record: &Record) -> Vec<Reference> {
        Vec::new()
    }

    /// The public address that the document holds.
    fn public_address(&self, _record: &Record) -> Option<IpAddr> {
        None
    }

    /// After a write was stored: effects on other documents.
    fn after_write(&self, _azure: &mut AzureState, _id: &ResourceId, _old: Option<&Value>) {}

    /// After the set of documents that point at this one changed.
    fn referrers_changed(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// After an operation ended; `failed` when it failed or was cancelled.
    fn after_operation(
        &self,
        _azure: &mut AzureState,
        _id: &ResourceId,
        _completion: &Completion,
        _failed: bool,
    ) {
    }

    /// Whether the resource may go.
    fn check_delete(&self, _azure: &AzureState, _record: &Record) -> Result<(), Refusal> {
        Ok(())
    }

    /// After a deletion was accepted.
    fn on_delete(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// Adds derived members to a document that is about to be shown.
    fn present(&self, _azure: &AzureState, _record: &Record, _document: &mut Object, _expand: Expand) {}

    /// Adds derived members to a child document that is about to be shown.
    fn present_child(
        &self,
        _azure: &AzureState,
        _record: &Record,
        _collection: &str,
        _id: &ResourceId,
        _properties: &mut Object,
    ) {
    }

    /// Read-only views below the resource, such as `instanceView`; `None` where there is none.
    fn view(&self, _azure: &AzureState, _record: &Record, _below: &[&str]) -> Option<Result<Value, Refusal>> {
        None
    }

    /// The same for a GET over the wire, which may have query options (by lower-case name).
    fn answer(
        &self,
        azure: &AzureState,
        record: &Record,
        below: &[&str],
        _query: &BTreeMap<String, String>,
    ) -> Option<Result<Value, Refusal>> {
        self.view(azure, record, below)
    }

    /// PUT (`body`) or DELETE (no body) of something below the resource that is kept elsewhere, such as
    /// a service's connections, which are kept with the endpoints. Says whether it was there; `None`
    /// where nothing below can be written so. What [`ResourceType::view`] then gives is the answer to a PUT.
    fn write_view(
        &self,
        _azure: &mut AzureState,
        _id: &ResourceId,
        _below: &[&str],
        _body: Option<&Value>,
    ) -> Option<Result<bool, Refusal>> {
        None
    }

    /// Resources that the service made for this one and that go with it.
    fn owned(&self, _azure: &AzureState, _record: &Record) -> Vec<ResourceId> {
        Vec::new()
    }

    /// All documents of a type that only exists as views below this type's resources.
    fn views_of_type(&self, _azure: &AzureState, _record: &Record, _resource_type: &str) -> Vec<Value> {
        Vec::new()
    }

    /// A POST action; below a child of the resource it is the whole path, such as
    /// `backendAddressPools/{name}/{action}`.
    fn act(
        &self,
        _azure: &mut AzureState,
        _id: &ResourceId,
        _action: &str,
        _body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        None
    }

    /// The answer to an instance name that cannot exist.
    fn check_name(&self, _name: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// The resource that an id of this type stands for, where that is another one: a machine that is also
    /// known below its scale set.
    fn stands_for(&self, _azure: &AzureState, _id: &ResourceId) -> Option<ResourceId> {
        None
    }

    /// The answer when the resource is absent, where it is not ARM's own.
    fn absent(&self, _id: &ResourceId) -> Option<Refusal> {
        None
    }
}

/// A request to a provider that is about no resource: `skus`, `locations/{location}/usages`.
pub(crate) struct Call<'a> {
    /// `GET` or `POST`.
    pub(crate) method: &'a str,
    pub(crate) subscription: &'a str,
    /// The resource group, where the path names one; it exists.
    pub(crate) group: Option<&'a str>,
    /// The segments behind the namespace, in the caller's spelling.
    pub(crate) segments: &'a [&'a str],
    /// Query options by lower-case name.
    pub(crate) query: &'a BTreeMap<String, String>,
    /// `Null` where there is no body.
    pub(crate) body: &'a Value,
}

/// Answers a call; `None` where it is not this function's.
pub(crate) type Answers = fn(&AzureState, &Call<'_>) -> Option<Result<Value, Refusal>>;

/// A request to something that lies on a subscription, a group or a resource and belongs to another
/// provider: tags, an identity.
pub(crate) struct Extension<'a> {
    pub(crate) method: &'a str,
    /// What it lies on; groups and resources exist.
    pub(crate) scope: &'a ResourceId,
    /// The segments behind the namespace, in the caller's spelling.
    pub(crate) segments: &'a [&'a str],
    /// `Null` where there is no body.
    pub(crate) body: &'a Value,
}

/// Answers such a request; `None` where it is not this function's.
pub(crate) type Extends = fn(&mut AzureState, &Extension<'_>) -> Option<Result<Answer, Refusal>>;

/// A resource provider: a namespace, its types, and what it answers beside them.
pub(crate) struct Provider {
    pub(crate) namespace: &'static str,
    pub(crate) resource_types: Vec<&'static dyn ResourceType>,
    pub(crate) calls: Vec<Answers>,
    /// What it lays on others' resources.
    pub(crate) extensions: Vec<Extends>,
    /// What it counts beside ARM's own budgets.
    pub(crate) policies: &'static [Policy],
    /// How much there may be of its resources.
    pub(crate) limits: &'static [Limit],
    /// Types that are free from ARM's own limit of resources in a group.
    pub(crate) unlimited: &'static [&'static str],
    /// Which names new resources may have.
    pub(crate) names: &'static [NameRule],
    /// What members of its documents hold.
    pub(crate) members: &'static [Members],
    /// What older API versions do not show.
    pub(crate) since: &'static [Since],
}
