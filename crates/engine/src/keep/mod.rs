//! What is kept so that a start need not read all of the log: checkpoints, partition by partition.

pub(crate) mod capture;
pub(crate) mod checkpoint;
