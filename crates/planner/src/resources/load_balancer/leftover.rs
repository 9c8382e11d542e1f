//! Frontends that outlive the Service they are named after: other Services share them, and the last of those leaves.

use std::collections::BTreeMap;

use azure_types::{LoadBalancerProperties, ResourceId};
use k8s::ObjectKey;
use ownership::Evidence;

use super::edit::Draft;
use super::intent::{KnownServices, LoadBalancerIntent};
use super::parts::text;
use crate::model::names;
use crate::outcome::Change;

/// The frontends that the rules of a batch's Services use, each with one of those Services.
pub(super) fn frontends_in_use<'a>(
    properties: Option<&LoadBalancerProperties>,
    batch: impl Iterator<Item = &'a LoadBalancerIntent>,
) -> BTreeMap<ResourceId, ObjectKey> {
    let bases: BTreeMap<String, &ObjectKey> = batch
        .filter_map(|intent| Some((intent.owner().base_name.as_deref()?.to_ascii_lowercase(), intent.key())))
        .collect();
    let rules = properties.into_iter().flat_map(|p| p.load_balancing_rules.iter().flatten());
    rules
        .filter_map(|rule| {
            let base = text(&rule.name).split('-').next()?.to_ascii_lowercase();
            let frontend = rule.properties.as_ref()?.frontend_ip_configuration.as_ref()?.id.clone()?;
            Some((frontend, (*bases.get(&base)?).clone()))
        })
        .collect()
}

impl Draft<'_> {
    /// Removes the frontends among `used` that are no longer referred to and are named after a Service that does not
    /// exist or that is served elsewhere.
    pub(super) fn remove_leftovers(
        &mut self,
        used: &BTreeMap<ResourceId, ObjectKey>,
        services: &KnownServices,
    ) {
        for (id, key) in used {
            let flavor = self.balancer.flavor;
            let is_here = |base| services.get(base).is_some_and(|served_by| *served_by == Some(flavor));
            let gone = names::base_of(id.name()).is_some_and(|base| !is_here(base));
            if gone && self.foreign_reference(id, |_| false).is_none() {
                let before = self.frontends().len();
                self.frontends().retain(|frontend| {
                    !crate::resources::load_balancer::parts::is_named(&frontend.name, id.name())
                });
                if self.frontends().len() < before {
                    let frontend = id.name().to_owned();
                    let evidence = Evidence::Refers { resource: id.to_string() };
                    let part = format!("frontend {frontend}");
                    self.note_removal(key, part, evidence, Change::LeftoverFrontendRemoved { frontend });
                }
            }
        }
    }
}
