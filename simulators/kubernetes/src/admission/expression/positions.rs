//! Finds the positions of an expression's parts in its text. The parser does not expose them, but parts of one kind
//! occur in the order of the text.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};

/// The offsets, in characters, of the parts of an expression by their IDs.
pub(super) fn of(root: &IdedExpr, source: &str) -> HashMap<u64, usize> {
    let mut finder = Finder { places: places(source), taken: HashMap::new(), found: HashMap::new() };
    finder.walk(root);
    finder.found
}

/// Line and column, both counted from 1.
pub(super) fn line_and_column(source: &str, offset: usize) -> (usize, usize) {
    let before: Vec<char> = source.chars().take(offset).collect();
    let line = before.iter().filter(|c| **c == '\n').count() + 1;
    let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
    (line, column)
}

/// A message with the line that it refers to, and a mark below the position.
pub(super) fn point_at(source: &str, (line, column): (usize, usize), message: &str) -> String {
    let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let dots = ".".repeat(column.saturating_sub(1));
    format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {dots}^")
}

/// The text that marks a part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Mark {
    Name(String),
    /// The dot before a member.
    Member(String),
    /// The parenthesis after the name of a function.
    Call(String),
    Operator(&'static str),
    Literal,
    List,
    Map,
}

struct Finder {
    places: HashMap<Mark, Vec<usize>>,
    taken: HashMap<Mark, usize>,
    found: HashMap<u64, usize>,
}

impl Finder {
    /// The next place of a mark.
    fn take(&mut self, mark: Mark) -> Option<usize> {
        let taken = self.taken.entry(mark.clone()).or_default();
        let place = self.places.get(&mark)?.get(*taken).copied();
        *taken += 1;
        place
    }

    fn note(&mut self, id: u64, mark: Mark) {
        if let Some(place) = self.take(mark) {
            self.found.insert(id, place);
        }
    }

    fn walk(&mut self, at: &IdedExpr) {
        match &at.expr {
            Expr::Ident(name) => self.note(at.id, Mark::Name(name.clone())),
            Expr::Literal(_) => self.note(at.id, Mark::Literal),
            Expr::Select(select) if select.test => {
                self.note(at.id, Mark::Call("has".to_owned()));
                self.walk(&select.operand);
                self.take(Mark::Member(select.field.clone()));
            }
            Expr::Select(select) => {
                self.walk(&select.operand);
                self.note(at.id, Mark::Member(select.field.clone()));
            }
            Expr::List(list) => {
                self.note(at.id, Mark::List);
                list.elements.iter().for_each(|item| self.walk(item));
            }
            Expr::Map(map) => {
                self.note(at.id, Mark::Map);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.walk(&entry.key);
                        self.walk(&entry.value);
                    }
                }
            }
            Expr::Call(call) => self.call(at.id, call),
            Expr::Comprehension(all) => {
                self.walk(&all.iter_range);
                // The name occurs once before the body.
                self.take(Mark::Name(all.iter_var.clone()));
                self.step(&all.loop_step, &all.accu_var);
            }
            Expr::Struct(_) | Expr::Unspecified => {}
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) {
        let mark = match operator(&call.func_name) {
            Some(operator) => Mark::Operator(operator),
            None => Mark::Call(call.func_name.clone()),
        };
        if call.func_name == "_?._" {
            // The member's name is a string literal here.
            call.args.iter().take(1).for_each(|argument| self.walk(argument));
            self.note(id, mark);
            return;
        }
        // Operators follow their first argument; functions precede all arguments.
        let binary = matches!(mark, Mark::Operator(_)) && call.args.len() > 1;
        call.target.iter().for_each(|target| self.walk(target));
        let (first, rest) = call.args.split_at(usize::from(binary));
        first.iter().for_each(|argument| self.walk(argument));
        self.note(id, mark);
        rest.iter().for_each(|argument| self.walk(argument));
    }

    /// The body of a comprehension, inside the code that the parser generated around it.
    fn step(&mut self, at: &IdedExpr, gathered: &str) {
        let is_gathered = |argument: &IdedExpr| argument.expr == Expr::Ident(gathered.to_owned());
        match &at.expr {
            Expr::Call(call) if call.args.iter().any(is_gathered) => {
                let made = call.args.iter().filter(|argument| !is_gathered(argument));
                for argument in made {
                    match &argument.expr {
                        Expr::List(list) if call.func_name == "_+_" => {
                            list.elements.iter().for_each(|item| self.walk(item));
                        }
                        Expr::Literal(_) if call.func_name == "_+_" => {}
                        _ => self.step(argument, gathered),
                    }
                }
            }
            _ => self.walk(at),
        }
    }
}

/// The text of an operator.
fn operator(function: &str) -> Option<&'static str> {
    const OPERATORS: &[(&str, &str)] = &[
        ("_&&_", "&&"),
        ("_||_", "||"),
        ("_==_", "=="),
        ("_!=_", "!="),
        ("_<=_", "<="),
        ("_>=_", ">="),
        ("_<_", "<"),
        ("_>_", ">"),
        ("_+_", "+"),
        ("_-_", "-"),
        ("-_", "-"),
        ("_*_", "*"),
        ("_/_", "/"),
        ("_%_", "%"),
        ("!_", "!"),
        ("_?_:_", "?"),
        ("_[_]", "["),
        ("_[?_]", "["),
        ("_?._", ".?"),
        ("@in", "in"),
    ];
    OPERATORS.iter().find(|(name, _)| *name == function).map(|(_, text)| *text)
}

/// All marks of a text, in order.
fn places(source: &str) -> HashMap<Mark, Vec<usize>> {
    const OPERATORS: &[&str] =
        &["&&", "||", "==", "!=", "<=", ">=", ".?", "<", ">", "+", "-", "*", "/", "%", "!", "?"];
    let text: Vec<char> = source.chars().collect();
    let mut places: HashMap<Mark, Vec<usize>> = HashMap::new();
    let mut add = |mark: Mark, at: usize| places.entry(mark).or_default().push(at);
    let at = |index: usize| text.get(index).copied().unwrap_or('\0');
    let mut index = 0;
    // The last character that was not a space, and whether it ended a value.
    let (mut last, mut value) = ('\0', false);
    while index < text.len() {
        let (start, c) = (index, at(index));
        if c.is_whitespace() {
            index += 1;
            continue;
        }
        if let Some(end) = quoted(&text, start) {
            add(Mark::Literal, start);
            (index, last, value) = (end, '"', true);
            continue;
        }
        if c.is_ascii_digit() || (c == '.' && at(index + 1).is_ascii_digit()) {
            while at(index).is_ascii_alphanumeric() || at(index) == '.' {
                index += 1;
            }
            add(Mark::Literal, start);
            (last, value) = ('0', true);
            continue;
        }
        if c.is_alphabetic() || c == '_' {
            while at(index).is_alphanumeric() || at(index) == '_' {
                index += 1;
            }
            let word: String = text.get(start..index).unwrap_or_default().iter().collect();
            let called = at(index) == '(';
            match word.as_str() {
                "true" | "false" | "null" => add(Mark::Literal, start),
                "in" => add(Mark::Operator("in"), start),
                _ if called => add(Mark::Call(word.clone()), index),
                _ if last == '.' => add(Mark::Member(word.clone()), start - 1),
                _ => add(Mark::Name(word.clone()), start),
            }
            (last, value) = ('a', word != "in");
            continue;
        }
        let rest: String = text.iter().skip(start).take(2).collect();
        let known = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
        match (known, c) {
            (Some(operator), _) => {
                add(Mark::Operator(operator), start);
                index += operator.chars().count();
            }
            (None, '[') => {
                add(if value { Mark::Operator("[") } else { Mark::List }, start);
                index += 1;
            }
            (None, '{') => {
                add(Mark::Map, start);
                index += 1;
            }
            (None, _) => index += 1,
        }
        (last, value) = (at(index - 1), matches!(c, ')' | ']' | '}'));
    }
    places
}

/// The end of the quoted text that begins here.
fn quoted(text: &[char], start: usize) -> Option<usize> {
    let at = |index: usize| text.get(index).copied();
    let mut index = start;
    let mut raw = false;
    while let Some('r' | 'R' | 'b' | 'B') = at(index) {
        raw |= matches!(at(index), Some('r' | 'R'));
        index += 1;
    }
    let quote = at(index).filter(|c| matches!(c, '"' | '\''))?;
    let width = if at(index + 1) == Some(quote) && at(index + 2) == Some(quote) { 3 } else { 1 };
    index += width;
    while let Some(c) = at(index) {
        if c == '\\' && !raw {
            index += 2;
            continue;
        }
        if (0..width).all(|more| at(index + more) == Some(quote)) {
            return Some(index + width);
        }
        index += 1;
    }
    Some(index)
}
