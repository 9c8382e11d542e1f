//! The shares of a simulated Azure as folders, and helpers that mount them: for machines whose kernel has no SMB and no NFS.
//!
//! ```text
//! Azure ─▶ MachineShares ─▶ FOLDER/accounts.json      accounts, keys, shares: what the service of files knows
//!                      └──▶ FOLDER/ACCOUNT/SHARE      the files, which the data plane has, too
//! mount.cifs, mount.nfs ─▶ helper ─▶ a bind mount, or the words and the code of the real helper
//! ```
//!
//! * A helper checks what the service would: the account's name, its two keys, whether keys are allowed, network rules, the share and its
//!   protocol, versions and options. It fails with the exit codes and words of cifs-utils and nfs-utils.
//! * A file that is written through a mount is seen by the data plane, and the other way round ([`azure_simulator::ShareFolders`]).
//! * A bind mount has no session: a mount goes on after its key was changed. A new mount, and a remount, need the new key.

mod error;
pub mod helper;
mod machine_shares;

pub use error::SharesError;
pub use machine_shares::MachineShares;
