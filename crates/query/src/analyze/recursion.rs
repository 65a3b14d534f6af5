//! WITH RECURSIVE before its analysis: in which order its queries are taken, and where a query may
//! refer to itself. Asked of the syntax alone, as PostgreSQL does it.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{CommonTableExpr, JoinExpr, SelectStmt, SubLink, WithClause};
use pg_raw_parse::raw::{JoinType, SetOperation};
use pg_raw_parse::walk::{Recurse, walk_manual};

use crate::error::{QueryError, Result};

/// Where a reference stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is counted only.
    Anywhere,
    Recursive,
    NonRecursiveTerm,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl Place {
    const fn forbidden(self) -> Option<&'static str> {
        match self {
            Self::Anywhere | Self::Recursive => None,
            Self::NonRecursiveTerm => Some("its non-recursive term"),
            Self::Subquery => Some("a subquery"),
            Self::OuterJoin => Some("an outer join"),
            Self::Intersect => Some("INTERSECT"),
            Self::Except => Some("EXCEPT"),
        }
    }
}

/// Looks for references to a query of a WITH.
struct References<'a> {
    name: &'a str,
    place: Place,
    /// Within queries of a WITH further in that have the same name.
    hidden: usize,
    count: usize,
    error: Option<QueryError>,
}

impl<'a> References<'a> {
    const fn new(name: &'a str, place: Place) -> Self {
        Self {
            name,
            place,
            hidden: 0,
            count: 0,
            error: None,
        }
    }

    fn at(&mut self, place: Place, look: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.place, place);
        look(self);
        self.place = before;
    }

    fn children(&mut self, node: Node<'_>) {
        walk_manual::<()>(node, |child| {
            self.node(child);
            Recurse::no()
        });
    }

    fn node(&mut self, node: Node<'_>) {
        match node {
            Node::RangeVar(range) => {
                let is_it = range.schemaname().is_none() && range.relname() == Some(self.name);
                if is_it && self.hidden == 0 {
                    self.found(range.location);
                }
            }
            Node::SelectStmt(select) => self.select(select),
            // A WITH is seen with its query.
            Node::WithClause(_) | Node::None => {}
            Node::JoinExpr(join) if self.place != Place::Anywhere => self.join(join),
            Node::SubLink(link) if self.place != Place::Anywhere => self.link(link),
            other => self.children(other),
        }
    }

    fn found(&mut self, location: i32) {
        self.count += 1;
        if self.error.is_some() || self.place == Place::Anywhere {
            return;
        }
        let name = self.name;
        let message = match self.place.forbidden() {
            Some(place) => {
                format!("recursive reference to query \"{name}\" must not appear within {place}")
            }
            None if self.count > 1 => {
                format!("recursive reference to query \"{name}\" must not appear more than once")
            }
            None => return,
        };
        self.error = Some(QueryError::new("42P19", message).at(location));
    }

    fn select(&mut self, select: &SelectStmt) {
        let Some(with) = select.with_clause() else {
            return self.sides(select);
        };
        let named = |common: &CommonTableExpr| common.ctename() == Some(self.name);
        let hides = with.ctes().iter().any(named);
        let before = self.hidden;
        if with.recursive && hides {
            self.hidden += 1;
        }
        for common in with.ctes().iter() {
            self.node(common.ctequery());
            if !with.recursive && common.ctename() == Some(self.name) {
                self.hidden += 1;
            }
        }
        self.sides(select);
        self.hidden = before;
    }

    fn sides(&mut self, select: &SelectStmt) {
        let (Some(left), Some(right)) = (select.larg(), select.rarg()) else {
            return self.children(Node::SelectStmt(select));
        };
        let (of_left, of_right) = match (self.place, select.op) {
            (Place::Recursive, SetOperation::SETOP_INTERSECT) if select.all => {
                (Place::Intersect, Place::Intersect)
            }
            (Place::Recursive, SetOperation::SETOP_EXCEPT) if select.all => {
                (Place::Except, Place::Except)
            }
            (Place::Recursive, SetOperation::SETOP_EXCEPT) => (self.place, Place::Except),
            (place, _) => (place, place),
        };
        self.at(of_left, |this| this.select(left));
        self.at(of_right, |this| this.select(right));
        for sort in select.sort_clause().iter() {
            self.children(Node::SortBy(sort));
        }
        for count in [select.limit_count(), select.limit_offset()] {
            self.node(count);
        }
    }

    fn join(&mut self, join: &JoinExpr) {
        let outer = |outer: bool, this: &Self| match (outer, this.place) {
            (true, Place::Recursive) => Place::OuterJoin,
            (_, place) => place,
        };
        let (left, right) = match join.jointype {
            JoinType::JOIN_LEFT => (false, true),
            JoinType::JOIN_RIGHT => (true, false),
            JoinType::JOIN_FULL => (true, true),
            _ => (false, false),
        };
        let (left, right) = (outer(left, self), outer(right, self));
        self.at(left, |this| this.node(join.larg()));
        self.at(right, |this| this.node(join.rarg()));
        self.node(join.quals());
    }

    fn link(&mut self, link: &SubLink) {
        self.at(Place::Subquery, |this| this.node(link.subselect()));
        self.node(link.testexpr());
    }
}

/// Whether a query refers to the query of a WITH of this name.
fn refers(query: Node<'_>, name: &str) -> bool {
    let mut references = References::new(name, Place::Anywhere);
    references.node(query);
    references.count > 0
}

/// The queries of a WITH in the order in which they can be analysed, and whether each refers to
/// itself.
pub(super) fn ordered(with: &WithClause) -> Result<Vec<(&CommonTableExpr, bool)>> {
    let all: Vec<&CommonTableExpr> = with.ctes().iter().collect();
    if !with.recursive {
        return Ok(all.into_iter().map(|common| (common, false)).collect());
    }
    let refers_to = |common: &CommonTableExpr, other: &CommonTableExpr| {
        refers(common.ctequery(), other.ctename().unwrap_or_default())
    };
    let mut ordered = Vec::with_capacity(all.len());
    let mut left: Vec<usize> = (0..all.len()).collect();
    while !left.is_empty() {
        let free = left.iter().position(|at| {
            left.iter()
                .all(|other| other == at || !refers_to(all[*at], all[*other]))
        });
        let Some(free) = free else {
            let first = all[left[0]];
            return Err(QueryError::unsupported(
                "mutual recursion between WITH items is not implemented",
                "Make one recursive item with a column that tells its parts apart.",
            )
            .at(first.location));
        };
        let common = all[left.remove(free)];
        ordered.push((common, refers_to(common, common)));
    }
    for (common, recursive) in &ordered {
        if *recursive {
            well_formed(common)?;
        }
    }
    Ok(ordered)
}

/// A recursive query is a UNION whose right side refers to it once.
fn well_formed(common: &CommonTableExpr) -> Result<()> {
    let name = common.ctename().unwrap_or_default();
    let Node::SelectStmt(select) = common.ctequery() else {
        return Ok(());
    };
    let (SetOperation::SETOP_UNION, Some(left), Some(right)) =
        (select.op, select.larg(), select.rarg())
    else {
        return Err(QueryError::new(
            "42P19",
            format!("recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"),
        )
        .at(common.location));
    };
    let mut references = References::new(name, Place::NonRecursiveTerm);
    references.select(left);
    references.at(Place::Recursive, |this| this.select(right));
    if let Some(with) = select.with_clause() {
        references.at(Place::Subquery, |this| {
            for common in with.ctes().iter() {
                this.node(common.ctequery());
            }
        });
    }
    if let Some(error) = references.error {
        return Err(error);
    }
    let clauses = [
        (!select.sort_clause().is_empty(), "ORDER BY"),
        (!matches!(select.limit_offset(), Node::None), "OFFSET"),
        (!matches!(select.limit_count(), Node::None), "LIMIT"),
        (!select.locking_clause().is_empty(), "FOR UPDATE/SHARE"),
    ];
    match clauses.iter().find(|(written, _)| *written) {
        Some((_, clause)) => Err(QueryError::unsupported(
            format!("{clause} in a recursive query is not implemented"),
            "Write the clause in the query that reads the WITH item.",
        )
        .at(common.location)),
        None => Ok(()),
    }
}
