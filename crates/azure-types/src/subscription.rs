//! Registration records of a subscription (Azure REST reference, "Subscriptions").

use crate::document::document;

document! {
    /// The registration record of a provider, such as `Microsoft.Compute`.
    ResourceProvider {
        /// The provider's namespace.
        namespace: String,
        /// The types that it serves.
        resource_types: Vec<ProviderResourceType>,
    }
}

document! {
    /// One type of a provider.
    ProviderResourceType {
        /// The type's name without the namespace.
        resource_type: String,
        /// The display names of the regions that have it.
        locations: Vec<String>,
        /// The zones of each region.
        zone_mappings: Vec<ZoneMapping>,
    }
}

document! {
    /// The zones of a region.
    ZoneMapping {
        /// The region's display name, such as `East US`.
        location: String,
        /// The zones, in no order.
        zones: Vec<String>,
    }
}
