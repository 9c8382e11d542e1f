//! The Kubernetes API in one process, and stand-in kubelets.
