//! From tokens to what is to be matched, and to the tree by which a match is
//! taken apart. Which parts prefer long matches and which short ones, and in
//! what order parts take their share, follows PostgreSQL's rules: a branch is
//! split where something captures, refers back, or changes the preference.

use std::collections::HashMap;

use super::lex::{
    BAD_CLASS, BAD_COLLATION, BAD_COUNT, BAD_OPERAND, BAD_PARENTHESES, BAD_RANGE, BAD_REFERENCE,
    Fault, Flags, Lexer, LookKind, TOO_BIG, Token,
};
use super::set::{Class, Set, element};

/// The greatest count of a bound; one more stands for no bound.
const COUNT_MAX: u32 = 255;
pub(super) const UNBOUNDED: u32 = COUNT_MAX + 1;
/// So deep may parentheses and parts be within each other.
const DEPTH_MAX: usize = 500;

/// The number of a piece of pattern.
pub(super) type Id = usize;

/// What must be before or after a place: a character of a set or, if so, the text's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Side {
    pub(super) set: usize,
    pub(super) end: bool,
}

/// A piece of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Empty,
    /// A character of a set.
    Set(usize),
    /// What is before and what is after here.
    Assert(Option<Side>, Option<Side>),
    /// What a pattern of its own finds from here.
    Look(usize),
    Sequence(Vec<Id>),
    Choice(Vec<Id>),
    Repeat(Id, u32, u32),
    /// What a group may match: that it is the same is seen to elsewhere.
    Reference(u32),
}

/// Prefers longer matches.
pub(super) const LONGER: u8 = 1;
/// Prefers shorter matches.
pub(super) const SHORTER: u8 = 2;
/// Has both preferences within.
const MIXED: u8 = 4;
/// Captures.
const CAPTURES: u8 = 8;
/// Refers back.
pub(super) const REFERS: u8 = 16;

/// What of a part's flags holds of what it is part of.
const fn up(flags: u8) -> u8 {
    let both = LONGER | SHORTER;
    let mixed = if flags & both == both { MIXED } else { 0 };
    flags & (MIXED | CAPTURES | REFERS) | mixed
}

const fn is_messy(flags: u8) -> bool {
    flags & (MIXED | CAPTURES | REFERS) != 0
}

const fn preference(flags: u8) -> u8 {
    flags & (LONGER | SHORTER)
}

const fn combined(first: u8, second: u8) -> u8 {
    let preferred = if preference(first) != 0 {
        preference(first)
    } else {
        preference(second)
    };
    up(first | second) | preferred
}

/// How a part of a match is taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Not at all.
    Leaf,
    /// A text that a group matched, so many times.
    Reference { group: u32, least: u32, most: u32 },
    /// Two parts after each other.
    Pair,
    /// The first of its parts that matches.
    Choice,
    /// One part so many times.
    Repeat { least: u32, most: u32 },
    /// One part, which captures itself.
    Wrapper,
}

/// A part of the tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) shape: Shape,
    pub(super) flags: u8,
    /// The group that it captures; 0 for none.
    pub(super) group: u32,
    pub(super) children: Vec<usize>,
    /// What it matches.
    pub(super) piece: Id,
}

/// A pattern that looks around.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) kind: LookKind,
    pub(super) piece: Id,
}

/// A pattern that has been read.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) sets: Vec<Set>,
    pub(super) pieces: Vec<Piece>,
    pub(super) looks: Vec<Look>,
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
    /// What each group matches, from the first.
    pub(super) groups: Vec<Option<Id>>,
    /// Whether anything refers back.
    pub(super) refers: bool,
}

/// A part of a branch, with its quantifier.
#[derive(Debug)]
enum Item {
    /// Takes nothing, or is not split in any case.
    Plain(Id),
    Atom {
        piece: Id,
        /// Its part of the tree, where it is of several.
        node: Option<usize>,
        /// The group it is or refers to.
        kind: AtomKind,
        least: u32,
        most: u32,
        preference: u8,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AtomKind {
    Simple,
    Captures,
    Refers(u32),
}

pub(super) struct Parser {
    lexer: Lexer,
    parsed: Parsed,
    known: HashMap<Set, usize>,
    depth: usize,
}

/// Reads a pattern.
pub(super) fn parse(pattern: &str, flags: Flags) -> Result<(Parsed, Flags), Fault> {
    let mut parser = Parser {
        lexer: Lexer::new(pattern, flags)?,
        parsed: Parsed {
            groups: vec![None],
            ..Parsed::default()
        },
        known: HashMap::new(),
        depth: 0,
    };
    parser.parsed.root = parser.choice(Token::End, false)?;
    Ok((parser.parsed, parser.lexer.flags))
}

impl Parser {
    fn piece(&mut self, piece: Piece) -> Id {
        self.parsed.pieces.push(piece);
        self.parsed.pieces.len() - 1
    }

    fn set(&mut self, set: Set) -> usize {
        let sets = &mut self.parsed.sets;
        *self.known.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            sets.len() - 1
        })
    }

    fn node(&mut self, shape: Shape, flags: u8, children: Vec<usize>, piece: Id) -> usize {
        self.parsed.nodes.push(Node {
            shape,
            flags,
            group: 0,
            children,
            piece,
        });
        self.parsed.nodes.len() - 1
    }

    fn flags_of(&self, node: usize) -> u8 {
        self.parsed.nodes[node].flags
    }

    /// Branches with `|` between them.
    fn choice(&mut self, stopper: Token, within_look: bool) -> Result<usize, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TOO_BIG);
        }
        let mut flags = LONGER;
        let mut branches = Vec::new();
        loop {
            let items = self.items(stopper, within_look)?;
            let branch = self.branch(items)?;
            flags |= up(flags | self.flags_of(branch));
            branches.push(branch);
            if self.lexer.next != Token::Alternative {
                break;
            }
            self.lexer.advance()?;
        }
        if self.lexer.next != stopper {
            return Err(BAD_PARENTHESES);
        }
        self.depth -= 1;
        if let [only] = *branches {
            return Ok(only);
        }
        let pieces = branches.iter().map(|node| self.parsed.nodes[*node].piece);
        let pieces = pieces.collect();
        let piece = self.piece(Piece::Choice(pieces));
        if is_messy(flags) {
            Ok(self.node(Shape::Choice, flags, branches, piece))
        } else {
            Ok(self.node(Shape::Leaf, flags, Vec::new(), piece))
        }
    }

    fn items(&mut self, stopper: Token, within_look: bool) -> Result<Vec<Item>, Fault> {
        let mut items = Vec::new();
        while self.lexer.next != Token::Alternative
            && self.lexer.next != stopper
            && self.lexer.next != Token::End
        {
            items.push(self.item(within_look)?);
        }
        Ok(items)
    }

    fn newline(&mut self) -> usize {
        self.set(Set::range(10, 10))
    }

    fn nothing(&mut self) -> usize {
        self.set(Set::default())
    }

    fn words(&mut self) -> (Side, Side) {
        let word = Class::Word.set(self.lexer.flags.any_case);
        let other = self.set(word.complement());
        let set = self.set(word);
        (
            Side { set, end: false },
            Side {
                set: other,
                end: true,
            },
        )
    }

    /// A constraint that a token stands for.
    fn constraint(&mut self, token: Token) -> Option<Id> {
        let anchors = self.lexer.flags.newline_anchors;
        let line = |parser: &mut Self| Side {
            set: if anchors {
                parser.newline()
            } else {
                parser.nothing()
            },
            end: true,
        };
        let text = |parser: &mut Self| Side {
            set: parser.nothing(),
            end: true,
        };
        let piece = match token {
            Token::LineStart => Piece::Assert(Some(line(self)), None),
            Token::LineEnd => Piece::Assert(None, Some(line(self))),
            Token::TextStart => Piece::Assert(Some(text(self)), None),
            Token::TextEnd => Piece::Assert(None, Some(text(self))),
            Token::WordStart | Token::WordEnd | Token::WordBoundary | Token::NoWordBoundary => {
                let (word, other) = self.words();
                let start = Piece::Assert(Some(other), Some(word));
                let end = Piece::Assert(Some(word), Some(other));
                match token {
                    Token::WordStart => start,
                    Token::WordEnd => end,
                    Token::WordBoundary => Piece::Choice(vec![self.piece(start), self.piece(end)]),
                    _ => {
                        let inside = self.piece(Piece::Assert(Some(word), Some(word)));
                        let outside = self.piece(Piece::Assert(Some(other), Some(other)));
                        Piece::Choice(vec![inside, outside])
                    }
                }
            }
            _ => return None,
        };
        Some(self.piece(piece))
    }

    fn look(&mut self, kind: LookKind) -> Result<Item, Fault> {
        self.lexer.advance()?;
        let node = self.choice(Token::Close, true)?;
        self.lexer.advance()?;
        let piece = self.parsed.nodes[node].piece;
        // A single character is looked at without a pattern of its own.
        if let Piece::Set(set) = self.parsed.pieces[piece] {
            let side = if kind.negative {
                let others = self.parsed.sets[set].complement();
                Side {
                    set: self.set(others),
                    end: true,
                }
            } else {
                Side { set, end: false }
            };
            let assert = if kind.ahead {
                Piece::Assert(None, Some(side))
            } else {
                Piece::Assert(Some(side), None)
            };
            return Ok(Item::Plain(self.piece(assert)));
        }
        self.parsed.looks.push(Look { kind, piece });
        let look = self.parsed.looks.len() - 1;
        Ok(Item::Plain(self.piece(Piece::Look(look))))
    }

    /// An atom or a constraint, and the atom's quantifier.
    fn item(&mut self, within_look: bool) -> Result<Item, Fault> {
        let token = self.lexer.next;
        if let Some(piece) = self.constraint(token) {
            self.lexer.advance()?;
            return Ok(Item::Plain(piece));
        }
        if let Token::Look(kind) = token {
            return self.look(kind);
        }
        let any_case = self.lexer.flags.any_case;
        let mut node = None;
        let mut kind = AtomKind::Simple;
        let piece = match token {
            Token::Close if self.lexer.flags.advanced || !self.lexer.flags.extended => {
                return Err(BAD_PARENTHESES);
            }
            Token::Close => self.one(Set::range(0x29, 0x29))?,
            Token::Plain(c) => self.one(Set::of_char(c, any_case))?,
            Token::Class(class) => self.one(class.set(any_case))?,
            Token::NotClass(class) => self.one(class.set(any_case).complement())?,
            Token::Dot if self.lexer.flags.newline_stops => {
                self.one(Set::range(10, 10).complement())?
            }
            Token::Dot => self.one(Set::everything())?,
            Token::BracketOpen(positive) => {
                let set = self.bracket(positive)?;
                self.one(set)?
            }
            Token::Open(captures) => {
                let captures = captures && !within_look;
                let inner = self.group(captures, within_look)?;
                if captures {
                    kind = AtomKind::Captures;
                }
                node = Some(inner);
                self.parsed.nodes[inner].piece
            }
            Token::Reference(group) => {
                let known = usize::try_from(group).ok();
                let known = known.and_then(|at| self.parsed.groups.get(at).copied().flatten());
                if within_look || known.is_none() {
                    return Err(BAD_REFERENCE);
                }
                self.lexer.advance()?;
                self.parsed.refers = true;
                kind = AtomKind::Refers(group);
                self.piece(Piece::Reference(group))
            }
            _ => return Err(BAD_OPERAND),
        };
        let (least, most, preference) = self.quantifier()?;
        if most == 0 {
            return Ok(Item::Plain(self.piece(Piece::Empty)));
        }
        Ok(Item::Atom {
            piece,
            node,
            kind,
            least,
            most,
            preference,
        })
    }

    fn one(&mut self, set: Set) -> Result<Id, Fault> {
        self.lexer.advance()?;
        let set = self.set(set);
        Ok(self.piece(Piece::Set(set)))
    }

    /// What is in parentheses.
    fn group(&mut self, captures: bool, within_look: bool) -> Result<usize, Fault> {
        let mut group = 0;
        if captures {
            self.lexer.captures += 1;
            group = self.lexer.captures;
            self.parsed.groups.push(None);
        }
        self.lexer.advance()?;
        let mut node = self.choice(Token::Close, within_look)?;
        self.lexer.advance()?;
        if captures {
            if self.parsed.nodes[node].group != 0 {
                let (flags, piece) = (self.flags_of(node), self.parsed.nodes[node].piece);
                node = self.node(Shape::Wrapper, flags, vec![node], piece);
            }
            let piece = self.parsed.nodes[node].piece;
            self.parsed.nodes[node].flags |= CAPTURES;
            self.parsed.nodes[node].group = group;
            if let Some(known) = usize::try_from(group)
                .ok()
                .and_then(|at| self.parsed.groups.get_mut(at))
            {
                *known = Some(piece);
            }
        }
        Ok(node)
    }

    fn quantifier(&mut self) -> Result<(u32, u32, u8), Fault> {
        let prefer = |greedy: bool| if greedy { LONGER } else { SHORTER };
        let found = match self.lexer.next {
            Token::Star(greedy) => (0, UNBOUNDED, prefer(greedy)),
            Token::Plus(greedy) => (1, UNBOUNDED, prefer(greedy)),
            Token::Question(greedy) => (0, 1, prefer(greedy)),
            Token::BraceOpen => {
                self.lexer.advance()?;
                let least = self.count()?;
                let mut most = least;
                let ranged = self.lexer.next == Token::Comma;
                if ranged {
                    self.lexer.advance()?;
                    most = if let Token::Digit(_) = self.lexer.next {
                        self.count()?
                    } else {
                        UNBOUNDED
                    };
                    if least > most {
                        return Err(BAD_COUNT);
                    }
                }
                let Token::BraceClose(greedy) = self.lexer.next else {
                    return Err(BAD_COUNT);
                };
                (least, most, if ranged { prefer(greedy) } else { 0 })
            }
            _ => return Ok((1, 1, 0)),
        };
        self.lexer.advance()?;
        Ok(found)
    }

    fn count(&mut self) -> Result<u32, Fault> {
        let mut count = 0;
        while let Token::Digit(digit) = self.lexer.next
            && count < COUNT_MAX
        {
            count = count * 10 + digit;
            self.lexer.advance()?;
        }
        if matches!(self.lexer.next, Token::Digit(_)) || count > COUNT_MAX {
            return Err(BAD_COUNT);
        }
        Ok(count)
    }

    /// The set of a bracket expression.
    fn bracket(&mut self, positive: bool) -> Result<Set, Fault> {
        self.lexer.advance()?;
        let mut ranges = Vec::new();
        while self.lexer.next != Token::BracketClose {
            let set = self.bracket_part()?;
            ranges.extend(set.0);
        }
        if positive {
            return Ok(Set::of(ranges));
        }
        if self.lexer.flags.newline_stops {
            ranges.push((10, 10));
        }
        Ok(Set::of(ranges).complement())
    }

    /// The text within `[. .]` and its like.
    fn name(&mut self) -> Result<String, Fault> {
        let start = self.lexer.position();
        let mut end = start;
        self.lexer.advance()?;
        while let Token::Plain(_) = self.lexer.next {
            end = self.lexer.position();
            self.lexer.advance()?;
        }
        self.lexer.advance()?;
        Ok(self.lexer.since(start, end))
    }

    fn bracket_part(&mut self) -> Result<Set, Fault> {
        let any_case = self.lexer.flags.any_case;
        let first = match self.lexer.next {
            Token::Plain(c) => {
                self.lexer.advance()?;
                if self.lexer.next != Token::Range {
                    return Ok(Set::of_char(c, any_case));
                }
                c
            }
            Token::CollatingElement => element(&self.name()?).ok_or(BAD_COLLATION)?,
            Token::EquivalenceClass => {
                let c = element(&self.name()?).ok_or(BAD_COLLATION)?;
                return Ok(Set::of_char(c, any_case));
            }
            Token::CharacterClass => {
                let class = Class::named(&self.name()?).ok_or(BAD_CLASS)?;
                return Ok(class.set(any_case));
            }
            Token::Class(class) => {
                self.lexer.advance()?;
                return Ok(class.set(any_case));
            }
            Token::NotClass(class) => {
                self.lexer.advance()?;
                return Ok(class.set(any_case).complement());
            }
            _ => return Err(BAD_RANGE),
        };
        let mut last = first;
        if self.lexer.next == Token::Range {
            self.lexer.advance()?;
            last = match self.lexer.next {
                Token::Plain(c) => {
                    self.lexer.advance()?;
                    c
                }
                Token::Range => {
                    self.lexer.advance()?;
                    u32::from('-')
                }
                Token::CollatingElement => element(&self.name()?).ok_or(BAD_COLLATION)?,
                _ => return Err(BAD_RANGE),
            };
        }
        if first > last {
            return Err(BAD_RANGE);
        }
        Ok(Set::of_range(first, last, any_case))
    }

    /// The tree of a branch.
    fn branch(&mut self, items: Vec<Item>) -> Result<usize, Fault> {
        // A branch is split at its messy atoms, the rest being a branch again;
        // it is put together from its end, once all of its splits are known.
        let mut splits = Vec::new();
        let mut flags = 0;
        let mut before = Vec::new();
        let mut begun = false;
        for item in items {
            begun = true;
            let (piece, node, kind, least, most, preferred) = match item {
                Item::Plain(piece) => {
                    before.push(piece);
                    continue;
                }
                Item::Atom {
                    piece,
                    node,
                    kind,
                    least,
                    most,
                    preference,
                } => (piece, node, kind, least, most, preference),
            };
            let own = match kind {
                AtomKind::Refers(_) => REFERS,
                _ => node.map_or(0, |node| self.flags_of(node)),
            };
            let all = flags | preferred | if node.is_some() { own } else { 0 };
            if kind == AtomKind::Simple && !is_messy(up(all)) {
                before.push(self.repeated(piece, least, most));
                flags = all;
                continue;
            }
            let atom = self.atom(piece, node, kind, least, most, preferred);
            splits.push((
                flags,
                std::mem::take(&mut before),
                combined(preferred, own),
                atom,
            ));
            flags = 0;
            begun = false;
        }
        if splits.len() > DEPTH_MAX {
            return Err(TOO_BIG);
        }
        let mut rest = None;
        if begun || splits.is_empty() {
            let piece = self.sequence(before);
            rest = Some(self.node(Shape::Leaf, flags, Vec::new(), piece));
        }
        while let Some((flags, before, joined, atom)) = splits.pop() {
            rest = Some(self.split(flags, before, joined, atom, rest));
        }
        rest.ok_or(TOO_BIG)
    }

    fn sequence(&mut self, mut pieces: Vec<Id>) -> Id {
        match (pieces.pop(), pieces.is_empty()) {
            (None, _) => self.piece(Piece::Empty),
            (Some(only), true) => only,
            (Some(last), false) => {
                pieces.push(last);
                self.piece(Piece::Sequence(pieces))
            }
        }
    }

    fn repeated(&mut self, piece: Id, least: u32, most: u32) -> Id {
        if (least, most) == (1, 1) {
            return piece;
        }
        self.piece(Piece::Repeat(piece, least, most))
    }

    /// The tree of a messy atom with its quantifier.
    fn atom(
        &mut self,
        piece: Id,
        node: Option<usize>,
        kind: AtomKind,
        least: u32,
        most: u32,
        preferred: u8,
    ) -> usize {
        if let AtomKind::Refers(group) = kind {
            let piece = self.repeated(piece, least, most);
            let flags = REFERS | combined(preferred, REFERS);
            let shape = Shape::Reference { group, least, most };
            return self.node(shape, flags, Vec::new(), piece);
        }
        let node = node.unwrap_or_else(|| self.node(Shape::Leaf, 0, Vec::new(), piece));
        let own = self.flags_of(node);
        let prefers = own & (LONGER | SHORTER | MIXED);
        let vacuous = preferred == 0 || prefers == 0 || preferred == prefers;
        if (least, most) == (1, 1) && vacuous {
            return node;
        }
        let flags = combined(preferred, own);
        if own & (CAPTURES | REFERS) == 0 {
            let piece = self.repeated(piece, least, most);
            return self.node(Shape::Leaf, flags, Vec::new(), piece);
        }
        if least > 0 && own & REFERS == 0 {
            // Only the last time's captures count.
            let fewer = if most == UNBOUNDED { most } else { most - 1 };
            let first = if fewer == 0 {
                self.piece(Piece::Empty)
            } else {
                self.repeated(piece, least - 1, fewer)
            };
            let first_node = self.node(Shape::Leaf, preference(flags), Vec::new(), first);
            let both = self.sequence(vec![first, piece]);
            return self.node(Shape::Pair, flags, vec![first_node, node], both);
        }
        let piece = self.repeated(piece, least, most);
        self.node(Shape::Repeat { least, most }, flags, vec![node], piece)
    }

    /// What comes before a messy atom, that, and the rest of the branch.
    fn split(
        &mut self,
        flags: u8,
        before: Vec<Id>,
        joined: u8,
        atom: usize,
        rest: Option<usize>,
    ) -> usize {
        let nothing_before = before.is_empty();
        let before_piece = self.sequence(before);
        let (mut right, mut right_flags) = (atom, self.flags_of(atom));
        if let Some(rest) = rest {
            let (atom_node, rest_node) = (&self.parsed.nodes[atom], &self.parsed.nodes[rest]);
            let (atom_flags, rest_flags) = (atom_node.flags, rest_node.flags);
            let leaves = atom_node.shape == Shape::Leaf && rest_node.shape == Shape::Leaf;
            let pieces = vec![atom_node.piece, rest_node.piece];
            right_flags = joined | combined(joined, rest_flags);
            if nothing_before {
                let flags = flags | combined(flags, right_flags);
                let piece = self.sequence(pieces);
                return self.node(Shape::Pair, flags, vec![atom, rest], piece);
            }
            let piece = self.sequence(pieces);
            let whole = flags | combined(flags, right_flags);
            right = if leaves && !is_messy(up(atom_flags | rest_flags)) {
                let flags = combined(atom_flags, rest_flags);
                self.node(Shape::Leaf, flags, Vec::new(), piece)
            } else {
                self.node(Shape::Pair, right_flags, vec![atom, rest], piece)
            };
            right_flags = whole;
        } else {
            if nothing_before {
                return atom;
            }
            right_flags = flags | combined(flags, right_flags);
        }
        let left = self.node(Shape::Leaf, flags, Vec::new(), before_piece);
        let pieces = vec![before_piece, self.parsed.nodes[right].piece];
        let piece = self.sequence(pieces);
        self.node(Shape::Pair, right_flags, vec![left, right], piece)
    }
}
