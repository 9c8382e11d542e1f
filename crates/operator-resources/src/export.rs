//! What is written to Secrets and ConfigMaps once a resource is there.

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::member::{name_and_key, object_of, word_of};
use crate::resource::Resource;
use crate::table::{Keeper, Source};

/// Where an exported value goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// The kind of object.
    pub keeper: Keeper,
    /// Its name, in the namespace of the resource's object.
    pub name: String,
    /// The key.
    pub key: String,
}

/// One value to export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The member of `operatorSpec` that asks for it, such as `secrets.adminCredentials`.
    pub member: String,
    /// Where it comes from.
    pub source: Source,
    /// Where it goes.
    pub destination: Destination,
}

/// All that an object asks for.
pub type Exports = Vec<Export>;

/// The member of `operatorSpec` with what goes there.
fn member_of(keeper: Keeper) -> &'static str {
    match keeper {
        Keeper::Secret => "secrets",
        Keeper::ConfigMap => "configMaps",
    }
}

impl Resource {
    /// What its `operatorSpec` asks to be exported.
    ///
    /// # Errors
    ///
    /// It asks for something that is not served.
    pub fn exports(&self) -> Result<Exports, Refusal> {
        let path = "spec.operatorSpec";
        let mut exports = Exports::new();
        for (name, value) in &self.operator_spec {
            let at = format!("{path}.{name}");
            let keeper = match name.as_str() {
                _ if value.is_null() => continue,
                "secrets" => Keeper::Secret,
                "configMaps" => Keeper::ConfigMap,
                "secretExpressions" | "configMapExpressions" => {
                    if value.as_array().is_some_and(Vec::is_empty) {
                        continue;
                    }
                    let remedy =
                        "expressions are not served: use secrets and configMaps, or read the value in Azure";
                    return Err(Refusal::value(&at, word_of(value), remedy));
                }
                // Read with the name in Azure.
                "namingConvention" if self.kind.kind == "RoleAssignment" => continue,
                _ => return Err(Refusal::value(&at, word_of(value), "remove it: it is not served")),
            };
            self.exports_to(keeper, object_of(value, &at)?, &at, &mut exports)?;
        }
        exports.sort_by(|one, other| one.member.cmp(&other.member));
        let mut taken: Vec<&Export> = Vec::new();
        for export in &exports {
            if let Some(first) = taken.iter().find(|taken| taken.destination == export.destination) {
                let at = |export: &Export| format!("{path}.{}", export.member);
                return Err(Refusal::Twice { first: at(first), second: at(export) });
            }
            taken.push(export);
        }
        Ok(exports)
    }

    fn exports_to(
        &self,
        keeper: Keeper,
        wanted: &Map<String, Value>,
        at: &str,
        exports: &mut Exports,
    ) -> Result<(), Refusal> {
        for (name, value) in wanted.iter().filter(|(_, value)| !value.is_null()) {
            let path = format!("{at}.{name}");
            let of_keeper = || self.kind.exports.iter().filter(|(of, _, _)| *of == keeper);
            let Some((_, _, source)) = of_keeper().find(|(_, known, _)| known == name) else {
                let known: Vec<&str> = of_keeper().map(|(_, name, _)| *name).collect();
                let remedy = if known.is_empty() {
                    format!("remove it: nothing of {} is exported to a {}", self.kind.kind, keeper.as_str())
                } else {
                    format!("write one of {}", known.join(", "))
                };
                return Err(Refusal::value(&path, word_of(value), remedy));
            };
            let (destination, key) = name_and_key(value, &path, keeper.as_str())?;
            exports.push(Export {
                member: format!("{}.{name}", member_of(keeper)),
                source: *source,
                destination: Destination { keeper, name: destination, key },
            });
        }
        Ok(())
    }
}
