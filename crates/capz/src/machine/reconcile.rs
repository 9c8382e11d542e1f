//! The controller of AzureMachines.

use std::sync::Arc;
use std::time::Duration;

use capz_api::Future;
use capz_api::azure_machine::{AzureMachineSpec, AzureMachineStatus};
use capz_planner::condition::{self, Severity, fails};
use capz_planner::machine::{
    CONTROL_PLANE_LABEL, GoalError, MADE_ANNOTATION, MachineInputs, MachineScope, OwnerMachine, TRIED_ZONES,
    complete, conditions, ends, goals, next_zone, observed_machine, remembered, stopped, unproven_end,
};
use capz_planner::sku::VIRTUAL_MACHINES;
use capz_planner::terminal::{Reason, Terminal};
use capz_planner::{Goal, Observation, ObservedResources, Plan};
use controllers::Reference;
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::reach::Subject;
use crate::azure::reads;
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::ClusterObjects;
use crate::context::manager::Manager;
use crate::kubernetes::core::{self, Machine};
use crate::kubernetes::kinds::{API_VERSION, AzureMachine, NO_ENTRIES};
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, key_of};
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
        let Some((owner, cluster)) = self.owner_of(&object) else { return Outcome::Idle };
        let edited = match Edited::of(&self.client, KIND, &object) {
            Ok(edited) => edited,
            Err(error) => return self.lost(key, &error),
        };
        let work = MachineReconcile { manager: &self, key, owner, cluster, edited, not_before };
        match work.run().await {
            Ok(outcome) => outcome,
            Err(error) => self.lost(key, &error),
        }
    }

    /// The Machine that owns an AzureMachine, and its cluster; `None` while an object is missing, whose creation wakes the
    /// reconcile.
    fn owner_of(&self, object: &AzureMachine) -> Option<(Arc<Machine>, ClusterObjects)> {
        let Some(owner) = core::owner(object.metadata.owner_references.as_deref(), "Machine") else {
            let about = Reference::of(API_VERSION, KIND, &object.metadata);
            let reason = "Machine controller dependency not yet met";
            self.recorder.normal(about, reason, "waiting for its owner Machine");
            return None;
        };
        let object = (KIND, &object.metadata);
        let owner = self.dependency(object, "Machine", &self.stores.machines, owner)?;
        let cluster = self.cluster_of(object, &owner.spec.cluster_name)?;
        Some((owner, cluster))
    }
}

/// One reconcile of one AzureMachine.
struct MachineReconcile<'a> {
    manager: &'a Manager,
    key: &'a Key,
    owner: Arc<Machine>,
    cluster: ClusterObjects,
    edited: EditedMachine,
    not_before: Instant,
}

impl MachineReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let annotations = self.edited.object.metadata.annotations.clone();
        if core::is_paused(&self.cluster.cluster, annotations.as_ref()) {
            self.edited.pause();
            self.save().await?;
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
        if !self.cluster.has_network() {
            return self.wait("WaitingForClusterInfrastructure").await;
        }
        let Some(secret) = self.owner.spec.bootstrap.data_secret_name.clone() else {
            return self.wait("WaitingForBootstrapData").await;
        };
        self.save().await?;
        let context = match self.context().await {
            Ok(context) => context,
            Err(failure) => return self.failed(&failure).await,
        };
        match self.pursue(&context, &secret).await {
            Ok(observed) => self.reached(&context, &observed).await,
            Err(failure) => self.failed(&failure).await,
        }
    }

    async fn save(&mut self) -> Result<(), PatchError> {
        self.edited.save_in(&self.manager.stores.azure_machines).await
    }

    async fn wait(mut self, reason: &str) -> Result<Outcome, PatchError> {
        self.set([fails(RUNNING, reason, Severity::Info, "")]);
        self.save().await?;
        Ok(Outcome::Idle)
    }

    fn set(&mut self, new: impl IntoIterator<Item = capz_api::Condition>) {
        set(&mut self.edited, self.manager.now(), new);
    }

    /// Reconciles until the machine is as declared.
    async fn pursue(&mut self, context: &ClusterContext, secret: &str) -> Result<ObservedResources, Failure> {
        context.check_rival()?;
        let inputs = self.inputs(context, secret).await?;
        let role = machine_scope(context, &self.owner, &self.edited.object, &[]).role();
        let mut spec = self.edited.object.spec.clone();
        complete(&mut spec, context.scope(), role).map_err(Failure::Refused)?;
        self.edited.object.spec = spec;
        let reached = self.reach(context, Some(&inputs)).await;
        if let Err(failure) = &reached
            && self.goes_to_another_zone(context, &inputs, failure)
        {
            return Err(Failure::Changed);
        }
        match reached {
            Err(Failure::Terminal(terminal)) if terminal.reason == Reason::UpdateError => {
                Err(self.confirmed(context, terminal).await)
            }
            reached => reached,
        }
    }

    /// Tries another zone if the zone has no capacity and the owner set no failure domain.
    fn goes_to_another_zone(
        &mut self,
        context: &ClusterContext,
        inputs: &MachineInputs,
        failure: &Failure,
    ) -> bool {
        let words = match failure {
            Failure::Refused(words) => words,
            Failure::Terminal(terminal) => &terminal.message,
            Failure::Later { .. } | Failure::Changed => return false,
        };
        let scope = machine_scope(context, &self.owner, &self.edited.object, &[]);
        let next = next_zone(&scope, &inputs.size, words);
        let Some(next) = next else { return false };
        let zone = next.rsplit(',').next().unwrap_or_default();
        let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
        let message = format!("{words}: trying zone {zone}, because no failure domain is set");
        self.manager.recorder.warning(about, "NoRoomForMachine", message);
        self.edited.object.metadata.annotations.get_or_insert_default().insert(TRIED_ZONES.to_owned(), next);
        true
    }

    /// Reads the machine by itself after a list did not show it. Lists lag, and a machine that is reported as deleted
    /// is never read again.
    async fn confirmed(&self, context: &ClusterContext, terminal: Terminal) -> Failure {
        let provider_id = self.edited.object.spec.provider_id.as_deref().unwrap_or_default();
        if reads::is_absent(&context.access.client, provider_id).await {
            return Failure::Terminal(terminal);
        }
        let after = self.manager.settings.timeouts.requeue;
        Failure::Later {
            after,
            words: format!("{provider_id} is missing in a list, but Azure does not report it as deleted"),
        }
    }

    async fn context(&self) -> Result<ClusterContext, Failure> {
        self.cluster.context_for(self.manager, self.edited.object.spec.provider_id.as_deref()).await
    }

    async fn inputs(&self, context: &ClusterContext, secret: &str) -> Result<MachineInputs, Failure> {
        let skus = context.skus(self.manager).await?;
        let size = self.edited.object.spec.vm_size.as_deref().unwrap_or_default();
        let size = skus.get(size, VIRTUAL_MACHINES).map_err(Failure::Terminal)?.clone();
        let scope = machine_scope(context, &self.owner, &self.edited.object, &[]);
        let image = scope.image().map_err(|error| Failure::Refused(error.to_string()))?;
        let bootstrap = self.manager.bootstrap_data(&self.key.namespace, secret).await?;
        Ok(MachineInputs { bootstrap, password: password(), image, size, skus })
    }

    /// The names of the control plane's machines that come before this one, if it is one of them.
    fn earlier(&self) -> Vec<String> {
        let is_control_plane = |machine: &Machine| {
            machine.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL))
        };
        let owner = &self.owner;
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

    /// Reconciles until the machine is as desired: created from the inputs, or, without inputs, deleted.
    async fn reach(
        &mut self,
        context: &ClusterContext,
        inputs: Option<&MachineInputs>,
    ) -> Result<ObservedResources, Failure> {
        let status = self.edited.object.status.as_ref();
        let operations: Vec<Future> =
            status.and_then(|status| status.long_running_operation_states.clone()).unwrap_or_default();
        let reach = context.reach(self.manager, self.not_before, (KIND, &self.key.name));
        let mut subject = MachineSubject {
            manager: self.manager,
            key: self.key,
            context,
            owner: &self.owner,
            earlier: self.earlier(),
            inputs,
            edited: &mut self.edited,
            was_present: false,
            stopped: None,
            made: None,
        };
        let (observed, plan) = reach.run(&mut subject, &operations).await?;
        let about = Reference::of(API_VERSION, KIND, &subject.edited.object.metadata);
        self.manager.recorder.changed_by_others(&about, &plan, &observed);
        let vm = subject.scope().vm();
        // A machine that no list has shown may exist all the same, and would run on forever.
        if inputs.is_none()
            && !subject.was_present
            && !reads::is_absent(&context.access.client, vm.as_str()).await
        {
            let words = format!("{vm} is missing in lists, but Azure does not report it as deleted");
            return Err(Failure::Later { after: self.manager.settings.timeouts.requeue, words });
        }
        Ok(observed)
    }

    /// The machine is as declared.
    async fn reached(
        mut self,
        context: &ClusterContext,
        observed: &ObservedResources,
    ) -> Result<Outcome, PatchError> {
        let scope = machine_scope(context, &self.owner, &self.edited.object, &[]);
        let (machine, memory) = (observed_machine(&scope, observed), remembered(&scope, observed));
        let vm = scope.vm().to_string();
        // Azure reports neither success nor failure, and no operation runs: the time to wait is unknown.
        let Some(machine) = machine else { return Ok(Outcome::Retry) };
        if let Some(identity) = machine.missing_identity {
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
        self.edited.object.spec.provider_id = Some(machine.provider_id);
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        annotations.extend(memory);
        annotations.insert(MADE_ANNOTATION.0.to_owned(), MADE_ANNOTATION.1.to_owned());
        let status = self.edited.object.status.get_or_insert_default();
        let ran = status.ready == Some(true);
        status.vm_state = Some(machine.stopped.map_or(machine.vm_state, str::to_owned));
        status.ready = Some(machine.stopped.is_none());
        if machine.addresses.is_some() {
            status.addresses = machine.addresses;
        }
        if let Some(state) = machine.stopped.filter(|_| ran) {
            let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
            let condition = stopped(state, &vm);
            self.manager.recorder.warning(about, "VMStopped", condition.message.unwrap_or_default());
        }
        self.save().await?;
        Ok(if machine.stopped.is_some() { Outcome::After(STOPPED) } else { Outcome::Rest })
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
                self.save().await?;
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
        self.save().await?;
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
        self.save().await?;
        let gone = async {
            let context = self.context().await?;
            // The resource group is deleted as a whole, including the machine.
            if self.manager.goes_with_its_group(&context, self.not_before).await? {
                return Ok(());
            }
            self.reach(&context, None).await.map(|_| ())
        };
        if let Err(failure) = gone.await {
            return self.failed(&failure).await;
        }
        self.edited.let_go(FINALIZER);
        self.save().await?;
        self.manager.wake_cluster_that_waits_for(&self.edited.object.metadata);
        Ok(Outcome::Gone)
    }
}

fn set(edited: &mut EditedMachine, now: String, new: impl IntoIterator<Item = capz_api::Condition>) {
    let conditions = edited.object.status.get_or_insert_default().conditions.get_or_insert_default();
    condition::set_all(conditions, new, &now);
}

/// A machine as the planner sees it. `earlier` are the machines of the control plane that come before it.
fn machine_scope<'a>(
    context: &'a ClusterContext,
    owner: &'a Machine,
    object: &'a AzureMachine,
    earlier: &'a [String],
) -> MachineScope<'a> {
    MachineScope {
        cluster: context.scope(),
        name: object.metadata.name.as_deref().unwrap_or_default(),
        spec: &object.spec,
        annotations: object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES),
        owner: OwnerMachine {
            version: owner.spec.version.as_deref(),
            failure_domain: owner.spec.failure_domain.as_deref(),
            labels: owner.metadata.labels.as_ref().unwrap_or(&NO_ENTRIES),
        },
        earlier,
    }
}

struct MachineSubject<'a> {
    manager: &'a Manager,
    key: &'a Key,
    context: &'a ClusterContext,
    owner: &'a Machine,
    /// The names of the control plane's machines that come before this one.
    earlier: Vec<String>,
    /// What it is created from; `None` if it is deleted.
    inputs: Option<&'a MachineInputs>,
    edited: &'a mut EditedMachine,
    /// Whether a virtual machine of its name existed at any time.
    was_present: bool,
    /// The condition of a virtual machine that exists and does not run.
    stopped: Option<capz_api::Condition>,
    /// The provider ID of a machine that exists.
    made: Option<String>,
}

impl MachineSubject<'_> {
    fn scope(&self) -> MachineScope<'_> {
        machine_scope(self.context, self.owner, &self.edited.object, &self.earlier)
    }
}

impl Subject for MachineSubject<'_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let scope = machine_scope(self.context, self.owner, &self.edited.object, &self.earlier);
        self.was_present |= matches!(observed.get(&scope.vm()), Observation::Present(_));
        let machine = observed_machine(&scope, observed);
        let state = machine.as_ref().and_then(|machine| machine.stopped);
        self.stopped = state.map(|state| stopped(state, scope.vm().as_str()));
        self.made = machine.map(|machine| machine.provider_id);
        let Some(inputs) = self.inputs else {
            return match unproven_end(&scope, observed) {
                Some(words) => Err(Failure::Refused(words)),
                None => Ok(ends(&scope, observed)),
            };
        };
        goals(&scope, inputs, observed).map_err(|error| match error {
            GoalError::Terminal(terminal) => Failure::Terminal(terminal),
            GoalError::NotNow(words) => Failure::Refused(words),
        })
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let manager = self.manager;
        let mut conditions = conditions(plan);
        // A machine that does not run may match the declaration in everything else.
        if let Some(stopped) = self.stopped.clone().filter(|_| self.inputs.is_some())
            && let Some(running) = conditions.iter_mut().find(|it| it.condition == stopped.condition)
            && running.status.as_deref() == Some("True")
        {
            *running = stopped;
        }
        set(self.edited, manager.now(), conditions);
        // From now on its bootstrap data counts as used, whatever becomes of its extensions: the machine is not created
        // again.
        if let Some(made) = self.made.take().filter(|_| self.inputs.is_some()) {
            self.edited.object.spec.provider_id = Some(made);
            let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
            annotations.insert(MADE_ANNOTATION.0.to_owned(), MADE_ANNOTATION.1.to_owned());
        }
        let status = self.edited.object.status.get_or_insert_default();
        status.long_running_operation_states = (!operations.is_empty()).then_some(operations);
        let saved = self.edited.save_in(&manager.stores.azure_machines).await;
        saved.map_err(|error| Failure::of_write(&error, manager.settings.timeouts.requeue))
    }

    fn has_changed(&self) -> bool {
        let manager = self.manager;
        let Some(newest) = manager.stores.azure_machines.get(self.key) else { return true };
        let annotations = newest.metadata.annotations.as_ref();
        self.edited.is_outdated(&newest.metadata)
            || newest.metadata.deletion_timestamp.is_some() != self.inputs.is_none()
            || self.context.is_paused(manager, annotations)
    }

    fn changes(&self) -> Changes {
        let own = self.manager.stores.azure_machines.changes_of(self.key);
        Changes::of([own, self.context.cluster_changes(self.manager)])
    }
}
