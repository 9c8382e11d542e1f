//! Boot diagnostics.

use serde_json::json;

use crate::field_error::{FieldErrors, Path};
use crate::object::object;

const USER_MANAGED: &str = "UserManaged";

object! {
    /// The boot diagnostics of the machines.
    Diagnostics {
        /// The output of the machine's boot.
        boot: BootDiagnostics,
    }
}

object! {
    /// Where the machine's screen and console go.
    BootDiagnostics {
        /// The storage account: Managed (Azure's), UserManaged or Disabled.
        #[schemars(required, extend("enum" = ["Managed", "UserManaged", "Disabled"]))]
        storage_account_type: String,
        /// The user's own storage account, for UserManaged.
        user_managed: UserManagedDiagnostics,
    }
}

object! {
    /// A storage account of one's own.
    UserManagedDiagnostics {
        /// The address of the storage account's blobs.
        #[serde(rename = "storageAccountURI")]
        #[schemars(required, length(max = 1024), extend("pattern" = "^https://"))]
        storage_account_uri: String,
    }
}

/// The default: a storage account of Azure's.
pub(crate) fn set_default(diagnostics: &mut Option<Diagnostics>) {
    let boot = &mut diagnostics.get_or_insert_default().boot;
    boot.get_or_insert_with(|| BootDiagnostics {
        storage_account_type: Some("Managed".to_owned()),
        ..BootDiagnostics::default()
    });
}

/// A storage account is named if, and only if, it is the user's own.
pub(crate) fn check(diagnostics: Option<&Diagnostics>, path: &Path, errors: &mut FieldErrors) {
    let Some(boot) = diagnostics.and_then(|diagnostics| diagnostics.boot.as_ref()) else { return };
    let path = path.child("boot").child("userManaged");
    let uri = boot.user_managed.as_ref().and_then(|account| account.storage_account_uri.as_deref());
    if boot.storage_account_type.as_deref() == Some(USER_MANAGED) {
        if uri.unwrap_or_default().is_empty() {
            errors.required(
                &path.child("storageAccountURI"),
                "storageAccountURI cannot be empty when storageAccountType is UserManaged",
            );
        }
    } else if boot.user_managed.is_some() {
        errors.invalid(
            &path.child("storageAccountURI"),
            json!(uri),
            "a storage account is only for the storageAccountType UserManaged: leave userManaged away",
        );
    }
}
