//! The stories, one in each file.

pub mod flavors;
pub mod health;
pub mod init;
pub mod life;
pub mod managed;
pub mod moving;
pub mod pools;
pub mod topology;
pub mod upgrade;
