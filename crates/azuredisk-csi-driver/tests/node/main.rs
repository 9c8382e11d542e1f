//! The service Node: on simulated machines, with a simulated Kubernetes and the instance metadata of a simulated Azure, and on
//! loop devices of this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod agent_taint;
mod death;
mod expanding;
mod info;
mod loop_devices;
mod pre_stop;
mod publishing;
mod staging;
mod statistics;
mod world;
