//! The named latency profiles.

use azure_engine::settings::latency::LatencyProfile;

/// Realistic durations, from the tables of the providers.
pub fn typical_latency() -> LatencyProfile {
    LatencyProfile::typical(&azure_providers::all())
}

/// The profile of a name: `instant` or `typical`.
pub fn named_latency(name: &str) -> Option<LatencyProfile> {
    match name {
        "instant" => Some(LatencyProfile::instant()),
        "typical" => Some(typical_latency()),
        _ => None,
    }
}
