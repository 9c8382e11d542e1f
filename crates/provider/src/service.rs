//! One Service on its way through all resources (`spec/load-balancer.md` 2.2 to 2.6).
//!
//! The order is such that nothing refers to what is not there yet, and nothing is given up while something
//! refers to it. Every step starts from what Azure holds, so a way that was cut short anywhere is simply gone
//! again.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{LoadBalancer, PublicIpAddress};
use cloud::LogicalTime;
use futures::future::join_all;
use k8s::Service;
use planner::load_balancer::{self as plans, LoadBalancerIntent, frontends_of};
use planner::security_group::AccessIntent;
use planner::{Family, Flavor, ServiceIntent, ServiceRemoval, backend_pool, public_ip};

use crate::failure::{self, Failure};
use crate::load_balancer::{Seen, SharedLoadBalancer};
use crate::provider::Inner;
use crate::public_ip::Secured;
use crate::security_group::SharedSecurityGroup;
use crate::writer::Announcement;
use crate::{Ensured, Notice, ServiceError};

/// How often a Service goes the whole way because a public IP had to be given up first.
const MOST_ROUNDS: u32 = 3;

/// That intents will come to the writers that a Service needs.
#[derive(Default)]
struct Announced {
    load_balancer: Option<Announcement<SharedLoadBalancer>>,
    security_group: Option<Announcement<SharedSecurityGroup>>,
}

fn told(failure: Failure) -> ServiceError {
    failure.into_service_error(Vec::new())
}

impl Inner {
    /// Brings Azure to what a Service wants.
    pub(crate) async fn ensure(
        &self,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<Ensured, ServiceError> {
        let newer_than = newer_than.max(self.look_again(&service.key()));
        let intent = ServiceIntent::from_service(&self.cluster, service)
            .map_err(|refusal| failure::of_refusal(refusal, Vec::new()))?;
        let intent = Arc::new(intent);
        let mut announced = Announced {
            load_balancer: Some(self.load_balancer(intent.flavor).announce()),
            security_group: Some(self.security_group()?.announce()),
        };
        let mut notices = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let mut secured = self.public_ips.secure(&intent, newer_than).await?;
            notices.append(&mut secured.notices);
            let placed = match intent.flavor {
                Flavor::External => self.place_external(&intent, &secured, newer_than, &mut announced).await,
                Flavor::Internal => self.place_internal(&intent, service, newer_than, &mut announced).await,
            };
            let (addresses, more) = placed.map_err(|error| failure::with_notices(error, notices.clone()))?;
            notices.extend(more);
            self.leave_other(&intent, newer_than).await?;
            if secured.release {
                notices.extend(
                    self.public_ips.release(intent.removal(), Some(&intent), LogicalTime::BEGINNING).await?,
                );
            }
            if !secured.again {
                let mut all = addresses;
                let others = intent.additional_addresses().iter().filter(|address| !all.contains(address));
                let others: Vec<IpAddr> = others.copied().collect();
                all.extend(others);
                return Ok(Ensured { addresses: all, notices });
            }
        }
        Err(failure::retry("a public IP had to be created again several times", None))
    }

    /// Load balancer and security group at the same time: the addresses are known.
    async fn place_external(
        &self,
        intent: &Arc<ServiceIntent>,
        secured: &Secured,
        newer_than: LogicalTime,
        announced: &mut Announced,
    ) -> Result<(Vec<IpAddr>, Vec<Notice>), ServiceError> {
        let known: Option<Vec<IpAddr>> = secured.addresses.values().copied().collect();
        let known = known.filter(|addresses| !addresses.is_empty());
        let balanced = self.balance(intent, secured, None, newer_than, announced.load_balancer.take());
        let (seen, access, mut notices) = match known {
            Some(addresses) => {
                let access = self.give_access(intent, addresses, newer_than, announced.security_group.take());
                let (balanced, access) = futures::join!(balanced, access);
                let (seen, notices) = balanced?;
                (seen, Some(access?), notices)
            }
            None => {
                let (seen, notices) = balanced.await?;
                (seen, None, notices)
            }
        };
        if secured.again && secured.ids.is_empty() {
            return Ok((Vec::new(), notices));
        }
        let mut found = BTreeMap::new();
        for (family, id) in &secured.ids {
            let address = match secured.addresses.get(family).copied().flatten() {
                Some(address) => Some(address),
                // Azure may give an address only to a public IP that is in use.
                None => self.address_of(intent, id).await?,
            };
            let address = address
                .ok_or_else(|| failure::retry(format!("public IP {} has no address yet", id.name()), None))?;
            found.insert(*family, address);
        }
        let addresses = self.in_order(intent, &seen, &found)?;
        match access {
            Some(more) => notices.extend(more),
            None => {
                let access =
                    self.give_access(intent, addresses.clone(), newer_than, announced.security_group.take());
                notices.extend(access.await?);
            }
        }
        Ok((addresses, notices))
    }

    /// The load balancer first: it chooses the addresses that the security group needs.
    async fn place_internal(
        &self,
        intent: &Arc<ServiceIntent>,
        service: &Service,
        newer_than: LogicalTime,
        announced: &mut Announced,
    ) -> Result<(Vec<IpAddr>, Vec<Notice>), ServiceError> {
        let none = Secured::default();
        let balanced = self.balance(intent, &none, Some(service), newer_than, announced.load_balancer.take());
        let (seen, mut notices) = balanced.await?;
        let addresses = self.in_order(intent, &seen, &BTreeMap::new())?;
        let access = self.give_access(intent, addresses.clone(), newer_than, announced.security_group.take());
        notices.extend(access.await?);
        Ok((addresses, notices))
    }

    async fn address_of(
        &self,
        intent: &ServiceIntent,
        id: &azure_types::ResourceId,
    ) -> Result<Option<IpAddr>, ServiceError> {
        let all = self.public_ips.concerning(intent.removal(), LogicalTime::now()).await.map_err(told)?;
        let mine = all.iter().find(|document| document.id.as_ref() == Some(id));
        Ok(mine.and_then(address_in))
    }

    /// The addresses of the Service's frontends in the load balancer's order. One that is not known yet is
    /// no address: the Service has to be looked at again (SE-24).
    fn in_order(
        &self,
        intent: &ServiceIntent,
        seen: &Seen,
        public: &BTreeMap<Family, IpAddr>,
    ) -> Result<Vec<IpAddr>, ServiceError> {
        let wait = |what: &str| failure::retry(format!("{} has {what} yet", intent.key), None);
        let document = seen.load_balancer.as_deref().ok_or_else(|| wait("no load balancer"))?;
        let mut addresses = Vec::new();
        for frontend in frontends_of(&self.cluster, document, intent.removal(), &seen.public_ips) {
            let address = frontend.private_address.or_else(|| public.get(&frontend.family).copied());
            let address = address.ok_or_else(|| wait("a frontend without an address"))?;
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() { Err(wait("no frontend")) } else { Ok(addresses) }
    }

    /// The load balancer, then the members of its pools.
    async fn balance(
        &self,
        intent: &Arc<ServiceIntent>,
        secured: &Secured,
        internal: Option<&Service>,
        newer_than: LogicalTime,
        announcement: Option<Announcement<SharedLoadBalancer>>,
    ) -> Result<(Arc<Seen>, Vec<Notice>), ServiceError> {
        let (mut subnet, mut former_addresses) = (None, Vec::new());
        if let Some(service) = internal {
            let id = self.cluster.subnet_id(intent.subnet_name(&self.cluster));
            let document = self.observed.subnet(&id, newer_than).await.map_err(told)?;
            subnet = document.map(|document| azure_types::Subnet::clone(&document));
            let ingress = &service.status.load_balancer.ingress;
            former_addresses = ingress.iter().filter_map(|entry| entry.ip.parse().ok()).collect();
        }
        let wanted = LoadBalancerIntent::Present {
            service: Arc::clone(intent),
            public_ips: secured.ids.clone(),
            subnet,
            former_addresses,
        };
        let writer = self.load_balancer(intent.flavor);
        let done = writer.submit(intent.key.clone(), wanted, newer_than, announcement).await?;
        if let Some(document) = done.observed.load_balancer.as_deref() {
            let before = done.observed.before.as_deref();
            let pools = backend_pool::pools_to_fill(&self.cluster, intent.flavor, before, document);
            self.membership.join_if_changed(&pools).await?;
        }
        Ok((done.observed, done.notices))
    }

    async fn give_access(
        &self,
        intent: &Arc<ServiceIntent>,
        addresses: Vec<IpAddr>,
        newer_than: LogicalTime,
        announcement: Option<Announcement<SharedSecurityGroup>>,
    ) -> Result<Vec<Notice>, ServiceError> {
        self.recently.set(&intent.key, addresses.clone());
        let node_addresses = if intent.floating_ip { Vec::new() } else { self.node_addresses(intent) };
        let wanted = AccessIntent::Present { service: Arc::clone(intent), addresses, node_addresses };
        let done =
            self.security_group()?.submit(intent.key.clone(), wanted, newer_than, announcement).await?;
        Ok(done.notices)
    }

    /// Where traffic arrives when nodes do not see the frontend's address: the nodes in the pools.
    fn node_addresses(&self, intent: &ServiceIntent) -> Vec<IpAddr> {
        let nodes = backend_pool::eligible_nodes(&self.cluster, &self.state.nodes());
        let all = nodes.iter().flat_map(|node| &node.status.addresses);
        all.filter(|address| address.kind == "InternalIP")
            .filter_map(|address| address.address.parse().ok())
            .filter(|address| intent.families.contains(&Family::of(*address)))
            .collect()
    }

    /// Removes what a Service left behind on the load balancer of the other flavour.
    async fn leave_other(
        &self,
        intent: &Arc<ServiceIntent>,
        newer_than: LogicalTime,
    ) -> Result<(), ServiceError> {
        let other = intent.flavor.other();
        let removal = Arc::new(intent.removal().clone());
        if self.holds(other, &removal, newer_than).await.map_err(told)? {
            let wanted = LoadBalancerIntent::Absent { service: removal };
            self.load_balancer(other).submit(intent.key.clone(), wanted, newer_than, None).await?;
        }
        Ok(())
    }

    /// The load balancer as last read after `newer_than`.
    async fn balancer(
        &self,
        flavor: Flavor,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<LoadBalancer>>, Failure> {
        let name = self.cluster.load_balancer_name(flavor);
        self.observed.load_balancers().one(&name, newer_than).await
    }

    /// Whether a load balancer holds anything of the Service's.
    async fn holds(
        &self,
        flavor: Flavor,
        removal: &Arc<ServiceRemoval>,
        newer_than: LogicalTime,
    ) -> Result<bool, Failure> {
        let document = self.balancer(flavor, newer_than).await?.filter(|document| names(document, removal));
        let Some(document) = document else { return Ok(false) };
        let public_ips = self.public_ips.concerning(removal, LogicalTime::BEGINNING).await?;
        let wanted = [LoadBalancerIntent::Absent { service: Arc::clone(removal) }];
        let plan = plans::plan(&self.cluster, flavor, Some(&document), &wanted, &public_ips);
        Ok(plan.step.is_some())
    }

    /// Whether Azure holds anything of the Service's (2.2).
    pub(crate) async fn exists(&self, service: &Service) -> Result<bool, ServiceError> {
        let newer_than = LogicalTime::now();
        let removal = Arc::new(ServiceRemoval::of(&self.cluster, service));
        for flavor in Flavor::BOTH {
            if self.holds(flavor, &removal, newer_than).await.map_err(told)? {
                return Ok(true);
            }
        }
        let public_ips = self.public_ips.concerning(&removal, newer_than).await.map_err(told)?;
        Ok(!public_ip::plan_removal(&self.cluster, &removal, &public_ips).release.is_empty())
    }

    /// Removes everything of a Service's (2.6).
    pub(crate) async fn delete(&self, service: &Service) -> Result<Vec<Notice>, ServiceError> {
        let newer_than = LogicalTime::now();
        let removal = Arc::new(ServiceRemoval::of(&self.cluster, service));
        let key = removal.key.clone();
        let security = match self.security_group() {
            Ok(writer) => Some((writer.clone(), writer.announce())),
            // Where none is configured, none holds anything.
            Err(_) => None,
        };
        let public_ips = self.public_ips.concerning(&removal, newer_than).await.map_err(told)?;
        let mut addresses: Vec<IpAddr> = removal.published_addresses.clone();
        let mut holders = Vec::new();
        for flavor in Flavor::BOTH {
            if let Some(document) = self.balancer(flavor, newer_than).await.map_err(told)? {
                for frontend in frontends_of(&self.cluster, &document, &removal, &public_ips) {
                    let public = frontend.public_ip.as_ref().and_then(|id| {
                        public_ips
                            .iter()
                            .find(|document| document.id.as_ref() == Some(id))
                            .and_then(address_in)
                    });
                    addresses.extend(frontend.private_address.or(public));
                }
            }
            if self.holds(flavor, &removal, newer_than).await.map_err(told)? {
                holders.push((flavor, self.load_balancer(flavor).announce()));
            }
        }
        // Its own public IPs, although no frontend refers to them any more: the way was cut short before.
        let given_up = public_ip::plan_removal(&self.cluster, &removal, &public_ips).release;
        for step in &given_up {
            let mine = public_ips.iter().find(|document| document.id.as_ref() == Some(&step.target));
            addresses.extend(mine.and_then(address_in));
        }
        addresses.sort();
        addresses.dedup();
        self.recently.forget(&key);

        let access = async {
            let Some((writer, announcement)) = security else { return Ok(Vec::new()) };
            let wanted = AccessIntent::Absent { service: Arc::clone(&removal), addresses };
            let done = writer.submit(key.clone(), wanted, newer_than, Some(announcement)).await?;
            Ok::<_, ServiceError>(done.notices)
        };
        let balancing = join_all(holders.into_iter().map(|(flavor, announcement)| {
            let wanted = LoadBalancerIntent::Absent { service: Arc::clone(&removal) };
            let writer = self.load_balancer(flavor);
            let key = key.clone();
            async move {
                writer.submit(key, wanted, newer_than, Some(announcement)).await.map(|done| done.notices)
            }
        }));
        let (access, balancing) = futures::join!(access, balancing);
        let mut notices = Vec::new();
        for result in balancing {
            notices.extend(result?);
        }
        notices.extend(access?);
        notices.extend(self.public_ips.release(&removal, None, LogicalTime::BEGINNING).await?);
        self.forget(&key);
        Ok(notices)
    }
}

/// Whether any part of the load balancer is named after the Service: a quick test before planning. Whatever
/// belongs to a Service is, except for a frontend that it shares, and then its rules are.
fn names(load_balancer: &LoadBalancer, owner: &ServiceRemoval) -> bool {
    let (Some(properties), Some(base)) = (&load_balancer.properties, owner.base_name.as_deref()) else {
        return false;
    };
    let frontends = properties.frontend_ip_configurations.iter().flatten().map(|part| &part.name);
    let rules = properties.load_balancing_rules.iter().flatten().map(|part| &part.name);
    let probes = properties.probes.iter().flatten().map(|part| &part.name);
    frontends
        .chain(rules)
        .chain(probes)
        .flatten()
        .any(|name| name.get(..base.len()).is_some_and(|start| start.eq_ignore_ascii_case(base)))
}

fn address_in(public_ip: &PublicIpAddress) -> Option<IpAddr> {
    public_ip.properties.as_ref()?.ip_address.as_deref()?.parse().ok()
}
