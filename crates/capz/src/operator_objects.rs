//! Reads the objects of Azure Service Operator, in the version in which they are stored: for that one the operator need not run.

use capz_planner::operator::{Converter, Definition, OperatorKind, OperatorObject};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};

/// Objects asked for at once.
const PAGE_SIZE: u32 = 250;

/// The objects of a kind.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Those that belong to AzureClusters.
    pub of_clusters: Vec<OperatorObject>,
    /// All others, as `NAMESPACE/NAME`.
    pub of_others: Vec<String>,
}

/// The objects of Azure Service Operator in a management cluster.
pub struct OperatorObjects {
    client: Client,
    namespace: Option<String>,
}

impl OperatorObjects {
    /// Those in this namespace, or in all.
    pub fn new(client: Client, namespace: Option<String>) -> Self {
        Self { client, namespace }
    }

    /// How the objects of a kind are read; nothing where the kind is not defined.
    ///
    /// # Errors
    /// The API server does not say it.
    pub async fn definition(&self, kind: &OperatorKind) -> Result<Option<Definition>, kube::Error> {
        let found = definitions(&self.client).get_opt(&kind.definition()).await?;
        Ok(found.and_then(|found| Definition::of(&serde_json::to_value(found).ok()?)))
    }

    /// The objects of a kind.
    ///
    /// # Errors
    /// The API server does not list them: it may be that they are stored in another version, and nothing converts them.
    pub async fn list(&self, kind: &'static OperatorKind, version: &str) -> Result<Listed, kube::Error> {
        let resource = resource(kind, version);
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut listed = Listed::default();
        loop {
            let page = api.list(&params).await?;
            for object in page.items.iter().filter_map(|object| serde_json::to_value(object).ok()) {
                match OperatorObject::of(kind, &object) {
                    Some(object) => listed.of_clusters.push(object),
                    None => {
                        let text =
                            |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
                        listed.of_others.push(format!("{}/{}", text("namespace"), text("name")));
                    }
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
                None => return Ok(listed),
            }
        }
    }

    /// Whether the Service that converts objects does not exist.
    ///
    /// # Errors
    /// The API server does not say it.
    pub async fn is_gone(&self, converter: &Converter) -> Result<bool, kube::Error> {
        let Converter::Service { namespace, name } = converter else { return Ok(false) };
        let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Service"), "services");
        let services: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        Ok(services.get_metadata_opt(name).await?.is_none())
    }

    /// Whether the API server fails to have the objects of a kind converted, which must be there.
    pub async fn is_not_converted(
        &self,
        kind: &OperatorKind,
        definition: &Definition,
        namespace: &str,
    ) -> bool {
        let Some(other) = &definition.other else { return false };
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource(kind, other));
        let listed = objects.list_metadata(&ListParams::default().limit(1)).await;
        matches!(listed, Err(kube::Error::Api(status)) if status.message.contains("conversion webhook"))
    }
}

/// How the objects of a kind are addressed in a version.
pub(crate) fn resource(kind: &OperatorKind, version: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(kind.group, version, kind.kind), kind.plural)
}

/// The definitions of kinds.
pub(crate) fn definitions(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions"))
}
