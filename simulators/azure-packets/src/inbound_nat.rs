//! Inbound NAT rules: one frontend port, one machine. For NAT pools Azure shows the rules that it made for
//! the instances.

use azure_types::ResourceId;
use serde_json::Value;

use super::json::{flag_at, id_at, id_of, port_at, text_at};
use super::protocol::{Protocol, carries};

/// An inbound NAT rule as it works for one machine: rules for pools make one for each member.
#[derive(Debug)]
pub(crate) struct NatRule {
    pub id: ResourceId,
    pub frontend: Option<ResourceId>,
    /// Index into the network's interfaces.
    pub target: Option<usize>,
    pub protocol: String,
    pub frontend_port: u16,
    pub backend_port: u16,
    pub floating_ip: bool,
}

impl NatRule {
    pub fn carries(&self, protocol: Protocol, port: u16) -> bool {
        carries(&self.protocol, protocol) && self.frontend_port == port
    }

    pub(super) fn new(document: &Value, frontend_port: u16, target: Option<usize>) -> Option<Self> {
        Some(Self {
            id: id_of(document)?,
            frontend: id_at(document, "/properties/frontendIPConfiguration/id"),
            target,
            protocol: text_at(document, "/properties/protocol")?.to_owned(),
            frontend_port,
            backend_port: port_at(document, "/properties/backendPort")?,
            floating_ip: flag_at(document, "/properties/enableFloatingIP"),
        })
    }
}
