//! SQL values as tables store them: their types, the limits of a type, how a value looks as text
//! and on the wire, how values compare, arithmetic and casts that the short path computes in place.
//!
//! Not here: how values lie in tuples and keys (`storage`), and the types, functions and operators
//! that queries know (`query`). Nothing here touches memory that is shared, files or clocks.

pub mod arithmetic;
pub mod binary_format;
pub mod cast;
pub mod compare;
pub mod datetime;
pub mod hash;
pub mod numeric;
pub mod other_type;
#[cfg(any(test, feature = "samples"))]
pub mod sample_values;
pub mod text_format;
pub mod types;
pub mod value;
pub mod value_error;
mod wide;
