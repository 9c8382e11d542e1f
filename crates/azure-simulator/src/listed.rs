//! Types that clients look for, and that this simulator knows but does not create.

use serde_json::Value;

use crate::engine::error::Refusal;
use crate::engine::kind::{Concurrency, Kind, Proposal, Style};
use crate::engine::world::World;

/// A type whose lists are empty and whose creation is refused in plain words.
pub(crate) struct Listed {
    pub(crate) resource_type: &'static str,
    pub(crate) noun: &'static str,
}

impl Kind for Listed {
    fn resource_type(&self) -> &'static str {
        self.resource_type
    }

    fn noun(&self) -> &'static str {
        self.noun
    }

    fn api_versions(&self) -> &'static [&'static str] {
        &["2025-05-01", "2025-04-01", "2024-07-01", "2021-07-01", "2018-11-01"]
    }

    fn style(&self) -> Style {
        Style::Network
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Conflict
    }

    fn write(&self, _world: &World, proposal: Proposal<'_>) -> Result<Value, Refusal> {
        Err(Refusal::new(
            501,
            "NotImplemented",
            format!(
                "This simulated Azure does not create resources of type {}: {}",
                self.resource_type, proposal.id
            ),
        ))
    }
}
