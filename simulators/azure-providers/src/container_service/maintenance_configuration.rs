//! Maintenance windows of a cluster (Azure REST reference, "Maintenance Configurations"): synchronous.

use azure_engine::document::{Object, at, items, take_properties};
use azure_engine::provider::{AzureState, Expand, Presenting, Proposal, Protocol, Record, Writing};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::Anything;
use azure_engine::types::member_table::Member;
use serde_json::{Value, json};

use super::protocol::{own_spelling, protocol};
use super::words::invalid;

pub(super) struct MaintenanceConfigurations;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("maintenance_configuration.json"),
    tracked: false,
    synchronous: true,
    synchronous_delete: true,
    delete_status: 200,
    shows_state: false,
    ..protocol(
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
        "MaintenanceConfiguration",
    )
};

/// The allowed names, one for the purpose of each window.
const NAMES: [&str; 3] = ["default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule"];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Shortest and longest duration of a window, in hours.
const HOURS: std::ops::RangeInclusive<i64> = 4..=24;

static MEMBERS: [Member; 3] = [
    Member::new("maintenanceWindow", Anything),
    Member::new("notAllowedTime", Anything),
    Member::new("timeInWeek", Anything),
];

shape!(MaintenanceConfigurations, PROTOCOL, without Acting);

impl Writing for MaintenanceConfigurations {
    fn before_write(&self, _azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let name = proposal.id.name();
        let Some(name) = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            let names = NAMES.join(", ");
            return Err(Code::ours(400, "InvalidParameter")
                .says(format_args!("The name of a maintenance configuration must be one of {names}.")));
        };
        let properties = Value::Object(take_properties(&mut proposal.body));
        for slot in items(&properties, "timeInWeek") {
            let day = azure_engine::document::text(slot, "day").unwrap_or_default();
            if !DAYS.contains(&day) {
                return Err(invalid("timeInWeek.day", format_args!("'{day}' is no day of the week.")));
            }
            if let Some(hour) = items(slot, "hourSlots")
                .iter()
                .find(|hour| !hour.as_i64().is_some_and(|hour| (0..24).contains(&hour)))
            {
                return Err(invalid("timeInWeek.hourSlots", format_args!("{hour} is not between 0 and 23.")));
            }
        }
        match (*name == "default", at(&properties, "maintenanceWindow")) {
            (true, Some(_)) => {
                return Err(invalid(
                    "maintenanceWindow",
                    "The configuration 'default' has timeInWeek instead.",
                ));
            }
            (false, None) => return Err(invalid("maintenanceWindow", "It is missing.")),
            (_, window) => {
                let hours = window.and_then(|window| at(window, "durationHours")).and_then(Value::as_i64);
                if window.is_some() && !hours.is_some_and(|hours| HOURS.contains(&hours)) {
                    return Err(invalid("maintenanceWindow.durationHours", "It must be between 4 and 24."));
                }
            }
        }
        Ok(json!({ "properties": properties }))
    }
}

impl Presenting for MaintenanceConfigurations {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("id".into(), own_spelling(&record.id).into());
    }
}
