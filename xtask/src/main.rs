//! Chores that need code: end-to-end tests, figures, checks.
fn main() {}
