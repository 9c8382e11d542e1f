//! The controller of AzureMachines.

use std::sync::Arc;
use std::time::Duration;

use capz_api::Future;
use capz_api::azure_machine::AzureMachineSpec;
use capz_planner::condition::{Severity, fails};
use capz_planner::machine::{
    CONTROL_PLANE_LABEL, MADE_ANNOTATION, MachineInputs, MachineScope, OwnerMachine, TRIED_ZONES, complete,
    conditions, ends, goals, next_zone, observed_machine, remembered, stopped, unproven_end,
};
use capz_planner::sku::VIRTUAL_MACHINES;
use capz_planner::terminal::{Reason, Terminal};
use capz_planner::{Goal, Observation, ObservedResources, Plan};
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::azure::reach::Subject;
use crate::azure::reads;
use crate::context::azure_context::AzureContext as _;
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::ClusterObjects;
use crate::context::manager::{Ended, Manager, Stores};
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core::{self, Machine};
use crate::kubernetes::kinds::{AzureMachine, NO_ENTRIES, reference};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::status::ReportedStatus;
use crate::kubernetes::store::{Changes, Key, Store, key_of};
use crate::secrets::bootstrap::password;

const RUNNING: &str = "VMRunning";
/// The interval at which a machine that does not run is read again: no watch shows that it was started.
const STOPPED: Duration = Duration::from_secs(60);

/// The Machine that owns an AzureMachine, and its cluster.
struct MachineOwner {
    owner: Arc<Machine>,
    cluster: ClusterObjects,
}

type MachineReconcile<'a> = Reconcile<'a, AzureMachineSpec, MachineOwner>;

impl Reconciled for AzureMachineSpec {
    const FINALIZER: &'static str = "azuremachine.infrastructure.cluster.x-k8s.io";
    const RUNNING: &'static str = RUNNING;

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.azure_machines
    }
}

impl Manager {
    /// Reconciles an AzureMachine with Azure.
    pub(crate) async fn reconcile_machine(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_machines, &key)?;
        let owner = self.owner_of(&object).ok_or(Outcome::Idle)?;
        let reconcile = Reconcile::of(&self, &key, &object, not_before, owner)?;
        Ok(Box::pin(reconcile.run()).await?)
    }

    /// The owner of an AzureMachine; `None` while an object is missing, whose creation wakes the reconcile.
    fn owner_of(&self, object: &AzureMachine) -> Option<MachineOwner> {
        let Some(owner) = core::owner(&object.metadata, "Machine") else {
            let reason = "Machine controller dependency not yet met";
            self.recorder.normal(reference(object), reason, "waiting for its owner Machine");
            return None;
        };
        let owner = self.dependency(object, &self.stores.machines, owner)?;
        let cluster = self.cluster_of(object, &owner.spec.cluster_name)?;
        Some(MachineOwner { owner, cluster })
    }
}

impl MachineReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let cluster = self.own.cluster.clone();
        if self.is_left_alone(&cluster.cluster).await? {
            return Ok(Outcome::Idle);
        }
        if self.is_deleting() {
            return self.delete().await;
        }
        let status = self.edited.status();
        // A terminal failure is not retried: the machine has to be replaced.
        if status.failure_reason.is_some() || status.failure_message.is_some() {
            return Ok(Outcome::Idle);
        }
        self.edited.hold(AzureMachineSpec::FINALIZER);
        if !cluster.has_network() {
            return self.wait("WaitingForClusterInfrastructure").await;
        }
        let Some(secret) = self.own.owner.spec.bootstrap.data_secret_name.clone() else {
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

    async fn wait(mut self, reason: &str) -> Result<Outcome, PatchError> {
        self.set([fails(RUNNING, reason, Severity::Info, "")]);
        self.save().await?;
        Ok(Outcome::Idle)
    }

    /// The machine as the planner sees it. `earlier` are the machines of the control plane that come before it.
    fn scope<'s>(&'s self, context: &'s ClusterContext, earlier: &'s [String]) -> MachineScope<'s> {
        let (object, owner) = (&self.edited.object, &self.own.owner);
        MachineScope {
            cluster: context.scope(),
            name: &self.key.name,
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

    /// Records the provider ID of a machine that exists. From now on its bootstrap data counts as used, whatever becomes
    /// of its extensions: the machine is not created again.
    fn note_made(&mut self, provider_id: String) {
        let object = &mut self.edited.object;
        object.spec.provider_id = Some(provider_id);
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(MADE_ANNOTATION.0.to_owned(), MADE_ANNOTATION.1.to_owned());
    }

    /// Reconciles until the machine is as declared.
    async fn pursue(&mut self, context: &ClusterContext, secret: &str) -> Result<ObservedResources, Failure> {
        context.check_rival()?;
        let inputs = self.inputs(context, secret).await?;
        let role = self.scope(context, &[]).role();
        let mut spec = self.edited.object.spec.clone();
        complete(&mut spec, context.scope(), role).map_err(Failure::Refused)?;
        self.edited.object.spec = spec;
        let reached = self.drive(context, Some(&inputs)).await;
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
        let Some(next) = next_zone(&self.scope(context, &[]), &inputs.size, words) else { return false };
        let zone = next.rsplit(',').next().unwrap_or_default();
        let message = format!("{words}: trying zone {zone}, because no failure domain is set");
        self.manager.recorder.warning(self.about(), "NoRoomForMachine", message);
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
        self.own.cluster.context_for(self.manager, self.edited.object.spec.provider_id.as_deref()).await
    }

    async fn inputs(&self, context: &ClusterContext, secret: &str) -> Result<MachineInputs, Failure> {
        let skus = context.skus(self.manager).await?;
        let size = self.edited.object.spec.vm_size.as_deref().unwrap_or_default();
        let size = skus.get(size, VIRTUAL_MACHINES).map_err(Failure::Terminal)?.clone();
        let image = self.scope(context, &[]).image();
        let image = image.map_err(|error| Failure::Refused(error.to_string()))?;
        let bootstrap = self.manager.bootstrap_data(&self.key.namespace, secret).await?;
        Ok(MachineInputs { bootstrap, password: password(), image, size, skus })
    }

    /// The names of the control plane's machines that come before this one, if it is one of them.
    fn earlier(&self) -> Vec<String> {
        let is_control_plane = |machine: &Machine| {
            machine.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL))
        };
        let owner = &self.own.owner;
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
    async fn drive(
        &mut self,
        context: &ClusterContext,
        inputs: Option<&MachineInputs>,
    ) -> Result<ObservedResources, Failure> {
        let (operations, reach) = (self.edited.operations(), self.reach(context));
        let earlier = self.earlier();
        let mut subject = MachineSubject {
            reconcile: self,
            context,
            earlier,
            inputs,
            was_present: false,
            stopped: None,
            made: None,
        };
        let (observed, plan) = reach.run(&mut subject, &operations).await?;
        let was_present = subject.was_present;
        self.manager.recorder.changed_by_others(&self.about(), &plan, &observed);
        let vm = self.scope(context, &[]).vm();
        // A machine that no list has shown may exist all the same, and would run on forever.
        if inputs.is_none() && !was_present && !reads::is_absent(&context.access.client, vm.as_str()).await {
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
        let scope = self.scope(context, &[]);
        let (machine, memory) = (observed_machine(&scope, observed), remembered(&scope, observed));
        let vm = scope.vm().to_string();
        // Azure reports neither success nor failure, and no operation runs: the time to wait is unknown.
        let Some(machine) = machine else { return Ok(Outcome::Retry) };
        if let Some(identity) = machine.missing_identity {
            let words = format!("the machine no longer has the user-assigned identity {identity}");
            let reason = "UserAssignedIdentityMissing";
            self.set([fails("VMIdentitiesReady", reason, Severity::Warning, words.clone())]);
            let terminal = Terminal { reason: Reason::UnsupportedChange, message: words };
            return self.failed(&Failure::Terminal(terminal)).await;
        }
        self.note_made(machine.provider_id);
        self.edited.object.metadata.annotations.get_or_insert_default().extend(memory);
        let status = self.edited.status();
        let ran = status.is_ready();
        status.vm_state = Some(machine.stopped.map_or(machine.vm_state, str::to_owned));
        status.ready = Some(machine.stopped.is_none());
        if machine.addresses.is_some() {
            status.addresses = machine.addresses;
        }
        if let Some(state) = machine.stopped.filter(|_| ran) {
            let words = stopped(state, &vm).message.unwrap_or_default();
            self.manager.recorder.warning(self.about(), "VMStopped", words);
        }
        self.save().await?;
        Ok(if machine.stopped.is_some() { Outcome::After(STOPPED) } else { Outcome::Rest })
    }

    async fn failed(mut self, failure: &Failure) -> Result<Outcome, PatchError> {
        let outcome = self.report_failure(failure, RUNNING);
        if let Err(terminal) = &outcome {
            let status = self.edited.status();
            status.ready = Some(false);
            status.failure_reason = Some(terminal.reason.as_str().to_owned());
            status.failure_message = Some(terminal.message.clone());
            match terminal.reason {
                Reason::UpdateError => status.vm_state = Some("Deleted".to_owned()),
                Reason::CreateError => status.vm_state = Some("Failed".to_owned()),
                Reason::InvalidConfiguration | Reason::UnsupportedChange => {}
            }
        }
        self.save().await?;
        Ok(outcome.unwrap_or(Outcome::Idle))
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        if !self.begin_deletion("Deleting").await? {
            return Ok(Outcome::Gone);
        }
        let gone = async {
            let context = self.context().await?;
            // The resource group is deleted as a whole, including the machine.
            if self.manager.goes_with_its_group(&context, self.not_before).await? {
                return Ok(());
            }
            self.drive(&context, None).await.map(|_| ())
        };
        match gone.await {
            Ok(()) => self.end_deletion().await,
            Err(failure) => self.failed(&failure).await,
        }
    }
}

struct MachineSubject<'s, 'a> {
    reconcile: &'s mut MachineReconcile<'a>,
    context: &'s ClusterContext,
    /// The names of the control plane's machines that come before this one.
    earlier: Vec<String>,
    /// What it is created from; `None` if it is deleted.
    inputs: Option<&'s MachineInputs>,
    /// Whether a virtual machine of its name existed at any time.
    was_present: bool,
    /// The condition of a virtual machine that exists and does not run.
    stopped: Option<capz_api::Condition>,
    /// The provider ID of a machine that exists.
    made: Option<String>,
}

impl Subject for MachineSubject<'_, '_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let scope = self.reconcile.scope(self.context, &self.earlier);
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
        Ok(goals(&scope, inputs, observed)?)
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let mut conditions = conditions(plan);
        // A machine that does not run may match the declaration in everything else.
        if let Some(stopped) = self.stopped.clone().filter(|_| self.inputs.is_some())
            && let Some(running) = conditions.iter_mut().find(|it| it.condition == stopped.condition)
            && running.status.as_deref() == Some("True")
        {
            *running = stopped;
        }
        if let Some(made) = self.made.take().filter(|_| self.inputs.is_some()) {
            self.reconcile.note_made(made);
        }
        self.reconcile.report(conditions, operations).await
    }

    fn has_changed(&self) -> bool {
        self.reconcile.has_changed(self.context, self.inputs.is_none())
    }

    fn changes(&self) -> Changes {
        self.reconcile.changes(self.context)
    }
}
