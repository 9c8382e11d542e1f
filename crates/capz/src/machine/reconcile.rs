//! The controller of AzureMachines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capz_api::Future;
use capz_api::azure_machine::{AzureMachineSpec, AzureMachineStatus};
use capz_api::machine::Image;
use capz_planner::condition::{self, Severity, fails};
use capz_planner::machine::{
    CONTROL_PLANE_LABEL, GoalError, MADE_ANNOTATION, MachineScope, Making, Owner, TRIED_ZONES, complete,
    conditions, ends, found, goals, next_zone, remembered, stopped, unproven_end,
};
use capz_planner::sku::{Sku, Skus, VIRTUAL_MACHINES};
use capz_planner::terminal::{Reason, Terminal};
use capz_planner::{Goal, Observation, ObservedResources, Plan};
use cloud_config::Secret;
use controllers::Reference;
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::reach::Subject;
use crate::azure::reads;
use crate::context::dependency::About;
use crate::context::family::Family;
use crate::context::manager::Manager;
use crate::context::surroundings::Surroundings;
use crate::kubernetes::core::{self, Machine};
use crate::kubernetes::kinds::{API_VERSION, AzureCluster, AzureMachine};
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Key, key_of};
use crate::secrets::bootstrap::password;

const KIND: &str = "AzureMachine";
/// The finalizer by which an AzureMachine waits for the deletion of its virtual machine.
const FINALIZER: &str = "azuremachine.infrastructure.cluster.x-k8s.io";
const RUNNING: &str = "VMRunning";
/// The interval at which a machine that does not run is read again: no watch shows that it was started.
const STOPPED: Duration = Duration::from_secs(60);

type EditedMachine = Edited<AzureMachineSpec, AzureMachineStatus>;

impl Manager {
    /// Reconciles an AzureMachine with Azure.
    pub(crate) async fn reconcile_machine(self: Arc<Self>, key: &Key, not_before: Instant) -> Outcome {
        let object = match self.own(&self.stores.azure_machines, key) {
            Ok(object) => object,
            Err(end) => return end,
        };
        let Some(family) = self.family(key, &object) else { return Outcome::Idle };
        let edited = match Edited::of(&self.client, KIND, &object) {
            Ok(edited) => edited,
            Err(error) => return self.lost(key, &error),
        };
        let work = MachineWork { manager: &self, key, family, edited, not_before };
        match work.run().await {
            Ok(outcome) => outcome,
            Err(error) => self.lost(key, &error),
        }
    }

    /// The objects around an AzureMachine; `None` while one of them is missing, whose creation wakes
    /// the reconcile.
    fn family(&self, key: &Key, object: &AzureMachine) -> Option<Family<Machine>> {
        let Some(owner) = core::owner(object.metadata.owner_references.as_deref(), "Machine") else {
            let about = Reference::of(API_VERSION, KIND, &object.metadata);
            let reason = "Machine controller dependency not yet met";
            self.recorder.normal(about, reason, "waiting for its owner Machine");
            return None;
        };
        let about = About { kind: KIND, key, metadata: &object.metadata };
        let owner = about.needs(self, "Machine", &self.stores.machines, owner)?;
        Family::of(self, about, owner, |owner| &owner.spec.cluster_name)
    }

    async fn save_machine(&self, edited: &mut EditedMachine) -> Result<(), PatchError> {
        if edited.save().await? {
            edited.keep_in(&self.stores.azure_machines);
        }
        Ok(())
    }
}

/// One reconcile of one AzureMachine.
struct MachineWork<'a> {
    manager: &'a Manager,
    key: &'a Key,
    family: Family<Machine>,
    edited: EditedMachine,
    not_before: Instant,
}

/// The inputs from which a machine is created, as read.
struct Material {
    bootstrap: Secret,
    password: Secret,
    image: Image,
    size: Sku,
    skus: Arc<Skus>,
}

impl MachineWork<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let annotations = self.edited.object.metadata.annotations.clone();
        if core::is_paused(&self.family.cluster, annotations.as_ref()) {
            self.edited.pause();
            self.manager.save_machine(&mut self.edited).await?;
            return Ok(Outcome::Idle);
        }
        if self.edited.object.metadata.deletion_timestamp.is_some() {
            return self.delete().await;
        }
        let status = self.edited.object.status.get_or_insert_default();
        // A terminal failure is not retried: the machine has to be replaced.
        if status.failure_reason.is_some() || status.failure_message.is_some() {
            return Ok(Outcome::Idle);
        }
        self.edited.hold(FINALIZER);
        if !self.family.has_network() {
            return self.wait("WaitingForClusterInfrastructure").await;
        }
        let Some(secret) = self.family.owner.spec.bootstrap.data_secret_name.clone() else {
            return self.wait("WaitingForBootstrapData").await;
        };
        self.manager.save_machine(&mut self.edited).await?;
        match self.pursue(&secret).await {
            Ok(observed) => self.reached(&observed).await,
            Err(failure) => self.failed(&failure).await,
        }
    }

    async fn wait(mut self, reason: &str) -> Result<Outcome, PatchError> {
        self.set([fails(RUNNING, reason, Severity::Info, "")]);
        self.manager.save_machine(&mut self.edited).await?;
        Ok(Outcome::Idle)
    }

    fn set(&mut self, new: impl IntoIterator<Item = capz_api::Condition>) {
        set(&mut self.edited, self.manager.now(), new);
    }

    /// Reconciles until the machine is as declared.
    async fn pursue(&mut self, secret: &str) -> Result<ObservedResources, Failure> {
        let surroundings = self.surroundings().await?;
        surroundings.check_rival()?;
        let material = self.material(&surroundings, secret).await?;
        let zones = self.family.zones();
        let mut spec = self.edited.object.spec.clone();
        {
            let context = self.context(&surroundings, &zones);
            let role = context.scope(&spec).role();
            complete(&mut spec, context.cluster(), role).map_err(Failure::Refused)?;
        }
        self.edited.object.spec = spec;
        let reached = self.reach(&surroundings, Some(&material)).await;
        if let Err(failure) = &reached
            && self.goes_to_another_zone(&surroundings, &material, failure)
        {
            return Err(Failure::Changed);
        }
        match reached {
            Err(Failure::Terminal(terminal)) if terminal.reason == Reason::UpdateError => {
                Err(self.confirmed(&surroundings, terminal).await)
            }
            reached => reached,
        }
    }

    /// Tries another zone if the zone has no capacity and the owner set no failure domain.
    fn goes_to_another_zone(
        &mut self,
        surroundings: &Surroundings,
        material: &Material,
        failure: &Failure,
    ) -> bool {
        let words = match failure {
            Failure::Refused(words) => words,
            Failure::Terminal(terminal) => &terminal.message,
            Failure::Later { .. } | Failure::Changed => return false,
        };
        let zones = self.family.zones();
        let context = self.context(surroundings, &zones);
        let next = next_zone(&context.scope(&self.edited.object.spec), &material.size, words);
        drop(context);
        let Some(next) = next else { return false };
        let zone = next.rsplit(',').next().unwrap_or_default();
        let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
        let told = format!("{words}: trying zone {zone}, because no failure domain is set");
        self.manager.recorder.warning(about, "NoRoomForMachine", told);
        self.edited.object.metadata.annotations.get_or_insert_default().insert(TRIED_ZONES.to_owned(), next);
        true
    }

    /// Reads the machine by itself after a list did not show it. Lists lag, and a machine that is reported as deleted
    /// is never read again.
    async fn confirmed(&self, surroundings: &Surroundings, terminal: Terminal) -> Failure {
        let provider_id = self.edited.object.spec.provider_id.as_deref().unwrap_or_default();
        if reads::is_absent(&surroundings.access.client, provider_id).await {
            return Failure::Terminal(terminal);
        }
        let after = self.manager.settings.timeouts.requeue;
        Failure::Later {
            after,
            words: format!("{provider_id} is missing in a list, but Azure does not report it as deleted"),
        }
    }

    async fn surroundings(&self) -> Result<Surroundings, Failure> {
        self.family.surroundings_of(self.manager, self.edited.object.spec.provider_id.as_deref()).await
    }

    async fn material(&self, surroundings: &Surroundings, secret: &str) -> Result<Material, Failure> {
        let spec = &self.family.azure_cluster.spec;
        let location = spec.location.as_deref().unwrap_or_default();
        let requeue = self.manager.settings.timeouts.requeue;
        let skus = self
            .manager
            .skus
            .get(&surroundings.access, &surroundings.subscription, location)
            .await
            .map_err(|error| Failure::of(&error, requeue))?;
        let size = self.edited.object.spec.vm_size.as_deref().unwrap_or_default();
        let size = skus.get(size, VIRTUAL_MACHINES).map_err(Failure::Terminal)?.clone();
        let zones = self.family.zones();
        let context = self.context(surroundings, &zones);
        let image = context
            .scope(&self.edited.object.spec)
            .image()
            .map_err(|error| Failure::Refused(error.to_string()))?;
        Ok(Material {
            bootstrap: self.manager.bootstrap_data(&self.key.namespace, secret).await?,
            password: password(),
            image,
            size,
            skus,
        })
    }

    fn context<'a>(&'a self, surroundings: &'a Surroundings, zones: &'a [String]) -> MachineContext<'a> {
        MachineContext {
            manager: self.manager,
            surroundings,
            azure_cluster: &self.family.azure_cluster,
            owner: &self.family.owner,
            key: self.key,
            zones,
            labels: self.family.owner.metadata.labels.clone().unwrap_or_default(),
            annotations: self.edited.object.metadata.annotations.clone().unwrap_or_default(),
            earlier: self.earlier(),
        }
    }

    /// The names of the control plane's machines that come before this one, if it is one of them.
    fn earlier(&self) -> Vec<String> {
        let is_control_plane = |machine: &Machine| {
            machine.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL))
        };
        let owner = &self.family.owner;
        if !is_control_plane(owner) {
            return Vec::new();
        }
        let machines = self.manager.stores.machines.all().into_iter();
        machines
            .filter(|machine| {
                is_control_plane(machine)
                    && machine.spec.cluster_name == owner.spec.cluster_name
                    && key_of(&**machine).namespace == self.key.namespace
                    && machine.spec.infrastructure_ref.name < self.key.name
            })
            .map(|machine| machine.spec.infrastructure_ref.name.clone())
            .collect()
    }

    /// Reconciles until the machine is as desired: created from the material, or, without material, deleted.
    async fn reach(
        &mut self,
        surroundings: &Surroundings,
        material: Option<&Material>,
    ) -> Result<ObservedResources, Failure> {
        let status = self.edited.object.status.as_ref();
        let kept: Vec<Future> =
            status.and_then(|status| status.long_running_operation_states.clone()).unwrap_or_default();
        let reach = surroundings.reach(self.manager, self.not_before, (KIND, &self.key.name));
        let zones = self.family.zones();
        let context = MachineContext {
            manager: self.manager,
            surroundings,
            azure_cluster: &self.family.azure_cluster,
            owner: &self.family.owner,
            key: self.key,
            zones: &zones,
            labels: self.family.owner.metadata.labels.clone().unwrap_or_default(),
            annotations: self.edited.object.metadata.annotations.clone().unwrap_or_default(),
            earlier: self.earlier(),
        };
        let mut subject = MachineSubject {
            context,
            material,
            edited: &mut self.edited,
            seen: false,
            stopped: None,
            made: None,
        };
        let (observed, plan) = reach.run(&mut subject, &kept).await?;
        let about = Reference::of(API_VERSION, KIND, &subject.edited.object.metadata);
        self.manager.recorder.changed_by_others(&about, &plan, &observed);
        let vm = subject.context.scope(&subject.edited.object.spec).vm();
        // A machine that no list has shown may exist all the same, and would run on forever.
        if material.is_none()
            && !subject.seen
            && !reads::is_absent(&surroundings.access.client, vm.as_str()).await
        {
            let words = format!("{vm} is missing in lists, but Azure does not report it as deleted");
            return Err(Failure::Later { after: self.manager.settings.timeouts.requeue, words });
        }
        Ok(observed)
    }

    /// The machine is as declared.
    async fn reached(mut self, observed: &ObservedResources) -> Result<Outcome, PatchError> {
        let surroundings = match self.surroundings().await {
            Ok(surroundings) => surroundings,
            Err(failure) => return self.failed(&failure).await,
        };
        let zones = self.family.zones();
        let context = self.context(&surroundings, &zones);
        let scope = context.scope(&self.edited.object.spec);
        let (known, memory) = (found(&scope, observed), remembered(&scope, observed));
        let vm = scope.vm().to_string();
        drop(context);
        // Azure reports neither success nor failure, and no operation runs: the time to wait is unknown.
        let Some(known) = known else { return Ok(Outcome::Retry) };
        if let Some(identity) = known.missing_identity {
            let words = format!("the machine no longer has the user-assigned identity {identity}");
            self.set([fails(
                "VMIdentitiesReady",
                "UserAssignedIdentityMissing",
                Severity::Warning,
                words.clone(),
            )]);
            return self
                .failed(&Failure::Terminal(Terminal { reason: Reason::UnsupportedChange, message: words }))
                .await;
        }
        self.edited.object.spec.provider_id = Some(known.provider_id);
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        annotations.extend(memory);
        annotations.insert(MADE_ANNOTATION.0.to_owned(), MADE_ANNOTATION.1.to_owned());
        let status = self.edited.object.status.get_or_insert_default();
        let ran = status.ready == Some(true);
        status.vm_state = Some(known.stopped.map_or(known.vm_state, str::to_owned));
        status.ready = Some(known.stopped.is_none());
        if known.addresses.is_some() {
            status.addresses = known.addresses;
        }
        if let Some(state) = known.stopped.filter(|_| ran) {
            let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
            let told = stopped(state, &vm);
            self.manager.recorder.warning(about, "VMStopped", told.message.unwrap_or_default());
        }
        self.manager.save_machine(&mut self.edited).await?;
        Ok(if known.stopped.is_some() { Outcome::After(STOPPED) } else { Outcome::Rest })
    }

    async fn failed(mut self, failure: &Failure) -> Result<Outcome, PatchError> {
        let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
        let deleting = self.edited.object.metadata.deletion_timestamp.is_some();
        let status = self.edited.object.status.get_or_insert_default();
        if let Some((reason, words)) = failure.told(deleting, status.ready == Some(true)) {
            let condition = condition::untold(status.conditions.as_ref(), RUNNING, reason, words);
            self.set(condition);
        }
        let terminal = match self.manager.again(failure, about.clone()) {
            Ok(outcome) => {
                self.manager.save_machine(&mut self.edited).await?;
                return Ok(outcome);
            }
            Err(terminal) => terminal,
        };
        self.manager.recorder.warning(about, terminal.reason.event(), terminal.message.clone());
        let state = match terminal.reason {
            Reason::UpdateError => Some("Deleted"),
            Reason::CreateError => Some("Failed"),
            _ => None,
        };
        let status = self.edited.object.status.get_or_insert_default();
        status.ready = Some(false);
        status.failure_reason = Some(terminal.reason.as_str().to_owned());
        status.failure_message = Some(terminal.message.clone());
        if let Some(state) = state {
            status.vm_state = Some(state.to_owned());
        }
        self.manager.save_machine(&mut self.edited).await?;
        Ok(Outcome::Idle)
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        if !self.edited.is_held(FINALIZER) {
            return Ok(Outcome::Gone);
        }
        let conditions = self.edited.object.status.as_ref().and_then(|status| status.conditions.as_ref());
        if !condition::has_reason(conditions, RUNNING, DELETION_FAILED) {
            self.set([fails(RUNNING, "Deleting", Severity::Info, "")]);
        }
        self.manager.save_machine(&mut self.edited).await?;
        let gone = async {
            let surroundings = self.surroundings().await?;
            // The resource group is deleted as a whole, including the machine.
            let zones = self.family.zones();
            if self
                .manager
                .goes_with_its_group(
                    &surroundings,
                    self.context(&surroundings, &zones).cluster(),
                    self.not_before,
                )
                .await?
            {
                return Ok(());
            }
            self.reach(&surroundings, None).await.map(|_| ())
        };
        if let Err(failure) = gone.await {
            return self.failed(&failure).await;
        }
        self.edited.let_go(FINALIZER);
        self.manager.save_machine(&mut self.edited).await?;
        self.manager.wake_cluster_that_waits_for(&self.edited.object.metadata);
        Ok(Outcome::Gone)
    }
}

fn set(edited: &mut EditedMachine, now: String, new: impl IntoIterator<Item = capz_api::Condition>) {
    let conditions = edited.object.status.get_or_insert_default().conditions.get_or_insert_default();
    condition::set_all(conditions, new, &now);
}

/// The inputs of a machine's scope.
struct MachineContext<'a> {
    manager: &'a Manager,
    surroundings: &'a Surroundings,
    azure_cluster: &'a AzureCluster,
    owner: &'a Machine,
    key: &'a Key,
    zones: &'a [String],
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    earlier: Vec<String>,
}

impl MachineContext<'_> {
    fn cluster(&self) -> capz_planner::ClusterScope<'_> {
        let name = self.azure_cluster.metadata.name.as_deref().unwrap_or_default();
        let gates = self.manager.settings.gates.of_admission();
        self.surroundings.scope(name, &self.azure_cluster.spec, self.zones, gates)
    }

    fn scope<'s>(&'s self, spec: &'s AzureMachineSpec) -> MachineScope<'s> {
        MachineScope {
            cluster: self.cluster(),
            name: &self.key.name,
            spec,
            annotations: &self.annotations,
            owner: Owner {
                version: self.owner.spec.version.as_deref(),
                failure_domain: self.owner.spec.failure_domain.as_deref(),
                labels: &self.labels,
            },
            earlier: &self.earlier,
        }
    }
}

struct MachineSubject<'a> {
    context: MachineContext<'a>,
    material: Option<&'a Material>,
    edited: &'a mut EditedMachine,
    /// Whether a virtual machine of its name existed at any time.
    seen: bool,
    /// The condition of a virtual machine that exists and does not run.
    stopped: Option<capz_api::Condition>,
    /// The provider ID of a machine that exists.
    made: Option<String>,
}

impl Subject for MachineSubject<'_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let scope = self.context.scope(&self.edited.object.spec);
        self.seen |= matches!(observed.get(&scope.vm()), Observation::Present(_));
        let found = found(&scope, observed);
        let state = found.as_ref().and_then(|found| found.stopped);
        self.stopped = state.map(|state| stopped(state, scope.vm().as_str()));
        self.made = found.map(|found| found.provider_id);
        let Some(material) = self.material else {
            return match unproven_end(&scope, observed) {
                Some(words) => Err(Failure::Refused(words)),
                None => Ok(ends(&scope, observed)),
            };
        };
        let making = Making {
            bootstrap: &material.bootstrap,
            password: &material.password,
            image: &material.image,
            size: &material.size,
            skus: &material.skus,
        };
        goals(&scope, &making, observed).map_err(|error| match error {
            GoalError::Terminal(terminal) => Failure::Terminal(terminal),
            GoalError::NotNow(words) => Failure::Refused(words),
        })
    }

    async fn tell(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let manager = self.context.manager;
        let mut told = conditions(plan);
        // A machine that does not run may match the declaration in everything else.
        if let Some(stopped) = self.stopped.clone().filter(|_| self.material.is_some())
            && let Some(running) = told.iter_mut().find(|it| it.condition == stopped.condition)
            && running.status.as_deref() == Some("True")
        {
            *running = stopped;
        }
        set(self.edited, manager.now(), told);
        // From now on its bootstrap data counts as used, whatever becomes of its extensions: the machine is not created
        // again.
        if let Some(made) = self.made.take().filter(|_| self.material.is_some()) {
            self.edited.object.spec.provider_id = Some(made);
            let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
            annotations.insert(MADE_ANNOTATION.0.to_owned(), MADE_ANNOTATION.1.to_owned());
        }
        let status = self.edited.object.status.get_or_insert_default();
        status.long_running_operation_states = (!operations.is_empty()).then_some(operations);
        let saved = manager.save_machine(self.edited).await;
        saved.map_err(|error| Failure::of_write(&error, manager.settings.timeouts.requeue))
    }

    fn has_changed(&self) -> bool {
        let manager = self.context.manager;
        let Some(newest) = manager.stores.azure_machines.get(self.context.key) else { return true };
        let annotations = newest.metadata.annotations.as_ref();
        self.edited.is_outdated(&newest.metadata)
            || newest.metadata.deletion_timestamp.is_some() != self.material.is_none()
            || self.context.surroundings.is_paused(manager, annotations)
    }
}
