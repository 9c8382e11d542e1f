//! The kubelet's exec plugin for Azure container registries: one request on standard input, one response on standard
//! output.
//!
//! ```text
//! image ─▶ image: which login server, through which mirror
//! request, azure.json, flags ─▶ identity: who asks
//!    password ─▶ handed out for all registries of Azure
//!    anybody else ─▶ token of Entra ─┐
//!    registry ─▶ challenge ──────────┴─▶ sign_in: exchange ─▶ password of this registry
//! ```
//!
//! The challenge and Entra's token are asked for at the same time. A process answers once and ends, so it speaks
//! HTTP/1.1, has one thread and loads nothing that it does not need.
//!
//! What users read of it: `docs/acr-credential-provider.md`.

pub mod challenge;
pub mod command_line;
mod error;
mod excerpt;
pub mod identity;
pub mod identity_binding;
pub mod image;
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

/// How long one call may take. The kubelet kills its plugin after a minute, and a plugin that was killed says nothing.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(50);
/// How much earlier than the call the wait for a token ends.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// How long the kubelet may keep credentials, in hours: a registry's token is good for three.
const CACHE_HOURS: u32 = 1;
/// Anonymous access: the registry that allows it needs no credentials.
const ANONYMOUS: &str = "*.azurecr.*";

/// The variable that names the endpoints of an Azure Stack.
const ENVIRONMENT_FILE: &str = "AZURE_ENVIRONMENT_FILEPATH";

/// What a process has around it, as a value.
pub struct Surroundings<'a> {
    /// Tells one environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The file with the certificate of the cluster's authority.
    pub cluster_authority: &'a Path,
    /// PEM texts of certificate authorities to trust besides the system's.
    pub extra_roots: Vec<String>,
    /// Where requests to a host go instead, such as those to the instance metadata service.
    pub redirects: Vec<(String, String)>,
    /// Where messages of a level go; it decides which levels are of interest.
    pub log: &'a dyn Fn(i64, fmt::Arguments<'_>),
}

/// Answers a request.
///
/// # Errors
/// There are no credentials for the image; the kubelet goes on to its other providers.
pub async fn answer(
    line: &CommandLine,
    input: &[u8],
    surroundings: &Surroundings<'_>,
) -> Result<Response, Error> {
    let deadline = Instant::now() + CALL_TIMEOUT;
    let log = surroundings.log;
    let binding = line.binding.resolve().await?;
    let request = Request::parse(input)?;
    let config = read_config(&line.config_file, surroundings)?;
    let (mirrors, ignored) = Mirrors::parse(&line.registry_mirror);
    for entry in ignored {
        log(
            0,
            format_args!("--registry-mirror: {entry} is ignored: give it as source:target, without ports"),
        );
    }

    let (cloud, transport) = resolve_cloud(&config, deadline, surroundings).await?;
    let domain = &cloud.container_registry_suffix;
    let origin = Origin::of(&request.image, &mirrors, domain);
    let identity = Identity::choose(&request, &config, binding, origin.mirrored_from.is_some())?;
    let Some(server) = origin.login_server else {
        log(2, format_args!("image {} is not from ACR: no credentials", request.image));
        return Ok(Response::default());
    };
    let per_image = mirrors.divide(&request.image);
    let mut response = Response { cache_hours: CACHE_HOURS, per_image, ..Response::default() };
    response.auth.insert(ANONYMOUS.to_owned(), Credentials::anonymous());
    let name = identity.describe(&config);
    log(2, format_args!("image {}: {name} signs in to {server}", request.image));
    match identity {
        // Only the target may see the password: for a mirrored image it is exchanged, because the runtime sends what it
        // gets to the source as well.
        Identity::Password { client, secret } if client.is_empty() || origin.mirrored_from.is_none() => {
            let credentials = Credentials { username: client, password: secret };
            response.give(image::patterns(domain), &request.image, &credentials);
            return Ok(response);
        }
        _ => {}
    }

    let transport = match transport {
        Some(transport) => transport,
        None => connect(surroundings)?,
    };
    let sign_in = SignIn { transport: &transport, server: &server, domain, tenant: &config.tenant_id };
    // Who waits for the token can say what the authority said last, and so gives up first.
    let patience = deadline.saturating_duration_since(Instant::now()).saturating_sub(LAST_WORDS);
    let authority = format!("the authority of the {name}");
    let cluster_authority = surroundings.cluster_authority;
    let token = identity.token(&request, &config, &cloud, &transport, cluster_authority, patience);
    // Without the one the other is of no use: the first failure ends it.
    let (token, challenge) =
        tokio::try_join!(by(deadline, &authority, token), by(deadline, &server, sign_in.challenge()))?;
    log(4, format_args!("{server} asks for tokens of {} for {}", challenge.realm, challenge.service));
    let credentials = by(deadline, &server, sign_in.exchange(&challenge, &token, &name)).await?;
    log(4, format_args!("{server} gave a token of its own"));
    let keys = origin.mirrored_from.into_iter().chain([server]);
    response.give(keys, &request.image, &credentials);
    Ok(response)
}

/// What comes by the deadline; after it, who was waited for.
async fn by<T>(
    deadline: Instant,
    whom: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let overdue = |_| Err(Error::Overdue { whom: whom.to_owned() });
    timeout_at(deadline, work).await.unwrap_or_else(overdue)
}

/// The cloud, and the transport if it took one to learn of it. The system's certificate authorities are most of the
/// work, and of no use where nobody is asked.
async fn resolve_cloud(
    config: &CloudConfig,
    deadline: Instant,
    surroundings: &Surroundings<'_>,
) -> Result<(Cloud, Option<Transport>), Error> {
    if config.resource_manager_endpoint.is_empty() {
        return Ok((Cloud::undescribed(config)?, None));
    }
    let transport = connect(surroundings)?;
    let resolving = async { Ok(Cloud::resolve(config, &transport).await?) };
    let (cloud, warnings) = by(deadline, &config.resource_manager_endpoint, resolving).await?;
    for warning in warnings {
        (surroundings.log)(0, format_args!("{warning}"));
    }
    Ok((cloud, Some(transport)))
}

fn read_config(path: &str, surroundings: &Surroundings<'_>) -> Result<CloudConfig, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::ReadConfig { path: path.into(), source })?;
    // The variables by which other programs sign in are not this one's: a kubelet may run beside them.
    let variable = |name: &str| if name == ENVIRONMENT_FILE { (surroundings.variable)(name) } else { None };
    CloudConfig::from_bytes(&bytes, &variable).map_err(|source| Error::Config { path: path.into(), source })
}

fn connect(surroundings: &Surroundings<'_>) -> Result<Transport, Error> {
    Ok(Transport::connect(TransportOptions {
        proxy: ProxySettings::from_environment(surroundings.variable)?,
        http2: false,
        redirects: surroundings.redirects.clone(),
        request_timeout: CALL_TIMEOUT,
        extra_roots: surroundings.extra_roots.clone(),
        ..TransportOptions::default()
    })?)
}
