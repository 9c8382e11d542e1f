//! Availability sets (Azure REST reference, "Availability Sets").

use crate::compute::tables::protocol::protocol;
use crate::plain::Plain;
use azure_engine::provider::Protocol;
use azure_engine::refusal::words::Wrong;
use azure_engine::refusal::{Code, Refusal};
use azure_engine::types::member_table::Holds::{Derived, Number, Object, Users, Word};
use azure_engine::types::member_table::Member;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    envelope: &ENVELOPE,
    example: include_str!("availability_set.json"),
    etagged: false,
    // Placement has no provisioning state.
    shows_state: false,
    // A set is a promise about placement: nothing has to be built.
    puts_merge: false,
    synchronous: true,
    synchronous_delete: true,
    create_status: 200,
    delete_status: 200,
    in_use: Some(|set, user, _| {
        Code::azures(409, "OperationNotAllowed").says(format_args!(
            "Availability Set '{}' cannot be deleted. Before deleting an Availability Set please ensure that it does not \
             contain any VM; it contains {user}.",
            set.name()
        ))
    }),
    ..protocol("Microsoft.Compute/availabilitySets", "AvailabilitySet")
};

fn fixed(wrong: &Wrong<'_>) -> Refusal {
    Code::ours(409, "PropertyChangeNotAllowed")
        .says(format_args!("Changing property 'availabilitySet.{}' is not allowed.", wrong.member))
}

static SKU: [Member; 1] = [Member::new("name", Word(&["Classic", "Aligned"], true))];
static ENVELOPE: [Member; 1] = [Member::new("sku", Object(&SKU)).or_empty()];

static MEMBERS: [Member; 5] = [
    Member::new("platformFaultDomainCount", Number(1, 3)).or(3).fixed_while_used(fixed),
    Member::new("platformUpdateDomainCount", Number(1, 20)).or(5).fixed_while_used(fixed),
    Member::new("provisioningState", Derived),
    Member::new("statuses", Derived),
    Member::new("virtualMachines", Users("")).shown_empty(),
];

pub(crate) static AVAILABILITY_SETS: Plain = Plain::of(&PROTOCOL);
