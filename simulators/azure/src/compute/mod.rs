//! The resource provider `Microsoft.Compute`.

mod availability_set;
mod background_copy;
mod budgets;
mod calls;
mod capacity;
mod copy_source;
mod data_disk;
mod disk;
mod disk_access;
mod disk_performance;
mod disk_quota;
mod disk_rules;
mod fault_domain;
mod flexible;
mod generalize;
mod image;
mod instance_public_ip;
mod instance_view;
mod interface_configuration;
mod interface_count;
mod limits;
mod members;
mod network_interface;
mod network_profile;
mod os_profile;
pub(crate) mod power;
mod quota;
pub(crate) mod rolling_upgrade;
mod scale_set;
mod scale_set_instance;
mod secret;
mod sku;
mod sku_table;
mod snapshot;
pub(crate) mod spot;
mod versions;
mod virtual_machine;
mod zones;

use serde_json::Value;

use crate::engine::document::{Object, drop_nulls, into_object, merge};
use crate::engine::resource_type::{Concurrency, Proposal, Protocol, Provider, Source, WireDialect};

/// Versions that clients of today use, newest first; 2018-10-01 serves the NICs of instances.
const API_VERSIONS: [&str; 7] =
    ["2025-04-01", "2024-07-01", "2023-09-01", "2021-07-01", "2019-07-01", "2018-10-01", "2017-12-01"];

/// What most of the provider's types have in common.
const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol::new(resource_type, noun, &API_VERSIONS, WireDialect::Compute, Concurrency::Conflict)
}

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.Compute",
        resource_types: vec![
            &scale_set::ScaleSets,
            &scale_set_instance::Instances,
            &virtual_machine::VirtualMachines,
            &availability_set::AvailabilitySets,
            &disk::Disks,
            &snapshot::Snapshots,
        ],
        calls: vec![calls::answer],
        extensions: Vec::new(),
        policies: &budgets::POLICIES,
        limits: limits::LIMITS,
        unlimited: limits::UNLIMITED,
        names: limits::NAMES,
        members: members::MEMBERS,
        since: &versions::SINCE,
    }
}

/// The document that a write comes to. A PUT of something that is there updates the parts that were
/// given, tags and identity as wholes; a PATCH brings the whole document.
fn updated(proposal: &mut Proposal<'_>) -> Object {
    let body = std::mem::take(&mut proposal.body);
    let mut whole = match proposal.old {
        Some(old) if proposal.source != Source::Patch => old.body.clone(),
        _ => Value::Object(Object::new()),
    };
    if let Value::Object(whole) = &mut whole {
        let replaced =
            |member: &&'static str| body.contains_key(*member) || proposal.emptied.contains(member);
        for member in ["tags", "identity"].iter().filter(|member| replaced(member)) {
            whole.remove(*member);
        }
    }
    merge(&mut whole, Value::Object(body));
    drop_nulls(&mut whole);
    into_object(whole)
}
