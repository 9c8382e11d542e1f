//! Codes of refusals that several types use.

use azure_engine::refusal::Code;

pub(crate) const MIXED_MEMBERSHIP: Code = Code::ours(400, "BackendAddressPoolMixedMembership");
pub(crate) const PREFIX_FORMAT: Code = Code::azures(400, "InvalidAddressPrefixFormat");
pub(crate) const INVALID_DOMAIN_NAME_LABEL: Code = Code::azures(400, "InvalidDomainNameLabel");
pub(crate) const ADDRESS_FORMAT: Code = Code::ours(400, "InvalidIPAddressFormat");
pub(crate) const INVALID_RESOURCE_NAME: Code = Code::azures(400, "InvalidResourceName");
pub(crate) const PUBLIC_IP_COUNT_LIMIT_REACHED: Code = Code::azures(400, "PublicIPCountLimitReached");
pub(crate) const ZONES_CHANGED: Code = Code::azures(400, "ResourceAvailabilityZonesCannotBeModified");
pub(crate) const SUBNET_REQUIRED: Code = Code::ours(400, "SubnetRequired");
