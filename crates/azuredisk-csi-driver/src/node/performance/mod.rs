//! Profiles of device settings.

mod apply;
mod basic;
mod profile;
mod tiers;

pub(super) use profile::profile;
