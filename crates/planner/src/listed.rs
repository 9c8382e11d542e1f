//! A load balancer of the cluster as Azure shows it, beside an index of what its parts are named after.
//!
//! A Service asks several times whether a load balancer holds anything of it. With the index the answer does not
//! depend on how many other Services are there.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use azure_types::{FrontendIpConfiguration, LoadBalancer};

use crate::intent::ServiceRemoval;
use crate::load_balancer::{FrontendIndex, base_of};

/// A load balancer's document, shared.
#[derive(Debug, Clone)]
pub struct ListedLoadBalancer {
    document: Arc<LoadBalancer>,
    parts: Option<Arc<Parts>>,
}

/// The parts of a load balancer by what their names begin with.
#[derive(Debug)]
struct Parts {
    frontends: FrontendIndex,
    /// What the names of rules and probes begin with.
    others: HashSet<String>,
}

impl Parts {
    fn of(document: &LoadBalancer) -> Self {
        let properties = document.properties.as_ref();
        let rules = properties.into_iter().flat_map(|p| p.load_balancing_rules.iter().flatten());
        let probes = properties.into_iter().flat_map(|p| p.probes.iter().flatten());
        let names = rules.map(|rule| &rule.name).chain(probes.map(|probe| &probe.name));
        Self {
            frontends: FrontendIndex::new(frontends(document)),
            others: names.flatten().map(|name| base_of(name)).collect(),
        }
    }
}

fn frontends(document: &LoadBalancer) -> &[FrontendIpConfiguration] {
    let properties = document.properties.as_ref();
    properties.and_then(|p| p.frontend_ip_configurations.as_deref()).unwrap_or_default()
}

impl ListedLoadBalancer {
    /// The same with an index: worth its price where many Services ask.
    #[must_use]
    pub fn indexed(self) -> Self {
        let parts = Some(Arc::new(Parts::of(&self.document)));
        Self { parts, ..self }
    }

    /// The document.
    pub fn document(&self) -> &Arc<LoadBalancer> {
        &self.document
    }

    /// The frontends that may be a Service's: with an index those whose names begin as its own do, unless it asks for
    /// an address or a public IP, because then any may be.
    pub(crate) fn frontends_for(
        &self,
        owner: &ServiceRemoval,
    ) -> impl Iterator<Item = &FrontendIpConfiguration> {
        let all = frontends(&self.document);
        let parts = self.parts.as_ref().filter(|_| !owner.is_pinned());
        let scanned = if parts.is_none() { all } else { &[] };
        let base = owner.base_name.as_deref();
        let found = parts.zip(base).map(|(parts, base)| parts.frontends.like(all, base));
        found.into_iter().flatten().chain(scanned)
    }

    /// Whether any part may be named after the Service: `None` where there is no index to tell.
    pub(crate) fn may_name(&self, owner: &ServiceRemoval) -> Option<bool> {
        let parts = self.parts.as_ref()?;
        let names = |base| parts.frontends.has_like(base) || parts.others.contains(&base_of(base));
        Some(owner.base_name.as_deref().is_some_and(names))
    }
}

impl From<Arc<LoadBalancer>> for ListedLoadBalancer {
    fn from(document: Arc<LoadBalancer>) -> Self {
        Self { document, parts: None }
    }
}

impl Deref for ListedLoadBalancer {
    type Target = LoadBalancer;

    fn deref(&self) -> &LoadBalancer {
        &self.document
    }
}
