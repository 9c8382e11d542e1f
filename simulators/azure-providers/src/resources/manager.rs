//! Resource Manager itself: paths outside providers.

use azure_types::ResourceId;

use super::generic::list_resources;
use super::group::{RESOURCE_TYPE, delete_group, list_groups, patch_group, put_group, read_group};
use super::location;
use super::location::list_locations;
use super::protocol::API_VERSIONS;
use super::registration::{change_registration, list_providers, read_provider, require_registered};
use super::subscription::{list_subscriptions, list_tenants, read_subscription};
use azure_engine::answer::Answer;
use azure_engine::operation::execution::Execution;
use azure_engine::provider::{AzureState, Manager};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::request::Request;
use azure_engine::request::target::{Scope, Target};

/// Resource Manager.
pub struct ResourceManager;

impl Manager for ResourceManager {
    fn api_versions(&self) -> &'static [&'static str] {
        &API_VERSIONS
    }

    fn type_of(&self, target: &Target) -> &'static str {
        let Target::Within(_, scope) = target else {
            return match target {
                Target::TenantProviders(_) => "Microsoft.Resources/providers",
                Target::Tenants => "Microsoft.Resources/tenants",
                _ => "Microsoft.Resources/subscriptions",
            };
        };
        match scope {
            Scope::Group(_) | Scope::Groups => RESOURCE_TYPE,
            Scope::Provider(_) | Scope::Providers | Scope::ProviderAction(..) => {
                "Microsoft.Resources/providers"
            }
            Scope::GroupOperation(_) => "Microsoft.Resources/locations/operations",
            _ => "Microsoft.Resources/subscriptions",
        }
    }

    fn perform(
        &self,
        azure: &mut AzureState,
        request: &Request<'_>,
        target: &Target,
        execution: &Execution,
    ) -> Result<Answer> {
        let method = if request.method == "HEAD" { "GET" } else { request.method };
        let Target::Within(subscription, scope) = target else {
            return match (method, target) {
                ("GET", Target::Tenants) => Ok(list_tenants(azure)),
                ("GET", Target::TenantProviders(None)) => Ok(list_providers(azure, None)),
                ("GET", Target::TenantProviders(Some(namespace))) => read_provider(azure, None, namespace),
                ("GET", _) => Ok(list_subscriptions(azure)),
                (other, _) => Err(Refusal::method_not_allowed(other)),
            };
        };
        if let (false, Scope::Group(name)) = (method == "GET", scope) {
            azure.check_guards(method, &azure.group_id(subscription, name))?;
        }
        match (method, scope) {
            ("GET", Scope::Subscription) => Ok(read_subscription(azure, subscription)),
            ("GET", Scope::Locations) => Ok(list_locations(azure, subscription)),
            ("GET", Scope::Groups) => list_groups(azure, subscription, request.query),
            ("GET", Scope::Group(name)) => match request.method {
                "HEAD" => read_group(azure, subscription, name).map(|_| Answer::empty(204)),
                _ => read_group(azure, subscription, name),
            },
            ("PUT", Scope::Group(name)) => {
                put_group(azure, subscription, name, request.body.document()?.clone())
            }
            ("PATCH", Scope::Group(name)) => {
                patch_group(azure, subscription, name, request.body.document()?.clone())
            }
            ("DELETE", Scope::Group(name)) => delete_group(azure, subscription, name, execution),
            ("GET", Scope::Resources(group)) => {
                let scope = match group {
                    Some(group) => azure.group_id(subscription, group),
                    None => ResourceId::subscription(subscription),
                };
                azure.require_group(&scope)?;
                list_resources(azure, &scope, request.query)
            }
            ("GET", Scope::Providers) => Ok(list_providers(azure, Some(subscription))),
            ("GET", Scope::Provider(namespace)) => read_provider(azure, Some(subscription), namespace),
            ("POST", Scope::ProviderAction(namespace, action)) => {
                change_registration(azure, subscription, namespace, action, execution)
            }
            (other, _) => Err(Refusal::method_not_allowed(other)),
        }
    }

    fn check_registered(&self, azure: &AzureState, subscription: &str, namespace: &str) -> Result<()> {
        require_registered(azure, subscription, namespace)
    }

    fn check_region(&self, azure: &AzureState, location: &str, resource_type: &str) -> Result<()> {
        location::check_region(azure, location, Some(resource_type))
    }
}
