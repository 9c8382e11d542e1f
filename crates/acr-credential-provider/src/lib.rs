//! The kubelet's exec plugin for Azure container registries: one request on standard input, one response on standard
//! output.
//!
//! ```text
//! image ─▶ image: which login server, through which mirror
//! request, azure.json, flags ─▶ identity: which identity signs in
//!    password ─▶ returned for all registries of Azure
//!    others ─▶ token of Entra ─┐
//!    registry ─▶ challenge ────┴─▶ sign_in: exchange ─▶ password of this registry
//! ```
//!
//! The challenge and Entra's token are requested at the same time. A process answers once and ends, so it uses
//! HTTP/1.1, has one thread and loads nothing that it does not need.
//!
//! User documentation: `docs/acr-credential-provider.md`.

pub mod challenge;
pub mod command_line;
mod error;
mod excerpt;
pub mod identity;
pub mod identity_binding;
pub mod image;
pub mod install;
pub mod protocol;
pub mod sign_in;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use arm::{Cloud, ProxySettings, Transport, TransportOptions};
use cloud_config::CloudConfig;
use tokio::time::{Instant, timeout_at};

use crate::command_line::CommandLine;
pub use crate::error::Error;
use crate::identity::Identity;
use crate::image::{Mirrors, Origin};
use crate::protocol::{Credentials, Request, Response};
use crate::sign_in::SignIn;

/// The timeout of one call. The kubelet kills its plugin after a minute, and a killed plugin reports nothing.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(50);
/// How much earlier than the call the wait for a token ends.
const REPORTING_TIME: Duration = Duration::from_millis(100);
/// How long the kubelet may cache credentials, in hours: a registry's token is valid for three.
const CACHE_HOURS: u32 = 1;
/// Anonymous access: a registry that permits it needs no credentials.
const ANONYMOUS: &str = "*.azurecr.*";

/// The variable with the file of an Azure Stack's endpoints.
const ENVIRONMENT_FILE: &str = "AZURE_ENVIRONMENT_FILEPATH";

/// The environment of the process, as a value.
pub struct PluginEnvironment<'a> {
    /// Reads an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The file with the certificate of the cluster's authority.
    pub cluster_authority: &'a Path,
    /// PEM texts of certificate authorities to trust besides the system's.
    pub extra_roots: Vec<String>,
    /// Where requests to a host are sent instead, such as those to the instance metadata service.
    pub redirects: Vec<(String, String)>,
    /// The sink of log messages with a level; it decides which levels are written.
    pub log: &'a dyn Fn(i64, fmt::Arguments<'_>),
}

/// Answers a request.
///
/// # Errors
/// There are no credentials for the image; the kubelet continues with its other providers.
pub async fn answer(
    line: &CommandLine,
    input: &[u8],
    environment: &PluginEnvironment<'_>,
) -> Result<Response, Error> {
    let deadline = Instant::now() + CALL_TIMEOUT;
    let log = environment.log;
    let binding = line.binding.resolve().await?;
    let request = Request::parse(input)?;
    let config = read_config(&line.config_file, environment)?;
    let (mirrors, ignored) = Mirrors::parse(&line.registry_mirror);
    for entry in ignored {
        log(
            0,
            format_args!("--registry-mirror: {entry} is ignored: give it as source:target, without ports"),
        );
    }

    let (cloud, transport) = resolve_cloud(&config, deadline, environment).await?;
    let domain = &cloud.container_registry_suffix;
    let origin = Origin::of(&request.image, &mirrors, domain);
    let identity = Identity::choose(&request, &config, binding, origin.mirrored_from.is_some())?;
    let Some(server) = origin.login_server else {
        log(2, format_args!("image {} is not from ACR: no credentials", request.image));
        return Ok(Response::default());
    };
    let per_image = mirrors.divide(&request.image);
    let mut response = Response { cache_hours: CACHE_HOURS, per_image, ..Response::default() };
    response.auth.insert(ANONYMOUS.to_owned(), Credentials::default());
    let name = identity.describe(&config);
    log(2, format_args!("image {}: {name} signs in to {server}", request.image));
    // Only the target may see the password: for a mirrored image it is exchanged, because the runtime sends its
    // credentials to the source as well.
    if let Identity::Password { client, secret } = &identity
        && (client.is_empty() || origin.mirrored_from.is_none())
    {
        let credentials = Credentials { username: client.clone(), password: secret.clone() };
        response.add(image::patterns(domain), &request.image, &credentials);
        return Ok(response);
    }

    let transport = match transport {
        Some(transport) => transport,
        None => connect(environment)?,
    };
    let sign_in = SignIn { transport: &transport, server: &server, domain, tenant: &config.tenant_id };
    // The wait for the token can report the authority's last message, so it ends first.
    let token_timeout = deadline.saturating_duration_since(Instant::now()).saturating_sub(REPORTING_TIME);
    let authority = format!("the authority of the {name}");
    let cluster_authority = environment.cluster_authority;
    let token = identity.token(&request, &config, &cloud, &transport, cluster_authority, token_timeout);
    // Each is useless without the other: the first failure ends both.
    let (token, challenge) =
        tokio::try_join!(by(deadline, &authority, token), by(deadline, &server, sign_in.challenge()))?;
    log(4, format_args!("{server} requires tokens of {} for {}", challenge.realm, challenge.service));
    let credentials = by(deadline, &server, sign_in.exchange(&challenge, &token, &name)).await?;
    log(4, format_args!("{server} issued a token"));
    let keys = origin.mirrored_from.into_iter().chain([server]);
    response.add(keys, &request.image, &credentials);
    Ok(response)
}

/// The result by the deadline; after it, an error that names the service.
async fn by<T>(
    deadline: Instant,
    service: &str,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let overdue = |_| Err(Error::Overdue { service: service.to_owned(), limit: CALL_TIMEOUT });
    timeout_at(deadline, call).await.unwrap_or_else(overdue)
}

/// The cloud, and the transport if it was needed to read the cloud's metadata. Loading the system's certificate
/// authorities is most of the work, and useless without a request.
async fn resolve_cloud(
    config: &CloudConfig,
    deadline: Instant,
    environment: &PluginEnvironment<'_>,
) -> Result<(Cloud, Option<Transport>), Error> {
    if config.resource_manager_endpoint.is_empty() {
        return Ok((Cloud::undescribed(config)?, None));
    }
    let transport = connect(environment)?;
    let resolving = async { Ok(Cloud::resolve(config, &transport).await?) };
    let (cloud, warnings) = by(deadline, &config.resource_manager_endpoint, resolving).await?;
    for warning in warnings {
        (environment.log)(0, format_args!("{warning}"));
    }
    Ok((cloud, Some(transport)))
}

fn read_config(path: &str, environment: &PluginEnvironment<'_>) -> Result<CloudConfig, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::ReadConfig { path: path.into(), source })?;
    // Variables for other programs' credentials are ignored: a kubelet may run next to them.
    let variable = |name: &str| if name == ENVIRONMENT_FILE { (environment.variable)(name) } else { None };
    CloudConfig::from_bytes(&bytes, &variable).map_err(|source| Error::Config { path: path.into(), source })
}

fn connect(environment: &PluginEnvironment<'_>) -> Result<Transport, Error> {
    Ok(Transport::connect(TransportOptions {
        proxy: ProxySettings::from_environment(environment.variable)?,
        http2: false,
        redirects: environment.redirects.clone(),
        request_timeout: CALL_TIMEOUT,
        extra_roots: environment.extra_roots.clone(),
        ..TransportOptions::default()
    })?)
}
