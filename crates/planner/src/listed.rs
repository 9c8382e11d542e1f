//! A load balancer of the cluster as Azure shows it, beside an index of what its parts are named after.
//!
//! A Service asks several times whether a load balancer holds anything of it. With the index the answer does not
//! depend on how many other Services are there.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use azure_types::{FrontendIpConfiguration, LoadBalancer};

use crate::intent::ServiceRemoval;
use crate::load_balancer::base_of;

/// A load balancer's document, shared.
#[derive(Debug, Clone)]
pub struct ListedLoadBalancer {
    document: Arc<LoadBalancer>,
    parts: Option<Arc<Parts>>,
}

/// The parts of a load balancer by what their names begin with, up to the first dash, in lower case.
#[derive(Debug, Default)]
struct Parts(HashMap<String, PartsOfService>);

/// What is named after one Service.
#[derive(Debug, Default)]
struct PartsOfService {
    /// Positions of frontends in the document.
    frontends: Vec<usize>,
}

impl Parts {
    fn of(document: &LoadBalancer) -> Self {
        let mut parts = Self::default();
        let Some(properties) = &document.properties else { return parts };
        for (at, frontend) in properties.frontend_ip_configurations.iter().flatten().enumerate() {
            parts.named(frontend.name.as_deref()).frontends.push(at);
        }
        let rules = properties.load_balancing_rules.iter().flatten().map(|rule| &rule.name);
        let probes = properties.probes.iter().flatten().map(|probe| &probe.name);
        for name in rules.chain(probes) {
            parts.named(name.as_deref());
        }
        parts
    }

    fn named(&mut self, name: Option<&str>) -> &mut PartsOfService {
        self.0.entry(base_of(name.unwrap_or_default())).or_default()
    }
}

impl ListedLoadBalancer {
    /// The same with an index: worth its price where many Services ask.
    #[must_use]
    pub(crate) fn indexed(self) -> Self {
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
        let all = self.document.properties.as_ref().and_then(|p| p.frontend_ip_configurations.as_deref());
        let all = all.unwrap_or_default();
        let indexed = self.parts.as_ref().filter(|_| !owner.is_pinned());
        let positions = indexed.map(|parts| {
            let base = owner.base_name.as_deref().map(base_of);
            let found = base.and_then(|base| parts.0.get(&base));
            found.map(|found| found.frontends.as_slice()).unwrap_or_default()
        });
        let scanned = if positions.is_none() { all } else { &[] };
        let found = positions.unwrap_or_default().iter().filter_map(|at| all.get(*at));
        found.chain(scanned)
    }

    /// Whether any part may be named after the Service: `None` where there is no index to tell.
    pub(crate) fn may_name(&self, owner: &ServiceRemoval) -> Option<bool> {
        let parts = self.parts.as_ref()?;
        Some(owner.base_name.as_deref().is_some_and(|base| parts.0.contains_key(&base_of(base))))
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
