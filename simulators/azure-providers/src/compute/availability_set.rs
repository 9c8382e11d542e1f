//! Availability sets (Azure REST reference, "Availability Sets").

use serde_json::{Value, json};

use super::protocol::protocol;
use super::sku;
use azure_engine::document::{Object, fill, integer, into_object, strip, take_properties};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Expand, Proposal, Protocol, Record, ResourceType};

pub(super) struct AvailabilitySets;

const PROTOCOL: Protocol = Protocol {
    etagged: false,
    // A set is a promise about placement: nothing has to be built.
    synchronous: true,
    synchronous_delete: true,
    create_status: 200,
    delete_status: 200,
    ..protocol("Microsoft.Compute/availabilitySets", "AvailabilitySet")
};

impl ResourceType for AvailabilitySets {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let mut body = std::mem::take(&mut proposal.body);
        let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
        fill(&mut sku, "name", "Classic");
        let given = sku.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(name) = ["Classic", "Aligned"].into_iter().find(|known| known.eq_ignore_ascii_case(given))
        else {
            return Err(Refusal::invalid_parameter(
                "sku.name",
                format!(
                    "The value '{given}' of parameter 'sku.name' is not allowed. Allowed values are 'Classic,Aligned'."
                ),
            ));
        };
        sku.insert("name".into(), name.into());
        body.insert("sku".into(), Value::Object(sku));
        let mut properties = take_properties(&mut body);
        strip(&mut properties, &["provisioningState", "statuses", "virtualMachines"]);
        for (member, default, most) in
            [("platformFaultDomainCount", 3, 3), ("platformUpdateDomainCount", 5, 20)]
        {
            let count = integer(&properties, member)?.unwrap_or(default);
            if !(1..=most).contains(&count) {
                return Err(Refusal::invalid_parameter(
                    member,
                    format!(
                        "The specified {member} {count} is out of range. It must be between 1 and {most}."
                    ),
                ));
            }
            let before = proposal.old_member(&format!("properties/{member}")).and_then(Value::as_i64);
            if before.is_some_and(|before| before != count)
                && azure.store.referrers(proposal.id).next().is_some()
            {
                return Err(Refusal::new(
                    409,
                    "PropertyChangeNotAllowed",
                    format!("Changing property 'availabilitySet.{member}' is not allowed."),
                ));
            }
            properties.insert(member.into(), count.into());
        }
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        match azure.store.referrers(&record.id).next() {
            None => Ok(()),
            Some(user) => Err(Refusal::new(
                409,
                "OperationNotAllowed",
                format!(
                    "Availability Set '{}' cannot be deleted. Before deleting an Availability Set please ensure that it \
                     does not contain any VM; it contains {}.",
                    record.id.name(),
                    user.from
                ),
            )),
        }
    }

    fn view(&self, _azure: &AzureState, _record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [view] if view.eq_ignore_ascii_case("vmSizes") => Some(Ok(sku::sizes())),
            _ => None,
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        // Placement has no state to be in.
        properties.remove("provisioningState");
        let members: Vec<Value> =
            azure.store.referrers(&record.id).map(|member| json!({ "id": member.from })).collect();
        properties.insert("virtualMachines".into(), members.into());
    }
}
