//! The protocol of a resource type: the common part of answers to requests about it.

use azure_types::ResourceId;

use crate::refusal::Refusal;
use crate::refusal::words::{USUAL, Words};
use crate::store::State;
use crate::types::member_table::member::Member;
use crate::types::state_name::StateNames;
use faults::glob::matches;

/// The form of etags.
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

/// The readiness that a written document requires of its references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Targets must be ready.
    Ready,
    /// Targets may be being created or changed: the provider waits for them.
    UnderWay,
}

/// The placement of resources of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In a region, which their documents name.
    Regional,
    /// In all of them: their documents say `global`.
    Global,
}

/// The location of a global resource.
pub const GLOBAL: &str = "global";

/// The parent of resources of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiesIn {
    /// A resource group.
    Group,
    /// A subscription.
    Subscription,
    /// Anything with an id: a subscription, a group or a resource of any provider.
    Anything,
}

/// The form of operations' keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// A GUID.
    Guid,
    /// An opaque text, which holds a job's id and its region.
    Job,
    /// An opaque text, which holds this word and the operation's name.
    Named(&'static str),
}

/// The URLs of operations.
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

/// The form of pages of lists.
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
    /// Members that list the referrers of the child: (member, type segment of the referrer; an empty one means any).
    pub back_references: &'static [(&'static str, &'static str)],
}

/// A refusal to delete a referenced resource: takes its id, its first referrer, and all of them as a list.
pub type InUse = fn(&ResourceId, &ResourceId, &str) -> Refusal;

/// How operations on a type are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling {
    /// The form of their keys.
    pub key: KeyForm,
    /// Their URLs.
    pub urls: UrlForm,
    /// The path segment of operation URLs; `operations` nearly everywhere.
    pub segment: &'static str,
    /// Whether the answer to a write also carries `Location`.
    pub location_on_writes: bool,
    /// Whether the status has the times at which an operation began and ended.
    pub times: bool,
    /// Whether the status of a write that succeeded holds the resource (`properties.output`).
    pub output: bool,
    /// The status of the final answer when the resource is gone.
    pub gone_status: u16,
}

/// The protocol of one resource type. Each provider has a default, from which a type differs in few members.
#[derive(Debug)]
pub struct Protocol {
    /// The type in Azure's spelling, such as `Microsoft.Network/loadBalancers`.
    pub resource_type: &'static str,
    /// Its noun in operations and refusals, such as `LoadBalancer`.
    pub noun: &'static str,
    /// Valid requests, of its own and of what they need ([`example`](super::example)); empty for types that clients cannot
    /// create.
    pub example: &'static str,
    /// The table of its `properties`; empty for a type that checks all of them itself.
    pub members: &'static [Member],
    /// The same for members beside `properties`, such as `sku`; others that the protocol admits are not checked.
    pub envelope: &'static [Member],
    /// API versions for strict mode and for the provider record, newest first.
    pub api_versions: &'static [&'static str],
    /// The wording of the provider's refusals.
    pub words: &'static Words,
    /// The effect of a second write while an operation runs.
    pub concurrency: Concurrency,
    /// Child collections inside the document.
    pub child_collections: &'static [ChildCollection],
    /// Its POST actions, as in `start`; below a child `*` stands for the child's name. A type that lists some has no
    /// others.
    pub actions: &'static [&'static str],
    /// Whether it is a resource with location and tags, rather than a part of its parent.
    pub tracked: bool,
    /// The placement of its resources.
    pub placement: Placement,
    /// Their parent.
    pub lies_in: LiesIn,
    /// Whether clients may create it by PUT; scale set instances come from their set.
    pub creatable: bool,
    /// Whether a PATCH changes tags and nothing else, at once.
    pub only_tags: bool,
    /// The form of etags.
    pub etag: EtagForm,
    /// Whether documents carry an etag.
    pub etagged: bool,
    /// Whether the answer to a write carries it as a header, too.
    pub etag_on_writes: bool,
    /// Whether an etag changes when only the referrers of the document have changed.
    pub counts_referrers: bool,
    /// Whether the end of an operation counts as a change.
    pub counts_ends: bool,
    /// The state of a resource that is being created.
    pub first_state: State,
    /// The names of its states.
    pub states: StateNames,
    /// Whether documents show their state (`provisioningState`).
    pub shows_state: bool,
    /// The readiness that written documents require of their references.
    pub readiness: Readiness,
    /// Whether a write that changes nothing is over at once.
    pub unchanged_at_once: bool,
    /// Whether a write that takes no time is answered as `Succeeded` at once.
    pub immediate: bool,
    /// Whether a write is over before it is answered, and its answer names no operation.
    pub synchronous: bool,
    /// Whether the same holds for writes to an existing resource, although its creation takes time.
    pub synchronous_update: bool,
    /// Whether the same holds for a deletion.
    pub synchronous_delete: bool,
    /// Whether the answer to a running write has no body.
    pub bare_acceptance: bool,
    /// Whether [`Acting::answer_request`] is called for every request, not only for those with options.
    ///
    /// [`Acting::answer_request`]: crate::provider::Acting::answer_request
    pub answers_every_request: bool,
    /// Whether the type itself changes the answer to a write ([`Presenting::present_written`]).
    ///
    /// [`Presenting::present_written`]: crate::provider::Presenting::present_written
    pub presents_writes: bool,
    /// Whether the answer to a request below an absent resource names that resource.
    pub names_absent_parent: bool,
    /// Whether the answer to a PUT that creates names the resource's own URL in `Location`.
    pub located: bool,
    /// Whether the answer to a write shows the resource; otherwise it is an empty document.
    pub shows_written: bool,
    /// Whether documents say which caller created and last changed the resource, and when (`systemData`).
    pub system_data: bool,
    /// The form of pages of its lists.
    pub pages: Pages,
    /// Whether a PUT of an existing resource changes the given members and keeps the rest.
    pub puts_merge: bool,
    /// The refusal to delete a referenced resource.
    pub in_use: Option<InUse>,
    /// The status of a PUT that creates.
    pub create_status: u16,
    /// The status of a PUT on an existing resource.
    pub update_status: u16,
    /// The status of a PATCH.
    pub patch_status: u16,
    /// The status of a DELETE of an existing resource.
    pub delete_status: u16,
    /// Whether the answer to a DELETE shows the deleted resource.
    pub shows_deleted: bool,
    /// How operations on the type are polled.
    pub polling: Polling,
}

impl Protocol {
    /// The protocol of types of Resource Manager itself. Providers begin with it and set the differences.
    pub const fn new(
        resource_type: &'static str,
        noun: &'static str,
        api_versions: &'static [&'static str],
    ) -> Self {
        Self {
            resource_type,
            noun,
            example: "",
            members: &[],
            envelope: &[],
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
            answers_every_request: false,
            presents_writes: false,
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

    /// Whether the type may have an action.
    pub fn may_act(&self, action: &str) -> bool {
        self.actions.is_empty() || self.actions.iter().any(|known| matches(known, action))
    }

    /// The child collection of a name, in whatever case.
    pub fn child_collection(&self, name: &str) -> Option<&'static ChildCollection> {
        self.child_collections.iter().find(|collection| collection.name.eq_ignore_ascii_case(name))
    }
}
