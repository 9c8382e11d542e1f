//! Invariants of every world at rest.
//!
//! The checker reads a copy of Azure, so that its reads are not in the journal, use no budget and meet no declared
//! fault. It shares no code with the planner: a Service's intent is read from its manifest ([`allowed_traffic`]), and the packet
//! oracle shows the result. Only the last check asks the provider itself, whether it would still write something.

mod allowed_traffic;
mod dangling;
mod plan;
mod services;
mod traffic;

use azure_simulator::Azure;

use crate::finding::Finding;
use crate::world::World;
use services::Services;

impl World {
    /// Waits until the world is at rest ([`Self::come_to_rest`]), and then checks it ([`Self::check`]). A world without
    /// running controllers is not checked.
    pub async fn settle(&self) {
        self.settle_despite(|_| false).await;
    }

    /// Like [`Self::settle`], for a world with expected problems: findings that `expected` accepts are no failure.
    /// Returns them.
    pub async fn settle_despite(&self, expected: impl Fn(&Finding) -> bool) -> Vec<Finding> {
        self.come_to_rest().await;
        if self.running.is_none() {
            return Vec::new();
        }
        let findings = self.check().await;
        let (expected, surprises): (Vec<_>, Vec<_>) = findings.into_iter().partition(expected);
        let surprises: Vec<String> = surprises.iter().map(|finding| format!("  {finding}")).collect();
        assert!(surprises.is_empty(), "the world is at rest, but:\n{}", surprises.join("\n"));
        expected
    }

    /// All current violations. A world that is not at rest can have findings.
    pub async fn check(&self) -> Vec<Finding> {
        let azure = self.copy_of_azure();
        let services = Services::of(self);
        let (planned, refused) = plan::check(self, &azure, &services).await;
        let mut findings = dangling::check(self, &azure, &services, &refused);
        findings.extend(self.foreign.check(&azure));
        findings.extend(planned);
        findings.extend(traffic::check(self, &azure, &services, &refused));
        findings
    }

    /// The same resources in an Azure that answers at once, without faults, budgets and actors.
    pub(crate) fn copy_of_azure(&self) -> Azure {
        let options = azure_simulator::Options { budgets: None, ..self.azure.options().clone() };
        let copy = Azure::new(options);
        copy.restore(self.azure.save().expect("it can be saved")).expect("it can be taken up");
        copy.clear_faults();
        copy.set_actors(Vec::new());
        copy.set_budgets(None);
        copy.set_latency(azure_simulator::LatencyProfile::instant());
        copy.set_consistency(azure_simulator::Consistency::default());
        copy
    }
}
