//! How a path walks over a tree.

use std::sync::Arc;

use super::keyvalue::Base;
use super::moment::Moment;
use crate::call::Call;
use crate::error::{QueryError, Result};
use crate::types::json::too_deep;
use crate::types::jsonb::{Jsonb, Pairs};
use crate::types::jsonpath::{Item, JsonPath, Method};
use crate::types::numeric::Numeric;

/// How many items of a path and levels of a tree may be open.
const DEPTH_MAX: usize = 2500;

/// What a path finds.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Json(Jsonb),
    Moment(Moment),
}

impl Value {
    /// As it leaves the path.
    pub(super) fn into_json(self) -> Result<Jsonb> {
        match self {
            Self::Json(value) => Ok(value),
            Self::Moment(moment) => Jsonb::string(moment.text()),
        }
    }

    pub(super) const fn is_array(&self) -> bool {
        matches!(self, Self::Json(Jsonb::Array(_)))
    }

    pub(super) const fn as_number(&self) -> Option<&Numeric> {
        match self {
            Self::Json(Jsonb::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn as_string(&self) -> Option<&str> {
        match self {
            Self::Json(Jsonb::String(text)) => Some(text),
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Json(value) => value.kind(),
            Self::Moment(moment) => moment.type_name(),
        }
    }
}

impl From<Jsonb> for Value {
    fn from(value: Jsonb) -> Self {
        Self::Json(value)
    }
}

/// How a part of a path went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// Something was found.
    Found,
    /// Nothing was.
    Nothing,
    /// An error that is not raised.
    Error,
}

/// The values that were found; `None` where it is only asked whether there are any.
pub(super) type Found = Option<Vec<Value>>;

/// One walk over a tree.
pub(super) struct Execution<'a> {
    pub(super) call: &'a Call<'a>,
    path: &'a JsonPath,
    root: Value,
    variables: Option<&'a Arc<Pairs>>,
    /// What `@` is.
    pub(super) current: Value,
    pub(super) lax: bool,
    /// Structural errors are forgiven.
    pub(super) forgiving: bool,
    /// Errors are raised.
    pub(super) raising: bool,
    /// The session's time zone may be used.
    pub(super) zoned: bool,
    /// The tree in which objects have their numbers (`keyvalue`).
    pub(super) base: Base,
    pub(super) next_base: i64,
    /// The length of the array whose subscripts are computed.
    pub(super) length: i32,
    depth: usize,
    steps: u32,
}

/// The levels of a tree that are looked at.
#[derive(Clone, Copy)]
struct Levels {
    first: u32,
    last: u32,
    /// Structural errors below are forgiven.
    forgiving: bool,
    /// Arrays found are unwrapped.
    unwrap: bool,
}

impl Levels {
    const fn children(unwrap: bool) -> Self {
        Self {
            first: 1,
            last: 1,
            forgiving: false,
            unwrap,
        }
    }
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        call: &'a Call<'a>,
        value: &Jsonb,
        path: &'a JsonPath,
        variables: Option<&'a Arc<Pairs>>,
        raising: bool,
        zoned: bool,
    ) -> Self {
        let root = Value::Json(value.clone());
        Self {
            call,
            path,
            current: root.clone(),
            root,
            variables,
            lax: path.lax,
            forgiving: path.lax,
            raising,
            zoned,
            base: Base::default(),
            next_base: if variables.is_some() { 2 } else { 1 },
            length: -1,
            depth: 0,
            steps: 0,
        }
    }

    /// Whether the path finds anything; `None` after an error.
    pub(super) fn exists(mut self) -> Result<Option<bool>> {
        let path = self.path;
        let root = self.root.clone();
        // In strict mode all must be looked at, to see that there is no error.
        let mut found = if self.lax { None } else { Some(Vec::new()) };
        let status = self.start(&path.root.items, &root, &mut found)?;
        Ok(match (status, found) {
            (Status::Error, _) => None,
            (_, Some(found)) => Some(!found.is_empty()),
            (status, None) => Some(status == Status::Found),
        })
    }

    /// All that the path finds.
    pub(super) fn values(mut self) -> Result<Vec<Value>> {
        let path = self.path;
        let root = self.root.clone();
        let mut found = Some(Vec::new());
        self.start(&path.root.items, &root, &mut found)?;
        Ok(found.unwrap_or_default())
    }

    /// Executes an expression from its first item on.
    pub(super) fn start(
        &mut self,
        items: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        self.run(items, value, found, self.lax)
    }

    /// What an error becomes.
    pub(super) fn fail(&self, error: impl FnOnce() -> QueryError) -> Result<Status> {
        if self.raising {
            Err(error())
        } else {
            Ok(Status::Error)
        }
    }

    /// What an error in the structure becomes.
    pub(super) fn structural(&self, code: &'static str, message: &str) -> Result<Status> {
        if self.forgiving {
            return Ok(Status::Nothing);
        }
        self.fail(|| QueryError::new(code, message))
    }

    /// Goes one step deeper, which is to be undone.
    pub(super) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep());
        }
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(1024) {
            self.call.environment.check_interrupted()?;
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Hands a value to the items that follow; without any, it is found.
    pub(super) fn next(
        &mut self,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        if rest.is_empty() {
            self.add(value, found)?;
            return Ok(Status::Found);
        }
        self.run(rest, value, found, self.lax)
    }

    fn add(&self, value: &Value, found: &mut Found) -> Result<()> {
        if let Some(found) = found {
            if found.len() == found.capacity() {
                self.call
                    .room(found.len().saturating_mul(2 * std::mem::size_of::<Value>()))?;
            }
            found.push(value.clone());
        }
        Ok(())
    }

    /// Executes items for a value. Arrays are unwrapped where the item asks
    /// for it and `unwrap` allows it.
    fn run(
        &mut self,
        items: &[Item],
        value: &Value,
        found: &mut Found,
        unwrap: bool,
    ) -> Result<Status> {
        let Some((item, rest)) = items.split_first() else {
            return self.next(items, value, found);
        };
        self.enter()?;
        let unwraps = unwrap
            && matches!(
                item,
                Item::Key(_)
                    | Item::AnyKey
                    | Item::Filter(_)
                    | Item::Datetime(_)
                    | Item::Method(
                        Method::Abs
                            | Method::Floor
                            | Method::Ceiling
                            | Method::Double
                            | Method::KeyValue
                    )
            );
        let status = match value {
            Value::Json(array @ Jsonb::Array(_)) if unwraps => {
                self.below(items, array, found, 1, Levels::children(false))
            }
            _ => self.item(item, rest, value, found),
        };
        self.leave();
        status
    }

    fn item(
        &mut self,
        item: &Item,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        match item {
            Item::Key(key) => self.key(key, rest, value, found),
            Item::Root => {
                let root = self.root.clone();
                let outer = std::mem::replace(&mut self.base, Base::of(&root, 0));
                let status = self.next(rest, &root, found);
                self.base = outer;
                status
            }
            Item::Current => {
                let current = self.current.clone();
                self.next(rest, &current, found)
            }
            Item::AnyArray => match value {
                Value::Json(array @ Jsonb::Array(_)) => {
                    self.below(rest, array, found, 1, Levels::children(self.lax))
                }
                _ if self.lax => self.next(rest, value, found),
                _ => self.structural(
                    "22039",
                    "jsonpath wildcard array accessor can only be applied to an array",
                ),
            },
            Item::AnyKey => match value {
                Value::Json(object @ Jsonb::Object(_)) => {
                    self.below(rest, object, found, 1, Levels::children(self.lax))
                }
                _ => self.structural(
                    "2203C",
                    "jsonpath wildcard member accessor can only be applied to an object",
                ),
            },
            Item::Subscripts(subscripts) => {
                let length = self.length;
                let status = self.subscripts(subscripts, rest, value, found);
                self.length = length;
                status
            }
            Item::Last => {
                if self.length < 0 {
                    return Err(QueryError::internal(
                        "evaluating jsonpath LAST outside of array subscript",
                    ));
                }
                let last = Jsonb::Number(Numeric::from_i64(i64::from(self.length) - 1));
                self.next(rest, &last.into(), found)
            }
            Item::Any { first, last } => self.any(*first, *last, rest, value, found),
            Item::Filter(predicate) => {
                let outer = std::mem::replace(&mut self.current, value.clone());
                let truth = self.predicate(predicate, value);
                self.current = outer;
                if truth? == Some(true) {
                    self.next(rest, value, found)
                } else {
                    Ok(Status::Nothing)
                }
            }
            Item::Null => self.next(rest, &Jsonb::Null.into(), found),
            Item::Bool(truth) => self.next(rest, &Jsonb::Bool(*truth).into(), found),
            Item::Number(number) => self.next(rest, &Jsonb::Number(number.clone()).into(), found),
            Item::String(text) => self.next(rest, &Jsonb::String(Arc::clone(text)).into(), found),
            Item::Variable(name) => self.variable(name, rest, found),
            Item::Method(Method::Type) => {
                let kind = Jsonb::String(value.kind().into());
                self.next(rest, &kind.into(), found)
            }
            Item::Method(Method::Size) => {
                let size = match value {
                    Value::Json(Jsonb::Array(items)) => items.len(),
                    _ if self.lax => 1,
                    _ => {
                        return self.structural(
                            "22039",
                            "jsonpath item method .size() can only be applied to an array",
                        );
                    }
                };
                let size = Numeric::from_i64(i64::try_from(size).unwrap_or(i64::MAX));
                self.next(rest, &Jsonb::Number(size).into(), found)
            }
            Item::Method(Method::KeyValue) => self.key_values(rest, value, found),
            Item::Method(method) => self.numeric_method(*method, rest, value, found),
            Item::Datetime(template) => self.datetime(template.as_deref(), rest, value, found),
            Item::Binary(operator, sides) if !item.is_predicate() => {
                self.binary(*operator, sides, rest, value, found)
            }
            Item::Plus(operand) => self.unary(false, operand, rest, value, found),
            Item::Minus(operand) => self.unary(true, operand, rest, value, found),
            predicate => {
                let truth = match self.truth(predicate, value)? {
                    Some(truth) => Jsonb::Bool(truth),
                    None => Jsonb::Null,
                };
                self.next(rest, &truth.into(), found)
            }
        }
    }

    fn key(
        &mut self,
        key: &str,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let Value::Json(Jsonb::Object(pairs)) = value else {
            return self.structural(
                "2203A",
                "jsonpath member accessor can only be applied to an object",
            );
        };
        match pairs.get(key) {
            Some(value) => self.next(rest, &value.clone().into(), found),
            None if self.forgiving => Ok(Status::Nothing),
            None => self.fail(|| {
                QueryError::new(
                    "2203A",
                    format!("JSON object does not contain key \"{key}\""),
                )
            }),
        }
    }

    fn variable(&mut self, name: &str, rest: &[Item], found: &mut Found) -> Result<Status> {
        let Some(variables) = self.variables else {
            return self.next(rest, &Jsonb::Null.into(), found);
        };
        let Some(value) = variables.get(name) else {
            return Err(QueryError::new(
                "42704",
                format!("could not find jsonpath variable \"{name}\""),
            ));
        };
        let all = Value::Json(Jsonb::Object(Arc::clone(variables)));
        let outer = std::mem::replace(&mut self.base, Base::of(&all, 1));
        let status = self.next(rest, &value.clone().into(), found);
        self.base = outer;
        status
    }

    fn any(
        &mut self,
        first: u32,
        last: u32,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let mut status = Status::Nothing;
        if first == 0 {
            let forgiving = std::mem::replace(&mut self.forgiving, true);
            let itself = self.next(rest, value, found);
            self.forgiving = forgiving;
            status = itself?;
            if status == Status::Found && found.is_none() {
                return Ok(status);
            }
        }
        match value {
            Value::Json(container @ (Jsonb::Array(_) | Jsonb::Object(_))) => {
                let levels = Levels {
                    first,
                    last,
                    forgiving: true,
                    unwrap: self.lax,
                };
                self.below(rest, container, found, 1, levels)
            }
            _ => Ok(status),
        }
    }

    /// Executes items for what is in a container, level by level.
    fn below(
        &mut self,
        items: &[Item],
        container: &Jsonb,
        found: &mut Found,
        level: u32,
        levels: Levels,
    ) -> Result<Status> {
        if level > levels.last {
            return Ok(Status::Nothing);
        }
        self.enter()?;
        let mut status = Status::Nothing;
        match container {
            Jsonb::Array(values) => {
                for value in values.iter() {
                    if self.visit(items, value, found, level, levels, &mut status)? {
                        break;
                    }
                }
            }
            Jsonb::Object(pairs) => {
                for (_, value) in pairs.iter() {
                    if self.visit(items, value, found, level, levels, &mut status)? {
                        break;
                    }
                }
            }
            _ => {}
        }
        self.leave();
        Ok(status)
    }

    /// One value of a container, and what is in it; whether this is the end of the walk.
    fn visit(
        &mut self,
        items: &[Item],
        value: &Jsonb,
        found: &mut Found,
        level: u32,
        levels: Levels,
        status: &mut Status,
    ) -> Result<bool> {
        let leaves = levels.first == u32::MAX && levels.last == u32::MAX;
        if level >= levels.first || (leaves && value.is_scalar()) {
            let value = Value::Json(value.clone());
            if items.is_empty() {
                if found.is_none() {
                    *status = Status::Found;
                    return Ok(true);
                }
                self.add(&value, found)?;
            } else {
                let forgiving = self.forgiving;
                self.forgiving |= levels.forgiving;
                let ran = self.run(items, &value, found, levels.unwrap);
                self.forgiving = forgiving;
                *status = ran?;
                if ends(*status, found) {
                    return Ok(true);
                }
            }
        }
        if level < levels.last && !value.is_scalar() {
            *status = self.below(items, value, found, level + 1, levels)?;
            if ends(*status, found) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// As [`Self::start`], with arrays among what is found unwrapped in lax mode.
    pub(super) fn operand(
        &mut self,
        items: &[Item],
        value: &Value,
        unwrap: bool,
    ) -> Result<Option<Vec<Value>>> {
        let mut found = Some(Vec::new());
        if self.start(items, value, &mut found)? == Status::Error {
            return Ok(None);
        }
        let values = found.unwrap_or_default();
        if !(unwrap && self.lax && values.iter().any(Value::is_array)) {
            return Ok(Some(values));
        }
        let mut unwrapped = Some(Vec::new());
        for value in &values {
            match value {
                Value::Json(Jsonb::Array(items)) => {
                    for item in items.iter() {
                        self.add(&item.clone().into(), &mut unwrapped)?;
                    }
                }
                value => self.add(value, &mut unwrapped)?,
            }
        }
        Ok(unwrapped)
    }
}

/// Whether a walk ends: after an error, or where one value is enough.
pub(super) fn ends(status: Status, found: &Found) -> bool {
    status == Status::Error || (status == Status::Found && found.is_none())
}
