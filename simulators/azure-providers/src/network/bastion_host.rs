//! Bastion hosts (Azure REST reference, "Bastion Hosts").

use super::shared::protocol::protocol;
use crate::plain::Plain;
use azure_engine::provider::Protocol;
use azure_engine::types::member_table::Holds::{
    Anything, Children, Derived, Flag, Number, Object, Text, Uses, Word,
};
use azure_engine::types::member_table::Member;

static CONFIGURATION: [Member; 4] = [
    Member::new("subnet", Uses("virtualNetworks/subnets")).required(),
    Member::new("publicIPAddress", Uses("publicIPAddresses")),
    Member::new("privateIPAllocationMethod", Word(&["Dynamic", "Static"], true)),
    Member::new("provisioningState", Derived),
];

static MEMBERS: [Member; 11] = [
    Member::new("dnsName", Text),
    Member::new("ipConfigurations", Children(&CONFIGURATION)).or_empty(),
    Member::new("scaleUnits", Number(2, 50)).or(2),
    Member::new("disableCopyPaste", Flag),
    Member::new("enableFileCopy", Flag),
    Member::new("enableIpConnect", Flag),
    Member::new("enableKerberos", Flag),
    Member::new("enableShareableLink", Flag),
    Member::new("enableTunneling", Flag),
    Member::new("networkAcls", Anything),
    Member::new("virtualNetwork", Anything),
];

static TIER: [Member; 1] = [Member::new("name", Word(&["Basic", "Developer", "Standard", "Premium"], true))];

static ENVELOPE: [Member; 1] = [Member::new("sku", Object(&TIER)).or_empty()];

pub(super) static BASTION_HOSTS: Plain = Plain::of(&Protocol {
    members: &MEMBERS,
    envelope: &ENVELOPE,
    example: include_str!("bastion_host.json"),
    ..protocol("Microsoft.Network/bastionHosts", "BastionHost")
});
