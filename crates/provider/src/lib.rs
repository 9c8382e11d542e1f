//! Observed state, one writer per shared resource, applying plans.
