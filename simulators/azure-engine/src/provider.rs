//! The interface between a resource provider and the engine, and the state that both work on.
//!
//! A provider is tables and types; the engine knows none of them by name. Types work on the state and the state knows
//! its types, so both are defined here; their methods are elsewhere.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::actors::{Actor, Actors};
use super::answer::Answer;
use super::attachments::Attachments;
use super::budget::policy::Policy;
use super::budget::{Buckets, Budgets};
use super::consistency::Consistency;
use super::data_plane::{DataAnswer, DataRequest, DataSubject};
use super::document::{Object, at};
use super::error::Refusal;
use super::execution::Execution;
use super::fault::Faults;
use super::join::Join;
use super::journal::JournalBook;
use super::latency::{LatencyProfile, TypicalLatency};
use super::limits::{Limit, Limits};
use super::member_table::{self, Member};
use super::names::NameRule;
use super::operation::{Completion, Operations};
use super::options::Options;
use super::outside::Outside;
use super::request::Request;
use super::seed::Seed;
use super::store;
use super::store::Indexed;
use super::target::Target;
use super::version::Since;

pub use super::asked::{Act, Asked, Call, Expand, Extension, Listing, Source};
pub use super::protocol::{
    ChildCollection, Concurrency, EtagForm, KeyForm, LiesIn, Pages, Placement, Polling, Protocol, Readiness,
    UrlForm,
};
pub use super::reference::Reference;
pub use super::state_name::StateNames;

/// One stored resource.
pub type Record = store::Record<dyn ResourceType>;

/// All documents of one simulated Azure.
pub type Store = store::Store<dyn ResourceType>;

/// A write to be normalised and checked.
pub struct Proposal<'a> {
    /// Canonical id of the resource.
    pub id: &'a ResourceId,
    /// The stored document, where the resource exists.
    pub old: Option<&'a Record>,
    /// What the client sent, nulls dropped: `location` settled, read-only envelope members removed.
    pub body: Object,
    /// Where the write comes from.
    pub source: Source,
    /// Members of the envelope that the client emptied: the body has none of them.
    pub emptied: Vec<&'static str>,
    /// The `properties` as they were sent, where PUTs merge: the body holds what is there, too.
    pub given: Value,
}

impl<'a> Proposal<'a> {
    /// A write of a document.
    pub fn new(id: &'a ResourceId, old: Option<&'a Record>, body: Object, source: Source) -> Self {
        Self { id, old, body, source, emptied: Vec::new(), given: Value::Null }
    }

    /// What a service makes anew.
    pub fn of_service(id: &'a ResourceId, body: Object) -> Self {
        Self::new(id, None, body, Source::Service)
    }
}

impl Proposal<'_> {
    /// The document with these `properties`.
    pub fn stored(mut self, properties: Object) -> Value {
        self.body.insert("properties".into(), Value::Object(properties));
        Value::Object(self.body)
    }

    /// Takes what is written out of the proposal.
    pub fn take(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.body))
    }

    /// A member of the stored document by path.
    pub fn old_member(&self, path: &str) -> Option<&Value> {
        at(&self.old?.body, path)
    }
}

/// What a POST action starts.
pub struct Action {
    /// Passed back to [`ResourceType::after_operation`] when the operation is over.
    pub completion: Completion,
    /// What to answer at once; otherwise the action is a long-running operation.
    pub answer: Option<Answer>,
}

/// One resource type of a provider.
pub trait ResourceType: Send + Sync + 'static {
    /// How requests about the type are answered.
    fn protocol(&self) -> &'static Protocol;

    /// What the members of its `properties` hold; nothing for a type that looks at all of them by itself.
    fn members(&self) -> &'static [Member] {
        &[]
    }

    /// The same for members beside `properties`, such as `sku`; others that its protocol lets pass are not looked at.
    fn envelope(&self) -> &'static [Member] {
        &[]
    }

    /// The type in Azure's spelling, such as `Microsoft.Network/loadBalancers`.
    fn name(&self) -> &'static str {
        self.protocol().resource_type
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

    /// Whether a list can be asked for so.
    fn check_listing(&self, _azure: &AzureState, _listing: &Listing<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Most items of one page of a list.
    fn page_size(&self, _options: &Options, _listing: &Listing<'_>) -> usize {
        usize::MAX
    }

    /// Checks a write that the tables have been applied to, and gives the document to store.
    fn write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value, Refusal> {
        Ok(Value::Object(proposal.body))
    }

    /// Everything the document points at.
    fn references(&self, record: &Record) -> Vec<Reference> {
        member_table::pointers(self.members(), &record.id, &record.body)
    }

    /// The public address that the document holds.
    fn public_address(&self, _record: &Record) -> Option<IpAddr> {
        None
    }

    /// What the resource's state is called while a change of it runs, where that is not the type's usual name:
    /// `Upgrading`.
    fn write_state(&self, _old: &Value, _new: &Value) -> Option<&'static str> {
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

    /// The resources whose work outside an operation on this one waits for.
    fn waits_for(&self, _azure: &AzureState, id: &ResourceId) -> Vec<ResourceId> {
        vec![id.clone()]
    }

    /// Takes the result of work that the type has asked for ([`AzureState::ask_outside`]); returns why the operation
    /// that it belongs to fails.
    fn told(&self, _azure: &mut AzureState, _id: &ResourceId, _answer: &Value) -> Option<Refusal> {
        None
    }

    /// Whether the resource may go.
    fn check_delete(&self, _azure: &AzureState, _record: &Record) -> Result<(), Refusal> {
        Ok(())
    }

    /// After a deletion was accepted.
    fn on_delete(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// After a resource is gone that this one only names ([`Role::Names`](super::reference::Role::Names)).
    fn named_is_gone(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// After the resource is gone, with whatever it lay in or by itself.
    fn removed(&self, _azure: &mut AzureState, _record: &Record) {}

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

    /// Read-only views below the resource, such as `instanceView`; `None` where there is no such view.
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

    /// Whether an action may come whatever else goes on with the resource: one that only reads, one that stops the
    /// rest.
    fn never_waits(&self, _action: &str) -> bool {
        false
    }

    /// The answer to an instance name that cannot exist.
    fn check_name(&self, _name: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// The resource that an id of this type stands for, where that is another one: a machine that is also
    /// known below its scale set, a role that can be asked for below everything.
    fn stands_for(&self, _azure: &AzureState, _id: &ResourceId) -> Option<ResourceId> {
        None
    }

    /// The answer when the resource is absent, where it is not ARM's own.
    fn absent(&self, _azure: &AzureState, _id: &ResourceId) -> Option<Refusal> {
        None
    }

    /// Changes the document in the answer to a write that was over at once; `sent` is the client's document. For types
    /// that say so in their protocol.
    fn written(&self, _azure: &AzureState, _record: &Record, _sent: &Object, _document: &mut Object) {}

    /// A request about the resource, or a list of them, that its query options make another one than its method alone
    /// says, or an action on what is absent; `None` where it is neither.
    fn asked(&self, _azure: &mut AzureState, _asked: &Asked<'_>) -> Option<Result<Answer, Refusal>> {
        None
    }
}

/// Answers a call; `None` where it is not this function's.
pub type Answers = fn(&mut AzureState, &Call<'_>) -> Option<Result<Value, Refusal>>;

/// Answers a request to what lies on something; `None` where it is not this function's.
pub type Extends = fn(&mut AzureState, &Extension<'_>) -> Option<Result<Answer, Refusal>>;

/// Refuses a request that would change something, by its method and by what it is about.
pub type Guard = fn(&AzureState, &str, &ResourceId) -> Result<(), Refusal>;

/// The service behind all hosts with one suffix.
pub struct DataPlane {
    /// What hosts end with, without the dot before it: `vault.azure.net`. What stands before it names the resource.
    pub suffix: &'static str,
    /// The resources that tokens must be for, such as `https://vault.azure.net`; a closing slash makes no difference.
    pub audiences: &'static [&'static str],
    /// The value of `WWW-Authenticate` for requests without a good token. The authority is that of the tenant, such as
    /// `https://login.microsoftonline.com/{tenant}`.
    pub challenge: fn(authority: &str) -> String,
    /// Whether requests without a bearer token are let through: the service checks their signature by itself.
    pub own_authentication: bool,
    /// How much a request may carry.
    pub max_body_bytes: u64,
    /// What a request is about.
    pub locate: fn(&AzureState, &DataRequest<'_>) -> DataSubject,
    /// Performs a request.
    pub perform: fn(&mut AzureState, &DataRequest<'_>) -> Result<DataAnswer, Refusal>,
    /// A refusal in the form of the service.
    pub refuse: fn(&AzureState, &DataRequest<'_>, &Refusal) -> DataAnswer,
}

impl DataPlane {
    /// The resource that a host names, where it is one of this plane's: `{account}.{suffix}`, or
    /// `{account}.privatelink.{suffix}`.
    pub fn account_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = host.strip_suffix(self.suffix)?.strip_suffix('.')?;
        let name = name.strip_suffix(".privatelink").unwrap_or(name);
        (!name.is_empty() && !name.contains('.')).then_some(name)
    }

    /// Whether a token for this resource is accepted.
    pub fn accepts(&self, audience: &str) -> bool {
        let bare = audience.trim_end_matches('/');
        self.audiences.iter().any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(bare))
    }
}

/// A resource provider: a namespace, its types, and what it answers beside them.
pub struct Provider {
    /// Such as `Microsoft.Network`.
    pub namespace: &'static str,
    /// Its types.
    pub resource_types: Vec<&'static dyn ResourceType>,
    /// What it answers beside its resources.
    pub calls: Vec<Answers>,
    /// What it lays on others' resources.
    pub extensions: Vec<Extends>,
    /// What it counts beside ARM's own budgets.
    pub policies: &'static [Policy],
    /// How much there may be of its resources.
    pub limits: &'static [Limit],
    /// Types that are free from ARM's own limit of resources in a group.
    pub unlimited: &'static [&'static str],
    /// Which names new resources may have.
    pub names: &'static [NameRule],
    /// What older API versions do not show.
    pub since: &'static [Since],
    /// How long its operations typically take, the special before the general.
    pub latencies: &'static [TypicalLatency],
    /// Members beside `properties`, of resources of any provider, that it checks and fills in.
    pub envelope: &'static [EnvelopeMember],
    /// What it does by itself at its time.
    pub timetable: Option<fn() -> Box<dyn Timetable>>,
    /// What a caller that writes its resources must be allowed to join.
    pub joins: &'static [Join],
    /// What it forbids about resources of any provider, and groups.
    pub guards: &'static [Guard],
    /// Puts built-in resources into the store, unless they are there.
    pub given: Option<fn(&mut AzureState)>,
    /// What it does for actors beside what they can do with every resource.
    pub acts: Option<Acts>,
    /// What it answers under hosts of its own.
    pub data_planes: &'static [DataPlane],
}

impl Provider {
    /// A provider with types and nothing else.
    pub fn new(namespace: &'static str, resource_types: Vec<&'static dyn ResourceType>) -> Self {
        Self {
            namespace,
            resource_types,
            calls: Vec::new(),
            extensions: Vec::new(),
            policies: &[],
            limits: &[],
            unlimited: &[],
            names: &[],
            since: &[],
            latencies: &[],
            envelope: &[],
            timetable: None,
            joins: &[],
            guards: &[],
            given: None,
            acts: None,
            data_planes: &[],
        }
    }
}

/// A member beside `properties` that resources of all providers may have and one provider knows, such as
/// `identity`.
pub struct EnvelopeMember {
    /// Its name.
    pub name: &'static str,
    /// Checks what a write gives to a resource, and cuts it down to what clients write.
    pub check: fn(&AzureState, &ResourceId, &mut Object) -> Result<(), Refusal>,
    /// Fills in what is derived, in a document that is about to be shown and has the member.
    pub present: fn(&AzureState, &Record, &mut Object),
}

/// What happens by itself at its time, beside operations and actors. It is part of the state and saved
/// with it.
pub trait Timetable: Any + Send {
    /// The member of a saved state.
    fn name(&self) -> &'static str;

    /// When something happens next.
    fn due(&self) -> Option<Timestamp>;

    /// Does what is due by now.
    fn attend(&self) -> fn(&mut AzureState);

    /// What is saved.
    fn save(&self) -> Result<Value, serde_json::Error>;

    /// What was saved, taken up again.
    fn read(&self, saved: Value) -> Result<Box<dyn Timetable>, serde_json::Error>;
}

/// Does an act, if it is one of those that the provider knows.
pub type Acts = fn(&mut AzureState, &Actor, &Act);

/// What Resource Manager answers by itself, below no provider's path: about subscriptions, groups, regions,
/// providers' records.
pub trait Manager: Send + Sync + 'static {
    /// Versions of its API, newest first.
    fn api_versions(&self) -> &'static [&'static str];

    /// What a path of its own is about, as a full type: for the journal and for faults.
    fn type_of(&self, target: &Target) -> &'static str;

    /// Performs a request for one of its own paths.
    fn perform(
        &self,
        azure: &mut AzureState,
        request: &Request<'_>,
        target: &Target,
        execution: &Execution,
    ) -> Result<Answer, Refusal>;

    /// Whether a subscription may write with a provider.
    fn check_registered(
        &self,
        azure: &AzureState,
        subscription: &str,
        namespace: &str,
    ) -> Result<(), Refusal>;

    /// Whether there is a region, in its normal spelling, in which resources of a type may be.
    fn check_region(&self, azure: &AzureState, location: &str, resource_type: &str) -> Result<(), Refusal>;
}

impl Indexed for dyn ResourceType {
    fn type_name(&self) -> &'static str {
        self.name()
    }

    fn references_of(&self, record: &Record) -> Vec<Reference> {
        self.references(record)
    }

    fn public_address_of(&self, record: &Record) -> Option<IpAddr> {
        self.public_address(record)
    }
}

/// Whether the directory has an object of this id.
pub type KnowsPrincipal = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The state of one simulated Azure.
pub struct AzureState {
    /// How it was set up.
    pub options: Arc<Options>,
    /// The providers.
    pub providers: Vec<Provider>,
    /// Where everything random comes from.
    pub seed: Seed,
    /// The documents.
    pub store: Store,
    /// The long-running operations.
    pub operations: Operations,
    /// What was asked.
    pub journal: JournalBook,
    /// The faults in force.
    pub faults: Faults,
    /// The other users of this Azure.
    pub actors: Actors,
    /// Request budgets, changeable while it runs.
    pub budgets: Option<Budgets>,
    /// What is left of the budgets.
    pub buckets: Buckets,
    /// How much there may be of everything.
    pub limits: Limits,
    /// How far reads lag, changeable while it runs.
    pub consistency: Consistency,
    /// What Resource Manager answers by itself.
    pub manager: &'static dyn Manager,
    /// What is done outside.
    pub outside: Outside,
    /// Whether requests need rights, changeable while it runs.
    pub enforce_authorization: bool,
    /// Answers whether the directory has a principal; `None` where there is no directory to check against.
    pub principals: Option<KnowsPrincipal>,
    /// What the embedding program gives to providers.
    pub attachments: Attachments,
    /// What providers do by themselves.
    pub timetables: Vec<Box<dyn Timetable>>,
    /// The built-in resources, by lower-case id, such as roles.
    pub(super) given: BTreeSet<String>,
    /// How many requests there were.
    pub requests: u64,
    /// Raised by everything that changes what a reader would see.
    pub revision: u64,
    /// Latencies, changeable while it runs.
    pub latency: LatencyProfile,
    /// The wall-clock time at `origin`.
    pub(super) start: Timestamp,
    pub(super) origin: Option<Instant>,
    /// The time at which something is being done that was due before now.
    pub(super) moment: Option<Instant>,
}

impl AzureState {
    /// A state without any resource.
    pub fn new(options: Arc<Options>, manager: &'static dyn Manager, providers: Vec<Provider>) -> Self {
        let consistency = options.consistency;
        let mut azure = Self {
            seed: Seed(options.seed),
            journal: JournalBook::with_capacity(options.journal_capacity),
            latency: options.latency.clone(),
            budgets: options.budgets.clone(),
            consistency,
            limits: Limits::new(
                providers.iter().flat_map(|provider| provider.limits),
                options.limits.clone(),
            ),
            manager,
            outside: Outside::default(),
            enforce_authorization: options.enforce_authorization,
            principals: None,
            attachments: Attachments::default(),
            timetables: providers.iter().filter_map(|p| p.timetable).map(|new| new()).collect(),
            providers,
            store: Store::default(),
            operations: Operations::default(),
            faults: Faults::of(&options.faults),
            actors: Actors::of(&options.actors),
            start: options.start,
            options,
            buckets: Buckets::default(),
            given: BTreeSet::new(),
            requests: 0,
            revision: 0,
            origin: None,
            moment: None,
        };
        azure.set_consistency(consistency);
        azure.give();
        azure.given = azure.store.all().map(|record| record.id.to_lower()).collect();
        azure
    }

    /// Puts the built-in resources into the store.
    pub(super) fn give(&mut self) {
        let given: Vec<_> = self.providers.iter().filter_map(|provider| provider.given).collect();
        given.into_iter().for_each(|give| give(self));
    }
}
