//! The resource provider `Microsoft.Compute`.

mod availability_set;
mod disk;
pub mod machine;
mod platform;
mod scale_set;
mod shared;
mod snapshot;
mod tables;
mod virtual_machine;

use azure_engine::provider::Provider;

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
                &availability_set::AvailabilitySets,
                &disk::Disks,
                &snapshot::Snapshots,
            ],
        )
    }
}
