//! Functions over windows: one operator for each window.

use std::sync::Arc;

use thermocline_query::error::Result;
use thermocline_query::tree::{AggregateCall, Bound, Expr, ExprKind, Query, WindowCall};
use thermocline_query::types::ids;

use super::{Lowerer, Rel};
use crate::evaluate::{column as bound_column, columns_of};
use crate::form::Form;
use crate::operators::frames::{Edge, Frame};
use crate::operators::window::{Function, Window};
use crate::sort_key::Direction;
use crate::udf::RowFunction;

fn calls_in<'q>(expr: &'q Expr, found: &mut Vec<(&'q Expr, &'q WindowCall)>) {
    if let ExprKind::Window(call) = &expr.kind {
        found.push((expr, call));
        return;
    }
    expr.children(&mut |child| calls_in(child, found));
}

impl Lowerer<'_> {
    /// Adds what functions over windows give.
    pub(super) fn windows(&mut self, query: &Query, mut rel: Rel, domain: &[usize]) -> Result<Rel> {
        let mut calls = Vec::new();
        for target in &query.targets {
            calls_in(&target.expr, &mut calls);
        }
        let mut replaced = Vec::new();
        for (place, window) in query.windows.iter().enumerate() {
            let of_window = calls.iter().filter(|(_, call)| call.window == place);
            let of_window: Vec<&(&Expr, &WindowCall)> = of_window.collect();
            if of_window.is_empty() {
                continue;
            }
            let mut partition = self.domain_keys(domain);
            for expr in &window.partition {
                let (bound, with) = self.bound(expr, rel)?;
                rel = with;
                partition.push((bound, Direction::default()));
            }
            let mut order = Vec::with_capacity(window.order.len());
            for key in &window.order {
                let (bound, with) = self.bound(&key.expr, rel)?;
                rel = with;
                let direction = Direction {
                    descending: key.descending,
                    nulls_first: key.nulls_first,
                };
                order.push((bound, direction));
            }
            let mut edge = |bound: &Bound, rel: Rel| -> Result<(Edge, Rel)> {
                Ok(match bound {
                    Bound::Unbounded => (Edge::Unbounded, rel),
                    Bound::Current => (Edge::Current, rel),
                    Bound::Preceding(expr) => {
                        let (expr, rel) = self.bound(expr, rel)?;
                        (Edge::Preceding(expr), rel)
                    }
                    Bound::Following(expr) => {
                        let (expr, rel) = self.bound(expr, rel)?;
                        (Edge::Following(expr), rel)
                    }
                })
            };
            let (start, with) = edge(&window.start, rel)?;
            let (end, with) = edge(&window.end, with)?;
            rel = with;
            let frame = Frame {
                unit: window.unit,
                start,
                end,
                exclusion: window.exclusion,
                order: order.first().cloned(),
            };
            let mut functions = Vec::new();
            for (expr, call) in of_window {
                let definition = self.define(expr)?;
                if replaced
                    .iter()
                    .any(|(other, _): &(Expr, usize)| other.same(&definition))
                {
                    continue;
                }
                let (id, function, with) = self.window_function(expr, call, rel)?;
                rel = with;
                functions.push((id, expr.oid, function));
                replaced.push((definition, id));
            }
            rel = self.windowed(rel, &partition, &order, functions, frame)?;
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.replaced.extend(replaced);
        }
        Ok(rel)
    }

    fn window_function(
        &mut self,
        expr: &Expr,
        call: &WindowCall,
        mut rel: Rel,
    ) -> Result<(usize, Function, Rel)> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let (bound, with) = self.bound(argument, rel)?;
            rel = with;
            arguments.push(bound);
        }
        if !call.function.is_aggregate() {
            let id = self.fresh(expr.oid);
            let name = call.function.name;
            return Ok((id, Function::Ranking(name, arguments), rel));
        }
        let filter = call.filter.as_ref().map(|filter| self.bind(filter));
        let call = AggregateCall {
            function: call.function,
            level: 0,
            direct: Vec::new(),
            arguments,
            types: call.types.clone(),
            order: Vec::new(),
            distinct: false,
            filter: filter.transpose()?,
        };
        let (aggregation, rel) = self.aggregation(call, expr.oid, rel)?;
        Ok((
            aggregation.id,
            Function::Aggregate(Box::new(aggregation)),
            rel,
        ))
    }

    /// Keys that tell the rows of a domain apart: by their bytes, where they have no Arrow type.
    pub(super) fn domain_keys(&self, domain: &[usize]) -> Vec<(Expr, Direction)> {
        let key = |id: &usize| {
            let oid = match Form::of(self.types[*id]) {
                Form::Opaque => ids::BYTEA,
                Form::Text => ids::TEXT,
                _ => self.types[*id],
            };
            (bound_column(*id, oid), Direction::default())
        };
        domain.iter().map(key).collect()
    }

    /// A key of all of these as a column.
    pub(super) fn key_column(
        &mut self,
        rel: Rel,
        keys: &[(Expr, Direction)],
    ) -> Result<(Rel, usize)> {
        let id = self.fresh(ids::BYTEA);
        let oids = |id: usize| {
            // Of a domain as it was asked for.
            let asked = keys
                .iter()
                .find(|(expr, _)| crate::evaluate::as_column(expr) == Some(id));
            asked.map_or(self.types[id], |(expr, _)| expr.oid)
        };
        let key = RowFunction::sort_key(keys, &oids, &self.context);
        Ok((rel.with(vec![(id, key)])?, id))
    }

    /// Functions over one window.
    pub(super) fn windowed(
        &mut self,
        rel: Rel,
        partition: &[(Expr, Direction)],
        order: &[(Expr, Direction)],
        functions: Vec<(usize, u32, Function)>,
        frame: Frame,
    ) -> Result<Rel> {
        let (rel, partition) = self.key_column(rel, partition)?;
        let (rel, order) = self.key_column(rel, order)?;
        let mut exprs: Vec<&Expr> = Vec::new();
        for (_, _, function) in &functions {
            match function {
                Function::Ranking(_, arguments) => exprs.extend(arguments),
                Function::Aggregate(of) => exprs.extend(of.exprs()),
            }
        }
        for edge in [&frame.start, &frame.end] {
            if let Edge::Preceding(expr) | Edge::Following(expr) = edge {
                exprs.push(expr);
            }
        }
        exprs.extend(frame.order.iter().map(|(expr, _)| expr));
        let inputs = self.typed(&columns_of(exprs));
        let window = Window {
            partition,
            order,
            functions,
            frame,
            inputs,
            context: self.context.clone(),
        };
        rel.operated(Arc::new(window))
    }
}
