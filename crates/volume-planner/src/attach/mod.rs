//! A machine's list of data disks: what it becomes, which LUN each disk gets, and how many disks the machine takes.

pub mod capacity;
pub mod data_disk;
pub mod disk_list;
pub mod elsewhere;
pub mod force_detach;
pub mod intent;
pub mod machine;
pub mod published_sizes;
pub mod size_families;
