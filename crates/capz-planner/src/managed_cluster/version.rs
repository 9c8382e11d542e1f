//! Versions of Kubernetes: Azure may upgrade a managed cluster by itself, and never downgrades one.

use serde_json::Value;

use super::scope::ManagedScope;
use crate::document::text;
use crate::kubernetes_version::KubernetesVersion;

/// The version of the control plane: the declared one, or Azure's if that is higher.
pub(super) fn of_control_plane(scope: ManagedScope<'_>, held: Option<&Value>) -> Option<String> {
    let current = held.and_then(|held| held["properties"]["currentKubernetesVersion"].as_str());
    higher(text(&scope.spec.version).into_iter().chain(current))
}

/// The highest of these versions, without `v`; the first one of those that are no versions counts if no other does.
pub(crate) fn higher<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut highest: Option<(Option<KubernetesVersion>, &str)> = None;
    for text in
        versions.into_iter().map(|text| text.trim().trim_start_matches('v')).filter(|it| !it.is_empty())
    {
        let version = KubernetesVersion::parse(text).ok();
        let is_higher = match (&highest, &version) {
            (None, _) | (Some((None, _)), Some(_)) => true,
            (Some((Some(known), _)), Some(version)) => version > known,
            (Some(_), None) => false,
        };
        if is_higher {
            highest = Some((version, text));
        }
    }
    highest.map(|(_, text)| text.to_owned())
}
