//! How requests about one resource type are answered: the parts that are the same for every resource.

use azure_types::ResourceId;

use super::error::Refusal;
use super::glob::matches;
use super::state_name::StateNames;
use super::store::State;
use super::words::{USUAL, Words};

/// What etags look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtagForm {
    /// `W/"{guid}"`, another one after each change.
    WeakGuid,
    /// `{guid}`, bare.
    Guid,
    /// `"{guid}"`
    QuotedGuid,
    /// `"0x{hexadecimal digits}"`, another one after each change.
    Hexadecimal,
    /// `"{count}"`, how often it was changed.
    Counter,
    /// Documents show none; a condition is compared with the count all the same.
    Hidden,
}

impl EtagForm {
    /// An etag as a client sent it, perhaps without quotes.
    pub fn read(self, given: &str) -> String {
        match self {
            Self::Guid => given.trim_start_matches("W/").trim_matches('"').to_owned(),
            _ if given.contains('"') => given.to_owned(),
            Self::Counter | Self::QuotedGuid | Self::Hexadecimal => format!("\"{given}\""),
            Self::WeakGuid | Self::Hidden => format!("W/\"{given}\""),
        }
    }
}

/// What a document may point at while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Only what is ready.
    Ready,
    /// Also what is being made or changed: the provider waits for it by itself.
    UnderWay,
}

/// Where resources of a type are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In a region, which their documents name.
    Regional,
    /// In all of them: their documents say `global`.
    Global,
}

/// What the location of a global resource is called.
pub const GLOBAL: &str = "global";

/// What resources of a type lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiesIn {
    /// A resource group.
    Group,
    /// A subscription.
    Subscription,
    /// Whatever has an id: a subscription, a group or a resource of any provider.
    Anything,
}

/// What keys of operations look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// A GUID.
    Guid,
    /// An opaque text, which holds a job's id and its region.
    Job,
    /// An opaque text, which holds this word and the operation's name.
    Named(&'static str),
}

/// Where operations are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlForm {
    /// The status at one URL, the final answer at another below `operationResults`.
    Apart,
    /// Both at one URL, the final answer with `monitor=true`.
    Monitor,
    /// The final answer alone, below the subscription.
    Job,
    /// The final answer alone, below the region, with `monitor=true`.
    Final,
    /// Status and final answer below the resource group, with these segments.
    InGroup(&'static str, &'static str),
    /// Nowhere: clients follow the state of the resource itself.
    Nowhere,
}

/// How lists are cut into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The last page names no further one; tokens are opaque.
    Exact,
    /// Tokens are the name of the last item in Base64, and an empty page comes last.
    EmptyLast,
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

/// A refusal to delete what others point at.
pub type InUse = fn(&ResourceId, &[&ResourceId]) -> Refusal;

/// How operations on a type are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling {
    /// What their keys look like.
    pub key: KeyForm,
    /// Where they are asked for.
    pub urls: UrlForm,
    /// The path segment of operation URLs; `operations` nearly everywhere.
    pub segment: &'static str,
    /// Whether the answer to a write also carries `Location`.
    pub location_on_writes: bool,
    /// Whether the status says when an operation began and ended.
    pub times: bool,
    /// Whether the status of a write that succeeded holds the resource (`properties.output`).
    pub output: bool,
    /// The status of the final answer when the resource is gone.
    pub gone_status: u16,
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
    /// How refusals about any resource of the provider are worded.
    pub words: &'static Words,
    /// What a second write does while an operation runs.
    pub concurrency: Concurrency,
    /// Child collections inside the document.
    pub child_collections: &'static [ChildCollection],
    /// Its POST actions, as in `start`; below a child `*` stands for the child's name. A type that lists some has no
    /// others.
    pub actions: &'static [&'static str],
    /// Whether it is a resource with location and tags, rather than a part of its parent.
    pub tracked: bool,
    /// Where its resources are.
    pub placement: Placement,
    /// What they lie in.
    pub lies_in: LiesIn,
    /// Whether clients may create it by PUT; scale set instances come from their set.
    pub creatable: bool,
    /// Whether a PATCH changes tags and nothing else, at once.
    pub only_tags: bool,
    /// What etags look like.
    pub etag: EtagForm,
    /// Whether documents carry an etag.
    pub etagged: bool,
    /// Whether the answer to a write carries it as a header, too.
    pub etag_on_writes: bool,
    /// Whether an etag changes when only the referrers of the document have changed.
    pub counts_referrers: bool,
    /// Whether the end of an operation is a change of its own.
    pub counts_ends: bool,
    /// The state of a resource that is being made.
    pub first_state: State,
    /// What its states are called.
    pub states: StateNames,
    /// Whether documents say in which state they are (`provisioningState`).
    pub shows_state: bool,
    /// What documents may point at while they are written.
    pub readiness: Readiness,
    /// Whether a write that changes nothing is over at once.
    pub unchanged_at_once: bool,
    /// Whether a write that takes no time is answered as `Succeeded` at once.
    pub immediate: bool,
    /// Whether a write is over before it is answered, and its answer names no operation.
    pub synchronous: bool,
    /// Whether the same holds for writes to what exists, although to make it takes time.
    pub synchronous_update: bool,
    /// Whether the same holds for a deletion.
    pub synchronous_delete: bool,
    /// Whether the answer to a write that goes on has no body.
    pub bare_acceptance: bool,
    /// Whether the type is asked before every request ([`ResourceType::asked`]), not only before those with options.
    ///
    /// [`ResourceType::asked`]: super::provider::ResourceType::asked
    pub asked_first: bool,
    /// Whether the type says by itself what the answer to a write shows ([`ResourceType::written`]).
    ///
    /// [`ResourceType::written`]: super::provider::ResourceType::written
    pub words_writes: bool,
    /// Whether the answer to a request below an absent resource names that resource.
    pub names_absent_parent: bool,
    /// Whether the answer to a PUT that creates names the resource's own URL in `Location`.
    pub located: bool,
    /// Whether the answer to a write shows the resource; otherwise it is an empty document.
    pub shows_written: bool,
    /// Whether documents say which caller created and last changed the resource, and when (`systemData`).
    pub system_data: bool,
    /// How lists of the type are cut into pages.
    pub pages: Pages,
    /// Whether a PUT of a resource that is there changes what it names and keeps the rest.
    pub puts_merge: bool,
    /// How the deletion of a resource is refused that others point at: takes its id and theirs.
    pub in_use: Option<InUse>,
    /// The status of a PUT that creates.
    pub create_status: u16,
    /// The status of a PUT on an existing resource.
    pub update_status: u16,
    /// The status of a PATCH.
    pub patch_status: u16,
    /// The status of a DELETE of an existing resource.
    pub delete_status: u16,
    /// Whether the answer to a DELETE shows what was deleted.
    pub shows_deleted: bool,
    /// How operations on the type are polled.
    pub polling: Polling,
}

impl Protocol {
    /// How requests about types of Resource Manager itself are answered. Providers begin with it and say what differs.
    pub const fn new(
        resource_type: &'static str,
        noun: &'static str,
        api_versions: &'static [&'static str],
    ) -> Self {
        Self {
            resource_type,
            noun,
            api_versions,
            words: &USUAL,
            concurrency: Concurrency::Conflict,
            child_collections: &[],
            actions: &[],
            tracked: true,
            placement: Placement::Regional,
            lies_in: LiesIn::Group,
            creatable: true,
            only_tags: false,
            etag: EtagForm::Hidden,
            etagged: false,
            etag_on_writes: false,
            counts_referrers: false,
            counts_ends: false,
            first_state: State::Updating,
            states: StateNames::USUAL,
            shows_state: true,
            readiness: Readiness::Ready,
            unchanged_at_once: false,
            immediate: false,
            synchronous: false,
            synchronous_update: false,
            synchronous_delete: false,
            bare_acceptance: false,
            asked_first: false,
            words_writes: false,
            names_absent_parent: false,
            located: false,
            puts_merge: false,
            in_use: None,
            shows_written: true,
            system_data: false,
            pages: Pages::Exact,
            create_status: 201,
            update_status: 200,
            patch_status: 200,
            delete_status: 202,
            shows_deleted: false,
            polling: Polling {
                key: KeyForm::Job,
                urls: UrlForm::Job,
                segment: "operations",
                location_on_writes: false,
                times: false,
                output: false,
                gone_status: 200,
            },
        }
    }

    /// Whether there may be such an action.
    pub fn may_act(&self, action: &str) -> bool {
        self.actions.is_empty() || self.actions.iter().any(|known| matches(known, action))
    }

    /// The child collection of a name, in whatever case.
    pub fn child_collection(&self, name: &str) -> Option<&'static ChildCollection> {
        self.child_collections.iter().find(|collection| collection.name.eq_ignore_ascii_case(name))
    }
}
