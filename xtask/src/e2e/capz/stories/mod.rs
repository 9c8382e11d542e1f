//! What is played, a file for each story.

pub mod flavors;
pub mod health;
pub mod init;
pub mod life;
pub mod moving;
pub mod pools;
pub mod topology;
pub mod upgrade;
