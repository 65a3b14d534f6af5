//! Views of what is ours: memory, tables, devices, policy.
