//! NAT gateways.

use serde_json::{Value, json};

use super::{API_VERSIONS, bounded, frontend, load_balancer, resource_guid};
use crate::engine::document::{Object, items, references, stored_reference, strip, take_properties};
use crate::engine::error::Refusal;
use crate::engine::kind::{Concurrency, Expand, Kind, Proposal, Reference, Style};
use crate::engine::store::Record;
use crate::engine::world::{World, is_of};

pub(super) struct NatGateways;

impl Kind for NatGateways {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Network/natGateways"
    }

    fn noun(&self) -> &'static str {
        "NatGateway"
    }

    fn api_versions(&self) -> &'static [&'static str] {
        &API_VERSIONS
    }

    fn style(&self) -> Style {
        Style::Network
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Supersede
    }

    fn write(&self, world: &World, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        strip(&mut properties, &["provisioningState", "resourceGuid", "subnets", "type"]);
        resource_guid(world, &proposal, &mut properties);
        load_balancer::sku(&mut proposal.body, &["Standard", "StandardV2"])?;
        bounded(&mut properties, "idleTimeoutInMinutes", 4..=120, Some(4), id)?;
        properties.insert("type".into(), "Public".into());
        for public in references(&mut properties, "publicIpAddresses")? {
            if let Some(user) = world.store.referrers(&public).find(|user| user.from != *id) {
                return Err(frontend::public_ip_in_use(id, &public, &user.from));
            }
        }
        references(&mut properties, "publicIpPrefixes")?;
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        ["publicIpAddresses", "publicIpPrefixes"]
            .iter()
            .flat_map(|member| items(&record.body, &format!("properties/{member}")))
            .filter_map(|item| stored_reference(item, "id"))
            .map(|to| Reference::uses(&record.id, to))
            .collect()
    }

    fn may_delete(&self, world: &World, record: &Record) -> Result<(), Refusal> {
        match world.store.referrers(&record.id).next() {
            None => Ok(()),
            Some(user) => Err(Refusal::network(
                400,
                "InUseNatGatewayCannotBeDeleted",
                format!(
                    "NAT gateway {} cannot be deleted because it is in use by subnet {}.",
                    record.id, user.from
                ),
            )),
        }
    }

    fn present(&self, world: &World, record: &Record, document: &mut Object, _expand: Expand) {
        let users: Vec<Value> = world
            .store
            .referrers(&record.id)
            .filter(|referrer| is_of(&referrer.from, "/subnets/"))
            .map(|referrer| json!({ "id": referrer.from }))
            .collect();
        if let (false, Some(properties)) =
            (users.is_empty(), document.get_mut("properties").and_then(Value::as_object_mut))
        {
            properties.insert("subnets".into(), users.into());
        }
    }
}
