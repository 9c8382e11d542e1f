//! Slim Kubernetes types, and the one place that pins their version.
