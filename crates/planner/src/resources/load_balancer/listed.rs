//! A load balancer of the cluster as Azure reports it, with an index of its parts by base name.
//!
//! A Service asks several times whether a load balancer holds any of its parts. With the index, the cost of the answer
//! does not depend on the number of other Services.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use azure_types::{FrontendIpConfiguration, LoadBalancer};

use super::index::FrontendIndex;
use super::parts::base_of;
use crate::service::ServiceRemoval;

/// A load balancer's document, shared.
#[derive(Debug, Clone)]
pub struct ListedLoadBalancer {
    document: Arc<LoadBalancer>,
    parts: Option<Arc<Parts>>,
}

/// The parts of a load balancer by base name.
#[derive(Debug)]
struct Parts {
    frontends: FrontendIndex,
    /// The base names of rules and probes.
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
    /// The same with an index; worthwhile where many Services ask.
    #[must_use]
    pub fn indexed(self) -> Self {
        let parts = Some(Arc::new(Parts::of(&self.document)));
        Self { parts, ..self }
    }

    /// The document.
    pub fn document(&self) -> &Arc<LoadBalancer> {
        &self.document
    }

    /// The frontends that may be a Service's. With an index these are the ones with its base name, unless it asks for
    /// an address or a public IP, because then any frontend may match.
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

    /// Whether any part may be named after the Service; `None` without an index.
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
