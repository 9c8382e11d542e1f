//! The cloud's endpoints.

use std::time::Duration;

use bytes::Bytes;
use cloud_config::{CloudConfig, CloudEndpoints};
use serde::Deserialize;
use url::Url;

use crate::{Error, Transport};

/// The timeout of the cloud's metadata.
const METADATA_TIMEOUT: Duration = Duration::from_secs(30);

/// One cloud, as this process uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloud {
    /// The cloud's name.
    pub name: String,
    /// Azure Resource Manager.
    pub resource_manager: Url,
    /// The audience of its tokens.
    pub audience: String,
    /// The authority that issues tokens.
    pub authority: Url,
    /// The domain of container registries.
    pub container_registry_suffix: String,
    /// The domain of storage accounts.
    pub storage_suffix: String,
    /// The suffix of public DNS names, which the region precedes.
    pub public_ip_suffix: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Described {
    name: String,
    resource_manager: Option<String>,
    authentication: Authentication,
    suffixes: Suffixes,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Authentication {
    audiences: Vec<String>,
    login_endpoint: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Suffixes {
    acr_login_server: Option<String>,
    storage: Option<String>,
}

/// The environment file of an Azure Stack; only the members that are used.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EnvironmentFile {
    resource_manager_endpoint: String,
    token_audience: String,
    active_directory_endpoint: String,
    #[serde(rename = "containerRegistryDNSSuffix")]
    container_registry_suffix: String,
    storage_endpoint_suffix: String,
    #[serde(rename = "resourceManagerVMDNSSuffix")]
    public_ip_suffix: String,
}

fn set(target: &mut String, value: Option<String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        *target = value;
    }
}

fn endpoint(setting: &str, text: &str) -> Result<Url, Error> {
    let bad = |why: String| Error::Configuration { reason: format!("{setting}={text}: {why}") };
    let url = Url::parse(text.trim()).map_err(|error| bad(format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none() {
        return Err(bad("must be an https URL with a host".to_owned()));
    }
    Ok(url)
}

impl Cloud {
    /// A built-in cloud.
    pub fn built_in(endpoints: &CloudEndpoints) -> Result<Self, Error> {
        Ok(Self {
            name: endpoints.name.to_owned(),
            resource_manager: endpoint("resource manager", endpoints.resource_manager)?,
            audience: endpoints.audience.to_owned(),
            authority: endpoint("authority", endpoints.authority)?,
            container_registry_suffix: endpoints.container_registry_suffix.to_owned(),
            storage_suffix: endpoints.storage_suffix.to_owned(),
            public_ip_suffix: endpoints.public_ip_suffix.to_owned(),
        })
    }

    /// The configured cloud: the built-in one of that name, overridden by the metadata at `resourceManagerEndpoint`,
    /// then by Azure Stack's environment file. The returned texts are warnings for the log.
    ///
    /// Errors: an endpoint that is not a URL, that does not answer within 30 s, or whose answer is not a cloud's
    /// metadata; an environment file that cannot be read.
    pub async fn resolve(config: &CloudConfig, transport: &Transport) -> Result<(Self, Vec<String>), Error> {
        let mut warnings = Vec::new();
        if config.resource_manager_endpoint.is_empty() {
            return Ok((Self::undescribed(config)?, warnings));
        }
        let mut cloud = Self::built_in(&config.endpoints())?;
        let described = describe(&config.resource_manager_endpoint, transport).await?;
        cloud.override_by(described, config, &mut warnings)?;
        cloud.override_by_environment(config)?;
        Ok((cloud, warnings))
    }

    /// The configured cloud if no `resourceManagerEndpoint` is set, so that no request is needed.
    ///
    /// Errors: an unknown cloud, or an environment file that cannot be read.
    pub fn undescribed(config: &CloudConfig) -> Result<Self, Error> {
        if !config.names_known_cloud() {
            return Err(Error::Configuration {
                reason: format!(
                    "cloud={} is not a known cloud, and credentials are not sent to another one: set it to AzurePublicCloud, \
                     AzureUSGovernmentCloud or AzureChinaCloud, or let resourceManagerEndpoint name what describes this cloud",
                    config.cloud
                ),
            });
        }
        let mut cloud = Self::built_in(&config.endpoints())?;
        cloud.override_by_environment(config)?;
        Ok(cloud)
    }

    /// The scope of tokens for Azure Resource Manager. The audience keeps its trailing slash, so the
    /// public cloud's scope has two in a row; authorities expect that.
    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    fn override_by(
        &mut self,
        described: Vec<Described>,
        config: &CloudConfig,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let wanted = config.cloud.trim();
        let names: Vec<&str> = described.iter().map(|cloud| cloud.name.as_str()).collect();
        let names = if names.is_empty() { "no cloud".to_owned() } else { names.join(", ") };
        let describes = format!(
            "resourceManagerEndpoint={} describes {names} and not cloud={wanted}",
            config.resource_manager_endpoint
        );
        let is_known = config.names_known_cloud();
        // Azure has one name for a cloud, and configurations several.
        let is_wanted = |name: &str| {
            wanted.is_empty()
                || name.eq_ignore_ascii_case(wanted)
                || is_known && name.eq_ignore_ascii_case(&self.name)
        };
        let chosen = described.into_iter().find(|cloud| is_wanted(&cloud.name));
        let Some(chosen) = chosen else {
            if !is_known {
                return Err(Error::Configuration {
                    reason: format!(
                        "{describes}, which is not a known cloud: credentials are not sent to another one. Set cloud to a name that \
                         it describes"
                    ),
                });
            }
            warnings.push(format!("{describes}: the endpoints of {} are used", self.name));
            return Ok(());
        };
        let manager = chosen.resource_manager.filter(|url| !url.is_empty());
        let manager = manager.as_deref().unwrap_or(&config.resource_manager_endpoint);
        self.resource_manager = endpoint("resourceManager of the cloud's metadata", manager)?;
        set(&mut self.audience, chosen.authentication.audiences.into_iter().next());
        if let Some(login) = chosen.authentication.login_endpoint.filter(|url| !url.is_empty()) {
            self.authority = endpoint("loginEndpoint of the cloud's metadata", &login)?;
        }
        set(&mut self.name, Some(chosen.name));
        set(&mut self.container_registry_suffix, chosen.suffixes.acr_login_server);
        set(&mut self.storage_suffix, chosen.suffixes.storage);
        Ok(())
    }

    fn override_by_environment(&mut self, config: &CloudConfig) -> Result<(), Error> {
        if config.names_azure_stack() && !config.environment_file.is_empty() {
            self.read_environment_file(&config.environment_file)?;
        }
        Ok(())
    }

    fn read_environment_file(&mut self, path: &str) -> Result<(), Error> {
        let bad = |why: String| Error::Configuration {
            reason: format!("AZURE_ENVIRONMENT_FILEPATH={path}: {why}"),
        };
        let text = std::fs::read(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
        let file: EnvironmentFile =
            serde_json::from_slice(text.trim_ascii_start().strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text))
                .map_err(|error| bad(format!("is not an environment file: {error}")))?;
        if !file.resource_manager_endpoint.is_empty() && !file.token_audience.is_empty() {
            self.resource_manager = endpoint("resourceManagerEndpoint", &file.resource_manager_endpoint)?;
            self.audience = file.token_audience;
        }
        if !file.active_directory_endpoint.is_empty() {
            self.authority = endpoint("activeDirectoryEndpoint", &file.active_directory_endpoint)?;
        }
        set(&mut self.container_registry_suffix, Some(file.container_registry_suffix));
        set(&mut self.storage_suffix, Some(file.storage_endpoint_suffix));
        set(&mut self.public_ip_suffix, Some(file.public_ip_suffix));
        Ok(())
    }
}

async fn describe(address: &str, transport: &Transport) -> Result<Vec<Described>, Error> {
    let bad =
        |why: String| Error::Configuration { reason: format!("resourceManagerEndpoint={address}: {why}") };
    let base = endpoint("resourceManagerEndpoint", address)?;
    let target = format!("{}/metadata/endpoints?api-version=2019-05-01", base.as_str().trim_end_matches('/'));
    let request = http::Request::get(target)
        .header(http::header::ACCEPT, "application/json")
        .body(Bytes::new())
        .map_err(|error| bad(format!("cannot request the cloud's metadata: {error}")))?;
    let answer = match tokio::time::timeout(METADATA_TIMEOUT, transport.send(request)).await {
        Err(_) => {
            return Err(bad(format!(
                "the cloud's metadata did not come within {} s",
                METADATA_TIMEOUT.as_secs()
            )));
        }
        Ok(Err(error)) => return Err(bad(format!("cannot read the cloud's metadata: {error}"))),
        Ok(Ok(answer)) => answer,
    };
    if !answer.status().is_success() {
        return Err(bad(format!("cannot read the cloud's metadata: status {}", answer.status().as_u16())));
    }
    serde_json::from_slice(answer.body())
        .map_err(|error| bad(format!("the answer is not the cloud's metadata: {error}")))
}
