//! Network interfaces of a machine.

use crate::field_error::Field;
use crate::object::object;

object! {
    /// A network interface.
    NetworkInterface {
        /// Whether packets bypass the host's switch. The default depends on the machine's size.
        accelerated_networking: bool,
        /// The number of private addresses of the interface.
        #[serde(rename = "privateIPConfigs")]
        private_ip_configs: i32,
        /// The subnet of the interface.
        subnet_name: String,
    }
}

/// Sets the default interfaces: one with one address, from the deprecated members that preceded `networkInterfaces`.
pub fn set_default(
    interfaces: &mut Option<Vec<NetworkInterface>>,
    subnet_name: &mut Option<String>,
    accelerated_networking: &mut Option<bool>,
) {
    let named = interfaces.as_ref().is_some_and(|interfaces| !interfaces.is_empty());
    let formerly =
        subnet_name.as_ref().is_some_and(|name| !name.is_empty()) || accelerated_networking.is_some();
    // Setting both is invalid, and is reported as it is.
    if named && formerly {
        return;
    }
    if !named {
        *interfaces = Some(vec![NetworkInterface {
            subnet_name: subnet_name.take().filter(|name| !name.is_empty()),
            accelerated_networking: accelerated_networking.take(),
            ..NetworkInterface::default()
        }]);
    }
    for interface in interfaces.iter_mut().flatten() {
        if interface.private_ip_configs.unwrap_or_default() == 0 {
            interface.private_ip_configs = Some(1);
        }
    }
}

/// The interfaces after an object that had `known` is applied again.
///
/// Deprecated members were moved to `networkInterfaces` when the object was created. A file that still sets them
/// describes the same interface again, not a second one. The subnet of an interface that the file leaves open was set
/// by the controller, and stays.
pub(crate) fn keep(
    interfaces: &mut Option<Vec<NetworkInterface>>,
    subnet_name: &mut Option<String>,
    accelerated_networking: &mut Option<bool>,
    known: &[NetworkInterface],
) {
    if !known.is_empty() && interfaces.as_ref().is_none_or(Vec::is_empty) {
        *interfaces = Some(known.to_vec());
    }
    for (interface, known) in interfaces.iter_mut().flatten().zip(known) {
        if interface.subnet_name.as_deref().unwrap_or_default().is_empty() {
            interface.subnet_name.clone_from(&known.subnet_name);
        }
    }
    if let (Some([interface]), [known]) = (interfaces.as_deref_mut(), known)
        && interface == known
    {
        if let Some(name) = subnet_name.take().filter(|name| !name.is_empty()) {
            interface.subnet_name = Some(name);
        }
        if let Some(fast) = accelerated_networking.take() {
            interface.accelerated_networking = Some(fast);
        }
    }
}

/// Interfaces must not be declared in both ways.
pub(crate) fn check_subnet_name(
    interfaces: Option<&[NetworkInterface]>,
    subnet_name: Option<&str>,
    machine: &Field<'_>,
) {
    let interfaces = interfaces.unwrap_or_default();
    machine.child("networkInterfaces").invalid_if(
        !interfaces.is_empty() && !subnet_name.unwrap_or_default().is_empty(),
        interfaces,
        "cannot set both networkInterfaces and machine subnetName: name the subnet in the interface",
    );
}

/// Interfaces must not be declared in both ways, and each has an address.
pub(crate) fn check(
    interfaces: Option<&[NetworkInterface]>,
    subnet_name: Option<&str>,
    accelerated_networking: Option<bool>,
    machine: &Field<'_>,
) {
    check_subnet_name(interfaces, subnet_name, machine);
    let interfaces = interfaces.unwrap_or_default();
    let list = machine.child("networkInterfaces");
    list.invalid_if(
        !interfaces.is_empty() && accelerated_networking.is_some(),
        interfaces,
        "cannot set both networkInterfaces and machine acceleratedNetworking: set it in the interface",
    );
    for (index, interface) in interfaces.iter().enumerate() {
        let count = interface.private_ip_configs.unwrap_or_default();
        let words = "networkInterface privateIPConfigs must be set to a minimum value of 1";
        list.index(index).child("privateIPConfigs").invalid_if(count < 1, count, words);
    }
}
