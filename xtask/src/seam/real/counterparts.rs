//! The established programs, real or played, and the manifests for their installation.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::established;

/// The established programs and their manifests.
#[derive(Debug)]
pub struct Counterparts {
    /// The operator's folder, with its definitions in `crds`.
    pub folder: PathBuf,
    /// The folder with the established provider's components and its `metadata.yaml`.
    pub components: PathBuf,
    /// Azure Service Operator; without it, its Deployment has no replica.
    pub operator: Option<PathBuf>,
    /// The established provider's manager.
    pub provider: PathBuf,
    /// clusterctl.
    pub clusterctl: PathBuf,
    /// Our manager.
    pub ours: PathBuf,
    /// `cerulean`, if it is configured.
    pub cerulean: Option<PathBuf>,
    /// The folder with etcd, kube-apiserver, kube-controller-manager and kubectl.
    pub assets: PathBuf,
}

impl Counterparts {
    /// Finds the output of `scripts/counterparts.sh` in a folder, our manager, and the programs of Kubernetes.
    ///
    /// # Errors
    /// Something is missing.
    pub fn in_folder(folder: &Path, ours: PathBuf, cerulean: Option<PathBuf>) -> anyhow::Result<Self> {
        let folder = std::path::absolute(folder)?;
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").context("KUBEBUILDER_ASSETS is not set")?;
        let this = Self {
            components: folder.clone(),
            operator: Some(folder.join("operator")),
            provider: folder.join("provider"),
            clusterctl: folder.join("clusterctl"),
            ours: std::path::absolute(ours)?,
            cerulean,
            assets: assets.into(),
            folder,
        };
        for path in this.operator.iter().chain([&this.provider, &this.clusterctl, &this.ours]) {
            ensure!(path.exists(), "{}: there is no such program", path.display());
        }
        Ok(this)
    }

    /// Our manager in the place of the established one, installed from the objects that releases of the established
    /// provider have; `folder` is for their manifests.
    ///
    /// # Errors
    /// A file cannot be written, or a program is missing.
    pub fn played(
        folder: &Path,
        clusterctl: PathBuf,
        ours: PathBuf,
        cerulean: Option<PathBuf>,
        assets: &Path,
    ) -> anyhow::Result<Self> {
        let components = folder.join("established");
        established::write(&components)?;
        let ours = std::path::absolute(ours)?;
        ensure!(ours.exists(), "{}: there is no such program", ours.display());
        Ok(Self {
            folder: folder.to_owned(),
            components,
            operator: None,
            provider: ours.clone(),
            clusterctl,
            ours,
            cerulean,
            assets: assets.to_owned(),
        })
    }
}
