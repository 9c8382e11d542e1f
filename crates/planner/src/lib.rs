//! Desired and observed state in, plan out: pure.
