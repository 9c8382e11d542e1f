//! Codes of refusals that several files use.

use azure_engine::refusal::Code;

/// A request that conflicts with the present state ("Understand common error messages when you manage virtual machines
/// in Azure").
pub(crate) const OPERATION_NOT_ALLOWED: Code = Code::azures(409, "OperationNotAllowed");
/// An invalid document (the Azure disk CSI driver looks for it).
pub(crate) const BAD_REQUEST: Code = Code::azures(400, "BadRequest");
/// A document references an absent resource.
pub(crate) const NOT_FOUND: Code = Code::azures(404, "NotFound");
/// Two machines want one disk (the same page).
pub(crate) const CONFLICTING_USER_INPUT: Code = Code::azures(409, "ConflictingUserInput");
