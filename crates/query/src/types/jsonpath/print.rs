//! The text form of paths.

use std::fmt::Write as _;

use super::super::json::quote;
use super::{Chain, Item, JsonPath, Operator};

impl JsonPath {
    /// Appends the text form.
    pub fn write(&self, out: &mut String) {
        if !self.lax {
            out.push_str("strict ");
        }
        write_chain(&self.root, true, out);
    }
}

/// How tightly an item holds its operands.
const fn priority(item: Option<&Item>) -> u8 {
    match item {
        Some(Item::Binary(operator, _)) => match operator {
            Operator::Or => 0,
            Operator::And => 1,
            Operator::Add | Operator::Subtract => 3,
            Operator::Multiply | Operator::Divide | Operator::Modulo => 4,
            _ => 2,
        },
        Some(Item::Plus(_) | Item::Minus(_)) => 5,
        _ => 6,
    }
}

/// Writes an operand, in parentheses where it holds no tighter than its operator.
fn write_operand(chain: &Chain, operator: &Item, out: &mut String) {
    let brackets = priority(chain.items.first()) <= priority(Some(operator));
    write_chain(chain, brackets, out);
}

fn write_chain(chain: &Chain, brackets: bool, out: &mut String) {
    for (place, item) in chain.items.iter().enumerate() {
        let followed = place + 1 < chain.items.len();
        write_item(item, place > 0, followed, brackets || place > 0, out);
    }
}

fn write_item(item: &Item, in_key: bool, followed: bool, brackets: bool, out: &mut String) {
    let open = |out: &mut String| {
        if brackets {
            out.push('(');
        }
    };
    let close = |out: &mut String| {
        if brackets {
            out.push(')');
        }
    };
    let dot = |out: &mut String| {
        if in_key {
            out.push('.');
        }
    };
    match item {
        Item::Null => out.push_str("null"),
        Item::Bool(true) => out.push_str("true"),
        Item::Bool(false) => out.push_str("false"),
        Item::Number(number) => {
            if followed {
                out.push('(');
            }
            let _ = write!(out, "{number}");
            if followed {
                out.push(')');
            }
        }
        Item::String(text) => quote(text, out),
        Item::Variable(name) => {
            out.push('$');
            quote(name, out);
        }
        Item::Root => out.push('$'),
        Item::Current => out.push('@'),
        Item::Last => out.push_str("last"),
        Item::Key(name) => {
            dot(out);
            quote(name, out);
        }
        Item::AnyKey => {
            dot(out);
            out.push('*');
        }
        Item::AnyArray => out.push_str("[*]"),
        Item::Subscripts(subscripts) => {
            out.push('[');
            for (place, (from, to)) in subscripts.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_chain(from, false, out);
                if let Some(to) = to {
                    out.push_str(" to ");
                    write_chain(to, false, out);
                }
            }
            out.push(']');
        }
        Item::Any { first, last } => {
            dot(out);
            // Writing to a string cannot fail.
            let _ = match (*first, *last) {
                (0, u32::MAX) => write!(out, "**"),
                (u32::MAX, u32::MAX) => write!(out, "**{{last}}"),
                (first, last) if first == last => write!(out, "**{{{first}}}"),
                (u32::MAX, last) => write!(out, "**{{last to {last}}}"),
                (first, u32::MAX) => write!(out, "**{{{first} to last}}"),
                (first, last) => write!(out, "**{{{first} to {last}}}"),
            };
        }
        Item::Method(method) => {
            out.push('.');
            out.push_str(method.name());
            out.push_str("()");
        }
        Item::Datetime(template) => {
            out.push_str(".datetime(");
            if let Some(template) = template {
                quote(template, out);
            }
            out.push(')');
        }
        Item::Filter(predicate) => within("?(", predicate, ")", out),
        Item::Not(predicate) => within("!(", predicate, ")", out),
        Item::IsUnknown(predicate) => within("(", predicate, ") is unknown", out),
        Item::Exists(path) => within("exists (", path, ")", out),
        Item::Binary(operator, sides) => {
            open(out);
            write_operand(&sides.0, item, out);
            out.push(' ');
            out.push_str(operator.name());
            out.push(' ');
            write_operand(&sides.1, item, out);
            close(out);
        }
        Item::Plus(operand) | Item::Minus(operand) => {
            open(out);
            out.push(if matches!(item, Item::Plus(_)) {
                '+'
            } else {
                '-'
            });
            write_operand(operand, item, out);
            close(out);
        }
        Item::LikeRegex(operand, pattern) => {
            open(out);
            write_operand(operand, item, out);
            out.push_str(" like_regex ");
            quote(pattern.text(), out);
            let flags = pattern.flags();
            if !flags.is_empty() {
                let _ = write!(out, " flag \"{flags}\"");
            }
            close(out);
        }
    }
}

fn within(before: &str, chain: &Chain, after: &str, out: &mut String) {
    out.push_str(before);
    write_chain(chain, false, out);
    out.push_str(after);
}
