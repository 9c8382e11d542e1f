//! The templates of `deploy/capz/templates`, with values for their variables.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::{Value, json};
use simulated_cluster::Shape;

use crate::program::root;

/// The suffix of a flavor's name for scale sets with flexible orchestration, which no template uses.
const FLEXIBLE: &str = "-flexible";
/// The name of the Secret with the operator's credential.
const ASO_CREDENTIAL: &str = "aso-credential";
/// A public key of Ed25519 with only zero bytes, in Base64.
const SSH_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";

/// The objects for a cluster with the name of its flavor, whose identity has a client secret in this Secret.
///
/// # Errors
/// There is no such template, or an unknown variable has no default.
pub fn objects(flavor: &str, shape: &Shape, secret: &str) -> anyhow::Result<Vec<Value>> {
    of_template(flavor.trim_end_matches(FLEXIBLE), flavor, shape, secret)
}

/// The same for another template, and a cluster with the name of the flavor.
///
/// # Errors
/// There is no such template, or an unknown variable has no default.
pub fn of_template(template: &str, flavor: &str, shape: &Shape, secret: &str) -> anyhow::Result<Vec<Value>> {
    let path = root().join(format!("deploy/capz/templates/cluster-template-{template}.yaml"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&filled_in(&text, &variables(flavor, shape))?)?;
    for object in &mut objects {
        if object["kind"] == "AzureClusterIdentity" {
            object["spec"]["clientSecret"] = json!({ "name": secret, "namespace": "default" });
        }
        if object["kind"] == "AzureMachinePool" && flavor.ends_with(FLEXIBLE) {
            object["spec"]["orchestrationMode"] = "Flexible".into();
        }
    }
    Ok(objects)
}

/// Whether Azure manages the clusters of a flavor.
pub fn is_managed(flavor: &str) -> bool {
    flavor.starts_with("aks")
}

/// The Secret with the operator's credential, which the flavors of AzureASOManaged* objects name.
pub fn credential_of_operator(shape: &Shape, client_secret: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": ASO_CREDENTIAL, "namespace": "default" },
        "stringData": {
            "AZURE_SUBSCRIPTION_ID": shape.subscription, "AZURE_TENANT_ID": shape.tenant,
            "AZURE_CLIENT_ID": shape.client_id, "AZURE_CLIENT_SECRET": client_secret,
        },
    })
}

/// The values that a user sets for a cluster of this name; all other variables have defaults.
pub fn variables<'a>(cluster: &'a str, shape: &'a Shape) -> BTreeMap<&'static str, &'a str> {
    BTreeMap::from([
        ("APISERVER_LB_DNS_SUFFIX", "suffix"),
        ("ASO_CREDENTIAL_SECRET_NAME", ASO_CREDENTIAL),
        ("AZURE_CLIENT_ID", shape.client_id.as_str()),
        ("AZURE_CLIENT_ID_USER_ASSIGNED_IDENTITY", shape.client_id.as_str()),
        ("AZURE_CLUSTER_IDENTITY_SECRET_NAME", "secret"),
        ("AZURE_CONTROL_PLANE_MACHINE_TYPE", "Standard_D2s_v3"),
        ("AZURE_EXTENDEDLOCATION_NAME", "edge"),
        ("AZURE_EXTENDEDLOCATION_TYPE", "EdgeZone"),
        ("AZURE_LOCATION", shape.region.as_str()),
        ("AZURE_NODE_MACHINE_TYPE", "Standard_D2s_v3"),
        ("AZURE_SERVER_APP_ID", shape.client_id.as_str()),
        ("AZURE_SSH_PUBLIC_KEY_B64", SSH_KEY),
        ("AZURE_SUBSCRIPTION_ID", shape.subscription.as_str()),
        ("AZURE_TENANT_ID", shape.tenant.as_str()),
        ("CLUSTER_CLASS_NAME", "class"),
        ("CLUSTER_IDENTITY_NAME", "cluster-identity"),
        ("CLUSTER_IDENTITY_TYPE", "ServicePrincipal"),
        ("CLUSTER_NAME", cluster),
        ("FLATCAR_VERSION", "4152.2.0"),
        ("KUBERNETES_VERSION", "v1.33.2"),
        // A variable without a default in the flavor flatcar-sysext.
        ("WORKER_MACHINE_COUNT", "2"),
    ])
}

/// Replaces variables as clusterctl does: `${A}`, `${A:=default}`, `${A:-default}` and `${A%.*}`, with variables in defaults.
///
/// # Errors
/// A variable has no end, or has no default and is not one of these.
pub fn filled_in(text: &str, variables: &BTreeMap<&str, &str>) -> anyhow::Result<String> {
    let Some((before, rest)) = text.split_once("${") else { return Ok(text.to_owned()) };
    let mut depth = 1;
    let end = rest.char_indices().find_map(|(at, c)| {
        depth += i32::from(rest[at..].starts_with("${")) - i32::from(c == '}');
        (depth == 0).then_some(at)
    });
    let (expression, after) = rest.split_at(end.context("a variable has no end")?);
    let (name, cut) = match expression.strip_suffix("%.*") {
        Some(name) => (name, true),
        None => (expression, false),
    };
    let (name, default) = match name.split_once(':') {
        Some((name, default)) => (name, Some(default.trim_start_matches(['=', '-']))),
        None => (name, None),
    };
    let value = match (variables.get(name), default) {
        (Some(value), _) if cut => value.rsplit_once('.').map_or(*value, |(start, _)| start).to_owned(),
        (Some(value), _) => (*value).to_owned(),
        (None, Some(default)) => filled_in(default, variables)?,
        (None, None) => anyhow::bail!("{name} has no default and is not one of the variables"),
    };
    Ok(format!("{before}{value}{}", filled_in(&after[1..], variables)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_as_clusterctl_fills_them_in() {
        let variables = BTreeMap::from([("A", "x"), ("V", "v1.2.3")]);
        for (text, filled) in [
            ("a ${A} b", "a x b"),
            ("${B:=${A}-vnet}.", "x-vnet."),
            ("${A:=y}${B:-y}", "xy"),
            ("${V%.*}", "v1.2"),
            ("$(curl)", "$(curl)"),
        ] {
            assert_eq!(filled_in(text, &variables).ok().as_deref(), Some(filled), "{text}");
        }
        assert!(filled_in("${B}", &variables).is_err());
    }
}
