//! The resource provider `Microsoft.Compute`.

mod availability_set;
mod disk;
pub mod machine;
mod plain_types;
mod platform;
mod scale_set;
mod shared;
mod snapshot;
mod tables;
mod virtual_machine;

use azure_engine::provider::Provider;

pub use self::disk::contents::DiskContents;
pub use self::machine::power;
use self::platform::actor;
pub use self::platform::scheduled_events;
use self::shared::calls;
use self::tables::{budgets, joins, latencies, limits, versions};

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![calls::answer],
        policies: &budgets::POLICIES,
        limits: limits::LIMITS,
        unlimited: limits::UNLIMITED,
        names: limits::NAMES,
        since: &versions::SINCE,
        joins: &joins::JOINS,
        latencies: latencies::LATENCIES,
        timetable: Some(|| Box::new(scheduled_events::ScheduledEvents::default())),
        acts: Some(actor::act),
        ..Provider::new(
            "Microsoft.Compute",
            vec![
                &scale_set::ScaleSets,
                &scale_set::instance::Instances,
                &virtual_machine::VirtualMachines,
                &virtual_machine::extension::Extensions,
                &plain_types::IMAGES,
                &plain_types::GALLERIES,
                &plain_types::GALLERY_IMAGES,
                &plain_types::GALLERY_IMAGE_VERSIONS,
                &plain_types::PLACEMENT_GROUPS,
                &plain_types::ENCRYPTION_SETS,
                &plain_types::DISK_ACCESSES,
                &plain_types::RESERVATION_GROUPS,
                &plain_types::RESERVATIONS,
                &plain_types::HOST_GROUPS,
                &plain_types::HOSTS,
                &availability_set::AVAILABILITY_SETS,
                &disk::Disks,
                &snapshot::Snapshots,
            ],
        )
    }
}
