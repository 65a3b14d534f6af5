//! Behaviour of the log as a whole: durability, crashes, corruption, space.
