//! Clusters that Azure manages (AKS): their objects are admitted here, and not reconciled yet. Users with such objects
//! need to know that before they remove the program that reconciles them.

use kube::api::ListParams;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};

use crate::kubernetes::kinds::GROUP;
use crate::settings::Settings;

/// The page size of lists.
const PAGE_SIZE: u32 = 250;

/// The kinds without a controller here. Templates need none: no resource in Azure depends on them.
const WITHOUT_CONTROLLER: [&str; 6] = [
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
];

/// An object of a kind that is not served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unserved {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Unserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        write!(f, "{kind} {namespace}/{name}")
    }
}

/// Returns the objects of these kinds that a manager with these settings would reconcile. Templates are left out.
///
/// # Errors
/// Discovery fails, or the objects cannot be listed.
pub async fn unserved(client: &Client, settings: &Settings) -> Result<Vec<Unserved>, kube::Error> {
    let groups = client.list_api_groups().await?;
    let Some(group) = groups.groups.iter().find(|group| group.name == GROUP) else { return Ok(Vec::new()) };
    let mut unserved = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for version in &group.versions {
        let served = client.list_api_group_resources(&version.group_version).await?;
        for resource in served.resources {
            let is_managed = WITHOUT_CONTROLLER.contains(&resource.kind.as_str());
            if !is_managed || resource.name.contains('/') || known.contains(&resource.kind) {
                continue;
            }
            let kind = GroupVersionKind::gvk(GROUP, &version.version, &resource.kind);
            let kind = ApiResource::from_gvk_with_plural(&kind, &resource.name);
            unserved.extend(objects(client, settings, &kind).await?);
            known.push(resource.kind);
        }
    }
    unserved.sort();
    Ok(unserved)
}

async fn objects(
    client: &Client,
    settings: &Settings,
    kind: &ApiResource,
) -> Result<Vec<Unserved>, kube::Error> {
    let api: Api<kube::core::DynamicObject> = match &settings.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    };
    let mut params = ListParams::default().limit(PAGE_SIZE);
    let mut objects = Vec::new();
    loop {
        let page = api.list_metadata(&params).await?;
        for object in page.items {
            if settings.takes(object.metadata.labels.as_ref()) {
                objects.push(Unserved {
                    kind: kind.kind.clone(),
                    namespace: object.metadata.namespace.unwrap_or_default(),
                    name: object.metadata.name.unwrap_or_default(),
                });
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
            None => return Ok(objects),
        }
    }
}
