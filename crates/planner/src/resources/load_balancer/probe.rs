//! The documents of health probes.

use azure_types::{Probe, ProbeProperties};

use crate::model::names::SHARED_PROBE;
use crate::outcome::{Change, Differences};
use crate::service::ProbeSpec;

/// Whether a probe's name is that of the shared one.
pub(crate) fn is_shared(name: &str) -> bool {
    name.eq_ignore_ascii_case(SHARED_PROBE)
}

impl ProbeSpec {
    /// Applies the desired members to a probe; returns the changes.
    pub(crate) fn apply(&self, probe: &mut Probe) -> Vec<Change> {
        let name = probe.name.clone().unwrap_or_default();
        let p = probe.properties.get_or_insert_default();
        let mut differences = Differences::default();
        differences.set_word("protocol", &mut p.protocol, self.protocol);
        differences.set("port", &mut p.port, self.port);
        let path = p.request_path.as_deref().filter(|path| !path.is_empty()).map(str::to_ascii_lowercase);
        if path != self.path.as_deref().map(str::to_ascii_lowercase) {
            p.request_path.take_if(|path| path.is_empty());
            differences.replace("path", &mut p.request_path, self.path.clone());
        }
        differences.set("interval", &mut p.interval_in_seconds, self.interval);
        differences.set("threshold", &mut p.probe_threshold, self.threshold);
        differences.into_changes(|difference| Change::ProbeChanged { probe: name.clone(), difference })
    }

    /// The document of a new probe.
    pub(crate) fn document(&self, name: &str) -> Probe {
        let properties = Some(ProbeProperties::default());
        let mut probe = Probe { name: Some(name.to_owned()), properties, ..Default::default() };
        self.apply(&mut probe);
        probe
    }
}
