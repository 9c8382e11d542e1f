//! The interface between a resource provider and the engine, and the state that both work on.
//!
//! A provider is tables and types; the engine knows none of them by name. Types work on the state and the state knows
//! its types, so both are defined here; their methods are elsewhere.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use faults::Faults;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::answer::data_plane::{DataAnswer, DataRequest, DataSubject};
use crate::document::{Object, at};
use crate::fault::Fault;
use crate::journal::JournalBook;
use crate::operation::Operations;
use crate::operation::execution::Execution;
use crate::operation::outside::Outside;
use crate::refusal::{Handled, Refusal, Result};
use crate::request::Request;
use crate::request::target::Target;
use crate::settings::actors::{Actor, Actors};
use crate::settings::budget::policy::Policy;
use crate::settings::budget::{Buckets, Budgets};
use crate::settings::consistency::Consistency;
use crate::settings::latency::{LatencyProfile, TypicalLatency};
use crate::settings::limits::{Limit, Limits};
use crate::settings::options::Options;
use crate::settings::seed::Seed;
use crate::store;
use crate::store::Indexed;
use crate::store::attachments::Attachments;
use crate::types::join::Join;
use crate::types::member_table;
use crate::types::names::NameRule;
use crate::types::version::Since;

pub use crate::answer::Action;
pub use crate::operation::EndedOperation;
pub use crate::request::provider_request::{
    Act, Expand, ExtensionRequest, Listing, PartWrite, ProviderCall, ResourceRequest, Source,
};
pub use crate::store::reference::Reference;
pub use crate::types::protocol::{
    ChildCollection, Concurrency, EtagForm, KeyForm, LiesIn, Pages, Placement, Polling, Protocol, Readiness,
    UrlForm,
};
pub use crate::types::state_name::StateNames;

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
    /// Drops all members of the envelope but these.
    #[must_use]
    pub fn keep(mut self, members: &[&str]) -> Self {
        self.body.retain(|member, _| members.contains(&member.as_str()));
        self
    }

    /// The document with these `properties`.
    pub fn stored(mut self, properties: Object) -> Value {
        self.body.insert("properties".into(), Value::Object(properties));
        Value::Object(self.body)
    }

    /// Takes the document out of the proposal.
    pub fn take(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.body))
    }

    /// A member of the stored document by path.
    pub fn old_member(&self, path: &str) -> Option<&Value> {
        at(&self.old?.body, path)
    }
}

/// What a resource of a type may be: its protocol, its members, its name, its references.
pub trait Shape: Send + Sync + 'static {
    /// The protocol of the type.
    fn protocol(&self) -> &'static Protocol;

    /// The type in Azure's spelling, such as `Microsoft.Network/loadBalancers`.
    fn name(&self) -> &'static str {
        self.protocol().resource_type
    }

    /// The name of an operation on it: `Put` gives `PutLoadBalancerOperation`.
    fn operation_name(&self, verb: &str) -> String {
        format!("{verb}{}Operation", self.protocol().noun.replace(' ', ""))
    }

    /// Refuses an impossible instance name.
    fn check_name(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// All references of the document.
    fn references(&self, record: &Record) -> Vec<Reference> {
        member_table::pointers(self.protocol().members, &record.id, &record.body)
    }

    /// The public address that the document holds.
    fn public_address(&self, _record: &Record) -> Option<IpAddr> {
        None
    }

    /// The resource that an id of this type stands for, if that is another one: a machine that is also known below its
    /// scale set, a role that can be read below every scope.
    fn stands_for(&self, _azure: &AzureState, _id: &ResourceId) -> Option<ResourceId> {
        None
    }

    /// Resources that the service created for this one and that are deleted with it.
    fn owned(&self, _azure: &AzureState, _record: &Record) -> Vec<ResourceId> {
        Vec::new()
    }
}

/// What a type does around a write or a deletion. `before_` hooks may refuse, `after_` hooks act on other documents.
pub trait Writing: Send + Sync + 'static {
    /// Checks a write after the tables were applied, and returns the document to store.
    fn before_write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value> {
        Ok(Value::Object(proposal.body))
    }

    /// Called after a write was stored: applies effects on other documents.
    fn after_write(&self, _azure: &mut AzureState, _id: &ResourceId, _old: Option<&Value>) {}

    /// The name of the resource's state during a change, if it differs from the type's usual name: `Upgrading`.
    fn state_during_write(&self, _old: &Value, _new: &Value) -> Option<&'static str> {
        None
    }

    /// Why the operation that runs on the resource ends, if a request does not wait for it; `asked` is what the request
    /// sends. Other requests are refused as the type's protocol says.
    fn preempts(&self, _record: &Record, _asked: &Value) -> Option<Refusal> {
        None
    }

    /// Called after the set of referrers of this document changed.
    fn after_referrers_changed(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// Called after an operation ended.
    fn after_operation(&self, _azure: &mut AzureState, _id: &ResourceId, _ended: EndedOperation<'_>) {}

    /// The resources whose work outside is awaited by operations on this one.
    fn awaited_outside(&self, _azure: &AzureState, id: &ResourceId) -> Vec<ResourceId> {
        vec![id.clone()]
    }

    /// Takes the result of work that the type has asked for ([`AzureState::ask_outside`]); returns why the operation
    /// that it belongs to fails.
    fn after_outside_work(
        &self,
        _azure: &mut AzureState,
        _id: &ResourceId,
        _answer: &Value,
    ) -> Option<Refusal> {
        None
    }

    /// Checks whether the resource may be deleted.
    fn before_delete(&self, _azure: &AzureState, _record: &Record) -> Result<()> {
        Ok(())
    }

    /// Called after a deletion was accepted.
    fn after_delete(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// Called after the deletion of a resource that this one only names
    /// ([`Role::Names`](crate::store::reference::Role::Names)).
    fn after_named_is_gone(&self, _azure: &mut AzureState, _id: &ResourceId) {}

    /// Called after the resource is gone, by itself or with its parent.
    fn after_removal(&self, _azure: &mut AzureState, _record: &Record) {}
}

/// What a read or a list of a type shows. Nothing here changes the state.
pub trait Presenting: Send + Sync + 'static {
    /// Adds derived members to a document that is about to be shown.
    fn present(&self, _azure: &AzureState, _record: &Record, _document: &mut Object, _expand: Expand) {}

    /// Adds derived members to a child document that is about to be shown.
    fn present_child(
        &self,
        _azure: &AzureState,
        _record: &Record,
        _id: &ResourceId,
        _properties: &mut Object,
    ) {
    }

    /// Changes the document in the answer to a write whose operation still runs.
    fn present_unfinished(&self, _azure: &AzureState, _record: &Record, _document: &mut Object) {}

    /// Changes the document in the answer to an immediate write; `sent` is the client's document. For types that say so
    /// in their protocol.
    fn present_written(&self, _azure: &AzureState, _record: &Record, _sent: &Object, _document: &mut Object) {
    }

    /// The entry of a resource in a list; `None` leaves it out.
    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        Some(azure.present(record, listing.expand))
    }

    /// The resources of a list below a scope, if they are stored elsewhere.
    fn gather_list<'a>(&self, _azure: &'a AzureState, _scope: &ResourceId) -> Option<Vec<&'a Record>> {
        None
    }

    /// Checks the parameters of a list.
    fn before_list(&self, _azure: &AzureState, _listing: &Listing<'_>) -> Result<()> {
        Ok(())
    }

    /// Most items of one page of a list.
    fn page_size(&self, _options: &Options, _listing: &Listing<'_>) -> usize {
        usize::MAX
    }

    /// Read-only views below the resource, such as `instanceView`; `None` where there is no such view.
    fn view(&self, _azure: &AzureState, _record: &Record, _below: &[&str]) -> Handled<Value> {
        None
    }

    /// The same for a GET over HTTP, which may have query options (by lower-case name).
    fn view_with_options(
        &self,
        azure: &AzureState,
        record: &Record,
        below: &[&str],
        _query: &BTreeMap<String, String>,
    ) -> Handled<Value> {
        self.view(azure, record, below)
    }

    /// All documents of a type that only exists as views below this type's resources.
    fn views_of_type(&self, _azure: &AzureState, _record: &Record, _resource_type: &str) -> Vec<Value> {
        Vec::new()
    }

    /// The refusal for an absent resource, if it is not ARM's own.
    fn absence_refusal(&self, _azure: &AzureState, _id: &ResourceId) -> Option<Refusal> {
        None
    }
}

/// Requests of a type that neither write nor read its documents: POST actions, parts that are stored elsewhere.
pub trait Acting: Send + Sync + 'static {
    /// A POST action; below a child of the resource it is the whole path, such as
    /// `backendAddressPools/{name}/{action}`.
    fn act(
        &self,
        _azure: &mut AzureState,
        _id: &ResourceId,
        _action: &str,
        _body: &Value,
    ) -> Handled<Action> {
        None
    }

    /// Whether an action is allowed while an operation runs: one that only reads, or one that stops the operation.
    fn acts_during_operations(&self, _action: &str) -> bool {
        false
    }

    /// Writes something below the resource. Says whether it was there; `None` where nothing below can be written so.
    /// What [`Presenting::view`] then gives is the answer to a PUT.
    fn write_below(&self, _azure: &mut AzureState, _id: &ResourceId, _write: PartWrite<'_>) -> Handled<bool> {
        None
    }

    /// Answers a request about the resource, or a list, whose query options change its meaning, or an action on an
    /// absent resource; `None` for all others.
    fn answer_request(&self, _azure: &mut AzureState, _request: &ResourceRequest<'_>) -> Handled<Answer> {
        None
    }
}

/// One resource type of a provider: what it is ([`Shape`]), and its hooks, by the time at which they are called. All hooks have
/// defaults, so a type without special rules implements the traits with empty blocks.
pub trait ResourceType: Shape + Writing + Presenting + Acting {}

impl<Type: Shape + Writing + Presenting + Acting> ResourceType for Type {}

/// Answers a call; `None` for calls of other functions.
pub type Answers = fn(&mut AzureState, &ProviderCall<'_>) -> Handled<Value>;

/// Answers a request to an extension; `None` for requests of other functions.
pub type Extends = fn(&mut AzureState, &ExtensionRequest<'_>) -> Handled<Answer>;

/// Refuses a change, by its method and its resource.
pub type Guard = fn(&AzureState, &str, &ResourceId) -> Result<()>;

/// The service behind all hosts with one suffix.
pub struct DataPlane {
    /// The end of its hosts, without the dot before it: `vault.azure.net`. The part before it names the resource.
    pub suffix: &'static str,
    /// The accepted audiences of tokens, such as `https://vault.azure.net`; a closing slash makes no difference.
    pub audiences: &'static [&'static str],
    /// The value of `WWW-Authenticate` for requests without a good token. The authority is that of the tenant, such as
    /// `https://login.microsoftonline.com/{tenant}`.
    pub challenge: fn(authority: &str) -> String,
    /// Whether requests without a bearer token are admitted: the service itself checks their signature.
    pub own_authentication: bool,
    /// The maximum size of a request's body.
    pub max_body_bytes: u64,
    /// Finds the subject of a request.
    pub locate: fn(&AzureState, &DataRequest<'_>) -> DataSubject,
    /// Performs a request.
    pub perform: fn(&mut AzureState, &DataRequest<'_>) -> Result<DataAnswer>,
    /// A refusal in the form of the service.
    pub refuse: fn(&AzureState, &DataRequest<'_>, &Refusal) -> DataAnswer,
}

impl DataPlane {
    /// The resource that a host names, if it is one of this plane's: `{account}.{suffix}`, or
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

/// A resource provider: a namespace, its types, and its further tables.
pub struct Provider {
    /// Such as `Microsoft.Network`.
    pub namespace: &'static str,
    /// Its types.
    pub resource_types: Vec<&'static dyn ResourceType>,
    /// Its calls beside its resources.
    pub calls: Vec<Answers>,
    /// Its extensions of other resources.
    pub extensions: Vec<Extends>,
    /// Its budgets beside ARM's own.
    pub policies: &'static [Policy],
    /// The limits on its resources.
    pub limits: &'static [Limit],
    /// Types that are exempt from ARM's own limit of resources in a group.
    pub unlimited: &'static [&'static str],
    /// The rules for names of new resources.
    pub names: &'static [NameRule],
    /// Members that older API versions do not show.
    pub since: &'static [Since],
    /// Typical latencies of its operations, the special before the general.
    pub latencies: &'static [TypicalLatency],
    /// Members beside `properties`, of resources of any provider, that it checks and fills in.
    pub envelope: &'static [EnvelopeMember],
    /// Its scheduled actions.
    pub timetable: Option<fn() -> Box<dyn Timetable>>,
    /// What a caller that writes its resources must be allowed to join.
    pub joins: &'static [Join],
    /// What it forbids about resources of any provider, and groups.
    pub guards: &'static [Guard],
    /// Puts built-in resources into the store, unless they are there.
    pub built_in: Option<fn(&mut AzureState)>,
    /// Its actions of actors, beside those on every resource.
    pub acts: Option<Acts>,
    /// Its services under hosts of their own.
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
            built_in: None,
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
    /// Checks the member in a write, and reduces it to the parts that clients write.
    pub check: fn(&AzureState, &ResourceId, &mut Object) -> Result<()>,
    /// Fills in derived parts, in a document that is about to be shown and has the member.
    pub present: fn(&AzureState, &Record, &mut Object),
}

/// Scheduled actions, beside operations and actors. They are part of the state and saved with it.
pub trait Timetable: Any + Send {
    /// The member of a saved state.
    fn name(&self) -> &'static str;

    /// The time of the next action.
    fn due(&self) -> Option<Timestamp>;

    /// The function that runs due actions.
    fn attend(&self) -> fn(&mut AzureState);

    /// The saved form.
    fn save(&self) -> Result<Value, serde_json::Error>;

    /// Restores the saved form.
    fn read(&self, saved: Value) -> Result<Box<dyn Timetable>, serde_json::Error>;
}

/// Performs an act, if the provider knows it.
pub type Acts = fn(&mut AzureState, &Actor, &Act);

/// Resource Manager's own answers, outside providers: about subscriptions, groups, regions, providers' records.
pub trait Manager: Send + Sync + 'static {
    /// Versions of its API, newest first.
    fn api_versions(&self) -> &'static [&'static str];

    /// The full type of one of its own paths, for the journal and for faults.
    fn type_of(&self, target: &Target) -> &'static str;

    /// Performs a request for one of its own paths.
    fn perform(
        &self,
        azure: &mut AzureState,
        request: &Request<'_>,
        target: &Target,
        execution: &Execution,
    ) -> Result<Answer>;

    /// Checks whether a subscription may write with a provider.
    fn check_registered(&self, azure: &AzureState, subscription: &str, namespace: &str) -> Result<()>;

    /// Checks whether a region, in its normal spelling, exists and may have resources of a type.
    fn check_region(&self, azure: &AzureState, location: &str, resource_type: &str) -> Result<()>;
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
    /// Its options.
    pub options: Arc<Options>,
    /// The providers.
    pub providers: Vec<Provider>,
    /// The source of all randomness.
    pub seed: Seed,
    /// The documents.
    pub store: Store,
    /// The long-running operations.
    pub operations: Operations,
    /// The journal of requests.
    pub journal: JournalBook,
    /// The faults in force.
    pub faults: Faults<Fault>,
    /// The other users of this Azure.
    pub actors: Actors,
    /// Request budgets, changeable while it runs.
    pub budgets: Option<Budgets>,
    /// What is left of the budgets.
    pub buckets: Buckets,
    /// The limits.
    pub limits: Limits,
    /// The lag of reads, changeable while it runs.
    pub consistency: Consistency,
    /// Resource Manager's own answers.
    pub manager: &'static dyn Manager,
    /// Work outside.
    pub outside: Outside,
    /// Whether requests need rights, changeable while it runs.
    pub enforce_authorization: bool,
    /// Answers whether the directory has a principal; `None` where there is no directory to check against.
    pub principals: Option<KnowsPrincipal>,
    /// Values of the embedding program for providers.
    pub attachments: Attachments,
    /// Timetables of providers.
    pub timetables: Vec<Box<dyn Timetable>>,
    /// The built-in resources, by lower-case id, such as roles.
    pub(crate) built_in: BTreeSet<String>,
    /// The number of requests so far.
    pub requests: u64,
    /// Raised by every visible change.
    pub revision: u64,
    /// Latencies, changeable while it runs.
    pub latency: LatencyProfile,
    /// The wall-clock time at `origin`.
    pub(crate) start: Timestamp,
    pub(crate) origin: Option<Instant>,
    /// The due time of an overdue action while it runs.
    pub(crate) moment: Option<Instant>,
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
            built_in: BTreeSet::new(),
            requests: 0,
            revision: 0,
            origin: None,
            moment: None,
        };
        azure.set_consistency(consistency);
        azure.add_built_in();
        azure.built_in = azure.store.all().map(|record| record.id.to_lower()).collect();
        azure
    }

    /// Puts the built-in resources into the store.
    pub(crate) fn add_built_in(&mut self) {
        let built_in: Vec<_> = self.providers.iter().filter_map(|provider| provider.built_in).collect();
        built_in.into_iter().for_each(|add| add(self));
    }
}
