//! Variables in tags and names that stand for the claim and the volume.

use super::given::Given;
use super::keys;

/// The values of the variables, as far as the provisioner says them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates([(&'static str, Option<String>); 3]);

impl Templates {
    /// The values that a side-car has added to the parameters.
    pub fn of(given: &Given) -> Self {
        Self([
            ("${pvc.metadata.name}", given.owned(keys::PVC_NAME)),
            ("${pvc.metadata.namespace}", given.owned(keys::PVC_NAMESPACE)),
            ("${pv.metadata.name}", given.owned(keys::PV_NAME)),
        ])
    }

    /// The text with values in place of variables. A variable without a value stays.
    pub fn fill(&self, text: &str) -> String {
        let known = self.0.iter().filter_map(|(variable, value)| Some((variable, value.as_deref()?)));
        known.fold(text.to_owned(), |text, (variable, value)| text.replace(variable, value))
    }
}
