//! A management cluster: its API server with Cluster API, simulated or real, and our manager.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clock::Clock;
use simulated_cluster::{Part, play_cluster_api};

use super::clusterctl::Entry;
use super::provider::{self, Provider};
use super::server::Server;
use super::{clusterctl, manager};
use crate::program::Program;
use crate::world::{SEED, World};

/// The programs of a run.
pub struct Programs {
    /// Our manager.
    pub manager: PathBuf,
    /// Real managers of Cluster API; stand-ins run for the other parts.
    pub real: Vec<(&'static Provider, PathBuf)>,
    /// The folder with the sources of these managers.
    pub sources: Option<PathBuf>,
    /// Cluster API's tool for management clusters.
    pub clusterctl: Option<PathBuf>,
    /// kubectl, which builds kustomizations.
    pub kubectl: Option<PathBuf>,
    /// The folder with a real API server; without it, the simulated one is used.
    pub assets: Option<PathBuf>,
}

/// A management cluster, which ends when this value is dropped.
pub struct Management {
    /// Its API server.
    pub server: Server,
    /// Its running programs.
    pub programs: Vec<Program>,
    /// The real providers, including ours.
    pub entries: Vec<Entry>,
}

impl Management {
    /// Starts the cluster, with files and logs in this folder, which is created.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(programs: &Programs, directory: &Path, place: &World) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let server = Server::start(directory, programs.assets.as_deref(), &place.stop).await?;
        let is_real = |part: &Part| programs.real.iter().any(|(provider, _)| provider.part == *part);
        let played: Vec<Part> = Part::ALL.iter().copied().filter(|part| !is_real(part)).collect();
        let clock = Arc::new(|| Clock::system().now());
        play_cluster_api(&played, &server.client, &place.workloads, clock, SEED, &place.stop).await?;
        let mut running = Vec::new();
        let mut entries = Vec::new();
        for (provider, program) in &programs.real {
            let sources = programs.sources.as_deref().context("--core-sources is missing")?;
            let (started, version) =
                provider::start(provider, program, sources, directory, place, &server).await?;
            running.push(started);
            entries.extend(provider.entry(sources, version));
        }
        running.push(manager::start(&programs.manager, directory, place, &server).await?);
        entries.push(Entry::ours());
        if let Some(sources) = programs.sources.as_deref() {
            clusterctl::install_inventory(sources, &server.client, &entries).await?;
        }
        Ok(Self { server, programs: running, entries })
    }

    /// Fails if one of the programs has ended by itself.
    ///
    /// # Errors
    /// The program with the end of its log.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        self.programs.iter_mut().try_for_each(Program::must_run)
    }

    /// Stops the programs.
    ///
    /// # Errors
    /// A program does not end.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        for program in &mut self.programs {
            program.terminate(crate::program::STOP_TIMEOUT).await?;
        }
        Ok(())
    }
}
