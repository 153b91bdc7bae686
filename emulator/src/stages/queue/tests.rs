//! What several disciplines have in common, and what they do beside the kernel's.

mod kernel;
