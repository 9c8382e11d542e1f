//! `cerulean`: demo, simulate, plan, bench.
fn main() {}
