//! Azure with machines and registries, the cluster of these machines, and our programs.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use real_kubernetes::{Enclosure, Image};
use serde_json::{Value, json};
use simulated_cluster::{Shape, StandaloneMachine};

use crate::e2e::machines::{EmptyCluster, Machines, registry};
use crate::e2e::{managers, rights};
use crate::program::Program;

/// The machines, which are also the nodes.
pub const MACHINES: [&str; 2] = ["node-a", "node-b"];
/// The image that only clients with a role may pull.
pub const IMAGE: &str = "harbour.azurecr.io/team/app:v1";
/// The output of its container.
pub const WORDS: &str = "pulled from the simulated registry";
/// The role for pulling images.
const ACR_PULL: &str = "7f951dda-4ed3-4680-a7ca-43fe172d538d";
const CREDENTIAL_PROVIDER: &str = "acr-credential-provider";

/// The environment, which ends when this value is dropped.
pub struct Place {
    /// Our running programs.
    pub programs: Vec<Program>,
    /// Azure and the cluster.
    pub machines: Machines,
    binaries: PathBuf,
}

impl Deref for Place {
    type Target = Machines;

    fn deref(&self) -> &Machines {
        &self.machines
    }
}

impl Place {
    /// Starts Azure and the cluster, without our programs.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(enclosure: &Enclosure, assets: &Path, binaries: &Path) -> anyhow::Result<Self> {
        let empty = EmptyCluster::start(enclosure, assets, &MACHINES).await?;
        let image = Image::of_busybox(enclosure.folder(), &format!("echo {WORDS}; sleep 2000000000"))?;
        empty.create_registry(host_of(IMAGE), false)?;
        empty.push(IMAGE, &image).await?;
        let provider = credential_provider(enclosure.folder(), &empty.shape, &empty.environment)?;
        let flags = rights::audit_flags(enclosure.folder());
        let flags = flags.each_ref().map(|(flag, value)| (*flag, value.as_str()));
        let machines = empty.start_nodes(Some((provider, binaries.to_owned())), &flags).await?;
        Ok(Self { programs: Vec::new(), machines, binaries: binaries.to_owned() })
    }

    /// Starts the controller manager, and a node manager on each machine, with the arguments of their charts.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start_managers(&mut self) -> anyhow::Result<()> {
        self.programs = managers::start(&self.machines, &self.binaries).await?;
        Ok(())
    }

    /// Allows a machine to pull from the registry that refuses anonymous clients.
    ///
    /// # Errors
    /// Azure's error.
    pub fn let_pull(&self, machine: &StandaloneMachine) -> anyhow::Result<()> {
        let id = self.shape.machine(machine);
        let document = self.azure.azure.document(&id).context("there is no such machine")?;
        let principal = document["identity"]["principalId"].as_str().context("it has no identity")?;
        let registry = registry(&self.shape, host_of(IMAGE));
        Ok(self.azure.azure.assign_role(&registry, ACR_PULL, principal)?)
    }

    /// Fails if a program has ended by itself.
    ///
    /// # Errors
    /// The program with the end of its log.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        self.machines.must_run()?;
        self.programs.iter_mut().try_for_each(Program::must_run)
    }

    /// Stops our programs gracefully.
    ///
    /// # Errors
    /// A program does not stop.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        for program in &mut self.programs {
            let ended = program.terminate(crate::program::STOP_TIMEOUT).await?;
            anyhow::ensure!(
                ended.success(),
                "after SIGTERM a program ended with {ended}:\n{}",
                program.last_words()
            );
        }
        Ok(())
    }
}

/// The host of an image's registry.
pub fn host_of(image: &str) -> &str {
    image.split('/').next().unwrap_or_default()
}

/// The kubelet's configuration for our credential provider, as in `docs/acr-credential-provider.md`, and the azure.json
/// of a machine with a managed identity.
fn credential_provider(
    folder: &Path,
    shape: &Shape,
    environment: &[(String, String)],
) -> anyhow::Result<PathBuf> {
    let azure_json = folder.join("machine.json");
    let document = json!({
        "cloud": "AzurePublicCloud", "tenantId": shape.tenant, "subscriptionId": shape.subscription,
        "useManagedIdentityExtension": true,
    });
    std::fs::write(&azure_json, document.to_string())?;
    let variables: Vec<Value> =
        environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": CREDENTIAL_PROVIDER,
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "defaultCacheDuration": "10m",
            "matchImages": ["*.azurecr.io"],
            "args": [azure_json],
            "env": variables,
        }],
    });
    let path = folder.join("credential-provider.json");
    std::fs::write(&path, configuration.to_string())?;
    Ok(path)
}
