//! PL/pgSQL: bodies run in the session, statement by statement, each as a part of the session's
//! transaction. An expression that reads no table is computed on the spot. All other SQL is
//! prepared and run as a client's statements are, with variables as its parameters.
//!
//! A block with handlers is a savepoint. Loops look at cancels and time limits, and let others
//! go first. What variables hold, and the rows that a call gives, is charged to the session.
//!
//! | file | what it does |
//! |---|---|
//! | `compiled` | a body with the types of its variables, kept for the session |
//! | `function` | calls that are made before a statement |
//! | `over` | calls that are made for each row of a query |
//! | `frame` | what the variables of a call hold |
//! | `scope` | variables as parameters of statements |
//! | `value` | expressions, casts, assignments |
//! | `returned` | the rows that a call gives |
//! | `element` | assignments of elements of arrays |
//! | `rows` | statements of SQL and their rows |
//! | `control` | blocks, branches and loops |
//! | `raise` | RAISE, ASSERT, diagnostics, handlers |
//! | `cursor` | cursors |
//! | `ending` | COMMIT and ROLLBACK |
//! | `trigger` | the functions and conditions of triggers |
//! | `within` | rights and settings of a function's own |

mod compiled;
mod control;
mod cursor;
mod element;
mod ending;
mod frame;
mod function;
mod raise;
mod returned;
mod rows;
mod scope;
mod trigger;
mod value;
mod within;

use std::sync::Arc;
use std::time::Duration;

use thermocline_engine::ChargeKind;

use thermocline_query::tree::Column;

use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::plpgsql::Signature;
use compiled::Compiled;
use frame::Frame;
pub(super) use frame::Typed;
pub(super) use function::CallsBefore;
pub(super) use scope::{Asked, Scope};
pub(super) use trigger::{RowShape, Rows, TriggerCall};
pub(super) use value::of_result;

/// How deep calls may stand in each other.
const CALLS_MAX: u32 = 100;
/// What a call takes beside its variables, in bytes: most of it is the stack.
const CALL_BYTES: u64 = 64 << 10;

/// Where a session is in its calls.
#[derive(Default)]
pub(super) struct Calls {
    /// When the client's statement has to end.
    pub(super) deadline: Option<Duration>,
    pub(super) depth: u32,
    /// The outermost call is a CALL that is no part of a transaction: it may end its own.
    pub(super) may_end: bool,
    functions: function::KeptFunctions,
    /// What was called while a statement ran, by numbers.
    called: function::CalledFunctions,
    /// A transaction was begun for what functions do that the statement at hand calls.
    pub(super) has_begun: bool,
    /// What the calls of a statement gave that is to be planned anew.
    made: Option<function::Made>,
}

impl Calls {
    /// Another statement of the client begins.
    pub(super) fn begin_statement(&mut self) {
        self.made = None;
        self.may_end = false;
        self.has_begun = false;
    }
}

/// What a call begins with.
enum Entry {
    /// The values of its arguments, which are cast to what those are.
    Arguments(Vec<frame::Typed>),
    /// What its first variables hold.
    Held(Vec<frame::Held>),
}

/// A call that runs: its session, its body and its variables.
struct Machine<'s> {
    session: &'s mut Session,
    compiled: &'s Compiled,
    frame: Frame,
}

impl Session {
    /// DO: a body without a name.
    pub(super) async fn run_do(&mut self, body: &str, client: &mut Client) -> Result<()> {
        let _charge = self.charge_text(body).await?;
        let signature = Signature {
            returns_nothing: true,
            ..Signature::default()
        };
        let name = "inline_code_block";
        let compiled = Compiled::new(self, name, body, &signature)?;
        let may_end = !self.transaction.is_in_block();
        let own = self.begin_own();
        let shape = (Arc::from([]), false);
        let nothing = Entry::Arguments(Vec::new());
        self.plpgsql.may_end = may_end;
        let ran = self.call_compiled(&compiled, nothing, shape).await;
        self.plpgsql.may_end = false;
        ran?;
        if own {
            self.end_implicit().await?;
        }
        self.tell_notices(client);
        messages::command_complete(&mut client.out, "DO");
        Ok(())
    }

    /// Runs a body with these arguments to its end; what it has given.
    async fn call_compiled(
        &mut self,
        compiled: &Compiled,
        entry: Entry,
        (columns, gives_rows): (Arc<[Column]>, bool),
    ) -> Result<Frame> {
        let mut charge = self.account.nothing(ChargeKind::Value);
        charge.grow(CALL_BYTES)?;
        if self.plpgsql.depth >= CALLS_MAX {
            return Err(SqlError::new("54001", "stack depth limit exceeded")
                .with_hint(format!("Calls may stand in each other {CALLS_MAX} deep.")));
        }
        let outer = self.plpgsql.deadline;
        self.plpgsql.deadline = self.options().deadline;
        self.plpgsql.depth += 1;
        let rows_charge = self.account.nothing(ChargeKind::Result);
        let mut machine = Machine {
            frame: compiled.frame(charge, CALL_BYTES, rows_charge),
            session: self,
            compiled,
        };
        machine.frame.columns = columns;
        machine.frame.gives_rows = gives_rows;
        let context = Arc::clone(&machine.session.context);
        let waits = context.begin_waits();
        let within = compiled.within.as_ref();
        let ran = match within.map(|within| within.enter(&context)).transpose() {
            Ok(_entered) => crate::stack::apart(Box::pin(machine.run(entry))).await,
            Err(error) => Err(error),
        };
        let Machine { frame, session, .. } = machine;
        context.go_on_waiting(waits);
        session.plpgsql.depth -= 1;
        session.plpgsql.deadline = outer;
        ran.map_err(|error| at_line(error, compiled, &frame))?;
        Ok(frame)
    }
}

/// An error with the line of the body that it comes from.
#[cold]
fn at_line(mut error: SqlError, compiled: &Compiled, frame: &Frame) -> SqlError {
    if frame.raises_again {
        return error;
    }
    let here = compiled.place(frame);
    error.context = Some(match error.context.take() {
        None => here,
        Some(inner) => format!("{inner}\n{here}"),
    });
    // Its place is in another text than the client's.
    error.position = None;
    error
}

impl Machine<'_> {
    async fn run(&mut self, entry: Entry) -> Result<()> {
        match entry {
            Entry::Arguments(arguments) => {
                for (slot, argument) in arguments.into_iter().enumerate() {
                    self.frame.at = (0, "during function entry");
                    self.store(slot, argument).await?;
                }
            }
            Entry::Held(held) => {
                for (slot, held) in held.into_iter().enumerate() {
                    self.frame.keep(slot, held)?;
                }
            }
        }
        self.frame.keep(
            self.compiled.body.found,
            frame::Held::Value {
                oid: thermocline_query::types::ids::BOOL,
                modifier: -1,
                value: thermocline_query::datum::Datum::Bool(false),
            },
        )?;
        let block = &self.compiled.body.block;
        self.statement(block).await?;
        self.frame.at = (0, "");
        self.finish()
    }

    fn context(&self) -> Arc<super::SessionContext> {
        Arc::clone(&self.session.context)
    }
}
