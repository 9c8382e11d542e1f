//! Types of Compute that are tables: images, galleries, placement groups, reservations, hosts, encryption sets, disk
//! accesses (Azure REST reference, "Compute").

use crate::compute::disk::members::ENCRYPTION_OF_SETS;
use crate::compute::disk::{API_VERSIONS, disk_protocol};
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::protocol::protocol;
use crate::plain::Plain;
use azure_engine::provider::Protocol;
use azure_engine::refusal::{Code, Refusal};
use azure_engine::types::member_table::Holds::{
    Anything, Created, Derived, Flag, Names, Number, Object, Text, Time, Users, Word,
};
use azure_engine::types::member_table::Member;
use azure_types::ResourceId;

const STATE: Member = Member::new("provisioningState", Derived);

/// The protocol of resources that only describe placement or capacity: they are there at once.
const fn promise(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol {
        etagged: false,
        etag_on_writes: false,
        example: include_str!("plain_types.json"),
        synchronous: true,
        synchronous_delete: true,
        delete_status: 200,
        ..protocol(resource_type, noun)
    }
}

const fn built(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol {
        etagged: false,
        etag_on_writes: false,
        example: include_str!("plain_types.json"),
        ..protocol(resource_type, noun)
    }
}

static SIZED: [Member; 2] =
    [Member::new("name", Text).required(), Member::new("capacity", Number(0, 1_000)).or(1)];

/// The member `sku`: size and count.
static SKU: [Member; 1] = [Member::new("sku", Object(&SIZED)).required()];

static IMAGE: [Member; 3] = [
    Member::new("sourceVirtualMachine", Names("virtualMachines")),
    Member::new("storageProfile", Anything),
    Member::new("hyperVGeneration", Word(&["V1", "V2"], true)),
];

pub(super) static IMAGES: Plain =
    Plain::of(&Protocol { members: &IMAGE, ..built("Microsoft.Compute/images", "Image") });

static GALLERY: [Member; 5] = [
    Member::new("description", Text),
    Member::new("identifier", Derived),
    Member::new("sharingProfile", Anything),
    Member::new("softDeletePolicy", Anything),
    Member::new("sharingStatus", Derived),
];

pub(super) static GALLERIES: Plain = Plain {
    protocol: &Protocol { members: &GALLERY, ..built("Microsoft.Compute/galleries", "Gallery") },
    children: Some(("images", None)),
};

static IDENTIFIER: [Member; 3] = [
    Member::new("publisher", Text).required(),
    Member::new("offer", Text).required(),
    Member::new("sku", Text).required(),
];

static GALLERY_IMAGE: [Member; 13] = [
    Member::new("identifier", Object(&IDENTIFIER)).required().fixed(),
    Member::new("osType", Word(&["Linux", "Windows"], false)).required().fixed(),
    Member::new("osState", Word(&["Generalized", "Specialized"], true)).fixed(),
    Member::new("hyperVGeneration", Word(&["V1", "V2"], true)).fixed(),
    Member::new("architecture", Word(&["x64", "Arm64"], true)).fixed(),
    Member::new("description", Text),
    Member::new("eula", Text),
    Member::new("privacyStatementUri", Text),
    Member::new("releaseNoteUri", Text),
    Member::new("endOfLifeDate", Time),
    Member::new("features", Anything),
    Member::new("recommended", Anything),
    Member::new("purchasePlan", Anything),
];

pub(super) static GALLERY_IMAGES: Plain = Plain {
    protocol: &Protocol {
        members: &GALLERY_IMAGE,
        ..built("Microsoft.Compute/galleries/images", "GalleryImage")
    },
    children: Some(("versions", None)),
};

static GALLERY_IMAGE_VERSION: [Member; 4] = [
    Member::new("publishingProfile", Anything),
    Member::new("storageProfile", Anything).required(),
    Member::new("safetyProfile", Anything),
    Member::new("replicationStatus", Derived),
];

pub(super) static GALLERY_IMAGE_VERSIONS: Plain = Plain::of(&Protocol {
    members: &GALLERY_IMAGE_VERSION,
    ..built("Microsoft.Compute/galleries/images/versions", "GalleryImageVersion")
});

static PLACEMENT_GROUP: [Member; 6] = [
    STATE,
    Member::new("proximityPlacementGroupType", Word(&["Standard", "Ultra"], true)).fixed(),
    Member::new("intent", Anything),
    Member::new("virtualMachines", Users("virtualMachines")),
    Member::new("virtualMachineScaleSets", Users("virtualMachineScaleSets")),
    Member::new("availabilitySets", Users("availabilitySets")),
];

pub(super) static PLACEMENT_GROUPS: Plain = Plain {
    protocol: &Protocol {
        members: &PLACEMENT_GROUP,
        shows_state: false,
        in_use: Some(|id, user, _| {
            Code::azures(409, "OperationNotAllowed").says(format_args!(
                "Proximity Placement Group '{}' cannot be deleted. Before deleting a Proximity Placement Group please \
                 ensure that it does not contain any Virtual Machine or Availability set; it contains {}.",
                id.name(),
                user
            ))
        }),
        ..promise("Microsoft.Compute/proximityPlacementGroups", "ProximityPlacementGroup")
    },
    children: None,
};

static ENCRYPTION_SET: [Member; 8] = [
    Member::new("activeKey", Anything),
    Member::new("encryptionType", Word(&ENCRYPTION_OF_SETS, true)).fixed(),
    Member::new("rotationToLatestKeyVersionEnabled", Flag),
    Member::new("federatedClientId", Text),
    Member::new("previousKeys", Derived),
    Member::new("lastKeyRotationTimestamp", Derived),
    Member::new("autoKeyRotationError", Derived),
    Member::new("disks", Users("disks")),
];

pub(super) static ENCRYPTION_SETS: Plain = Plain::of(&Protocol {
    members: &ENCRYPTION_SET,
    api_versions: &API_VERSIONS,
    in_use: Some(in_use_by_disks),
    ..built("Microsoft.Compute/diskEncryptionSets", "DiskEncryptionSet")
});

static DISK_ACCESS: [Member; 2] =
    [Member::new("privateEndpointConnections", Derived), Member::new("timeCreated", Created)];

pub(super) static DISK_ACCESSES: Plain = Plain::of(&Protocol {
    members: &DISK_ACCESS,
    example: include_str!("plain_types.json"),
    in_use: Some(in_use_by_disks),
    ..disk_protocol("Microsoft.Compute/diskAccesses", "DiskAccess")
});

fn in_use_by_disks(id: &ResourceId, _: &ResourceId, users: &str) -> Refusal {
    OPERATION_NOT_ALLOWED.says(format_args!("Resource {id} cannot be deleted while it is used by {users}."))
}

static RESERVATION_GROUP: [Member; 4] = [
    Member::new("sharingProfile", Anything),
    Member::new("capacityReservations", Derived),
    Member::new("virtualMachinesAssociated", Users("virtualMachines")),
    Member::new("instanceView", Derived),
];

pub(super) static RESERVATION_GROUPS: Plain = Plain {
    protocol: &Protocol {
        members: &RESERVATION_GROUP,
        shows_state: false,
        ..promise("Microsoft.Compute/capacityReservationGroups", "CapacityReservationGroup")
    },
    children: Some(("capacityReservations", Some("capacityReservations"))),
};

static RESERVATION: [Member; 5] = [
    Member::new("reservationId", Derived),
    Member::new("provisioningTime", Derived),
    Member::new("timeCreated", Created),
    Member::new("virtualMachinesAssociated", Derived),
    Member::new("instanceView", Derived),
];

pub(super) static RESERVATIONS: Plain = Plain::of(&Protocol {
    members: &RESERVATION,
    envelope: &SKU,
    ..built("Microsoft.Compute/capacityReservationGroups/capacityReservations", "CapacityReservation")
});

static HOST_GROUP: [Member; 5] = [
    Member::new("platformFaultDomainCount", Number(1, 5)).required().fixed(),
    Member::new("supportAutomaticPlacement", Flag),
    Member::new("additionalCapabilities", Anything),
    Member::new("hosts", Derived),
    Member::new("instanceView", Derived),
];

pub(super) static HOST_GROUPS: Plain = Plain {
    protocol: &Protocol {
        members: &HOST_GROUP,
        shows_state: false,
        ..promise("Microsoft.Compute/hostGroups", "DedicatedHostGroup")
    },
    children: Some(("hosts", Some("hosts"))),
};

static HOST: [Member; 8] = [
    Member::new("platformFaultDomain", Number(0, 4)).fixed(),
    Member::new("autoReplaceOnFailure", Flag).or_flag(true),
    Member::new("licenseType", Word(&["None", "Windows_Server_Hybrid", "Windows_Server_Perpetual"], false)),
    Member::new("hostId", Derived),
    Member::new("provisioningTime", Derived),
    Member::new("timeCreated", Created),
    Member::new("virtualMachines", Derived),
    Member::new("instanceView", Derived),
];

pub(super) static HOSTS: Plain = Plain::of(&Protocol {
    members: &HOST,
    envelope: &SKU,
    ..built("Microsoft.Compute/hostGroups/hosts", "DedicatedHost")
});
