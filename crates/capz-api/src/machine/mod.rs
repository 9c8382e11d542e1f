//! The parts of a machine, by itself or in a pool.

mod diagnostics;
mod disk;
mod identity;
mod image;
mod network_interface;
mod security;
mod ssh_key;

pub use diagnostics::{BootDiagnostics, Diagnostics, UserManagedDiagnostics};
pub use disk::{
    DataDisk, DiffDiskSettings, DiskEncryptionSet, DiskSecurityProfile, ManagedDisk, OsDisk, ULTRA_SSD,
};
pub use identity::{SystemAssignedRole, UserAssignedIdentity, kinds as identity_kinds};
pub use image::{ComputeGalleryImage, Image, ImagePlan, MarketplaceImage, SharedGalleryImage};
pub use network_interface::{NetworkInterface, set_default as default_interfaces};
pub use security::{SecurityProfile, UefiSettings};

pub(crate) use diagnostics::{check as check_diagnostics, set_default as default_diagnostics};
pub(crate) use disk::{check_data_disks, check_os_disk, default_data_disks};
pub(crate) use identity::{check_role, check_user_assigned, default_role, keep_role};
pub(crate) use image::check as check_image;
pub(crate) use network_interface::{check as check_interfaces, check_subnet_name, keep as keep_interfaces};
pub(crate) use security::check_confidential;
pub(crate) use ssh_key::check as check_ssh_key;

use std::collections::BTreeMap;

use crate::common::Quantity;
use crate::object::object;

object! {
    /// What makes a machine a spot machine.
    SpotVmOptions {
        /// The action when Azure evicts the machine: Deallocate or Delete.
        #[schemars(extend("enum" = ["Deallocate", "Delete"]))]
        eviction_policy: String,
        /// The highest price per hour in US dollars; -1 means up to the price of a machine on demand.
        max_price: Quantity,
    }

    /// Further capabilities of a machine.
    AdditionalCapabilities {
        /// Whether disks of the kind UltraSSD_LRS can be attached. The default depends on the data disks.
        #[serde(rename = "ultraSSDEnabled")]
        ultra_ssd_enabled: bool,
    }

    /// An extension of a machine.
    VmExtension {
        /// The name, which is also the type of the extension.
        #[schemars(required)]
        name: String,
        /// Settings that are kept secret.
        protected_settings: BTreeMap<String, String>,
        /// The publisher.
        #[schemars(required)]
        publisher: String,
        /// Settings.
        settings: BTreeMap<String, String>,
        /// The version.
        #[schemars(required)]
        version: String,
    }
}
