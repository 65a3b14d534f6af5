//! Expressions by columns: a bound expression becomes a tree of [`node::Node`]s that is computed
//! over a whole batch, node by node. What it means is what the row evaluator says: where anything
//! is unusual (an overflow, a division by zero, a number of many digits) a batch is *given up* and
//! computed row by row. So errors, their order and rare values are the row evaluator's.
//!
//! | module | what lives there |
//! |---|---|
//! | `vector` | columns while they are computed |
//! | `input`, `output` | from Arrow's columns and to them, and to keys |
//! | `node` | what an expression becomes |
//! | `run` | how it is computed, for the rows that reach a branch |
//! | `kernels` | functions over columns |
//! | `set`, `fit` | lists of IN, and modifiers |

mod fit;
mod input;
mod kernels;
mod node;
mod output;
mod run;
mod set;
mod vector;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use datafusion::arrow::array::ArrayRef;
use thermocline_query::error::Result;
use thermocline_query::tree::Expr;

use self::node::{Compiler, Node, is_repeatable};
use self::run::{Run, Stop};
use crate::evaluate::{Context, PlacedRows};
use crate::sort_key::Direction;

/// Batches that are left to the row evaluator at most, after many were given up in a row.
const PAUSE_MAX: u32 = 64;

/// How many batches were computed by columns, and how many were given up.
static COMPUTED: AtomicU64 = AtomicU64::new(0);
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);

/// How many batches of the process were computed by columns, and how many were given up.
#[must_use]
pub fn counts() -> (u64, u64) {
    (
        COMPUTED.load(Ordering::Relaxed),
        GIVEN_UP.load(Ordering::Relaxed),
    )
}

/// What is wanted of a program.
pub enum Wanted<'w> {
    /// The value of its expression, of a type.
    Value(u32),
    /// The key of that value, NULL for NULL.
    Key(u32),
    /// The key of all values.
    SortKey(&'w [(u32, Direction)]),
}

/// Expressions that are computed by columns.
pub struct Program {
    nodes: Vec<Node>,
    /// Batches given up without one computed between.
    misses: AtomicU32,
    /// Batches that are to be left to the row evaluator.
    pause: AtomicU32,
}

impl Program {
    /// Of bound expressions whose columns are places of a list; `None` where the row evaluator
    /// is as good.
    #[must_use]
    pub fn of(exprs: &[Expr], context: &Context) -> Option<Self> {
        if !exprs.iter().all(is_repeatable) {
            return None;
        }
        let compiler = Compiler { context };
        let nodes = exprs.iter().map(|expr| compiler.node(expr, 0, None));
        Some(Self {
            nodes: nodes.collect::<Option<_>>()?,
            misses: AtomicU32::new(0),
            pause: AtomicU32::new(0),
        })
    }

    /// Whether its expressions are more than columns and what the row evaluator computes.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        self.nodes.iter().any(Node::is_worth_it)
    }

    /// Whether any of its expressions is read or computed by columns.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| !matches!(node, Node::Rows(..)))
    }

    /// What is wanted, over a batch; `None` where it is given up.
    ///
    /// # Errors
    /// Where the statement is not to go on.
    pub fn compute(
        &self,
        wanted: &Wanted<'_>,
        columns: &[(usize, u32)],
        arrays: &[ArrayRef],
        rows: &PlacedRows,
        count: usize,
        context: &Context,
    ) -> Result<Option<ArrayRef>> {
        if self.pause.load(Ordering::Relaxed) > 0 {
            self.pause.fetch_sub(1, Ordering::Relaxed);
            return Ok(None);
        }
        context.environment.check_interrupted()?;
        let run = Run::new(columns, arrays, rows, context);
        let values = self.nodes.iter().map(|node| run.all(node, count));
        let made = match values.collect::<std::result::Result<Vec<_>, Stop>>() {
            Ok(mut values) => match wanted {
                Wanted::Value(oid) => values
                    .pop()
                    .and_then(|value| output::array(*oid, value, count)),
                Wanted::Key(oid) => values
                    .pop()
                    .and_then(|value| output::keys(*oid, &value, count)),
                Wanted::SortKey(directions) => output::sort_keys(directions, &values, count),
            },
            Err(Stop::GivenUp) => None,
            Err(Stop::Failed(error)) => return Err(error),
        };
        if made.is_some() {
            COMPUTED.fetch_add(1, Ordering::Relaxed);
            self.misses.store(0, Ordering::Relaxed);
        } else {
            GIVEN_UP.fetch_add(1, Ordering::Relaxed);
            let misses = self.misses.fetch_add(1, Ordering::Relaxed).min(16);
            let pause = (1_u32 << misses).min(PAUSE_MAX) - 1;
            self.pause.store(pause, Ordering::Relaxed);
        }
        Ok(made)
    }
}
