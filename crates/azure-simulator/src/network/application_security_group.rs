//! Application security groups: names for sets of network interfaces (`spec/arm-wire.md`, 9.4 and 9.6).

use serde_json::Value;

use super::{API_VERSIONS, resource_guid};
use crate::engine::document::{known_members, strip, take_properties};
use crate::engine::error::Refusal;
use crate::engine::kind::{Concurrency, Kind, Proposal, Style};
use crate::engine::store::Record;
use crate::engine::world::World;

pub(super) struct ApplicationSecurityGroups;

impl Kind for ApplicationSecurityGroups {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Network/applicationSecurityGroups"
    }

    fn noun(&self) -> &'static str {
        "ApplicationSecurityGroup"
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
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &["provisioningState", "resourceGuid"], "ApplicationSecurityGroup")?;
        strip(&mut properties, &["provisioningState"]);
        resource_guid(world, &proposal, &mut properties);
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn may_delete(&self, world: &World, record: &Record) -> Result<(), Refusal> {
        match world.store.referrers(&record.id).next() {
            None => Ok(()),
            Some(user) => Err(Refusal::network(
                400,
                "InUseApplicationSecurityGroupCannotBeDeleted",
                format!(
                    "Application security group {} cannot be deleted because it is in use by {}.",
                    record.id, user.from
                ),
            )),
        }
    }
}
