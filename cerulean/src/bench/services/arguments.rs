//! The command line of `cerulean bench services`.

use std::path::PathBuf;

use azure_simulator::LatencyProfile;

use crate::simulate::latency;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Binary of the controller manager; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    pub manager: Option<PathBuf>,
    /// Build of the program that Cerulean replaces, which goes through the same scenarios. Ours takes over from it in the end.
    #[arg(long, value_name = "PATH")]
    pub peer: Option<PathBuf>,
    /// Number of Services that are applied at the same time.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub services: u32,
    /// Number of Services that are created one after the other, and then deleted one after the other; by default 50 with
    /// --latency instant, and none otherwise.
    #[arg(long, value_name = "N")]
    pub chain: Option<u32>,
    /// Number of machines of the scale set, each of them a node. One of them dies, and another one joins.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=999))]
    pub nodes: u64,
    /// Duration of Azure's operations: instant, quick (0.8 s for networks), typical or a JSON file.
    #[arg(long, default_value = "instant", value_parser = Latency::parse)]
    pub latency: Latency,
    /// Let load balancers hold the nodes' addresses instead of their network interfaces.
    #[arg(long)]
    pub by_address: bool,
    /// Write all figures as JSON to this file; `-` prints them instead of the tables.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the Services that have their address over time, as an SVG file.
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
}

/// A latency profile, with its name on the command line.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Its name.
    pub name: String,
    /// The profile.
    pub profile: LatencyProfile,
}

impl Latency {
    /// Parses what `--latency` takes.
    ///
    /// # Errors
    /// What is wrong, and the allowed values.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { name: text.to_owned(), profile: latency::parse(text)? })
    }
}

impl Arguments {
    /// Number of Services that are created one after the other.
    pub fn chain(&self) -> u32 {
        self.chain.unwrap_or(if self.latency.name == "instant" { 50 } else { 0 })
    }

    /// The command line without the paths, which differ from machine to machine.
    pub fn command(&self) -> String {
        let mut words = vec![
            "cerulean bench services".to_owned(),
            format!("--services {}", self.services),
            format!("--latency {}", self.latency.name),
        ];
        words.extend(self.chain.map(|chain| format!("--chain {chain}")));
        words.extend((self.nodes != 3).then(|| format!("--nodes {}", self.nodes)));
        words.extend(self.by_address.then(|| "--by-address".to_owned()));
        words.extend(self.peer.is_some().then(|| "--peer PATH".to_owned()));
        words.join(" ")
    }
}
