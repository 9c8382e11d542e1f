//! The resource provider `Microsoft.Compute`.

mod actor;
mod availability_set;
mod background_copy;
mod budgets;
mod calls;
mod capacity;
mod copy_source;
mod data_disk;
mod disk;
mod disk_access;
mod disk_creation;
mod disk_performance;
mod disk_quota;
mod disk_references;
mod disk_rules;
mod disk_sku;
mod fault_domain;
mod flexible;
mod flexible_member;
mod generalize;
mod image;
mod instance_address;
mod instance_public_ip;
mod instance_view;
mod interface_configuration;
mod interface_count;
mod limits;
pub mod machine;
mod members;
mod network_interface;
mod network_profile;
mod os_profile;
pub mod power;
mod protocol;
mod quota;
mod rolling_upgrade;
mod scale_set;
mod scale_set_instance;
pub mod scheduled_events;
mod secret;
mod set_members;
mod sku;
mod sku_table;
mod snapshot;
mod spot;
mod system_disk;
mod type_names;
mod uniform;
mod update;
mod versions;
mod virtual_machine;
mod words;
mod zones;

use azure_engine::provider::Provider;

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![calls::answer],
        policies: &budgets::POLICIES,
        limits: limits::LIMITS,
        unlimited: limits::UNLIMITED,
        names: limits::NAMES,
        members: members::MEMBERS,
        since: &versions::SINCE,
        timetable: Some(|| Box::new(scheduled_events::ScheduledEvents::default())),
        acts: Some(actor::act),
        ..Provider::new(
            "Microsoft.Compute",
            vec![
                &scale_set::ScaleSets,
                &scale_set_instance::Instances,
                &virtual_machine::VirtualMachines,
                &availability_set::AvailabilitySets,
                &disk::Disks,
                &snapshot::Snapshots,
            ],
        )
    }
}
