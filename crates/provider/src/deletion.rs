//! Deletes what Azure holds of one Service: drives the removing [`Sequence`] with what was read to find out whether
//! anything is left.

use std::sync::Arc;

use async_trait::async_trait;
use cloud::{LogicalTime, Notice, ServiceError};
use k8s::Service;
use planner::load_balancer::Places;
use planner::sequence::{ResourceIntent, Sequence, Task};
use planner::{ServiceRemoval, public_ip, security_group};

use crate::failure::{Failure, service_error, stopped};
use crate::provider::Inner;
use crate::service::{Announcements, ServiceReading};

/// The deletion of what Azure holds of a Service.
pub(crate) struct ServiceDeletion {
    provider: Arc<Inner>,
    service: Arc<Service>,
    /// The event that caused the deletion.
    event: LogicalTime,
    /// What is read must be newer.
    newer_than: LogicalTime,
    removal: Arc<ServiceRemoval>,
    sequence: Sequence,
    /// What was read, and since when; `None` if nothing had to be read.
    reading: Option<(ServiceReading, LogicalTime)>,
    notices: Vec<Notice>,
}

impl Inner {
    /// Reads what Azure holds of a Service (LB-030 to LB-034). If nothing is left, everything remembered of the Service
    /// is dropped.
    pub(crate) async fn prepare_deletion(
        self: &Arc<Self>,
        service: &Arc<Service>,
        event: LogicalTime,
    ) -> Result<Option<ServiceDeletion>, ServiceError> {
        let removal = Arc::new(ServiceRemoval::of(&self.cluster, service));
        let mut deletion = ServiceDeletion {
            provider: Arc::clone(self),
            service: Arc::clone(service),
            event,
            newer_than: self.required_freshness(&removal.key, event),
            sequence: Sequence::remove(Arc::clone(&removal)),
            removal,
            reading: None,
            notices: Vec::new(),
        };
        // The security group may be open for it although nothing else was created yet.
        if self.recently.has(&deletion.removal.key) {
            return Ok(Some(deletion));
        }
        // A Service that is removed gives up its place, if it had one.
        self.places.lock().release(&deletion.removal.key);
        if deletion.finds_anything().await.map_err(service_error)? {
            return Ok(Some(deletion));
        }
        self.forget(service);
        Ok(None)
    }
}

impl ServiceDeletion {
    /// Reads what Azure holds. Returns whether there is anything to delete.
    async fn finds_anything(&mut self) -> Result<bool, Failure> {
        let provider = Arc::clone(&self.provider);
        let since = LogicalTime::now();
        let reading = provider.read(&mut self.sequence, self.newer_than, &mut self.notices).await?;
        let (reading, _) = self.reading.insert((reading, since));
        if !public_ip::plan_removal(&provider.cluster, &self.removal, &reading.public_ips).release.is_empty()
        {
            return Ok(true);
        }
        let load_balancers = reading.load_balancers(&provider.observed);
        let seen = reading.seen(&load_balancers);
        let next = self.sequence.next(&provider.cluster, &seen, &mut Places::default());
        let Task::Submit(intents) = next.map_err(stopped)? else { return Ok(false) };
        for intent in intents {
            match intent {
                // The intents only name load balancers that hold something.
                ResourceIntent::LoadBalancer(..) => return Ok(true),
                ResourceIntent::SecurityGroup(intent) => {
                    let Ok(writer) = provider.security_group() else { continue };
                    let resource = writer.resource();
                    let Some(group) = resource.observed_group(self.newer_than).await? else { continue };
                    let usage = resource.usage([&self.removal.key]);
                    let planned = security_group::plan(&provider.cluster, &group, &[intent], &usage);
                    if planned.step.is_some_and(|step| step.on_behalf_of.contains(&self.removal.key)) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl cloud::Deletion for ServiceDeletion {
    async fn run(self: Box<Self>) -> Result<Vec<Notice>, ServiceError> {
        let Self { provider, service, event, newer_than, removal, sequence, reading, mut notices } = *self;
        provider.record_event(&removal.key, event);
        // Most of them have parts on the load balancer that they ask for.
        let load_balancers = provider.announce(removal.flavor);
        // Without a configured security group there are no rules.
        let security_group = provider.security_group().ok().map(|writer| writer.announce());
        let announced = Announcements { load_balancers, security_group };
        provider.recently.forget(&removal.key);
        provider.recently.opened_in_vain(&removal.key, false);
        provider.places.lock().release(&removal.key);
        let reading =
            reading.filter(|(_, since)| provider.has_observed_since(*since)).map(|(reading, _)| reading);
        match provider.drive(sequence, reading, newer_than, announced, &mut notices).await {
            Ok(_) => {
                provider.forget(&service);
                provider.recently.removed(removal.key.clone());
                // Its address may have belonged to a node that was deleted meanwhile, and may be in rules of others.
                provider.close_unused(&service).await;
                Ok(notices)
            }
            Err(failure) => Err(service_error(failure.with_notices(notices))),
        }
    }
}
