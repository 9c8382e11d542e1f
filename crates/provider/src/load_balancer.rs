//! One of the two load balancers as a shared resource (`spec/load-balancer.md` 2.7, 3.4, 3.6).

use std::collections::BTreeSet;
use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{LoadBalancer, PublicIpAddress, ResourceId};
use cloud::LogicalTime;
use k8s::ObjectKey;
use planner::load_balancer::{self as plans, LoadBalancerIntent};
use planner::{Action, Cluster, Document, Flavor, Step, backend_pool};
use tracing::info;

use crate::Notice;
use crate::azure::Azure;
use crate::failure::{self, Failure, Kind};
use crate::fingerprint;
use crate::membership::Membership;
use crate::observed::{Observed, State};
use crate::public_ip::PublicIps;
use crate::writer::{Planned, Resource};

/// One of the two load balancers.
pub(crate) struct SharedLoadBalancer {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) flavor: Flavor,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) public_ips: Arc<PublicIps>,
    pub(crate) membership: Arc<Membership>,
}

/// A load balancer and the public IPs that its plan depends on.
pub(crate) struct Seen {
    /// `None` where there is none.
    pub(crate) load_balancer: Option<Arc<LoadBalancer>>,
    /// As it was before our write; the same where nothing was written.
    pub(crate) before: Option<Arc<LoadBalancer>>,
    /// The public IPs of the cluster's group: frontends are found by them.
    pub(crate) public_ips: Vec<PublicIpAddress>,
}

fn frontends(load_balancer: Option<&LoadBalancer>) -> BTreeSet<(String, Option<ResourceId>)> {
    let properties = load_balancer.and_then(|document| document.properties.as_ref());
    let frontends = properties.and_then(|p| p.frontend_ip_configurations.as_ref());
    frontends
        .into_iter()
        .flatten()
        .map(|frontend| {
            let name = frontend.name.as_deref().unwrap_or_default().to_ascii_lowercase();
            let properties = frontend.properties.as_ref();
            let public_ip =
                properties.and_then(|p| p.public_ip_address.as_ref()).and_then(|ip| ip.id.clone());
            (name, public_ip)
        })
        .collect()
}

/// Whether the latest operation on it failed: writing it again repairs it.
fn is_failed(load_balancer: &LoadBalancer) -> bool {
    let state = load_balancer.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
    State::of(state) == State::Failed
}

/// The resource ids of a kind in a text of Azure's, without regard to case.
fn ids_in(text: &str, kind: &str) -> Vec<ResourceId> {
    let stops =
        |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ',' | ';' | '(' | ')' | '[' | ']' | '`');
    let kind = format!("/{}/", kind.to_ascii_lowercase());
    text.split(stops)
        .map(|word| word.trim_end_matches(['.', ':', '/']))
        .filter_map(|word| {
            let end = word.to_ascii_lowercase().find(&kind)? + kind.len();
            let name = word.get(end..)?.split('/').next()?;
            ResourceId::parse(word.get(..end + name.len())?).ok()
        })
        .collect()
}

/// Why a load balancer is written as it is.
const REPAIR: &str = "repair: the last operation on it failed";
/// Why a load balancer is written as it was.
const RESTORE: &str = "restored: Azure accepted a change and then refused it";

impl SharedLoadBalancer {
    /// Writes a document without a change of ours.
    fn rewrite(&self, document: &LoadBalancer, if_match: Option<String>, why: &str) -> Step {
        Step {
            action: Action::Update,
            target: self.id(),
            if_match,
            document: Some(Document::LoadBalancer(Box::new(document.clone()))),
            changes: vec![why.to_owned()],
            on_behalf_of: Vec::new(),
        }
    }

    fn id(&self) -> ResourceId {
        self.cluster.load_balancer_id(self.flavor)
    }

    async fn put(&self, seen: &Seen, step: &Step) -> Result<Seen, Failure> {
        if step.action == Action::Create {
            // Whatever was known of its pools is no longer so.
            self.membership.forget(&self.id());
        }
        let document: LoadBalancer = match self.azure.put(step, ApiVersion::NETWORK).await {
            Ok(document) => document,
            Err(failure) => {
                self.observed.load_balancers().distrust();
                return Err(self.after_refusal(failure).await);
            }
        };
        let changed = frontends(seen.load_balancer.as_deref()) != frontends(Some(&document));
        if changed && self.flavor == Flavor::External {
            // Each public IP that gained or lost a frontend has a new version now.
            self.observed.distrust_public_ips();
        }
        let load_balancer = Some(self.observed.load_balancers().store(document));
        Ok(Seen { load_balancer, before: seen.load_balancer.clone(), public_ips: seen.public_ips.clone() })
    }

    /// A public IP that is not ready makes Azure refuse the whole load balancer: it is repaired or waited
    /// for, and the load balancer written again (3.6).
    async fn after_refusal(&self, failure: Failure) -> Failure {
        if !failure.message.to_ascii_lowercase().contains("referencedresourcenotprovisioned") {
            return failure;
        }
        for id in ids_in(&failure.message, "publicIPAddresses") {
            info!(public_ip = %id, "a public IP that the load balancer refers to is not ready");
            if let Err(error) = self.public_ips.repair(&id).await {
                return error.while_doing(&failure.message);
            }
        }
        Failure { kind: Kind::Busy, ..failure }
    }

    async fn delete(&self, seen: &Seen, step: &Step) -> Result<Seen, Failure> {
        let id = self.id();
        if let Some(document) = seen.load_balancer.as_deref() {
            let pools = backend_pool::pools_to_empty(&self.cluster, self.flavor, document);
            self.membership.leave(&pools).await?;
            // Emptying pools takes its time, and a deletion has no If-Match: look once more.
            let fresh = self.observed.settled_load_balancer(&id, LogicalTime::now()).await?;
            if !frontends(fresh.as_deref()).is_subset(&frontends(Some(document))) {
                return Err(Failure::new(
                    Kind::Changed,
                    format!("{id} got new frontends while it was emptied"),
                ));
            }
        }
        self.membership.forget(&id);
        let mut result = self.azure.delete(step, ApiVersion::NETWORK).await;
        if let Err(failure) = &result
            && failure.message.contains("LoadBalancerInUseByVirtualMachineScaleSet")
        {
            self.clean_scale_sets(&failure.message, seen).await?;
            result = self.azure.delete(step, ApiVersion::NETWORK).await;
        }
        self.observed.distrust_public_ips();
        if let Err(failure) = result {
            self.observed.load_balancers().distrust();
            // The deletion is nobody's wish in particular: it is tried again, not held against a Service.
            let kind = if failure.kind == Kind::Refused { Kind::Denied } else { failure.kind };
            return Err(Failure { kind, ..failure });
        }
        self.observed.load_balancers().remove(id.name());
        Ok(Seen {
            load_balancer: None,
            before: seen.load_balancer.clone(),
            public_ips: seen.public_ips.clone(),
        })
    }

    /// Takes the scale sets that Azure names out of the load balancer's pools (3.4).
    async fn clean_scale_sets(&self, message: &str, seen: &Seen) -> Result<(), Failure> {
        let own = &self.cluster.config.resource_group;
        let Some(document) = seen.load_balancer.as_deref() else { return Ok(()) };
        let pools = backend_pool::pools_to_empty(&self.cluster, self.flavor, document);
        for scale_set in ids_in(message, "virtualMachineScaleSets") {
            let group = scale_set.group_name().unwrap_or_default();
            if !group.eq_ignore_ascii_case(own) {
                let message = format!(
                    "scale set {} in resource group {group} uses load balancer {}, and this cluster only changes \
                     scale sets in resource group {own}: take it out of the load balancer's pools",
                    scale_set.name(),
                    self.id().name(),
                );
                return Err(Failure::new(Kind::Denied, message));
            }
            self.membership.leave_one(&scale_set, &pools).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Resource for SharedLoadBalancer {
    type Key = ObjectKey;
    type Intent = LoadBalancerIntent;
    type Observed = Seen;
    type Work = Step;

    fn name(&self) -> String {
        format!("load balancer {}", self.cluster.load_balancer_name(self.flavor))
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Seen, Failure> {
        let load_balancer = self.observed.settled_load_balancer(&self.id(), newer_than).await?;
        let public_ips = self.public_ips.known(self.observed.started).await?;
        Ok(Seen { before: load_balancer.clone(), load_balancer, public_ips })
    }

    fn plan(&self, seen: &Seen, batch: &[(ObjectKey, LoadBalancerIntent)]) -> Planned<Self> {
        let intents: Vec<LoadBalancerIntent> = batch.iter().map(|(_, intent)| intent.clone()).collect();
        let observed = seen.load_balancer.as_deref();
        let plan = plans::plan(&self.cluster, self.flavor, observed, &intents, &seen.public_ips);
        let work = plan.step.or_else(|| {
            let failed = observed.filter(|document| is_failed(document))?;
            Some(self.rewrite(failed, failed.etag.clone(), REPAIR))
        });
        let refused =
            plan.refused.into_iter().map(|(key, refusal)| (key, failure::of_refusal(refusal, Vec::new())));
        Planned {
            work,
            refused: refused.collect(),
            notices: plan.notices.into_iter().map(|notice| (notice.service.clone(), notice)).collect(),
        }
    }

    async fn write(&self, seen: &Seen, step: &Step) -> Result<Seen, Failure> {
        match step.action {
            Action::Create | Action::Update => self.put(seen, step).await,
            Action::Delete => self.delete(seen, step).await,
        }
    }

    fn fingerprint(&self, step: &Step) -> u64 {
        fingerprint::of([step])
    }

    fn blame(&self, message: &str, batch: &[(ObjectKey, LoadBalancerIntent)]) -> Vec<ObjectKey> {
        let intents: Vec<LoadBalancerIntent> = batch.iter().map(|(_, intent)| intent.clone()).collect();
        plans::blame(message, &intents)
    }

    async fn restore(&self, before: &Seen) -> Result<(), Failure> {
        let now = self.observed.settled_load_balancer(&self.id(), LogicalTime::now()).await?;
        let Some(now) = now.filter(|now| is_failed(now)) else { return Ok(()) };
        match before.load_balancer.as_deref() {
            // Refused before anything was done.
            Some(before) if before.etag == now.etag => Ok(()),
            Some(before) => {
                let step = self.rewrite(before, now.etag.clone(), RESTORE);
                let document: LoadBalancer = self.azure.put(&step, ApiVersion::NETWORK).await?;
                self.observed.load_balancers().store(document);
                Ok(())
            }
            None => {
                let step = Step {
                    action: Action::Delete,
                    document: None,
                    ..self.rewrite(&now, now.etag.clone(), RESTORE)
                };
                self.azure.delete(&step, ApiVersion::NETWORK).await?;
                self.observed.load_balancers().remove(self.id().name());
                Ok(())
            }
        }
    }

    fn is_repair(&self, step: &Step) -> bool {
        step.changes.iter().all(|change| change == REPAIR)
    }

    fn complaint(&self, key: &ObjectKey, step: Option<&Step>, failure: &Failure) -> Option<Notice> {
        let reason = match step {
            None => "ListLoadBalancers",
            Some(step) if step.action == Action::Delete => "DeleteLoadBalancer",
            Some(_) => return None,
        };
        let message = failure::short(failure.message.clone());
        Some(Notice { service: key.clone(), warning: true, reason, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_found_in_the_texts_of_azure() {
        let text = "Cannot proceed with operation because resource /subscriptions/s/resourceGroups/rg/providers/\
                    Microsoft.Network/publicIPAddresses/pip-1 used by resource /subscriptions/s/resourceGroups/rg/\
                    providers/Microsoft.Network/loadBalancers/lb is not in Succeeded state.";
        let found = ids_in(text, "publicIPAddresses");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name(), "pip-1");
        let text = "its child resources kubernetes are in use by virtual machine scale set \
                    /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/vmss-0.";
        assert_eq!(ids_in(text, "virtualMachineScaleSets")[0].name(), "vmss-0");
        assert!(ids_in("nothing here", "publicIPAddresses").is_empty());
    }
}
