//! Finds machines, networks and endpoints: by name if it is unique, by id otherwise.

use std::net::IpAddr;

use azure_types::ResourceId;

use super::machine::{Interface, Machine};
use super::network::Network;
use super::private_link::Endpoint;
use super::verdict::{Refusal, Result};

impl Network {
    /// The machine with this name, host name, id or private address.
    ///
    /// # Errors
    /// There is no such machine, or several.
    pub(super) fn find_machine(&self, name: &str) -> Result<&ResourceId> {
        if let Some((id, _)) = ResourceId::parse(name).ok().and_then(|id| self.machines.get_key_value(&id)) {
            return Ok(id);
        }
        match name.parse::<IpAddr>() {
            Ok(address) => one(name, self.with_address(address).filter_map(|of| of.machine.as_ref())),
            Err(_) => {
                let called = self.machines.iter().filter(|(_, machine)| machine.is_called(name));
                one(name, called.map(|(id, _)| id))
            }
        }
    }

    /// The interfaces of the machine with this name; there is at least one.
    ///
    /// # Errors
    /// There is no such machine, none with an interface, or several.
    pub(super) fn find_interfaces(&self, name: &str) -> Result<(&Interface, Vec<&Interface>)> {
        let all: Vec<&Interface> = self.interfaces_of(self.find_machine(name)?).collect();
        // By its address, a machine sends from the interface that has it.
        let address: Option<IpAddr> = name.parse().ok();
        let addressed = |interface: &&&Interface| address.is_some() && interface.address == address;
        let first = all.iter().find(addressed).or_else(|| all.first()).copied();
        match first {
            Some(first) => Ok((first, if address.is_some() { vec![first] } else { all })),
            None => Err(Refusal::NoSuchSender { node: name.to_owned() }),
        }
    }

    /// The virtual network of a name or id.
    ///
    /// # Errors
    /// There is no such network, or several.
    pub(super) fn find_network(&self, name: &str) -> Result<&ResourceId> {
        one(name, self.virtual_networks.keys().filter(|id| fits(id, name)))
    }

    /// The private endpoint of a name or id.
    ///
    /// # Errors
    /// There is no such endpoint, or several.
    pub(super) fn find_endpoint(&self, name: &str) -> Result<&Endpoint> {
        let id = one(name, self.endpoints.keys().filter(|id| fits(id, name)))?;
        self.endpoints.get(id).ok_or_else(|| Refusal::NoSuchSender { node: name.to_owned() })
    }

    /// Whether a name or id matches this machine.
    pub(super) fn matches_name(id: &ResourceId, machine: &Machine, name: &str) -> bool {
        machine.is_called(name) || id.as_str().eq_ignore_ascii_case(name)
    }
}

fn fits(id: &ResourceId, name: &str) -> bool {
    id.name().eq_ignore_ascii_case(name) || id.as_str().eq_ignore_ascii_case(name)
}

/// The only one there is.
fn one<'a>(name: &str, found: impl Iterator<Item = &'a ResourceId>) -> Result<&'a ResourceId> {
    let mut found: Vec<&ResourceId> = found.collect();
    found.sort();
    found.dedup();
    match found.as_slice() {
        [] => Err(Refusal::NoSuchSender { node: name.to_owned() }),
        [one] => Ok(one),
        several => Err(Refusal::Ambiguous {
            name: name.to_owned(),
            candidates: several.iter().map(|id| (*id).clone()).collect(),
        }),
    }
}
