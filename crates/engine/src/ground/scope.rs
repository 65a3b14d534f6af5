//! Which partitions a statement needs: said before it takes locks, and waits for what it needs.

/// Which partitions a statement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// This one.
    One(u16),
    /// These.
    Many(Vec<u16>),
    /// All.
    All,
}
