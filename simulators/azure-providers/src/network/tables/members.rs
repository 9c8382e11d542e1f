//! What members of Network's documents hold.

use azure_engine::schema::Shape::{Flag, Refers, Text};
use azure_engine::schema::{Members, Shape, members};

const APPLICATION_GROUPS: Shape = Refers("applicationSecurityGroups");
const FRONTENDS: Shape = Refers("loadBalancers/frontendIPConfigurations");
const SUBNETS: Shape = Refers("virtualNetworks/subnets");

const ENDPOINTS: &str = "Microsoft.Network/privateEndpoints";
const LINK_SERVICES: &str = "Microsoft.Network/privateLinkServices";

const CONFIGURATION: &str = "properties/ipConfigurations/*/properties";

pub(crate) static MEMBERS: &[Members] = &[
    members(LINK_SERVICES, "properties", &["enableProxyProtocol"], Flag),
    members(LINK_SERVICES, "properties", &["loadBalancerFrontendIpConfigurations/*"], FRONTENDS),
    members(LINK_SERVICES, CONFIGURATION, &["primary"], Flag),
    members(LINK_SERVICES, CONFIGURATION, &["privateIPAddress"], Text),
    members(LINK_SERVICES, CONFIGURATION, &["subnet"], SUBNETS),
    members(ENDPOINTS, "properties", &["customNetworkInterfaceName"], Text),
    members(ENDPOINTS, "properties", &["subnet"], SUBNETS),
    members(ENDPOINTS, "properties", &["applicationSecurityGroups/*"], APPLICATION_GROUPS),
];
