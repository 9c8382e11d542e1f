//! What Azure does with machines by itself: scheduled events, autoscalers and the spot market.

pub(crate) mod actor;
pub mod scheduled_events;
