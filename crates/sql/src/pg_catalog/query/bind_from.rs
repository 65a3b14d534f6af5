//! Binding of FROM and of conditions.

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, Expr as AstExpr, FunctionArg, FunctionArgExpr, JoinConstraint, JoinOperator,
    ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::bind::{Binder, rename};
use super::coerce::{coerce_pair, require_boolean};
use super::expr::{Comparison, Expr, SetCall, Typed};
use super::functions::Function;
use super::plan::{Column, Condition, From, Item, LeftJoin, Side, Source};
use super::scope::ScopeTable;
use super::set_returning::SetFunction;
use crate::analytics::{folded, last_part};
use crate::error::{Result, SqlError};
use crate::pg_catalog::pg_type::PgType;
use crate::pg_catalog::relations::{self, Relation};

/// An item of FROM before it has its place in the row.
struct Bound {
    source: Source,
    columns: Vec<Column>,
    needs: BTreeSet<usize>,
    alias: String,
    schema: Option<String>,
}

fn no_from_item(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in FROM of a system catalog query"))
}

impl Binder<'_> {
    /// Binds a FROM clause into the current scope.
    pub(super) fn from(&mut self, tables: &[TableWithJoins]) -> Result<From> {
        let mut from = From::default();
        for table in tables {
            self.joined(table, &mut from)?;
        }
        from.width = self.scopes.last().map_or(0, |scope| scope.width);
        Ok(from)
    }

    fn joined(&mut self, table: &TableWithJoins, from: &mut From) -> Result<()> {
        // A right join is a left join seen from the other side: what stands to
        // the left of it becomes a tree of its own.
        let right = table.joins.iter().rposition(|join| {
            matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_)
            )
        });
        if let Some(at) = right {
            let mut left_side = table.clone();
            let mut rest = left_side.joins.split_off(at);
            let right_join = rest.remove(0);
            let constraint = match right_join.join_operator {
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                    constraint
                }
                _ => return Err(SqlError::internal("a right join is not one")),
            };
            // The columns keep their order: the left side comes first.
            let left_item = self.nested(&left_side)?;
            let bound = self.factor(&right_join.relation)?;
            let item = self.place(bound)?;
            from.inner.push(item);
            let conditions = self.join_conditions(&constraint)?;
            from.left.push(LeftJoin {
                item: left_item,
                conditions,
            });
            for join in &rest {
                self.join(&join.relation, &join.join_operator, from)?;
            }
            return Ok(());
        }
        let bound = self.factor(&table.relation)?;
        let item = self.place(bound)?;
        from.inner.push(item);
        for join in &table.joins {
            self.join(&join.relation, &join.join_operator, from)?;
        }
        Ok(())
    }

    fn join(
        &mut self,
        relation: &TableFactor,
        operator: &JoinOperator,
        from: &mut From,
    ) -> Result<()> {
        let bound = self.factor(relation)?;
        let item = self.place(bound)?;
        match operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint) => {
                from.inner.push(item);
                let conditions = self.join_conditions(constraint)?;
                from.conditions.extend(conditions);
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                let conditions = self.join_conditions(constraint)?;
                from.left.push(LeftJoin { item, conditions });
            }
            _ => return Err(no_from_item("this kind of join")),
        }
        Ok(())
    }

    /// A join tree as one item: its columns go into the current scope.
    fn nested(&mut self, table: &TableWithJoins) -> Result<Item> {
        let offset = self.scopes.last().map_or(0, |scope| scope.width);
        let mut inner = From::default();
        self.joined(table, &mut inner)?;
        let width = self.scopes.last().map_or(0, |scope| scope.width) - offset;
        // The tree's rows are as wide as the scope so far; its own columns are
        // where they will be in the whole row.
        inner.width = offset + width;
        Ok(Item {
            source: Source::Joined(Arc::new(inner)),
            offset,
            width,
            needs: BTreeSet::new(),
        })
    }

    fn join_conditions(&mut self, constraint: &JoinConstraint) -> Result<Vec<Condition>> {
        let mut conditions = Vec::new();
        match constraint {
            JoinConstraint::None => {}
            JoinConstraint::On(condition) => self.conditions(condition, &mut conditions)?,
            JoinConstraint::Using(names) => {
                for name in names {
                    let name = last_part(name).unwrap_or_default();
                    conditions.push(self.using(&name)?);
                }
            }
            JoinConstraint::Natural => {
                let Some(scope) = self.scopes.last() else {
                    return Ok(conditions);
                };
                let Some((new, old)) = scope.tables.split_last() else {
                    return Ok(conditions);
                };
                let shared: Vec<String> = new
                    .columns
                    .iter()
                    .filter(|column| column.name != "tableoid")
                    .filter(|column| {
                        old.iter().any(|table| {
                            table.columns.iter().any(|other| other.name == column.name)
                        })
                    })
                    .map(|column| column.name.clone())
                    .collect();
                for name in shared {
                    conditions.push(self.using(&name)?);
                }
            }
        }
        Ok(conditions)
    }

    /// The equality that `USING (name)` stands for.
    fn using(&mut self, name: &str) -> Result<Condition> {
        let scope = self
            .scopes
            .last_mut()
            .ok_or_else(|| SqlError::internal("a join without a scope"))?;
        let missing = || {
            SqlError::new(
                "42703",
                format!("column \"{name}\" specified in USING clause does not exist"),
            )
        };
        let (new, old) = scope.tables.split_last_mut().ok_or_else(missing)?;
        let place = |table: &ScopeTable| {
            table
                .columns
                .iter()
                .position(|column| column.name == name)
                .map(|at| table.offset + at)
        };
        let right = place(new).ok_or_else(missing)?;
        let left = old.iter().find_map(place).ok_or_else(missing)?;
        new.merged.push(name.to_owned());
        let side = |index| Side {
            expr: Expr::Column { depth: 0, index },
            uses: BTreeSet::from([index]),
        };
        let (left, right) = (side(left), side(right));
        Ok(Condition {
            expr: Expr::Compare(
                Comparison::Equal,
                Box::new(left.expr.clone()),
                Box::new(right.expr.clone()),
            ),
            uses: left.uses.union(&right.uses).copied().collect(),
            equality: Some((left, right)),
        })
    }

    /// Gives an item its place in the row and its names their scope.
    fn place(&mut self, bound: Bound) -> Result<Item> {
        let scope = self
            .scopes
            .last_mut()
            .ok_or_else(|| SqlError::internal("FROM without a scope"))?;
        let offset = scope.width;
        let width = bound.columns.len();
        if bound.alias.is_empty() {
            // The columns of a nested join are in the scope already.
            return Ok(Item {
                source: bound.source,
                offset: offset - width,
                width,
                needs: bound.needs,
            });
        }
        if scope
            .table(&bound.alias)
            .is_some_and(|known| known.schema == bound.schema)
        {
            return Err(SqlError::new(
                "42712",
                format!("table name \"{}\" specified more than once", bound.alias),
            ));
        }
        scope.tables.push(ScopeTable {
            alias: bound.alias,
            schema: bound.schema,
            columns: bound.columns,
            offset,
            merged: Vec::new(),
        });
        scope.width += width;
        Ok(Item {
            source: bound.source,
            offset,
            width,
            needs: bound.needs,
        })
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<Bound> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => self.table(name, alias.as_ref()),
            TableFactor::Table {
                name,
                alias,
                args: Some(arguments),
                with_ordinality,
                ..
            } => self.function_item(name, &arguments.args, alias.as_ref(), *with_ordinality),
            TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality,
                ..
            } => self.function_item(name, args, alias.as_ref(), *with_ordinality),
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_ordinality,
                ..
            } => {
                let calls = array_exprs
                    .iter()
                    .map(|expr| {
                        let (typed, used) = self.tracked(expr)?;
                        Ok((
                            SetFunction::Unnest,
                            vec![(typed.expr, typed.data_type)],
                            used,
                        ))
                    })
                    .collect::<Result<Vec<_>>>()?;
                self.set_item(calls, "unnest", alias.as_ref(), *with_ordinality)
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                let scope = if *lateral { None } else { self.scopes.pop() };
                let used_before = self
                    .scopes
                    .last_mut()
                    .filter(|_| *lateral)
                    .map(|scope| std::mem::take(&mut scope.used));
                // A query that is not lateral does not see its neighbours, but
                // it is still one level further in.
                if !*lateral {
                    self.scopes.push(super::scope::Scope::default());
                }
                let plan = self.query(subquery);
                let mut needs = BTreeSet::new();
                if *lateral {
                    if let (Some(scope), Some(before)) = (self.scopes.last_mut(), used_before) {
                        needs = std::mem::replace(&mut scope.used, before);
                        scope.used.extend(needs.iter().copied());
                    }
                } else {
                    self.scopes.pop();
                    self.scopes.extend(scope);
                }
                let plan = plan?;
                let mut columns = plan.columns.clone();
                let name = match alias {
                    Some(alias) => {
                        let aliases: Vec<String> =
                            alias.columns.iter().map(|c| folded(&c.name)).collect();
                        let name = folded(&alias.name);
                        rename(&mut columns, &aliases, &name)?;
                        name
                    }
                    None => {
                        return Err(SqlError::syntax("subquery in FROM must have an alias"));
                    }
                };
                Ok(Bound {
                    source: Source::Query(Arc::new(plan)),
                    columns,
                    needs,
                    alias: name,
                    schema: None,
                })
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => {
                let item = self.nested(table_with_joins)?;
                let columns = (0..item.width)
                    .map(|_| Column {
                        name: String::new(),
                        data_type: PgType::TEXT,
                        origin: None,
                    })
                    .collect();
                Ok(Bound {
                    source: item.source,
                    columns,
                    needs: item.needs,
                    alias: String::new(),
                    schema: None,
                })
            }
            _ => Err(no_from_item("this item")),
        }
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<Bound> {
        let parts: Vec<String> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident().map(folded))
            .collect();
        let (schema, table) = match parts.as_slice() {
            [table] => (None, table.as_str()),
            [schema, table] | [_, schema, table] => (Some(schema.as_str()), table.as_str()),
            _ => return Err(SqlError::undefined_table(&name.to_string())),
        };
        let cte = self
            .ctes
            .iter()
            .rev()
            .find(|cte| schema.is_none() && cte.name == table)
            .cloned();
        let (source, mut columns, schema_name) = match cte {
            Some(cte) => (Source::Cte(cte.id), cte.columns, None),
            None => {
                let relation = find_relation(schema, table, &self.session.facts.search_path)
                    .ok_or_else(|| SqlError::undefined_table(&parts.join(".")))?;
                let columns = relation_columns(&relation);
                let schema = relation.schema.to_owned();
                (Source::Relation(relation), columns, Some(schema))
            }
        };
        let mut alias_name = table.to_owned();
        if let Some(alias) = alias {
            alias_name = folded(&alias.name);
            let aliases: Vec<String> = alias.columns.iter().map(|c| folded(&c.name)).collect();
            rename(&mut columns, &aliases, &alias_name)?;
        }
        Ok(Bound {
            source,
            columns,
            needs: BTreeSet::new(),
            schema: schema_name.filter(|_| alias.is_none()),
            alias: alias_name,
        })
    }

    fn function_item(
        &mut self,
        name: &ObjectName,
        arguments: &[FunctionArg],
        alias: Option<&TableAlias>,
        ordinality: bool,
    ) -> Result<Bound> {
        let function = last_part(name).unwrap_or_default();
        let mut bound = Vec::new();
        let mut used = BTreeSet::new();
        for argument in arguments {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return Err(no_from_item("this form of a function"));
            };
            let (typed, uses) = self.tracked(expr)?;
            used.extend(uses);
            bound.push((typed.expr, typed.data_type));
        }
        let types: Vec<PgType> = bound.iter().map(|(_, data_type)| *data_type).collect();
        let set = match SetFunction::by_name(&function) {
            Some(SetFunction::Unnest) if bound.len() > 1 => {
                let calls = bound
                    .into_iter()
                    .map(|argument| (SetFunction::Unnest, vec![argument], used.clone()))
                    .collect();
                return self.set_item(calls, &function, alias, ordinality);
            }
            Some(set) => set,
            None => Function::by_name(&function, &types)
                .map(SetFunction::Value)
                .ok_or_else(|| super::bind_function::no_function(&function, &types))?,
        };
        self.set_item(vec![(set, bound, used)], &function, alias, ordinality)
    }

    #[allow(clippy::type_complexity, reason = "a call before it is one")]
    fn set_item(
        &mut self,
        calls: Vec<(SetFunction, Vec<(Expr, PgType)>, BTreeSet<usize>)>,
        name: &str,
        alias: Option<&TableAlias>,
        ordinality: bool,
    ) -> Result<Bound> {
        let alias_name = alias.map_or_else(|| name.to_owned(), |alias| folded(&alias.name));
        let mut columns = Vec::new();
        let mut needs = BTreeSet::new();
        let mut set_calls = Vec::new();
        let single = calls.len() == 1;
        for (function, arguments, used) in calls {
            let types: Vec<PgType> = arguments.iter().map(|(_, data_type)| *data_type).collect();
            // A function of one column gives it the name of its alias.
            let made = function.columns(if single { &alias_name } else { name }, &types);
            let one = made.len() == 1 && single && alias.is_some();
            columns.extend(made.into_iter().map(|(name, data_type)| Column {
                name: if one { alias_name.clone() } else { name },
                data_type,
                origin: None,
            }));
            needs.extend(used);
            set_calls.push(SetCall {
                function,
                arguments,
            });
        }
        if ordinality {
            columns.push(Column {
                name: "ordinality".to_owned(),
                data_type: PgType::INT8,
                origin: None,
            });
        }
        if let Some(alias) = alias {
            let aliases: Vec<String> = alias.columns.iter().map(|c| folded(&c.name)).collect();
            rename(&mut columns, &aliases, &alias_name)?;
        }
        Ok(Bound {
            source: Source::Functions {
                calls: set_calls,
                ordinality,
            },
            columns,
            needs,
            alias: alias_name,
            schema: None,
        })
    }

    /// Binds a condition, split at its ANDs.
    pub(super) fn conditions(&mut self, expr: &AstExpr, into: &mut Vec<Condition>) -> Result<()> {
        match expr {
            AstExpr::Nested(inner)
                if matches!(
                    inner.as_ref(),
                    AstExpr::BinaryOp {
                        op: BinaryOperator::And,
                        ..
                    }
                ) =>
            {
                self.conditions(inner, into)
            }
            AstExpr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.conditions(left, into)?;
                self.conditions(right, into)
            }
            AstExpr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                let (left, left_uses) = self.tracked(left)?;
                let (right, right_uses) = self.tracked(right)?;
                let (left, right) = coerce_pair(left, right, "=", self)?;
                let hashable = can_hash(&left, &right);
                let uses = left_uses.union(&right_uses).copied().collect();
                let sides = (
                    Side {
                        expr: left.expr.clone(),
                        uses: left_uses,
                    },
                    Side {
                        expr: right.expr.clone(),
                        uses: right_uses,
                    },
                );
                into.push(Condition {
                    expr: Expr::Compare(
                        Comparison::Equal,
                        Box::new(left.expr),
                        Box::new(right.expr),
                    ),
                    uses,
                    equality: hashable.then_some(sides),
                });
                Ok(())
            }
            other => {
                let (typed, uses) = self.tracked(other)?;
                into.push(Condition {
                    expr: require_boolean(typed, self)?.expr,
                    uses,
                    equality: None,
                });
                Ok(())
            }
        }
    }

    /// A condition in one piece.
    pub(super) fn condition(&mut self, expr: &AstExpr) -> Result<Expr> {
        let typed = self.expr(expr)?;
        Ok(require_boolean(typed, self)?.expr)
    }
}

/// Values of these types are equal exactly when they hash alike.
fn can_hash(left: &Typed, right: &Typed) -> bool {
    (left.data_type.is_integer() && right.data_type.is_integer())
        || (left.data_type.is_text() && right.data_type.is_text())
}

/// A catalog relation by name; `pg_catalog` is searched first.
pub(crate) fn find_relation(
    schema: Option<&str>,
    name: &str,
    search_path: &[String],
) -> Option<Arc<Relation>> {
    let found = match schema {
        Some(schema) => relations::relation(schema, name),
        None => relations::relation("pg_catalog", name).or_else(|| {
            search_path
                .iter()
                .find_map(|schema| relations::relation(schema, name))
        }),
    };
    found.cloned()
}

fn relation_columns(relation: &Relation) -> Vec<Column> {
    let mut columns: Vec<Column> = relation
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| Column {
            name: column.name.to_owned(),
            data_type: column.data_type,
            origin: Some((relation.oid, at as i16 + 1)),
        })
        .collect();
    if relation.has_table_oid() {
        columns.push(Column {
            name: "tableoid".to_owned(),
            data_type: PgType::OID,
            origin: None,
        });
    }
    columns
}
