//! Codes of refusals that several files use.

use azure_engine::refusal::Code;

/// A request that conflicts with the present state ("Understand common error messages when you manage virtual machines
/// in Azure").
pub(crate) const OPERATION_NOT_ALLOWED: Code = Code::azures(409, "OperationNotAllowed");
/// An invalid document (the Azure disk CSI driver looks for it).
pub(crate) const BAD_REQUEST: Code = Code::azures(400, "BadRequest");
/// A document references an absent resource.
pub(crate) const NOT_FOUND: Code = Code::azures(404, "NotFound");
/// A machine wants a disk that is leaving one (the same page; "Troubleshoot virtual machine deployment due to detached
/// disks").
pub(crate) const ATTACH_DISK_WHILE_BEING_DETACHED: Code = Code::azures(409, "AttachDiskWhileBeingDetached");
/// A change of a machine's disks gives way to a detaching by force (`preemptedByForceOperation` of the Azure cloud
/// provider).
pub(crate) const DATA_DISKS_FORCE_DETACHED: Code = Code::azures(409, "DataDisksForceDetached");
/// Two machines want one disk (the same page).
pub(crate) const CONFLICTING_USER_INPUT: Code = Code::azures(409, "ConflictingUserInput");
