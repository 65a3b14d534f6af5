//! Trees with constants in the places of their parameters, to see whether two trees mean the same.

use crate::analyze::constant_array;
use crate::change::Statement;
use crate::datum::Datum;
use crate::tree::{Expr, ExprKind, Query, RelationKind};
use crate::types;

impl Statement {
    /// Puts constants in the parameters' places, wherever they stand but in changes within WITH.
    /// An array of constants becomes a constant, as analysis makes it of a list behind IN.
    pub fn give(&mut self, values: &[Datum]) {
        match self {
            Self::Query(query) => give_query(query, values),
            Self::Change(change) => {
                change.exprs_mut(&mut |expr| give(expr, values));
                change.queries_mut(&mut |query| give_query(query, values));
            }
        }
    }
}

fn give_query(query: &mut Query, values: &[Datum]) {
    query.exprs_mut(&mut |expr| give(expr, values));
    for relation in &mut query.relations {
        if let RelationKind::Subquery(within, _) = &mut relation.kind {
            give_query(within, values);
        }
    }
    for common in &mut query.with {
        give_query(&mut common.query, values);
    }
}

fn give(expr: &mut Expr, values: &[Datum]) {
    expr.children_mut(&mut |child| give(child, values));
    match &mut expr.kind {
        ExprKind::Parameter(at) => {
            if let Some(value) = values.get(*at) {
                expr.kind = ExprKind::Constant(value.clone());
            }
        }
        ExprKind::Subquery(subquery) => give_query(&mut subquery.query, values),
        ExprKind::Array(elements, false) => {
            if let Some(element) = types::element_of(expr.oid) {
                let elements = std::mem::take(elements);
                expr.kind = constant_array(elements, element, expr.location).kind;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ids;

    #[test]
    fn constants_take_the_parameters_places() {
        let parameter = |at| Expr::new(ExprKind::Parameter(at), ids::INT4, 7);
        let constant = |value| Expr::constant(Datum::Int4(value), ids::INT4);
        let statement = |of: &dyn Fn(usize) -> Expr| {
            let array = ExprKind::Array(vec![of(0), of(1)], false);
            let within = Query {
                filter: Some(Expr::new(array, 1007, 3)),
                ..Query::default()
            };
            let kind = ExprKind::Coalesce(vec![of(1), of(0)]);
            Statement::Query(Box::new(Query {
                limit: Some(of(1)),
                filter: Some(Expr::new(kind, ids::INT4, 5)),
                relations: vec![crate::tree::Relation {
                    kind: RelationKind::Subquery(Box::new(within), false),
                    alias: "q".into(),
                    columns: Vec::new(),
                    reader: None,
                }],
                ..Query::default()
            }))
        };
        let mut given = statement(&parameter);
        let mut expected = statement(&|at| constant([10, 20][at]));
        assert_ne!(format!("{given:?}"), format!("{expected:?}"));
        given.give(&[Datum::Int4(10), Datum::Int4(20)]);
        expected.give(&[]);
        assert_eq!(format!("{given:?}"), format!("{expected:?}"));
        assert!(!format!("{given:?}").contains("Parameter"));
    }
}
