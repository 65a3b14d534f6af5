//! Blocks, branches and loops.

use std::pin::Pin;
use std::sync::Arc;

use thermocline_engine::give_way;
use thermocline_query::datum::Datum;
use thermocline_query::types::{self, ids};

use super::Machine;
use super::frame::{Held, Typed};
use super::raise::handler_of;
use crate::error::{Result, SqlError};
use crate::plpgsql::tree::{
    Block, Bounds, Expression, Handler, Into, Kind, Loop, Source, Statement, Target,
};

/// Turns of loops between two looks at cancels and time limits.
const TURNS: u32 = 64;
/// The savepoint of a block with handlers. No client can say its name.
const SAVEPOINT: &str = "";

/// What a statement leads to.
pub(super) enum Flow {
    Next,
    Exit(Option<Arc<str>>),
    Continue(Option<Arc<str>>),
    Return,
}

/// What a turn of a loop leads to.
enum Turn {
    Again,
    Over,
    Leaves(Flow),
}

type Boxed<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

impl Flow {
    /// What comes of it at the end of a turn of this loop.
    fn turn(self, of: &Loop) -> Turn {
        let is_own = |label: &Option<Arc<str>>| label.is_none() || *label == of.label;
        match self {
            Self::Next => Turn::Again,
            Self::Exit(label) if is_own(&label) => Turn::Over,
            Self::Continue(label) if is_own(&label) => Turn::Again,
            other => Turn::Leaves(other),
        }
    }
}

impl Machine<'_> {
    async fn statements(&mut self, all: &[Statement]) -> Result<Flow> {
        for one in all {
            match self.statement(one).await? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a statement. Where it fails, the call stays at its line.
    pub(super) fn statement<'a>(&'a mut self, of: &'a Statement) -> Boxed<'a, Result<Flow>> {
        Box::pin(async move {
            let before = self.frame.at;
            self.frame.at = (of.line, of.name());
            self.turn_over().await?;
            let flow = self.run_statement(of).await?;
            self.frame.at = before;
            Ok(flow)
        })
    }

    /// After some turns looks at cancels and time limits, and lets others go first.
    pub(super) async fn turn_over(&mut self) -> Result<()> {
        self.frame.turns += 1;
        if self.frame.turns < TURNS {
            return Ok(());
        }
        self.frame.turns = 0;
        let options = self.session.options();
        self.session.check_interrupted(&options)?;
        give_way().await;
        Ok(())
    }

    async fn run_statement(&mut self, of: &Statement) -> Result<Flow> {
        match &of.kind {
            Kind::Block(block) => return self.block(block).await,
            Kind::If {
                branches,
                otherwise,
            } => return self.branches(branches, otherwise).await,
            Kind::Case {
                operand,
                branches,
                otherwise,
            } => {
                let operand = operand.as_ref();
                return self.case(operand, branches, otherwise.as_deref()).await;
            }
            Kind::Loop(of) => loop {
                match self.statements(&of.body).await?.turn(of) {
                    Turn::Again => self.turn_over().await?,
                    Turn::Over => break,
                    Turn::Leaves(flow) => return Ok(flow),
                }
            },
            Kind::While(condition, of) => {
                while self.is_true(condition).await? {
                    match self.statements(&of.body).await?.turn(of) {
                        Turn::Again => self.turn_over().await?,
                        Turn::Over => break,
                        Turn::Leaves(flow) => return Ok(flow),
                    }
                }
            }
            Kind::ForIntegers(bounds, of) => return self.for_integers(bounds, of).await,
            Kind::ForRows(into, source, of) => return self.for_rows(into, source, of).await,
            Kind::ForEach(target, array, of) => return self.for_each(target, array, of).await,
            Kind::Leave { exits, label, when } => {
                let leaves = match when {
                    Some(when) => self.is_true(when).await?,
                    None => true,
                };
                return Ok(match (leaves, exits) {
                    (false, _) => Flow::Next,
                    (true, true) => Flow::Exit(label.clone()),
                    (true, false) => Flow::Continue(label.clone()),
                });
            }
            Kind::Return(value) => {
                if let Some(value) = value {
                    self.frame.returned = Some(self.value(value).await?);
                }
                return Ok(Flow::Return);
            }
            _ => self.plain(of).await?,
        }
        Ok(Flow::Next)
    }

    /// A statement after which the next one comes.
    async fn plain(&mut self, of: &Statement) -> Result<()> {
        match &of.kind {
            Kind::Assign(target, value) => {
                let value = self.value(value).await?;
                self.assign(target, value).await
            }
            Kind::Element(target, subscripts, value) => {
                self.assign_element(target, subscripts, value).await
            }
            Kind::Sql(statement, into) => self.sql(statement, into.as_ref()).await,
            Kind::Perform(query) => self.perform(query).await,
            Kind::Run(statement) => self.query(statement).await.map(drop),
            Kind::Give(statement) => self.give(statement).await,
            Kind::Execute(dynamic, into) => self.execute(dynamic, into.as_ref()).await,
            Kind::Raise(raise) => self.raise(raise).await,
            Kind::Assert(condition, message) => self.assert(condition, message.as_ref()).await,
            Kind::Diagnostics(_, items) => self.diagnostics(items).await,
            Kind::Open(slot, rows) => self.open(*slot, rows.as_ref()).await,
            Kind::Fetch(slot, into) => self.fetch(*slot, into.as_ref()).await,
            Kind::Close(slot) => self.close(*slot),
            Kind::End { commits } => self.end_transaction(*commits).await,
            Kind::ReturnNext(value) => self.return_next(value.as_ref()).await,
            Kind::ReturnQuery(rows) => self.return_query(rows).await,
            _ => Ok(()),
        }
    }

    async fn branches(
        &mut self,
        branches: &[(Expression, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<Flow> {
        for (condition, body) in branches {
            if self.is_true(condition).await? {
                return self.statements(body).await;
            }
        }
        self.statements(otherwise).await
    }

    async fn case(
        &mut self,
        operand: Option<&(usize, Expression)>,
        branches: &[(Expression, Vec<Statement>)],
        otherwise: Option<&[Statement]>,
    ) -> Result<Flow> {
        if let Some((slot, value)) = operand {
            let value = self.value(value).await?;
            // It is of the type of what it gets, each time.
            self.frame.keep(
                *slot,
                Held::Value {
                    oid: value.oid,
                    modifier: value.modifier,
                    value: value.value,
                },
            )?;
        }
        for (condition, body) in branches {
            if self.is_true(condition).await? {
                return self.statements(body).await;
            }
        }
        match otherwise {
            Some(otherwise) => self.statements(otherwise).await,
            None => Err(SqlError::new("20000", "case not found")
                .with_hint("CASE statement is missing ELSE part.")),
        }
    }

    async fn bound(&mut self, of: &Expression, what: &str) -> Result<i32> {
        let value = self.value(of).await?;
        match self.cast(value, (ids::INT4, -1))? {
            Datum::Int4(value) => Ok(value),
            _ => {
                let message = format!("{what} of FOR loop cannot be null");
                Err(SqlError::new("22004", message))
            }
        }
    }

    async fn for_integers(&mut self, bounds: &Bounds, of: &Loop) -> Result<Flow> {
        let mut at = self.bound(&bounds.from, "lower bound").await?;
        let to = self.bound(&bounds.to, "upper bound").await?;
        let by = match &bounds.by {
            Some(by) => self.bound(by, "BY value").await?,
            None => 1,
        };
        if by <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(SqlError::new("22023", message));
        }
        let mut is_found = false;
        loop {
            let is_over = match bounds.reverse {
                false => at > to,
                true => at < to,
            };
            if is_over {
                break;
            }
            is_found = true;
            let held = Held::Value {
                oid: ids::INT4,
                modifier: -1,
                value: Datum::Int4(at),
            };
            self.frame.keep(bounds.slot, held)?;
            match self.statements(&of.body).await?.turn(of) {
                Turn::Again => self.turn_over().await?,
                Turn::Over => break,
                Turn::Leaves(flow) => {
                    self.found(is_found)?;
                    return Ok(flow);
                }
            }
            let next = match bounds.reverse {
                false => at.checked_add(by),
                true => at.checked_sub(by),
            };
            let Some(next) = next else {
                break;
            };
            at = next;
        }
        self.found(is_found)?;
        Ok(Flow::Next)
    }

    async fn for_rows(&mut self, into: &Into, source: &Source, of: &Loop) -> Result<Flow> {
        let mut found = self.source(source).await?;
        if found.is_change {
            let message = "cannot open a command that gives no rows as a cursor";
            return Err(SqlError::new("42P11", message));
        }
        let columns = found.columns();
        let mut is_found = false;
        while let Some(row) = self.next_row(&mut found)? {
            is_found = true;
            self.give_row(&into.targets, &columns, Some(row)).await?;
            match self.statements(&of.body).await?.turn(of) {
                Turn::Again => self.turn_over().await?,
                Turn::Over => break,
                Turn::Leaves(flow) => {
                    self.found(is_found)?;
                    return Ok(flow);
                }
            }
        }
        if !is_found {
            self.give_row(&into.targets, &columns, None).await?;
        }
        self.found(is_found)?;
        Ok(Flow::Next)
    }

    async fn for_each(&mut self, target: &Target, array: &Expression, of: &Loop) -> Result<Flow> {
        let Typed { value, oid, .. } = self.value(array).await?;
        let element = types::element_of(oid).ok_or_else(|| {
            let shown = types::format_type(oid, -1);
            let message = format!("FOREACH expression must yield an array, not type {shown}");
            SqlError::new("42804", message)
        })?;
        let array = match value {
            Datum::Array(array) => array,
            _ => {
                let message = "FOREACH expression must not be null";
                return Err(SqlError::new("22004", message));
            }
        };
        let mut is_found = false;
        for value in &array.elements {
            is_found = true;
            let typed = Typed {
                value: value.clone(),
                oid: element,
                modifier: -1,
            };
            self.assign(target, typed).await?;
            match self.statements(&of.body).await?.turn(of) {
                Turn::Again => self.turn_over().await?,
                Turn::Over => break,
                Turn::Leaves(flow) => {
                    self.found(is_found)?;
                    return Ok(flow);
                }
            }
        }
        self.found(is_found)?;
        Ok(Flow::Next)
    }

    async fn block(&mut self, block: &Block) -> Result<Flow> {
        for slot in &block.declares {
            let before = self.frame.at;
            self.frame.at.1 = "during statement block local variable initialization";
            let empty = self.compiled.empty(*slot);
            self.frame.keep(*slot, empty)?;
            if let Some(default) = &self.compiled.body.slots[*slot].default {
                let value = self.value(default).await?;
                self.store(*slot, value).await?;
            }
            self.frame.at = before;
        }
        let flow = match block.told {
            None => self.statements(&block.body).await?,
            Some(told) => self.with_handlers(block, told).await?,
        };
        Ok(match flow {
            Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Flow::Next,
            flow => flow,
        })
    }

    /// A block whose errors go to its handlers.
    async fn with_handlers(&mut self, block: &Block, told: (usize, usize)) -> Result<Flow> {
        let context = self.context();
        let db = Arc::clone(&self.session.engine.db);
        let at = self.frame.at;
        let depth = self.session.plpgsql.depth;
        let caught = self.frame.caught.len();
        self.session
            .transaction
            .begin_inner(SAVEPOINT, &db, &context)?;
        let error = match self.statements(&block.body).await {
            Ok(flow) => {
                self.session.transaction.release_inner(SAVEPOINT)?;
                return Ok(flow);
            }
            Err(error) => error,
        };
        // A session that has to end does so, whatever handlers there are.
        self.session.context.cancel.check_session()?;
        let Some(handler) = handler_of(&block.handlers, &error) else {
            return Err(error);
        };
        self.session.plpgsql.depth = depth;
        self.session
            .transaction
            .rollback_inner(SAVEPOINT, &context)
            .await?;
        let savepoints = self.session.transaction.savepoints();
        self.session.close_cursors_behind(savepoints);
        self.session.transaction.release_inner(SAVEPOINT)?;
        let mut error = error;
        let (line, what) = self.frame.at;
        let here = format!(
            "PL/pgSQL function {} line {line} {what}",
            self.compiled.name
        );
        error.context = Some(match error.context.take() {
            None => here,
            Some(inner) => format!("{inner}\n{here}"),
        });
        self.frame.at = at;
        self.frame.caught.truncate(caught);
        self.frame.caught.push(error);
        let flow = self.handle(handler, told).await?;
        self.frame.caught.truncate(caught);
        Ok(flow)
    }

    async fn handle(
        &mut self,
        handler: &Handler,
        (state, message): (usize, usize),
    ) -> Result<Flow> {
        let text = |text: String| Typed {
            value: Datum::text(text),
            oid: ids::TEXT,
            modifier: -1,
        };
        let told = self.frame.caught.last();
        let told = told.map(|error| (error.sqlstate.to_owned(), error.message.clone()));
        let (code, words) = told.unwrap_or_default();
        self.store(state, text(code)).await?;
        self.store(message, text(words)).await?;
        self.statements(&handler.body).await
    }
}
