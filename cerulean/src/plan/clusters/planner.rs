//! Plans objects to the end, one after the other, and collects the plans.

use capz_planner::preview::Next;
use capz_planner::{Claimant, Goal, ObservedResources, Preview};
use serde_json::Value;

use super::azure::Source;
use super::report::{ClustersPlan, Section};
use crate::plan::values::title;

/// The planning of one cluster.
pub struct Planner<'a> {
    /// Azure.
    pub source: &'a Source,
    /// The predicted state of Azure.
    pub preview: Preview,
    /// The plan.
    pub plan: &'a mut ClustersPlan,
}

impl<'a> Planner<'a> {
    /// Begins the planning of a cluster.
    pub fn new(source: &'a Source, plan: &'a mut ClustersPlan) -> Self {
        Self { source, preview: Preview::default(), plan }
    }

    /// Plans an object to the end. Returns its section; `None` if it is refused.
    ///
    /// # Errors
    /// Azure cannot be read.
    pub async fn foresee(
        &mut self,
        claimant: Claimant<'_>,
        object: &Value,
        when: &str,
        mut goals: impl FnMut(&ObservedResources) -> Result<Vec<Goal>, String>,
    ) -> anyhow::Result<Option<&mut Section>> {
        let (outlook, refused) = loop {
            let goals = match goals(&self.preview.observed) {
                Ok(goals) => goals,
                Err(why) => {
                    self.plan.refuse(object, why);
                    break (self.preview.end(capz_planner::Plan::default()), true);
                }
            };
            match self.preview.next(claimant, goals) {
                Next::Read(unread) => {
                    for (reading, requested) in unread {
                        self.source.read(reading, &requested, &mut self.preview.observed).await?;
                    }
                }
                Next::Again => {}
                Next::Rest(rest) => break (self.preview.end(rest), false),
            }
        };
        if refused && outlook.rounds.is_empty() {
            return Ok(None);
        }
        let when = when.to_owned();
        self.plan.sections.push(Section { object: title(object), when, outlook, ..Section::default() });
        Ok(self.plan.sections.last_mut().filter(|_| !refused))
    }

    /// Reads what goals need.
    ///
    /// # Errors
    /// Azure cannot be read.
    pub async fn read(&mut self, goals: &[Goal]) -> anyhow::Result<()> {
        for (reading, requested) in self.preview.observed.missing(goals) {
            self.source.read(reading, &requested, &mut self.preview.observed).await?;
        }
        Ok(())
    }
}
