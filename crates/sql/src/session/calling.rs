//! Calls of functions while a statement runs (`thermocline_query::functions::CALLED`). The session runs their
//! bodies; whatever computes the statement asks it.
//!
//! On the short path an expression that comes to a call gives the change up, or the row, as for any wait
//! (`signal.rs`). The session makes the call and notes what it gave. Then the change is made anew, and finds the
//! note. The threads of the analytical side ask instead, and wait for the answer ([`Asking`]).

use thermocline_engine::{Charge, ChargeKind, RunOptions};
use thermocline_query::call::Asked;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::serial;
use thermocline_query::size;
use thermocline_values::value::Value;

use super::context::SessionContext;
use super::plpgsql::Typed;
use super::{SendFuture, Session};
use crate::error::{Result, SqlError, Wait};
use crate::exec;
use crate::output::{Mark, RowWriter};
use crate::plan::ShortPlan;
use crate::styles::Styles;

/// How often a statement may come to other calls than before.
const TURNS_MAX: usize = 8;

/// A call that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The function's number.
    pub(super) function: u32,
    /// The arguments.
    pub(super) arguments: Vec<Typed>,
    /// The number of the type of its value.
    pub(super) result: u32,
}

/// A plan to be run again, with all that it is run with: options and styles, parameters, and whether it may
/// leave the short path.
type Again<'a> = (
    &'a ShortPlan,
    (&'a RunOptions, &'a Styles),
    &'a [Value],
    bool,
);

/// What a call is known by: the function and the bytes of its arguments.
type Told = (u32, Vec<u8>);

/// The calls of a statement on the short path.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those that were made, in the order in which the statement comes to them, and what they gave.
    made: Vec<(Told, Datum)>,
    /// How many of them this run of the statement has come to.
    reached: usize,
    /// The one that is to be made.
    asked: Option<(Told, Call)>,
    /// How often the statement came to other calls than before.
    turns: usize,
    charge: Option<Charge>,
}

/// Whoever makes calls for the threads of a statement.
pub(crate) trait Asking: Send + Sync {
    /// What a call gives. Waits for it.
    ///
    /// # Errors
    /// The function's; 57014 where the statement is over.
    fn ask(&self, call: Call) -> Result<Datum>;
}

impl Call {
    /// As an expression says it.
    pub(crate) fn of(asked: &Asked<'_>) -> Self {
        let typed = |(value, oid): (&Datum, &u32)| Typed {
            value: value.clone(),
            oid: *oid,
            modifier: -1,
        };
        Self {
            function: asked.function,
            arguments: asked.arguments.iter().zip(asked.types).map(typed).collect(),
            result: asked.result,
        }
    }
}

impl Calls {
    /// The statement begins anew.
    pub(super) fn begin_again(&mut self) {
        self.reached = 0;
    }

    /// What a call gave, if it was made.
    fn given(&mut self, asked: &Asked<'_>) -> QueryResult<Option<Datum>> {
        let place = self.reached;
        let mut told = (asked.function, Vec::new());
        serial::write_all(asked.arguments, &mut told.1)?;
        if let Some((made, value)) = self.made.get(place)
            && *made == told
        {
            self.reached += 1;
            return Ok(Some(value.clone()));
        }
        // The rows are others than they were: somebody has changed them, or what was called has.
        self.turns += usize::from(self.made.len() > place);
        if self.turns > TURNS_MAX {
            let message = "a row to be changed was changed by a function that the statement calls";
            let hint = "Change it in one of both, or keep in a variable what the function gives.";
            return Err(QueryError::new("27000", message).with_hint(hint));
        }
        self.made.truncate(place);
        self.asked = Some((told, Call::of(asked)));
        Ok(None)
    }
}

impl SessionContext {
    /// What a call gave that an expression of the short path comes to.
    ///
    /// # Errors
    /// The wait for it, where it is to be made.
    pub(super) fn given_by(&self, asked: &Asked<'_>) -> Result<Datum> {
        let given = self.waits.lock().calls.given(asked)?;
        given.ok_or_else(|| SqlError::waits(Wait::Call))
    }
}

impl Session {
    /// Makes the call that a statement of the short path waits for.
    pub(super) fn make_asked<'a>(
        &'a mut self,
        options: &'a RunOptions,
    ) -> SendFuture<'a, Result<()>> {
        Box::pin(async move {
            self.check_interrupted(options)?;
            let asked = self.context.waits.lock().calls.asked.take();
            let asked = asked.ok_or_else(|| SqlError::internal("a wait for no call"))?;
            let (told, call) = asked;
            let value = self.called(&call, options).await?;
            let bytes = told.1.len() + size::beyond(&value) + size_of::<(Told, Datum)>();
            let nothing = || self.account.nothing(ChargeKind::Value);
            let calls = &mut self.context.waits.lock().calls;
            let charge = calls.charge.get_or_insert_with(nothing);
            charge.grow(bytes as u64)?;
            calls.made.push((told, value));
            Ok(())
        })
    }

    /// What a call gives, as a part of a statement that runs with these options.
    fn called<'a>(
        &'a mut self,
        call: &'a Call,
        options: &'a RunOptions,
    ) -> SendFuture<'a, Result<Datum>> {
        Box::pin(async move {
            let outer = std::mem::replace(&mut self.plpgsql.deadline, options.deadline);
            let value = self.value_of_call(call).await;
            self.plpgsql.deadline = outer;
            value
        })
    }

    /// Runs a plan of the short path to its end, after each wait of its expressions anew.
    pub(super) async fn run_plan(
        &mut self,
        plan: &ShortPlan,
        with: (&RunOptions, &Styles),
        parameters: &[Value],
        rows: &mut RowWriter,
        may_leave: bool,
    ) -> Result<u64> {
        let start = rows.mark();
        let mut exec = self.execution(with.0, with.1, may_leave);
        match exec::execute(plan, &mut exec, parameters, rows).await {
            Err(error) if error.wait.is_some() => {
                let again = (plan, with, parameters, may_leave);
                self.run_again(error, again, (rows, start)).await
            }
            ran => ran,
        }
    }

    /// Runs a plan again that has ended with a wait, until it ends otherwise. Its rows from `start` on are void.
    pub(super) fn run_again<'a>(
        &'a mut self,
        mut error: SqlError,
        (plan, (options, styles), parameters, may_leave): Again<'a>,
        (rows, start): (&'a mut RowWriter, Mark),
    ) -> SendFuture<'a, Result<u64>> {
        Box::pin(async move {
            while let Some(wait) = error.wait {
                self.begin_with(wait);
                self.wait(wait, options).await?;
                rows.rewind(start);
                let mut exec = self.execution(options, styles, may_leave);
                match exec::execute(plan, &mut exec, parameters, rows).await {
                    Err(again) => error = again,
                    ran => return ran,
                }
            }
            Err(error)
        })
    }

    /// What a function does belongs to the transaction of the statement that calls it.
    pub(super) fn begin_with(&mut self, wait: Wait) {
        if wait == Wait::Call {
            self.plpgsql.has_begun |= self.begin_own();
        }
    }
}

#[cfg(feature = "analytics")]
mod asked {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::task::Poll;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::{Asking, Call, Datum, Result, RunOptions, SendFuture, Session, SqlError};

    /// A call, and who waits for what it gives.
    type Request = (Call, SyncSender<Result<Datum>>);

    /// The calls that the threads of a statement ask for.
    pub(in crate::session) struct AskedCalls(UnboundedReceiver<Request>);

    struct Asks(UnboundedSender<Request>);

    impl AskedCalls {
        /// Of a statement that is about to run, and whom its threads ask.
        pub(in crate::session) fn new() -> (Self, Arc<dyn Asking>) {
            let (sender, receiver) = unbounded_channel();
            (Self(receiver), Arc::new(Asks(sender)))
        }
    }

    impl Asking for Asks {
        fn ask(&self, call: Call) -> Result<Datum> {
            let over = || SqlError::new("57014", "canceling statement due to user request");
            let (answer, given) = sync_channel(1);
            self.0.send((call, answer)).map_err(|_| over())?;
            given.recv().map_err(|_| over())?
        }
    }

    impl Session {
        /// What comes of the work of a statement's threads, whose calls are made meanwhile.
        pub(in crate::session) fn with_calls<'a, T: Send + 'a>(
            &'a mut self,
            calls: &'a mut AskedCalls,
            options: &'a RunOptions,
            work: impl Future<Output = Result<T>> + Send + 'a,
        ) -> SendFuture<'a, Result<T>> {
            Box::pin(async move {
                let db = Arc::clone(&self.engine.db);
                let mut work = pin!(db.interruptible(options, work));
                loop {
                    let asked = poll_fn(|context| {
                        if let Poll::Ready(done) = work.as_mut().poll(context) {
                            return Poll::Ready(Err(done));
                        }
                        match calls.0.poll_recv(context) {
                            Poll::Ready(Some(asked)) => Poll::Ready(Ok(asked)),
                            _ => Poll::Pending,
                        }
                    });
                    match asked.await {
                        Ok((call, answer)) => {
                            let given = self.called(&call, options).await;
                            // Whoever has gone does not want to know.
                            let _ = answer.send(given);
                        }
                        Err(done) => return done?,
                    }
                }
            })
        }
    }
}

#[cfg(feature = "analytics")]
pub(super) use asked::AskedCalls;
