//! What came to Network's documents with which version.

use azure_engine::version::Since;

pub(crate) static SINCE: [Since; 1] = [Since {
    of: "Microsoft.Network/virtualNetworks",
    member: "properties/privateEndpointVNetPolicies",
    version: "2024-01-01",
}];
