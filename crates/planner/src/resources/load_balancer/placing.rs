//! The frontend of each family of a Service: its own, another Service's that it joins, or a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::{ResourceId, Subnet};

use super::edit::{Draft, Placed};
use super::frontend::{self, Source};
use super::index::FrontendIndex;
use super::parts::is_named;
use super::rule;
use crate::model::{Family, names, zone};
use crate::outcome::{Change, FrontendSource, Refusal};
use crate::service::ServiceIntent;

impl<'a> Draft<'a> {
    /// Gives each family of a Service its frontend.
    pub(super) fn place(
        &mut self,
        service: &'a ServiceIntent,
        public_ips: &BTreeMap<Family, ResourceId>,
        subnet: Option<&Subnet>,
        index: &mut FrontendIndex,
    ) -> Result<Placed<'a>, Refusal> {
        let owner = service.removal();
        let internal = self.balancer.flavor.is_internal();
        if internal && subnet.is_none() {
            return Err(Refusal::SubnetNotFound {
                network: self.cluster.config.vnet_name.clone(),
                subnet: service.subnet_name(self.cluster).to_owned(),
            });
        }
        let mut own: Vec<Own> = Vec::new();
        for (at, frontend) in index.placed_like(self.frontends(), &service.base_name) {
            let name = frontend::name_of(frontend);
            if names::is_frontend_of(name, &service.base_name) {
                let (name, zones) = (name.to_owned(), frontend.zones.clone());
                own.push(Own { at, name, family: frontend::known_family(frontend, public_ips), zones });
            }
        }
        let mut families = Vec::new();
        let mut used = BTreeSet::new();
        for family in ordered(&service.families) {
            let source = match subnet {
                Some(subnet) if internal => {
                    Source::Subnet(subnet, owner.requested_addresses.get(&family).copied())
                }
                _ => match public_ips.get(&family) {
                    Some(id) => Source::PublicIp(id),
                    None => continue,
                },
            };
            let expected = name_for(service, family, &own);
            let name = if self.serves(index, &expected, &source) {
                expected
            } else if let Some(joined) = self.joined(service, &source) {
                joined
            } else if let Some(own) = own.iter().find(|own| own.name.eq_ignore_ascii_case(&expected)) {
                self.check_address(service, &source)?;
                self.redirect(service, family, own.at, source);
                expected
            } else {
                self.check_family(service, family, &source)?;
                self.check_address(service, &source)?;
                let replaced = own.iter().find(|own| own.family() == family && !used.contains(&own.name));
                let zones = match (internal, replaced) {
                    (false, _) => None,
                    (true, Some(own)) => own.zones.clone(),
                    (true, None) => zone::of_new_address(self.cluster),
                };
                index.add(self.frontends().len(), &expected);
                self.create(service, family, &expected, source, zones);
                expected
            };
            families.push((family, rule::desired(self.cluster, service, family), name.clone()));
            used.insert(name);
        }
        let abandoned = own
            .into_iter()
            .map(|own| own.name)
            .filter(|name| !used.iter().any(|used| used.eq_ignore_ascii_case(name)))
            .collect();
        Ok(Placed { service, families, abandoned })
    }

    /// Refuses a family without a range in the subnet.
    fn check_family(
        &self,
        service: &ServiceIntent,
        family: Family,
        source: &Source<'_>,
    ) -> Result<(), Refusal> {
        match source {
            Source::Subnet(subnet, _) if frontend::lacks(subnet, family) => {
                Err(Refusal::SubnetWithoutFamily {
                    network: self.cluster.config.vnet_name.clone(),
                    subnet: service.subnet_name(self.cluster).to_owned(),
                    family,
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a requested address outside of the subnet. Azure would refuse it, too, but only after the Service has
    /// left its previous load balancer (LB-452).
    fn check_address(&self, service: &ServiceIntent, source: &Source<'_>) -> Result<(), Refusal> {
        match source {
            Source::Subnet(subnet, Some(address))
                if !frontend::lacks(subnet, Family::of(*address))
                    && !frontend::contains(subnet, *address) =>
            {
                Err(Refusal::AddressOutsideSubnet {
                    address: *address,
                    network: self.cluster.config.vnet_name.clone(),
                    subnet: service.subnet_name(self.cluster).to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether a frontend exists and already has the desired address.
    fn serves(&mut self, index: &FrontendIndex, name: &str, source: &Source<'_>) -> bool {
        let mut like = index.like(self.frontends(), name);
        let found = like.find(|frontend| is_named(&frontend.name, name));
        found.is_some_and(|frontend| match source {
            Source::PublicIp(id) => frontend::public_ip_of(frontend) == Some(*id),
            Source::Subnet(_, Some(address)) => {
                frontend::private_address_of(frontend) == Some(*address) && !frontend::is_dynamic(frontend)
            }
            Source::Subnet(_, None) => false,
        })
    }

    /// The frontend of another Service that has the requested address.
    fn joined(&mut self, service: &ServiceIntent, source: &Source<'_>) -> Option<String> {
        if !service.removal().is_pinned() {
            return None;
        }
        let found = self.frontends().iter().find(|frontend| {
            !names::is_frontend_of(frontend::name_of(frontend), &service.base_name)
                && match source {
                    Source::PublicIp(id) => frontend::public_ip_of(frontend) == Some(*id),
                    Source::Subnet(_, Some(address)) => {
                        frontend::private_address_of(frontend) == Some(*address)
                    }
                    Source::Subnet(_, None) => false,
                }
        });
        found.map(|frontend| frontend::name_of(frontend).to_owned())
    }

    /// The address of a new internal frontend: the requested one, else the first published address that is in the
    /// subnet and that no other frontend holds.
    fn choose_address(
        &mut self,
        service: &ServiceIntent,
        family: Family,
        subnet: &Subnet,
        requested: Option<IpAddr>,
    ) -> Option<IpAddr> {
        if requested.is_some() {
            return requested;
        }
        let frontends = self.frontends();
        let is_taken = |address: IpAddr| {
            frontends.iter().any(|frontend| {
                !names::is_frontend_of(frontend::name_of(frontend), &service.base_name)
                    && frontend::private_address_of(frontend) == Some(address)
            })
        };
        let mut published = service.removal().published_addresses.iter().copied();
        published.find(|address| {
            Family::of(*address) == family && frontend::contains(subnet, *address) && !is_taken(*address)
        })
    }

    fn create(
        &mut self,
        service: &ServiceIntent,
        family: Family,
        name: &str,
        source: Source<'_>,
        zones: Option<Vec<String>>,
    ) {
        let source = match source {
            Source::Subnet(subnet, requested) => {
                Source::Subnet(subnet, self.choose_address(service, family, subnet, requested))
            }
            public => public,
        };
        let frontend = frontend::document(self.frontend_id(name), family, &source, zones);
        self.frontends().push(frontend);
        self.note(
            &service.key,
            [Change::FrontendAdded {
                frontend: name.to_owned(),
                service: service.key.clone(),
                source: named(&source),
            }],
        );
    }

    /// Changes the source of the Service's own frontend, if it differs from the desired one.
    fn redirect(&mut self, service: &ServiceIntent, family: Family, at: usize, source: Source<'_>) {
        let moves = match &source {
            Source::Subnet(subnet, _) if service.subnet.is_some() => {
                let properties = self.frontends().get(at).and_then(|frontend| frontend.properties.as_ref());
                let current = properties.and_then(|p| p.subnet.as_ref()?.id.as_ref());
                current.is_some() && current != subnet.id.as_ref()
            }
            _ => false,
        };
        let chosen = match &source {
            Source::Subnet(subnet, requested) if moves => {
                self.choose_address(service, family, subnet, *requested)
            }
            _ => None,
        };
        let Some(frontend) = self.frontends().get_mut(at) else { return };
        let name = frontend::name_of(frontend).to_owned();
        let properties = frontend.properties.get_or_insert_default();
        let change = match &source {
            Source::PublicIp(id) => {
                let current = properties.public_ip_address.as_mut().filter(|current| current.id.is_some());
                // A frontend that never had a public IP may not be converted.
                let Some(current) = current else { return };
                let old = current.id.replace((*id).clone());
                let old = old.as_ref().map(ResourceId::name).unwrap_or_default();
                let (from, to) = (old.to_owned(), id.name().to_owned());
                Change::FrontendPublicIp { frontend: name, from, to }
            }
            Source::Subnet(subnet, requested) => {
                if moves {
                    frontend::set_private(properties, subnet, chosen);
                    let source = named(&Source::Subnet(subnet, chosen));
                    Change::FrontendMoved { frontend: name, source }
                } else if let Some(requested) = requested {
                    // An address that Azure chose is not stable: it is written as a static one.
                    let same = Some(requested.to_string());
                    let from =
                        properties.private_ip_address.clone().filter(|from| Some(from) != same.as_ref());
                    let subnet = properties.subnet.clone().unwrap_or_else(|| (*subnet).clone());
                    frontend::set_private(properties, &subnet, Some(*requested));
                    Change::FrontendAddress { frontend: name, from, to: *requested }
                } else {
                    return;
                }
            }
        };
        self.note(&service.key, [change]);
    }

    /// Removes the frontends that a Service no longer uses.
    pub(super) fn abandon(&mut self, placed: &Placed<'_>) -> Result<(), Refusal> {
        for name in &placed.abandoned {
            let frontends = self.frontends();
            let public_ip = frontends
                .iter()
                .find(|frontend| is_named(&frontend.name, name))
                .and_then(|frontend| frontend::public_ip_of(frontend).cloned());
            let needed_elsewhere = public_ip.is_some_and(|id| {
                let holders = frontends.iter().filter(|f| frontend::public_ip_of(f) == Some(&id));
                holders.count() > 1
            });
            let reference = self.remove_frontend(placed.service.removal(), name);
            if let Some(reference) = reference
                && needed_elsewhere
            {
                return Err(Refusal::FrontendInUse { frontend: name.clone(), reference });
            }
        }
        Ok(())
    }
}

/// The name of a family's frontend: unchanged if it exists; otherwise the first of its names, or the second if another
/// family has the first.
fn name_for(service: &ServiceIntent, family: Family, own: &[Own]) -> String {
    let naming = service.naming();
    let [first, second] = naming.of_family(naming.frontend(family), family);
    let of =
        |name: &str| own.iter().find(|own| own.name.eq_ignore_ascii_case(name)).and_then(|own| own.family);
    let is_others = of(&first).is_some_and(|other| other != family);
    let takes_second = of(&first) != Some(family) && (of(&second) == Some(family) || is_others);
    if takes_second { second } else { first }
}

fn named(source: &Source<'_>) -> FrontendSource {
    match source {
        Source::PublicIp(id) => FrontendSource::PublicIp(id.name().to_owned()),
        Source::Subnet(subnet, address) => {
            let name = subnet.name.as_deref().or_else(|| subnet.id.as_ref().map(ResourceId::name));
            FrontendSource::Subnet { name: name.unwrap_or_default().to_owned(), address: *address }
        }
    }
}

/// A frontend that is named after the Service.
struct Own {
    /// Its position in the document.
    at: usize,
    name: String,
    /// The family of its address, if its document says so.
    family: Option<Family>,
    zones: Option<Vec<String>>,
}

impl Own {
    fn family(&self) -> Family {
        self.family.unwrap_or_else(|| names::family_of_name(&self.name))
    }
}

/// The families without duplicates, IPv4 first.
fn ordered(families: &[Family]) -> BTreeSet<Family> {
    families.iter().copied().collect()
}
