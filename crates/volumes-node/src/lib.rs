//! Devices, file systems and mounts of a node: the one place that touches a kernel.
