//! Named worlds for tests: both simulators, the controllers, builders and assertions.
