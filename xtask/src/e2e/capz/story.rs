//! The stories, and the programs that each of them needs.

use simulated_cluster::Part;

use super::management::Programs;
use super::stage::Stage;
use super::stories;

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Story {
    /// clusterctl installs the providers, and takes ours away.
    Init,
    /// Nine nodes, three of them of a pool: they come, grow, shrink, are replaced, rest, and go.
    Life,
    /// Clusters that Azure manages, of both generations: they come, grow, and go.
    Managed,
    /// The control plane and workers get another version of Kubernetes, and another number of machines.
    Upgrade,
    /// Machines that are deleted or stopped in Azure are replaced by health checks.
    Health,
    /// Pools of both modes of orchestration grow, shrink, get another version, and lose instances.
    Pools,
    /// A cluster of a class gets another version, other templates and more machines.
    Topology,
    /// A cluster moves to another management cluster, and back.
    Move,
    /// Every flavor is read back in each version that is served, and created again.
    Flavors,
}

impl Story {
    /// All stories.
    pub const ALL: [Self; 9] = [
        Self::Init,
        Self::Life,
        Self::Managed,
        Self::Upgrade,
        Self::Health,
        Self::Pools,
        Self::Topology,
        Self::Move,
        Self::Flavors,
    ];

    /// The title of the story.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Init => "clusterctl init",
            Self::Life => "a cluster from its beginning to its end",
            Self::Managed => "clusters that Azure manages",
            Self::Upgrade => "another version of Kubernetes",
            Self::Health => "health checks",
            Self::Pools => "machine pools",
            Self::Topology => "a cluster of a class",
            Self::Move => "clusterctl move, there and back",
            Self::Flavors => "every flavor read back and created again",
        }
    }

    /// The missing program without which the story cannot run.
    pub fn lacks(self, programs: &Programs) -> Option<&'static str> {
        let is_real = |part: Part| programs.real.iter().any(|(provider, _)| provider.part == part);
        match self {
            Self::Life | Self::Managed => None,
            _ if !Part::ALL.iter().all(|part| is_real(*part)) => {
                Some("the real managers (--core, --kubeadm)")
            }
            Self::Init | Self::Move if programs.clusterctl.is_none() => Some("clusterctl (--clusterctl)"),
            Self::Init if programs.kubectl.is_none() => Some("kubectl (KUBEBUILDER_ASSETS)"),
            _ => None,
        }
    }

    /// Runs the story.
    ///
    /// # Errors
    /// The first failed step.
    pub async fn play(self, stage: &mut Stage<'_>) -> anyhow::Result<()> {
        match self {
            Self::Init => stories::init::play(stage).await,
            Self::Life => stories::life::play(stage).await,
            Self::Managed => stories::managed::play(stage).await,
            Self::Upgrade => stories::upgrade::play(stage).await,
            Self::Health => stories::health::play(stage).await,
            Self::Pools => stories::pools::play(stage).await,
            Self::Topology => stories::topology::play(stage).await,
            Self::Move => stories::moving::play(stage).await,
            Self::Flavors => stories::flavors::play(stage).await,
        }
    }
}
