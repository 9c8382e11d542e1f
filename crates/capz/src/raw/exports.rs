//! What raw resources export to Secrets and ConfigMaps (`spec.operatorSpec`).

use std::collections::BTreeMap;

use arm::{ApiVersion, Class};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_planner::raw::{Placed, Standing};
use capz_planner::{Observation, ObservedResources};
use operator_resources::{Destination, Export, Keeper, Source};
use serde_json::Value;

use crate::azure::clients::AzureAccess;
use crate::azure::failure::Failure;
use crate::context::manager::Manager;
use crate::managed::access::Owner;

/// The exported values of Secrets, with where they go, by kind and member.
pub(crate) type Exported = BTreeMap<(&'static str, String), (Destination, Vec<u8>)>;

impl Manager {
    /// Exports what the resources ask for. Returns the exported values of Secrets, by the kind and the member that asks for
    /// them.
    pub(crate) async fn export(
        &self,
        access: &AzureAccess,
        placed: &[Placed],
        observed: &ObservedResources,
        owner: Owner<'_>,
    ) -> Result<Exported, Failure> {
        let mut secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        let mut maps: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut exported = Exported::new();
        for it in placed {
            let exports = it.resource.exports().map_err(|refusal| {
                Failure::Terminal(capz_planner::Terminal::configuration(format!(
                    "{}: {refusal}",
                    it.resource.object()
                )))
            })?;
            for export in exports {
                let Some(value) = self.value_of(access, it, observed, &export).await? else { continue };
                let Destination { keeper, name, key } = export.destination.clone();
                match keeper {
                    Keeper::Secret => {
                        secrets.entry(name).or_default().insert(key, value.clone());
                        let asks = (it.resource.kind.kind, export.member.clone());
                        exported.entry(asks).or_insert((export.destination, value));
                    }
                    Keeper::ConfigMap => {
                        let text = String::from_utf8_lossy(&value).into_owned();
                        maps.entry(name).or_default().insert(key, text);
                    }
                }
            }
        }
        for (name, data) in secrets {
            self.keep_export(owner, &name, data).await?;
        }
        for (name, data) in maps {
            self.keep_config_map(owner, &name, data).await?;
        }
        Ok(exported)
    }

    /// The value of an export; `None` if Azure has none.
    async fn value_of(
        &self,
        access: &AzureAccess,
        placed: &Placed,
        observed: &ObservedResources,
        export: &Export,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let Standing::Known { id, api_version, .. } = &placed.standing else { return Ok(None) };
        match export.source {
            Source::Subscription => Ok(Some(id.subscription_id().as_bytes().to_owned())),
            Source::Member(pointer) => Ok(match observed.get(id) {
                Observation::Present(held) => {
                    held.pointer(pointer).and_then(Value::as_str).map(|text| text.as_bytes().to_owned())
                }
                Observation::Absent | Observation::Unknown => None,
            }),
            Source::Call { action, member, is_base64 } => {
                let query: &[(&str, &str)] = match action {
                    "listClusterUserCredential" => &[("format", "exec")],
                    _ => &[],
                };
                let version = ApiVersion::new(api_version);
                let answer = access
                    .client
                    .post_with::<Value, Value>(id, action, version, query, None, Class::Refresh)
                    .await
                    .map_err(|error| Failure::of(&error, self.settings.timeouts.requeue))?;
                let text =
                    answer.body.as_ref().and_then(|body| body.pointer(member)?.as_str().map(str::to_owned));
                Ok(text.and_then(|text| match is_base64 {
                    true => STANDARD.decode(text).ok(),
                    false => Some(text.into_bytes()),
                }))
            }
        }
    }
}
