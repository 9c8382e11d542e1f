//! Codes of refusals that several files give.

use azure_engine::error::Code;

/// What is asked for does not go together with what is there ("Understand common error messages when you manage virtual
/// machines in Azure").
pub(crate) const OPERATION_NOT_ALLOWED: Code = Code::azures(409, "OperationNotAllowed");
/// A document that cannot be (the Azure disk CSI driver looks for it).
pub(crate) const BAD_REQUEST: Code = Code::azures(400, "BadRequest");
/// Something that a document names is not there.
pub(crate) const NOT_FOUND: Code = Code::azures(404, "NotFound");
/// Two machines want one disk (the same page).
pub(crate) const CONFLICTING_USER_INPUT: Code = Code::azures(409, "ConflictingUserInput");
