//! A kubeconfig as a client's configuration.
//!
//! kube's own loader takes the proxy from the process's environment, compares `NO_PROXY` with the proxy instead of the
//! API server, and fails on unknown entries. Here the environment is passed as a value, and the rules are those of the
//! calls to Azure.

use std::fmt;
use std::path::{MAIN_SEPARATOR, Path};

use anyhow::{Context as _, anyhow, bail};
use arm::ProxySettings;
use base64::Engine as _;
use kube::Config;
use kube::config::{Cluster, Context, ExecAuthCluster, Kubeconfig, NamedContext};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// Reads a kubeconfig. Relative paths in it are relative to its folder; of several documents, the first that sets a
/// value wins.
///
/// kube's own reader does the same with YAML deserialization into each of its types, which adds a third of a megabyte
/// to every program.
///
/// # Errors
/// The file cannot be read, or is not a kubeconfig.
pub fn read(path: &str) -> anyhow::Result<Kubeconfig> {
    let mut file = parse(&cloud_config::decode(&std::fs::read(path)?)?)?;
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let clusters = file.clusters.iter_mut().filter_map(|one| one.cluster.as_mut());
    let users = file.auth_infos.iter_mut().filter_map(|one| one.auth_info.as_mut());
    let of_users = users.flat_map(|user| {
        // A bare name is searched in `PATH`, as a shell does.
        let command = user.exec.as_mut().and_then(|exec| exec.command.as_mut());
        let command = command.filter(|command| command.contains(MAIN_SEPARATOR));
        let paths = [user.client_certificate.as_mut(), user.client_key.as_mut(), user.token_file.as_mut()];
        paths.into_iter().chain([command]).flatten()
    });
    for name in clusters.filter_map(|cluster| cluster.certificate_authority.as_mut()).chain(of_users) {
        if !name.is_empty() && Path::new(name.as_str()).is_relative() {
            *name = folder.join(name.as_str()).to_string_lossy().into_owned();
        }
    }
    Ok(file)
}

/// Reads a kubeconfig from elsewhere: everything that it needs stands in it.
///
/// # Errors
/// The text is not a kubeconfig, or it names a file or a command of the machine that it is from.
pub(crate) fn read_foreign(text: &[u8]) -> anyhow::Result<Kubeconfig> {
    let file = parse(&cloud_config::decode(text)?)?;
    let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    if file.clusters.iter().flat_map(|one| &one.cluster).any(|it| is_set(&it.certificate_authority)) {
        bail!("it names a file of certificate authorities");
    }
    for user in file.auth_infos.iter().flat_map(|one| &one.auth_info) {
        if user.exec.is_some() || user.auth_provider.is_some() {
            bail!("it names a command that gives credentials");
        }
        if [&user.client_certificate, &user.client_key, &user.token_file].into_iter().any(is_set) {
            bail!("it names files with credentials");
        }
    }
    Ok(file)
}

fn parse(text: &str) -> anyhow::Result<Kubeconfig> {
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(text)?;
    let mut file = Kubeconfig::default();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        file = file.merge(serde_json::from_value(document).context("it is not a kubeconfig")?)?;
    }
    Ok(file)
}

/// The configuration of the current context; its only proxy is the cluster's own.
///
/// # Errors
/// What is missing or unreadable, with its place in the file.
pub fn config_of(file: Kubeconfig) -> anyhow::Result<Config> {
    let name = file.current_context.filter(|name| !name.is_empty()).context("current-context is not set")?;
    let context = context_of(&file.contexts, &name)?.clone();
    let cluster = file.clusters.into_iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster).with_context(|| {
        format!("context {name:?} has the cluster {:?}, which does not exist", context.cluster)
    })?;
    let server = cluster.server.as_deref().context("the cluster has no server")?;
    let mut config = Config::new(server.parse().with_context(|| format!("server {server:?} is not a URL"))?);
    if let Some(namespace) = context.namespace.filter(|namespace| !namespace.is_empty()) {
        config.default_namespace = namespace;
    }
    config.root_cert = certificate_authorities(&cluster)?;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.disable_compression = cluster.disable_compression.unwrap_or(false);
    config.tls_server_name = cluster.tls_server_name.clone();
    if let Some(proxy) = cluster.proxy_url.as_deref().filter(|proxy| !proxy.is_empty()) {
        config.proxy_url = Some(proxy.parse().map_err(|_| anyhow!("proxy-url of the cluster is not a URL"))?);
    }
    if let Some(user) = context.user.filter(|user| !user.is_empty()) {
        let info = file.auth_infos.into_iter().find(|info| info.name == user);
        config.auth_info = info
            .and_then(|info| info.auth_info)
            .with_context(|| format!("context {name:?} has the user {user:?}, which does not exist"))?;
    }
    if let Some(exec) = &mut config.auth_info.exec
        && exec.provide_cluster_info
    {
        exec.cluster = Some(ExecAuthCluster::try_from(&cluster)?);
    }
    Ok(config)
}

fn context_of<'a>(contexts: &'a [NamedContext], name: &str) -> anyhow::Result<&'a Context> {
    let context = contexts.iter().find(|context| context.name == name);
    context.and_then(|context| context.context.as_ref()).with_context(|| {
        let names: Vec<String> = contexts.iter().map(|context| format!("{:?}", context.name)).collect();
        match names.is_empty() {
            true => format!("there is no context {name:?}, nor any other"),
            false => format!("there is no context {name:?}; there are: {}", names.join(", ")),
        }
    })
}

fn certificate_authorities(cluster: &Cluster) -> anyhow::Result<Option<Vec<Vec<u8>>>> {
    let (data, file) = (&cluster.certificate_authority_data, &cluster.certificate_authority);
    let Some(pem) = data_or_file("certificate-authority", data.as_deref(), file.as_deref())? else {
        return Ok(None);
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates =
        certificates.map_err(|error| anyhow!("the certificate authority is not PEM: {error}"))?;
    if certificates.is_empty() {
        bail!("the certificate authority holds no certificate");
    }
    Ok(Some(certificates.into_iter().map(|certificate| certificate.to_vec()).collect()))
}

/// The contents of `<name>-data`, or else of the file that `<name>` names.
pub(crate) fn data_or_file(
    name: &str,
    data: Option<&str>,
    file: Option<&str>,
) -> anyhow::Result<Option<Vec<u8>>> {
    let is_set = |text: &&str| !text.is_empty();
    if let Some(data) = data.filter(is_set) {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data);
        return decoded.map(Some).map_err(|_| anyhow!("{name}-data is not base64"));
    }
    let Some(path) = file.filter(is_set) else { return Ok(None) };
    std::fs::read(path).map(Some).with_context(|| format!("cannot read {name} {path}"))
}

/// The route to the Kubernetes API, for log and errors. Contains no password.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// The URL of the API.
    pub address: String,
    /// The proxy in use, and where it is configured.
    pub proxy: Option<String>,
    /// What to do if the proxy does not work; empty without a proxy.
    remedy: String,
}

impl Route {
    /// An error that the API cannot be used: `what` is `cannot be reached` or the like.
    pub fn failed(&self, what: &str) -> String {
        format!("the Kubernetes API at {self} {what}{}", self.remedy)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)?;
        self.proxy.as_ref().map_or(Ok(()), |proxy| write!(f, " through the proxy {proxy}"))
    }
}

/// Sets the environment's proxy in the configuration, unless it has one of its own. Returns the resulting route to the
/// API.
///
/// # Errors
/// The proxy's protocol is not supported.
pub fn apply_proxy(config: &mut Config, proxy: &ProxySettings) -> anyhow::Result<Route> {
    let mut route = Route { address: config.cluster_url.to_string(), ..Route::default() };
    if let Some(url) = &config.proxy_url {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let (scheme, host) = (url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default());
        route.proxy = Some(format!("{scheme}://{host}{port} of proxy-url in the kubeconfig"));
        route.remedy = " (correct proxy-url, or take it out)".to_owned();
    } else if let Some(url) = proxy.url_for(&config.cluster_url) {
        let host = config.cluster_url.host().unwrap_or_default();
        route.proxy = proxy.describe_for(&config.cluster_url);
        route.remedy = format!(" (correct the variable, or put {host} into NO_PROXY)");
        config.proxy_url = Some(url.clone());
    }
    match config.proxy_url.as_ref().map(|url| (url.scheme_str(), url.host())) {
        None | Some((Some("http" | "https"), _)) => Ok(route),
        Some((scheme, host)) => bail!(
            "the proxy {}://{} cannot be used for the Kubernetes API: name one whose URL begins with http://, or put \
             {} into NO_PROXY",
            scheme.unwrap_or_default(),
            host.unwrap_or_default(),
            config.cluster_url.host().unwrap_or_default(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://kube.example:6443', tls-server-name: inside}}]
users: [{name: u, user: {token: abc}}]
";

    fn read(text: &str) -> anyhow::Result<Config> {
        config_of(parse(text).unwrap())
    }

    fn proxied(text: &str, variables: &[(&str, &str)]) -> anyhow::Result<Option<String>> {
        let mut config = read(text).unwrap();
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let route = apply_proxy(&mut config, &ProxySettings::from_environment(variable)?)?;
        assert_eq!(route.proxy.is_some(), config.proxy_url.is_some());
        assert!(!route.failed("fails").contains("pass"), "{route}");
        Ok(config.proxy_url.map(|url| url.to_string()))
    }

    #[test]
    fn paths_are_beside_the_file_and_texts_are_what_editors_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let beside = |name: &str| Some(folder.path().join(name).to_string_lossy().into_owned());
        let text = FILE.replace("tls-server-name: inside", "certificate-authority: ca.crt").replace(
            "token: abc",
            "tokenFile: run/token, client-certificate: /etc/k.crt, exec: {command: bin/login, args: [a]}",
        ) + "---\ncurrent-context: other\npreferences: {}\n";
        let units = || text.encode_utf16();
        let little = [0xFF, 0xFE].into_iter().chain(units().flat_map(u16::to_le_bytes)).collect();
        let big = [0xFE, 0xFF].into_iter().chain(units().flat_map(u16::to_be_bytes)).collect();
        let marked = [0xEF, 0xBB, 0xBF].into_iter().chain(text.bytes()).collect();
        for bytes in [text.clone().into_bytes(), little, big, marked] {
            std::fs::write(&path, bytes).unwrap();
            let file = super::read(path.to_str().unwrap()).unwrap();
            assert_eq!(file.current_context.as_deref(), Some("here"));
            let (cluster, user) = (file.clusters[0].cluster.clone(), file.auth_infos[0].auth_info.clone());
            assert_eq!(cluster.unwrap().certificate_authority, beside("ca.crt"));
            let user = user.unwrap();
            assert_eq!(
                (user.token_file, user.client_certificate),
                (beside("run/token"), Some("/etc/k.crt".into()))
            );
            assert_eq!(user.exec.unwrap().command, beside("bin/login"));
        }
        for (bytes, words) in [
            (&b"\xFF\xFE\x00\xD8"[..], "it is not UTF-16 text"),
            (b"\xC3", "it is not UTF-8 text"),
            (b"a: [", ""),
            (b"clusters: 5", "it is not a kubeconfig"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = format!("{:#}", super::read(path.to_str().unwrap()).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_current_context_counts() {
        let config = read(FILE).unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://kube.example:6443/");
        assert_eq!(config.tls_server_name.as_deref(), Some("inside"));
        assert!(config.auth_info.token.is_some());
    }

    #[test]
    fn what_is_missing_is_named() {
        for (from, to, words) in [
            ("current-context: here", "current-context: ''", "current-context is not set"),
            (
                "current-context: here",
                "current-context: there",
                "there is no context \"there\"; there are: \"here\"",
            ),
            ("cluster: c,", "cluster: d,", "has the cluster \"d\", which does not exist"),
            ("user: u}}]", "user: w}}]", "has the user \"w\", which does not exist"),
            ("server: 'https://kube.example:6443', ", "", "the cluster has no server"),
            ("tls-server-name: inside", "certificate-authority-data: '%'", "is not base64"),
            ("tls-server-name: inside", "certificate-authority-data: YQ==", "holds no certificate"),
            ("tls-server-name: inside", "certificate-authority: /nowhere/ca.crt", "/nowhere/ca.crt"),
        ] {
            let text = FILE.replace(from, to);
            assert_ne!(text, FILE);
            let error = format!("{:#}", read(&text).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_api_is_reached_through_the_environments_proxy_unless_no_proxy_names_it() {
        let proxy = ("HTTPS_PROXY", "http://user:pass@proxy.example:3128");
        let through = Some("http://user:pass@proxy.example:3128/".to_owned());
        assert_eq!(proxied(FILE, &[]).unwrap(), None);
        assert_eq!(proxied(FILE, &[proxy]).unwrap(), through);
        assert_eq!(
            proxied(FILE, &[("https_proxy", "proxy.example:3128")]).unwrap(),
            Some("http://proxy.example:3128/".to_owned())
        );
        for no_proxy in
            ["kube.example", ".example", "*", "10.0.0.0/8, kube.example,", "localhost,.svc,kube.example"]
        {
            assert_eq!(proxied(FILE, &[proxy, ("NO_PROXY", no_proxy)]).unwrap(), None, "{no_proxy}");
        }
        for no_proxy in ["other.example", "proxy.example", "10.0.0.0/8,,", " , [::1]:x"] {
            assert_eq!(proxied(FILE, &[proxy, ("NO_PROXY", no_proxy)]).unwrap(), through, "{no_proxy}");
        }
        let local = FILE.replace("kube.example", "127.0.0.1");
        assert_eq!(proxied(&local, &[proxy]).unwrap(), None, "loopback is never proxied");
        let own = FILE.replace("tls-server-name: inside", "proxy-url: 'http://own.example:8080'");
        assert_eq!(proxied(&own, &[proxy]).unwrap(), Some("http://own.example:8080/".to_owned()));
        let socks = proxied(FILE, &[("HTTPS_PROXY", "socks5://proxy.example:1080")]).unwrap_err().to_string();
        assert!(socks.starts_with("HTTPS_PROXY: socks5 proxies are not supported"), "{socks}");
        let own = FILE.replace("tls-server-name: inside", "proxy-url: 'socks5://own.example:1080'");
        let socks = proxied(&own, &[]).unwrap_err().to_string();
        assert!(socks.contains("socks5://own.example"), "{socks}");
    }
}
