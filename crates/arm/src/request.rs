//! The subject of a request: its URL, its name in messages, its budget.

use std::fmt;

use azure_types::ResourceId;
use http::Uri;
use url::Url;

use crate::{ApiVersion, Error};

/// A collection: all resources of a type in a group or subscription, or all children of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    path: String,
    scope: ResourceId,
    resource_type: String,
}

impl Listing {
    /// All resources of a type in a group or subscription:
    /// `Listing::of(&group, "Microsoft.Network", "loadBalancers")`.
    pub fn of(scope: &ResourceId, namespace: &str, kind: &str) -> Self {
        Self::below(scope.clone(), &format!("providers/{namespace}/{kind}"), format!("{namespace}/{kind}"))
    }

    /// All children of a resource: `Listing::children(&scale_set, "virtualMachines")`.
    pub fn children(parent: &ResourceId, kind: &str) -> Self {
        Self::below(parent.clone(), kind, format!("{}/{kind}", parent.resource_type()))
    }

    /// All resources of a type in a group, or below a resource: `Listing::of_type(&group, "Microsoft.Network/loadBalancers")`.
    pub fn of_type(around: &ResourceId, resource_type: &str) -> Self {
        match resource_type.split_once('/') {
            Some((namespace, kind)) if around.namespace().is_none() => Self::of(around, namespace, kind),
            _ => Self::children(around, resource_type.rsplit('/').next().unwrap_or(resource_type)),
        }
    }

    /// The registration record of a resource provider, which is not a resource and has no ID.
    pub(crate) fn provider(subscription: &str, namespace: &str) -> Self {
        let scope = ResourceId::subscription(subscription);
        Self::below(scope, &format!("providers/{namespace}"), "Microsoft.Resources/providers".into())
    }

    /// All resource groups of a subscription.
    pub fn groups(subscription: &str) -> Self {
        let scope = ResourceId::subscription(subscription);
        Self::below(scope, "resourceGroups", "Microsoft.Resources/resourceGroups".into())
    }

    fn below(scope: ResourceId, place: &str, resource_type: String) -> Self {
        Self { path: format!("{scope}/{place}"), scope, resource_type }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// The subject of a call, for budgets, logs and errors.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) resource: Option<ResourceId>,
    pub(crate) subscription: String,
    pub(crate) group: Option<String>,
    pub(crate) namespace: String,
    pub(crate) resource_type: String,
    pub(crate) name: String,
    /// In short, for messages: `loadBalancers/kubernetes`.
    pub(crate) short: String,
}

impl Subject {
    pub(crate) fn of(id: &ResourceId) -> Self {
        let pairs = id.type_and_name_pairs();
        let short = if pairs.is_empty() {
            let kind = if id.group_name().is_some() { "resourceGroups" } else { "subscriptions" };
            format!("{kind}/{}", id.name())
        } else {
            pairs.iter().map(|(kind, name)| format!("{kind}/{name}")).collect::<Vec<_>>().join("/")
        };
        Self {
            resource: Some(id.clone()),
            subscription: id.subscription_id().to_owned(),
            group: id.group_name().map(str::to_owned),
            namespace: id.namespace().unwrap_or("Microsoft.Resources").to_owned(),
            resource_type: id.resource_type(),
            name: id.name().to_owned(),
            short,
        }
    }

    pub(crate) fn of_action(id: &ResourceId, action: &str) -> Self {
        let mut subject = Self::of(id);
        subject.short = format!("{}/{action}", subject.short);
        subject
    }

    /// The operation on a resource, with the budget and report of the resource.
    pub(crate) fn of_operation(id: &ResourceId) -> Self {
        let mut subject = Self::of(id);
        subject.short.push_str(" (operation)");
        subject
    }

    pub(crate) fn of_listing(listing: &Listing) -> Self {
        let scope = Self::of(&listing.scope);
        let namespace = listing.resource_type.split('/').next().unwrap_or_default().to_owned();
        let kind = listing.resource_type.rsplit('/').next().unwrap_or_default();
        Self {
            short: format!("{kind} in {}", scope.short),
            namespace,
            resource_type: listing.resource_type.clone(),
            // A missing scope is an answer about the list, not about one resource.
            resource: None,
            ..scope
        }
    }
}

/// The URL of a path below the resource manager, with its query.
pub(crate) fn url(
    base: &Url,
    path: &str,
    api_version: ApiVersion,
    query: &[(&str, &str)],
) -> Result<Uri, Error> {
    let mut url = base.clone();
    let prefix = base.path().trim_end_matches('/');
    url.set_path(&format!("{prefix}{path}"));
    url.set_query(None);
    {
        let mut pairs = url.query_pairs_mut();
        for (name, value) in query {
            pairs.append_pair(name, value);
        }
        pairs.append_pair("api-version", api_version.as_str());
    }
    url.as_str().parse().map_err(|error| Error::Malformed {
        subject: path.to_owned(),
        reason: format!("the request's URL is invalid: {error}"),
    })
}

/// Uses a URL from an answer, unchanged. The request carries a token, so the URL must lead to the resource manager
/// itself or to a regional host below it, and never to plain HTTP if that uses HTTPS.
pub(crate) fn follow(base: &Url, link: &str, subject: &Subject) -> Result<Uri, Error> {
    let malformed = |reason: String| Error::Malformed { subject: subject.short.clone(), reason };
    let uri = match link.parse::<Uri>() {
        Ok(uri) => uri,
        Err(_) => Url::parse(link)
            .ok()
            .and_then(|url| url.as_str().parse().ok())
            .ok_or_else(|| malformed("it holds a link that is not a URL".into()))?,
    };
    // Relative links stay on the host of the request.
    if uri.authority().is_none() {
        let joined = base.join(link).map_err(|error| malformed(format!("it holds a bad link: {error}")))?;
        return joined.as_str().parse().map_err(|error| malformed(format!("it holds a bad link: {error}")));
    }
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let ours = base.host_str().unwrap_or_default().to_ascii_lowercase();
    let same_host =
        host == ours && uri.port_u16().or(default_port(uri.scheme_str())) == base.port_or_known_default();
    let regional = uri.port().is_none() && host.strip_suffix(&ours).is_some_and(|front| front.ends_with('.'));
    let secure = uri.scheme_str() == Some("https") || base.scheme() == "http";
    if (same_host || regional) && secure {
        Ok(uri)
    } else {
        Err(malformed(format!("it links to {host}, which is not Azure Resource Manager at {ours}")))
    }
}

fn default_port(scheme: Option<&str>) -> Option<u16> {
    match scheme {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ResourceId {
        ResourceId::parse(text).unwrap()
    }

    #[test]
    fn urls_are_encoded_and_carry_the_version() {
        let base = Url::parse("https://management.azure.com").unwrap();
        let group = id("/subscriptions/s/resourceGroups/grün (1)");
        let listing = Listing::of(&group, "Microsoft.Compute", "virtualMachines");
        let query = [("$filter", "'virtualMachineScaleSet/id' eq 'x'"), ("$expand", "instanceView")];
        let uri = url(&base, &listing.to_string(), ApiVersion::COMPUTE, &query).unwrap();
        assert_eq!(
            uri.to_string(),
            "https://management.azure.com/subscriptions/s/resourceGroups/gr%C3%BCn%20(1)/providers/Microsoft.Compute/\
             virtualMachines?%24filter=%27virtualMachineScaleSet%2Fid%27+eq+%27x%27&%24expand=instanceView&\
             api-version=2025-04-01"
        );
        let below = Url::parse("http://127.0.0.1:8080/arm/").unwrap();
        let uri = url(&below, "/subscriptions/s", ApiVersion::RESOURCES, &[]).unwrap();
        assert_eq!(uri.to_string(), "http://127.0.0.1:8080/arm/subscriptions/s?api-version=2021-04-01");
    }

    #[test]
    fn tokens_follow_links_only_to_the_resource_manager() {
        let subject = Subject::of(&id("/subscriptions/s/resourceGroups/g"));
        let base = Url::parse("https://management.azure.com/").unwrap();
        let good = |link: &str| follow(&base, link, &subject).map(|uri| uri.to_string()).ok();
        let verbatim = "https://management.azure.com/subscriptions/s/x?$skiptoken=a%2Bb+c&api-version=1";
        assert_eq!(good(verbatim).as_deref(), Some(verbatim));
        assert!(good("https://MANAGEMENT.azure.com:443/x").is_some());
        assert!(good("https://westeurope.management.azure.com/x").is_some());
        assert_eq!(
            good("/subscriptions/s?a=b").as_deref(),
            Some("https://management.azure.com/subscriptions/s?a=b")
        );
        for bad in [
            "http://management.azure.com/x",
            "https://management.azure.com.evil.example/x",
            "https://evilmanagement.azure.com/x",
            "https://management.azure.com:8443/x",
            "https://evil.example/management.azure.com",
            "https://management.azure.com@evil.example/x",
        ] {
            assert_eq!(good(bad), None, "{bad}");
        }
        let local = Url::parse("http://127.0.0.1:4000").unwrap();
        assert!(follow(&local, "http://127.0.0.1:4000/x", &subject).is_ok());
        assert!(follow(&local, "http://127.0.0.1:4001/x", &subject).is_err());
    }

    #[test]
    fn subjects_are_short_and_know_their_budget() {
        let pool = id(
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/k/backendAddressPools/p",
        );
        let subject = Subject::of(&pool);
        assert_eq!(subject.short, "loadBalancers/k/backendAddressPools/p");
        assert_eq!(subject.namespace, "Microsoft.Network");
        assert_eq!(subject.group.as_deref(), Some("g"));
        let group = id("/subscriptions/s/resourceGroups/g");
        assert_eq!(Subject::of(&group).short, "resourceGroups/g");
        let listing = Listing::of(&group, "Microsoft.Network", "publicIPAddresses");
        assert_eq!(Subject::of_listing(&listing).short, "publicIPAddresses in resourceGroups/g");
    }
}
