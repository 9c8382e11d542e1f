//! Fleets and the clusters that have joined them (Azure REST reference, "Fleets" and "Fleet Members").

use azure_engine::document::{Object, stored_reference, take_properties, text};
use azure_engine::provider::{
    Acting, AzureState, EtagForm, Expand, Presenting, Proposal, Protocol, Record, Shape, Writing,
};
use azure_engine::refusal::{Code, Result};
use azure_engine::store::reference::Reference;
use azure_engine::types::member_table::Holds::{Anything, Derived};
use azure_engine::types::member_table::Member;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::protocol::protocol;
use super::type_names::CLUSTERS;
use super::words::{fixed, invalid};

pub(super) struct Fleets;
pub(super) struct FleetMembers;

const MEMBER_TYPE: &str = "Microsoft.ContainerService/fleets/members";
const VERSIONS: [&str; 4] = ["2025-03-01", "2024-04-01", "2023-10-15", "2023-06-15-preview"];

const FLEET: Protocol = Protocol {
    members: &FLEET_MEMBERS,
    example: include_str!("fleet.json"),
    api_versions: &VERSIONS,
    etag: EtagForm::WeakGuid,
    ..protocol("Microsoft.ContainerService/fleets", "Fleet")
};

const MEMBER: Protocol = Protocol {
    members: &MEMBER_MEMBERS,
    example: include_str!("fleet.json"),
    api_versions: &VERSIONS,
    etag: EtagForm::WeakGuid,
    tracked: false,
    ..protocol(MEMBER_TYPE, "FleetMember")
};

static FLEET_MEMBERS: [Member; 2] = [Member::new("hubProfile", Anything), Member::new("status", Derived)];

static MEMBER_MEMBERS: [Member; 4] = [
    Member::new("clusterResourceId", Anything),
    Member::new("group", Anything),
    Member::new("labels", Anything),
    Member::new("status", Derived),
];

shape!(Fleets, FLEET, without Acting);

impl Writing for Fleets {
    fn before_write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value> {
        Ok(proposal.keep(&["location", "tags", "identity", "properties"]).take())
    }
}

impl Presenting for Fleets {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("eTag".into(), azure.etag(record).into());
    }
}

impl Shape for FleetMembers {
    fn protocol(&self) -> &'static Protocol {
        &MEMBER
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let cluster = record.body.get("properties").and_then(cluster_of);
        cluster.map(|to| Reference::names(&record.id, to)).into_iter().collect()
    }
}

impl Writing for FleetMembers {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let properties = Value::Object(take_properties(&mut proposal.body));
        let Some(cluster) = cluster_of(&properties) else {
            return Err(invalid("clusterResourceId", "It must be the id of a managed cluster."));
        };
        if proposal.old_member("properties/clusterResourceId").and_then(Value::as_str).is_some_and(|old| {
            !old.eq_ignore_ascii_case(text(&properties, "clusterResourceId").unwrap_or_default())
        }) {
            return Err(fixed("clusterResourceId"));
        }
        if azure.store.get(&cluster).is_none() {
            return Err(Code::ours(400, "ClusterResourceNotFound")
                .says(format_args!("The cluster {cluster} was not found.")));
        }
        let other = azure.store.of_type(MEMBER_TYPE).find(|other| {
            other.id != *proposal.id
                && other.body.get("properties").and_then(cluster_of).as_ref() == Some(&cluster)
        });
        if let Some(other) = other {
            return Err(Code::ours(409, "ClusterAlreadyJoined")
                .says(format_args!("The cluster {cluster} has joined a fleet already, as {}.", other.id)));
        }
        Ok(json!({ "properties": properties }))
    }
}

impl Presenting for FleetMembers {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("eTag".into(), azure.etag(record).into());
    }
}

impl Acting for FleetMembers {}

fn cluster_of(properties: &Value) -> Option<ResourceId> {
    let id = stored_reference(properties, "clusterResourceId")?;
    id.resource_type().eq_ignore_ascii_case(CLUSTERS).then_some(id)
}
