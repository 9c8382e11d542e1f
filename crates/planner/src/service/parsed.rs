//! A Service as planning reads it: parsed once for each version of its object.

use std::collections::HashMap;
use std::sync::Arc;

use k8s::{ObjectKey, Service};

use super::access::Access;
use super::intent::ServiceIntent;
use super::owner::ServiceRemoval;
use super::security_needs::Needs;
use crate::model::Cluster;
use crate::outcome::Refusal;

/// A Service and everything that is read from its object.
#[derive(Debug, Clone)]
pub(crate) struct ParsedService {
    pub service: Arc<Service>,
    /// What it owns, and how that is found.
    pub owner: Arc<ServiceRemoval>,
    /// What it wants, or why it cannot be served; absent if it does not want a load balancer (any more).
    pub intent: Option<Result<Arc<ServiceIntent>, Refusal>>,
    /// What it needs of the security group, even if it is refused; absent if it does not want a load balancer.
    pub needs: Option<Arc<Needs>>,
}

/// The parsed Services of the cluster: each is parsed once for each version of its object.
#[derive(Debug, Default)]
pub struct ParsedServices(HashMap<ObjectKey, ParsedService>);

impl ParsedServices {
    /// All of these Services. Others are dropped from the cache.
    pub(crate) fn all(&mut self, cluster: &Cluster, services: &[Arc<Service>]) -> Vec<ParsedService> {
        let mut known = std::mem::take(&mut self.0);
        let mut all = Vec::with_capacity(services.len());
        for service in services {
            let key = service.key();
            let same = known.remove(&key).filter(|parsed| Arc::ptr_eq(&parsed.service, service));
            let parsed = same.unwrap_or_else(|| ParsedService::of(cluster, service));
            all.push(parsed.clone());
            self.0.insert(key, parsed);
        }
        all
    }

    /// What one Service wants.
    ///
    /// # Errors
    ///
    /// Why it cannot be served.
    pub fn intent(
        &mut self,
        cluster: &Cluster,
        service: &Arc<Service>,
    ) -> Result<Arc<ServiceIntent>, Refusal> {
        let key = service.key();
        if let Some(known) = self.0.get(&key).filter(|parsed| Arc::ptr_eq(&parsed.service, service))
            && let Some(intent) = &known.intent
        {
            return intent.clone();
        }
        let parsed = ParsedService::of(cluster, service);
        let intent = parsed.intent.clone();
        self.0.insert(key, parsed);
        intent.unwrap_or_else(|| ServiceIntent::from_service(cluster, service).map(Arc::new))
    }
}

impl ParsedService {
    /// Parses a Service.
    pub fn of(cluster: &Cluster, service: &Arc<Service>) -> Self {
        let intent = service.is_to_be_served().then(|| ServiceIntent::from_service(cluster, service));
        let service = Arc::clone(service);
        match intent {
            Some(Ok(intent)) => {
                let intent = Arc::new(intent);
                let (owner, needs) = (Arc::clone(intent.removal()), Some(Arc::clone(&intent.needs)));
                Self { service, owner, intent: Some(Ok(intent)), needs }
            }
            intent => {
                let owner = Arc::new(ServiceRemoval::of(cluster, &service));
                let needs = intent.as_ref();
                let needs = needs.map(|_| Arc::new(Needs::of(&service, &owner, &Access::read(&service))));
                let intent = intent.map(|intent| intent.map(Arc::new));
                Self { service, owner, intent, needs }
            }
        }
    }

    /// Whether it is refused.
    pub fn is_refused(&self) -> bool {
        matches!(self.intent, Some(Err(_)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// C13: a Service is parsed once for each version of its object, however often planning runs; a deleted one is
    /// dropped.
    #[test]
    fn a_service_is_read_once_for_each_version() {
        let cluster = crate::order::tests::cluster();
        let service = |name: &str, port: u16| -> Arc<Service> {
            let service: Service = serde_json::from_value(json!({
                "metadata": { "namespace": "n", "name": name, "uid": format!("uid-of-{name}") },
                "spec": { "type": "LoadBalancer", "ports": [{ "port": port, "nodePort": 30000 + port, "protocol": "TCP" }] },
            }))
            .unwrap();
            Arc::new(service)
        };
        let mut parsed = ParsedServices::default();
        let intents = |parsed: &mut ParsedServices, services: &[Arc<Service>]| -> Vec<Arc<ServiceIntent>> {
            let all = parsed.all(&cluster, services).into_iter();
            all.map(|one| one.intent.unwrap().unwrap()).collect()
        };
        let (a, b) = (service("a", 80), service("b", 81));
        let first = intents(&mut parsed, &[Arc::clone(&a), Arc::clone(&b)]);
        let again = intents(&mut parsed, &[Arc::clone(&a), Arc::clone(&b)]);
        assert!(first.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
        assert!(Arc::ptr_eq(&parsed.intent(&cluster, &a).unwrap(), &first[0]));
        let changed = intents(&mut parsed, &[service("a", 8080), Arc::clone(&b)]);
        assert!(!Arc::ptr_eq(&changed[0], &first[0]) && Arc::ptr_eq(&changed[1], &first[1]));
        intents(&mut parsed, &[b]);
        assert_eq!(parsed.0.len(), 1, "the one that is gone is forgotten");
    }
}
