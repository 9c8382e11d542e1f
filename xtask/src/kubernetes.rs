//! The Kubernetes API of a run: the simulator's or a real one.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ValueEnum;

use crate::print;

/// A choice of the Kubernetes API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kubernetes {
    /// The simulator's.
    Simulated,
    /// etcd and kube-apiserver from `KUBEBUILDER_ASSETS`.
    Real,
}

/// The Kubernetes API of a run.
pub enum Api {
    /// The simulator's.
    Simulated,
    /// etcd, kube-apiserver and kubectl are in this folder.
    Real(PathBuf),
}

impl Api {
    /// The chosen API; `None` with a message if the run is skipped.
    ///
    /// # Errors
    /// The real API is missing in CI.
    pub fn find(kubernetes: Kubernetes) -> anyhow::Result<Option<Self>> {
        match (kubernetes, std::env::var_os("KUBEBUILDER_ASSETS")) {
            (Kubernetes::Simulated, _) => Ok(Some(Self::Simulated)),
            (Kubernetes::Real, Some(directory)) => Ok(Some(Self::Real(directory.into()))),
            (Kubernetes::Real, None) if std::env::var_os("CI").is_some() => {
                bail!(
                    "KUBEBUILDER_ASSETS is not set: in CI the scenario must run against a real kube-apiserver"
                )
            }
            (Kubernetes::Real, None) => {
                print::line(
                    "skipped: KUBEBUILDER_ASSETS is not set; point it at a folder with etcd, kube-apiserver and kubectl",
                );
                Ok(None)
            }
        }
    }

    /// The folder with the programs of a real API.
    pub fn assets(&self) -> Option<&Path> {
        match self {
            Self::Simulated => None,
            Self::Real(directory) => Some(directory),
        }
    }
}
