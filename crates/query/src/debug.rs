//! What is printed of trees for debugging: all that they mean, and not where it stands in a text.
//! Trees that are printed alike mean the same.

use std::fmt::{Debug, Formatter, Result};

use crate::tree::{AggregateCall, ArrayComparison, Expr, FunctionCall, WindowCall};

impl Debug for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("Expr")
            .field(&self.kind)
            .field(&self.oid)
            .field(&self.modifier)
            .finish()
    }
}

impl Debug for FunctionCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple(self.function.name)
            .field(&self.function.oid)
            .field(&self.types)
            .field(&self.arguments)
            .finish()
    }
}

impl Debug for ArrayComparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ArrayComparison")
            .field("operator", &self.operator)
            .field("function", &self.function.oid)
            .field("types", &self.types)
            .field("any", &self.any)
            .field("value", &self.value)
            .field("array", &self.array)
            .finish()
    }
}

impl Debug for AggregateCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple(self.function.name)
            .field(&(self.function.oid, self.level, self.distinct))
            .field(&self.types)
            .field(&self.direct)
            .field(&self.arguments)
            .field(&self.order)
            .field(&self.filter)
            .finish()
    }
}

impl Debug for WindowCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple(self.function.name)
            .field(&self.function.oid)
            .field(&self.types)
            .field(&self.arguments)
            .field(&self.filter)
            .field(&self.window)
            .finish()
    }
}
