//! The documents of health probes.

use azure_types::{Probe, ProbeProperties, Word};

use crate::model::names::SHARED_PROBE;
use crate::model::words::or_none;
use crate::outcome::{Change, Difference};
use crate::service::ProbeSpec;

/// Whether a probe's name is that of the shared one.
pub(crate) fn is_shared(name: &str) -> bool {
    name.eq_ignore_ascii_case(SHARED_PROBE)
}

impl ProbeSpec {
    /// Applies the desired members to a probe; returns the changes.
    pub(crate) fn apply(&self, probe: &mut Probe) -> Vec<Change> {
        let name = probe.name.clone().unwrap_or_default();
        let properties = probe.properties.get_or_insert_default();
        let mut changes = Vec::new();
        let mut note = |member: &'static str, from: String, to: String| {
            let difference = Difference { member, from, to };
            changes.push(Change::ProbeChanged { probe: name.clone(), difference });
        };
        if !properties.protocol.as_ref().is_some_and(|word| word.is(self.protocol)) {
            note("protocol", or_none(properties.protocol.as_ref()), self.protocol.to_owned());
            properties.protocol = Some(Word::from(self.protocol));
        }
        if properties.port != Some(self.port) {
            note("port", or_none(properties.port), self.port.to_string());
            properties.port = Some(self.port);
        }
        let path = properties.request_path.as_deref().filter(|path| !path.is_empty());
        let same_path = match (path, self.path.as_deref()) {
            (Some(old), Some(new)) => old.eq_ignore_ascii_case(new),
            (None, None) => true,
            _ => false,
        };
        if !same_path {
            note("path", or_none(path), or_none(self.path.as_deref()));
            properties.request_path.clone_from(&self.path);
        }
        if properties.interval_in_seconds != Some(self.interval) {
            note("interval", or_none(properties.interval_in_seconds), self.interval.to_string());
            properties.interval_in_seconds = Some(self.interval);
        }
        if properties.probe_threshold != Some(self.threshold) {
            note("threshold", or_none(properties.probe_threshold), self.threshold.to_string());
            properties.probe_threshold = Some(self.threshold);
        }
        changes
    }

    /// The document of a new probe.
    pub(crate) fn document(&self, name: &str) -> Probe {
        let properties = Some(ProbeProperties::default());
        let mut probe = Probe { name: Some(name.to_owned()), properties, ..Default::default() };
        self.apply(&mut probe);
        probe
    }
}
