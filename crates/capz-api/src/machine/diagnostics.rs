//! Boot diagnostics.

use crate::field_error::Field;
use crate::object::object;
use crate::text::is_set;

const USER_MANAGED: &str = "UserManaged";

object! {
    /// The boot diagnostics of the machines.
    Diagnostics {
        /// The output of the machine's boot.
        boot: BootDiagnostics,
    }

    /// Where the machine's screen and console go.
    BootDiagnostics {
        /// The storage account: Managed (Azure's), UserManaged or Disabled.
        #[schemars(required, extend("enum" = ["Managed", "UserManaged", "Disabled"]))]
        storage_account_type: String,
        /// The user's own storage account, for UserManaged.
        user_managed: UserManagedDiagnostics,
    }

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
pub(crate) fn check(diagnostics: Option<&Diagnostics>, field: &Field<'_>) {
    let Some(boot) = diagnostics.and_then(|diagnostics| diagnostics.boot.as_ref()) else { return };
    let account = field.child("boot.userManaged.storageAccountURI");
    let uri = boot.user_managed.as_ref().and_then(|account| account.storage_account_uri.clone());
    if boot.storage_account_type.as_deref() == Some(USER_MANAGED) {
        let words = "storageAccountURI cannot be empty when storageAccountType is UserManaged";
        account.required_if(!is_set(&uri), words);
    } else {
        let words =
            "a storage account is only for the storageAccountType UserManaged: leave userManaged away";
        account.invalid_if(boot.user_managed.is_some(), uri, words);
    }
}
