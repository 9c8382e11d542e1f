//! Answers of machines to health probes.

use std::net::IpAddr;

use azure_types::ResourceId;

/// The answers of machines to a health probe.
pub trait ProbeAnswers {
    /// Whether the machine `instance` (a virtual machine or scale set instance) answers a probe sent to `node_address`
    /// on `port`. `protocol` is as the probe's document has it: `Tcp`, `Http` or `Https`; `path` is the path of an HTTP
    /// probe. Called only for running machines.
    fn answers(
        &self,
        instance: &ResourceId,
        node_address: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool;
}

/// Every probe is answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysHealthy;

impl ProbeAnswers for AlwaysHealthy {
    fn answers(&self, _: &ResourceId, _: IpAddr, _: &str, _: u16, _: Option<&str>) -> bool {
        true
    }
}
