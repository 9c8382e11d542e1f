//! The service Node: mounts shares, and disks in shares, on the machine that the program runs on, and shows them to pods.
//!
//! * [`NodeService`]: the service; [`NodeOptions`]: what flags decide; [`Outside`]: what it asks beside the machine.
//! * [`kubernetes`]: Secrets, rights and runtime classes; [`proxy`]: mounts that are encrypted in transit.
//! * [`plan`]: what is decided about a mount, without doing anything.
//!
//! The kernel's table of mounts is the state: a new process goes on where another one ended. What is remembered beside it only
//! saves calls: keys for three minutes, statistics for ten, and which key a mount was made with.
//!
//! A key reaches `mount.cifs` in its environment (`PASSWD`), which the program's own user alone can read and which ends with the
//! helper; a file with it would stay where the process is killed, and other users see a command line.

mod access;
mod azure;
mod confidential;
mod diagnosis;
mod inline;
pub mod kubernetes;
mod mount;
mod options;
mod outside;
pub mod plan;
pub mod proxy;
mod publish;
mod refresh;
mod remembered;
mod service;
mod stage;
mod statistics;
mod status;
mod tickets;
mod usage;

pub use azure::NodeAzure;
pub use options::{InlineRights, NodeOptions};
pub use outside::{
    AccountName, Azure, CloudPlace, Cluster, Folder, Key, Outside, Proxy, ProxyMount, Reader, StoredSecret,
    TokenIdentity,
};
pub use service::NodeService;
