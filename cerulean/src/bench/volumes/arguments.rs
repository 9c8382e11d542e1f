//! The command line of `cerulean bench volumes`.

use std::path::PathBuf;

use crate::bench::services::Latency;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Numbers of volumes that come at the same time; each is measured in a cluster of its own.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [1, 20, 200], value_parser = clap::value_parser!(u32).range(1..))]
    pub volumes: Vec<u32>,
    /// Number of machines that the volumes are attached to, and of those that they move to; more where a number of volumes
    /// needs more slots.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub machines: u32,
    /// Duration of Azure's operations: instant, quick, typical or a JSON file.
    #[arg(long, default_value = "instant", value_parser = Latency::parse)]
    pub latency: Latency,
    /// Binary of the driver; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    pub driver: Option<PathBuf>,
    /// Build of the driver that ours replaces, which does the same.
    #[arg(long, value_name = "PATH")]
    pub peer: Option<PathBuf>,
    /// Instead let both drivers serve one cluster in turn, as in an update and a rollback. It fails if ours writes where there is
    /// nothing to change, or if something that belongs to others changes.
    #[arg(long, requires = "peer", conflicts_with = "restart_with")]
    pub in_turn: bool,
    /// Also measure a controller that starts beside this number of PersistentVolumes and VolumeAttachments, and lists them.
    #[arg(long, value_name = "N")]
    pub restart_with: Option<u32>,
}
