//! A load balancer as a shared resource.

use std::collections::BTreeSet;
use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{LoadBalancer, ResourceId};
use cloud::LogicalTime;
use k8s::ObjectKey;
use planner::backend_pool::PoolMembership;
use planner::load_balancer::{self as plans, LoadBalancerIntent};
use planner::{Action, Balancer, Cluster, Flavor, Purpose, Step};
use tracing::info;

use crate::azure::Azure;
use crate::failure::{self, Failure, Kind};
use crate::fingerprint;
use crate::membership::Membership;
use crate::observed::Observed;
use crate::public_ip::PublicIps;
use crate::writer::{Planned, Resource};
use crate::{ClusterState, Notice};

/// One load balancer of the cluster.
pub(crate) struct SharedLoadBalancer {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) balancer: Balancer,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) public_ips: Arc<PublicIps>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) state: ClusterState,
}

/// A load balancer before and after a write.
pub(crate) struct Seen {
    /// `None` where there is none.
    pub(crate) load_balancer: Option<Arc<LoadBalancer>>,
    /// As it was before our write; the same where nothing was written.
    pub(crate) before: Option<Arc<LoadBalancer>>,
}

/// One write, and what has to happen before it.
pub(crate) struct Work {
    step: Step,
    /// The pools that machines leave first, because the load balancer is deleted.
    empty_first: Vec<PoolMembership>,
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

fn warning(service: &ObjectKey, reason: &'static str, failure: &Failure) -> Notice {
    let message = failure::short(failure.message.clone());
    Notice { service: service.clone(), warning: true, reason, message }
}

/// What to tell the owner of a Service if load balancers could not be read.
pub(crate) fn not_listed(service: &ObjectKey, failure: &Failure) -> Notice {
    warning(service, "ListLoadBalancers", failure)
}

impl SharedLoadBalancer {
    fn id(&self) -> ResourceId {
        self.cluster.load_balancer_id(&self.balancer)
    }

    async fn put(&self, seen: &Seen, step: &Step) -> Result<Seen, Failure> {
        if step.action == Action::Create {
            // Whatever was known of its pools is no longer so.
            self.membership.forget(&self.id());
        }
        let document: LoadBalancer = match self.azure.put(step, ApiVersion::NETWORK).await {
            Ok(document) => document,
            Err(failure) => {
                self.observed.load_balancers().invalidate();
                return Err(self.after_refusal(failure).await);
            }
        };
        let changed = frontends(seen.load_balancer.as_deref()) != frontends(Some(&document));
        if changed && self.balancer.flavor == Flavor::External {
            // Each public IP that gained or lost a frontend has a new version now.
            self.observed.invalidate_public_ips();
        }
        let load_balancer = Some(self.observed.load_balancers().store(document));
        Ok(Seen { load_balancer, before: seen.load_balancer.clone() })
    }

    /// A public IP that is not ready makes Azure refuse the whole load balancer: it is repaired or waited
    /// for, and the load balancer written again.
    async fn after_refusal(&self, failure: Failure) -> Failure {
        if !failure.has_code("ReferencedResourceNotProvisioned") {
            return failure;
        }
        for id in ids_in(&failure.full_text(), "publicIPAddresses") {
            info!(public_ip = %id, "a public IP that the load balancer refers to is not ready");
            if let Err(error) = self.public_ips.repair(&id).await {
                return error.while_doing(&failure.message);
            }
        }
        Failure { kind: Kind::Unavailable, ..failure }
    }

    async fn delete(&self, seen: &Seen, work: &Work) -> Result<Seen, Failure> {
        let id = self.id();
        // Whatever becomes of the deletion: its pools are not what they were.
        self.membership.forget(&id);
        self.membership.leave(&work.empty_first).await?;
        if let Some(document) = seen.load_balancer.as_deref() {
            // Emptying pools takes its time, and a deletion has no If-Match: look once more.
            let fresh = self.observed.settled_load_balancer(&id, LogicalTime::now()).await?;
            if !frontends(fresh.as_deref()).is_subset(&frontends(Some(document))) {
                return Err(Failure::new(
                    Kind::Aborted,
                    format!("{id} got new frontends while it was emptied"),
                ));
            }
        }
        let mut result = self.azure.delete(&work.step, ApiVersion::NETWORK).await;
        if let Err(failure) = &result
            && failure.has_code("LoadBalancerInUseByVirtualMachineScaleSet")
        {
            self.clean_scale_sets(&failure.full_text(), &work.empty_first).await?;
            result = self.azure.delete(&work.step, ApiVersion::NETWORK).await;
        }
        self.observed.invalidate_public_ips();
        if let Err(failure) = result {
            self.observed.load_balancers().invalidate();
            return Err(failure.not_attributable());
        }
        self.observed.load_balancers().remove(id.name());
        Ok(Seen { load_balancer: None, before: seen.load_balancer.clone() })
    }

    /// Takes the scale sets that Azure names out of the load balancer's pools.
    async fn clean_scale_sets(&self, message: &str, pools: &[PoolMembership]) -> Result<(), Failure> {
        let own = &self.cluster.config.resource_group;
        for scale_set in ids_in(message, "virtualMachineScaleSets") {
            let group = scale_set.group_name().unwrap_or_default();
            if !group.eq_ignore_ascii_case(own) {
                let message = format!(
                    "scale set {} in resource group {group} uses load balancer {}, and this cluster only changes \
                     scale sets in resource group {own}: take it out of the load balancer's pools",
                    scale_set.name(),
                    self.id().name(),
                );
                return Err(Failure::new(Kind::PermissionDenied, message));
            }
            self.membership.leave_one(&scale_set, pools).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Resource for SharedLoadBalancer {
    type Key = ObjectKey;
    type Intent = LoadBalancerIntent;
    type Observed = Seen;
    type Work = Work;

    fn name(&self) -> String {
        format!("load balancer {}", self.balancer)
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Seen, Failure> {
        let load_balancer = self.observed.settled_load_balancer(&self.id(), newer_than).await?;
        Ok(Seen { before: load_balancer.clone(), load_balancer })
    }

    fn plan(&self, seen: &Seen, batch: &[(ObjectKey, LoadBalancerIntent)]) -> Planned<Self> {
        let intents: Vec<LoadBalancerIntent> = batch.iter().map(|(_, intent)| intent.clone()).collect();
        let observed = seen.load_balancer.as_deref();
        // Only if all Services are known, one that is not among them is gone.
        let known = self.state.services_synced().then(|| plans::known_services(&self.state.services()));
        let plan = plans::plan(&self.cluster, &self.balancer, observed, &intents, known.as_ref());
        let empty_first = plan.empty_first;
        let work = plan.step.map(|step| Work { step, empty_first });
        let refused = plan.refused.into_iter().map(|(key, refusal)| (key, refusal.into()));
        Planned {
            work,
            refused: refused.collect(),
            notices: plan.notices.into_iter().map(|notice| (notice.service.clone(), notice)).collect(),
        }
    }

    async fn write(&self, seen: &Seen, work: &Work) -> Result<Seen, Failure> {
        match work.step.action {
            Action::Create | Action::Update => self.put(seen, &work.step).await,
            Action::Delete => self.delete(seen, work).await,
        }
    }

    fn fingerprint(&self, work: &Work) -> u64 {
        fingerprint::of([&work.step])
    }

    fn blame(&self, message: &str, batch: &[(ObjectKey, LoadBalancerIntent)]) -> Vec<ObjectKey> {
        let intents: Vec<LoadBalancerIntent> = batch.iter().map(|(_, intent)| intent.clone()).collect();
        plans::services_named_in(message, &intents)
    }

    async fn restore(&self, before: &Seen) -> Result<(), Failure> {
        let now = self.observed.settled_load_balancer(&self.id(), LogicalTime::now()).await?;
        let before = before.load_balancer.as_deref();
        let step = now.and_then(|now| plans::restore(&self.cluster, &self.balancer, before, &now));
        let Some(step) = step else { return Ok(()) };
        if step.action == Action::Delete {
            self.azure.delete(&step, ApiVersion::NETWORK).await?;
            self.observed.load_balancers().remove(self.id().name());
        } else {
            let document: LoadBalancer = self.azure.put(&step, ApiVersion::NETWORK).await?;
            self.observed.load_balancers().store(document);
        }
        Ok(())
    }

    fn is_repair(&self, work: &Work) -> bool {
        work.step.purpose == Purpose::Repair
    }

    fn concerned(&self, work: &Work, _batch: &[(ObjectKey, LoadBalancerIntent)]) -> Vec<ObjectKey> {
        work.step.on_behalf_of.clone()
    }

    fn complaint(&self, key: &ObjectKey, work: Option<&Work>, failure: &Failure) -> Option<Notice> {
        match work {
            None => Some(not_listed(key, failure)),
            Some(work) if work.step.action == Action::Delete => {
                Some(warning(key, "DeleteLoadBalancer", failure))
            }
            Some(_) => None,
        }
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
