//! Queries within expressions.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::SubLink;
use pg_raw_parse::raw::SubLinkType;

use super::Analyzer;
use super::order::check_equality;
use crate::error::{QueryError, Result};
use crate::tree::{Expr, ExprKind, Query, Subquery, SubqueryKind};
use crate::types::{self, format_type, ids};

impl Analyzer<'_> {
    pub(super) fn subquery(&mut self, link: &SubLink) -> Result<Expr> {
        let location = link.location;
        let test = match link.testexpr() {
            Node::None => None,
            node => Some(self.expr(node)?),
        };
        let query = self.linked_query(link)?;
        let width = query.columns().len();
        let (kind, oid, modifier) = match link.sub_link_type {
            SubLinkType::EXISTS_SUBLINK => (SubqueryKind::Exists, ids::BOOL, -1),
            SubLinkType::EXPR_SUBLINK | SubLinkType::ARRAY_SUBLINK => {
                if width != 1 {
                    return Err(
                        QueryError::new("42601", "subquery must return only one column")
                            .at(location),
                    );
                }
                let column = &query.columns()[0];
                if link.sub_link_type == SubLinkType::ARRAY_SUBLINK {
                    let is_array = types::element_of(column.oid).is_some();
                    let array = if is_array {
                        column.oid
                    } else {
                        types::array_of(column.oid)
                    };
                    if array == 0 {
                        return Err(QueryError::new(
                            "42704",
                            format!(
                                "could not find array type for data type {}",
                                format_type(column.oid, -1)
                            ),
                        )
                        .at(location));
                    }
                    (SubqueryKind::Array, array, column.modifier)
                } else {
                    (SubqueryKind::Scalar, column.oid, column.modifier)
                }
            }
            SubLinkType::ANY_SUBLINK | SubLinkType::ALL_SUBLINK => {
                let sign = link
                    .oper_name()
                    .iter()
                    .filter_map(Node::as_str)
                    .next_back()
                    .unwrap_or("=");
                let Some(left) = test else {
                    return Err(QueryError::internal("ANY compares something"));
                };
                let test = self.row_test(left, sign, &query, location)?;
                let kind = match link.sub_link_type {
                    SubLinkType::ANY_SUBLINK => SubqueryKind::Any,
                    _ => SubqueryKind::All,
                };
                let subquery = Subquery {
                    kind,
                    query,
                    test: Some(test),
                };
                return Ok(Expr::new(
                    ExprKind::Subquery(Box::new(subquery)),
                    ids::BOOL,
                    location,
                ));
            }
            _ => return Err(QueryError::internal("a subquery of an unknown kind")),
        };
        let subquery = Subquery {
            kind,
            query,
            test: None,
        };
        Ok(
            Expr::new(ExprKind::Subquery(Box::new(subquery)), oid, location)
                .with_modifier(modifier),
        )
    }

    fn linked_query(&mut self, link: &SubLink) -> Result<Query> {
        match link.subselect() {
            Node::SelectStmt(select) => self.query(select, None),
            _ => Err(QueryError::unsupported(
                "a change of rows is not supported in an expression",
                "Make the change in WITH.",
            )
            .at(link.location)),
        }
    }

    /// `(a, b) op (SELECT …)`
    pub(super) fn row_subquery(
        &mut self,
        left: Expr,
        sign: &str,
        link: &SubLink,
        location: i32,
    ) -> Result<Expr> {
        let query = self.linked_query(link)?;
        let test = self.row_test(left, sign, &query, location)?;
        let subquery = Subquery {
            kind: SubqueryKind::Row,
            query,
            test: Some(test),
        };
        Ok(Expr::new(
            ExprKind::Subquery(Box::new(subquery)),
            ids::BOOL,
            location,
        ))
    }

    /// What is asked of each row: the left side against its columns.
    fn row_test(&mut self, left: Expr, sign: &str, query: &Query, location: i32) -> Result<Expr> {
        let lefts = match left.kind {
            ExprKind::Row(parts) => parts,
            kind => vec![Expr { kind, ..left }],
        };
        let columns = query.columns();
        let message = match lefts.len().cmp(&columns.len()) {
            std::cmp::Ordering::Less => Some("subquery has too many columns"),
            std::cmp::Ordering::Greater => Some("subquery has too few columns"),
            std::cmp::Ordering::Equal => None,
        };
        if let Some(message) = message {
            return Err(QueryError::new("42601", message).at(location));
        }
        let rights: Vec<Expr> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                Expr::new(ExprKind::SubqueryColumn(at), column.oid, location)
                    .with_modifier(column.modifier)
            })
            .collect();
        if lefts.len() > 1 {
            for right in &rights {
                check_equality(right)?;
            }
        }
        let test = self.compare_rows(sign, lefts, rights, location)?;
        if test.oid != ids::BOOL {
            return Err(QueryError::new(
                "42804",
                format!(
                    "operator {sign} must return type boolean, not type {}",
                    format_type(test.oid, -1)
                ),
            )
            .at(location));
        }
        Ok(test)
    }
}
