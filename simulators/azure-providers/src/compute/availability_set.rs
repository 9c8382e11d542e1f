//! Availability sets (Azure REST reference, "Availability Sets").

use serde_json::Value;

use crate::compute::shared::catalogue;
use crate::compute::tables::protocol::protocol;
use azure_engine::document::{fill, into_object};
use azure_engine::error::{Code, Refusal};
use azure_engine::member_table::Holds::{Derived, Number, Users};
use azure_engine::member_table::Member;
use azure_engine::provider::{AzureState, Proposal, Protocol, Record, ResourceType};

pub(crate) struct AvailabilitySets;

const PROTOCOL: Protocol = Protocol {
    etagged: false,
    // Placement has no state to be in.
    shows_state: false,
    // A set is a promise about placement: nothing has to be built.
    puts_merge: false,
    synchronous: true,
    synchronous_delete: true,
    create_status: 200,
    delete_status: 200,
    ..protocol("Microsoft.Compute/availabilitySets", "AvailabilitySet")
};

const FIXED: Code = Code::ours(409, "PropertyChangeNotAllowed");
const IN_USE: Code = Code::azures(409, "OperationNotAllowed");

fn fixed(member: &str) -> Refusal {
    FIXED.says(format_args!("Changing property 'availabilitySet.{member}' is not allowed."))
}

static MEMBERS: [Member; 5] = [
    Member::new("platformFaultDomainCount", Number(1, 3)).or(3).fixed_while_used(fixed),
    Member::new("platformUpdateDomainCount", Number(1, 20)).or(5).fixed_while_used(fixed),
    Member::new("provisioningState", Derived),
    Member::new("statuses", Derived),
    Member::new("virtualMachines", Users("")).shown_empty(),
];

impl ResourceType for AvailabilitySets {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &MEMBERS
    }

    fn write(&self, _azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
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
        Ok(Value::Object(body))
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        let Some(user) = azure.store.referrers(&record.id).next() else { return Ok(()) };
        Err(IN_USE.says(format_args!(
            "Availability Set '{}' cannot be deleted. Before deleting an Availability Set please ensure that it does not \
             contain any VM; it contains {}.",
            record.id.name(),
            user.from
        )))
    }

    fn view(&self, _azure: &AzureState, _record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [view] if view.eq_ignore_ascii_case("vmSizes") => Some(Ok(catalogue::sizes())),
            _ => None,
        }
    }
}
