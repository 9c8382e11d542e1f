//! Methods about machines: their power, their addresses at the metadata service, and scheduled events.

use azure_types::ResourceId;

use crate::azure::Azure;
use azure_engine::provider::AzureState;
use azure_engine::refusal::Result;
use azure_engine::settings::options::MetadataAddresses;
use azure_imds::Host;
use azure_providers::compute::scheduled_events::{EventPlan, cancel_event, plan_event};

/// The power state of a machine, as its instance view words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    /// `PowerState/starting`
    Starting,
    /// `PowerState/running`
    Running,
    /// `PowerState/stopping`
    Stopping,
    /// `PowerState/stopped`: off, but still on its host.
    Stopped,
    /// `PowerState/deallocating`
    Deallocating,
    /// `PowerState/deallocated`
    Deallocated,
}

impl PowerState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Starting, Self::Running, Self::Stopping, Self::Stopped, Self::Deallocating, Self::Deallocated];

    /// The word behind `PowerState/`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Deallocating => "deallocating",
            Self::Deallocated => "deallocated",
        }
    }

    /// Reads the word behind `PowerState/`.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(word))
    }
}

impl Azure {
    /// The machine behind each source address of the metadata service.
    pub fn metadata_addresses(&self) -> MetadataAddresses {
        self.inner.metadata.read().clone()
    }

    /// Sets the machine behind each source address of the metadata service. For another address it is the machine that
    /// holds the address in a network, then the default one, then the only one there is.
    pub fn set_metadata_addresses(&self, addresses: MetadataAddresses) {
        *self.inner.metadata.write() = addresses;
    }
}

impl Azure {
    /// Announces a scheduled event to its machines and those beside them. Returns its id.
    ///
    /// # Errors
    ///
    /// When a machine is absent, or none is named.
    pub fn plan_event(&self, plan: EventPlan) -> Result<String> {
        self.change(|state| plan_event(state, plan))
    }

    /// Cancels a scheduled event; `false` if there is no event of that id.
    pub fn cancel_event(&self, id: &str) -> bool {
        self.change(|state| cancel_event(state, id))
    }

    /// Switches a virtual machine or a scale set instance at once.
    ///
    /// # Errors
    ///
    /// When the machine is absent, or the id is that of something else.
    pub fn set_power_state(&self, machine: &ResourceId, state: PowerState) -> Result<()> {
        self.change(|azure| azure_providers::compute::power::set(azure, machine, state.as_str()))
    }
}

impl Host for Azure {
    fn metadata_addresses(&self) -> MetadataAddresses {
        Azure::metadata_addresses(self)
    }

    fn with_state(&self, look: &mut dyn FnMut(&mut AzureState)) {
        self.change(look);
    }
}
