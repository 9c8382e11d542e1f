//! What a cluster needs, as text, as JSON, as commands of the Azure CLI and as manifests.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::needs::{AzureRole, Needs};
use crate::Program;
use crate::azure::definition;
use crate::kubernetes::yaml;

/// The version of the JSON: it changes if a member is changed or removed, and not if one is added.
const FORMAT_VERSION: u32 = 1;

/// How to print what a cluster needs.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a>(pub &'a Needs);

impl Report<'_> {
    /// For programs: features, roles and assignments in Azure, roles in Kubernetes.
    pub fn json(&self) -> Value {
        let features: BTreeMap<&str, &str> =
            self.0.features.iter().map(|(feature, reason)| (feature.name(), reason.as_str())).collect();
        let roles = self.0.azure_roles();
        let assignments = roles
            .iter()
            .flat_map(|role| role.scopes.iter().map(|scope| json!({ "role": role.name, "scope": scope })));
        json!({
            "formatVersion": FORMAT_VERSION,
            "clusterName": self.0.cluster,
            "features": features,
            "roleDefinitions": roles.iter().map(|role| self.definition(role)).collect::<Vec<_>>(),
            "roleAssignments": assignments.collect::<Vec<_>>(),
            "kubernetes": self.0.kubernetes().iter().flat_map(|role| role.objects()).collect::<Vec<_>>(),
            "notes": self.0.notes,
        })
    }

    fn definition(&self, role: &AzureRole) -> crate::azure::Definition {
        let scopes: Vec<String> = role.scopes.iter().map(ToString::to_string).collect();
        let description = format!("{} of the cluster {}", self.0.program.name(), self.0.cluster);
        definition(&role.name, &description, &role.actions, &scopes)
    }

    /// A shell script that creates the roles and assigns them to the principal `$ASSIGNEE`.
    pub fn commands(&self) -> String {
        let mut text = "# The object ID of the identity that azure.json names, of a service principal or managed identity.\n\
                        : \"${ASSIGNEE:?set ASSIGNEE to the object ID of the identity in azure.json}\"\n"
            .to_owned();
        for role in self.0.azure_roles() {
            let definition = serde_json::to_string_pretty(&self.definition(&role)).unwrap_or_default();
            text.push_str(&format!(
                "\naz role definition create --role-definition {} >/dev/null\n",
                quoted(&definition)
            ));
            for scope in &role.scopes {
                text.push_str(&format!(
                    "az role assignment create --role {} --assignee-object-id \"$ASSIGNEE\" \
                     --assignee-principal-type ServicePrincipal --scope {} >/dev/null\n",
                    quoted(&role.name),
                    quoted(scope.as_str()),
                ));
            }
        }
        text
    }

    /// The roles in Kubernetes, for `kubectl apply`.
    pub fn manifests(&self) -> String {
        yaml(&self.0.kubernetes())
    }
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [objects, nodes] = self.0.known;
        let kinds = match self.0.program {
            Program::DiskController => "classes and volumes",
            _ => "Services",
        };
        writeln!(f, "Features of cluster {}, by {objects} {kinds} and {nodes} Nodes:\n", self.0.cluster)?;
        let width = self.0.features.keys().map(|feature| feature.name().len()).max().unwrap_or_default();
        for (feature, reason) in &self.0.features {
            writeln!(f, "  {:width$}  {reason}", feature.name())?;
        }
        writeln!(f, "\nIn Azure, for the identity that azure.json names:")?;
        for (scope, actions) in &self.0.azure {
            writeln!(f, "\n  {scope}")?;
            let width = actions.keys().map(|action| action.len()).max().unwrap_or_default();
            for (action, reasons) in actions {
                let purposes: Vec<String> = reasons.purposes.iter().copied().map(plain).collect();
                writeln!(f, "    {action:width$}  {}", purposes.join("; "))?;
            }
        }
        let accounts = self.0.accounts().iter().map(|it| format!("kube-system/{it}")).collect::<Vec<_>>();
        let plural = if accounts.len() > 1 { "s" } else { "" };
        writeln!(f, "\nIn Kubernetes, for the service account{plural} {}:", accounts.join(" and "))?;
        for role in self.0.kubernetes() {
            let place =
                role.namespace.map_or_else(|| "the cluster".to_owned(), |it| format!("namespace {it}"));
            writeln!(f, "\n  {}, in {place}", role.name())?;
            for (resource, verbs, purpose) in role.lines() {
                writeln!(f, "    {resource}: {verbs}  {}", plain(purpose))?;
            }
        }
        if !self.0.notes.is_empty() {
            writeln!(f)?;
        }
        self.0.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// A purpose without the links and signs of pages.
fn plain(purpose: &str) -> String {
    let linked = purpose.strip_prefix('[').and_then(|rest| rest.split_once("](")).map(|(text, _)| text);
    linked.unwrap_or(purpose).replace(['`', '*'], "")
}
