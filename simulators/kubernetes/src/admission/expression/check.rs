//! Type-checks expressions.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};

use super::functions::{self, Signature, TWO_VARIABLES};
use super::types::{Bindings, Type};
use super::{Program, positions};

/// The type of an expression with these variables.
///
/// # Errors
/// All type errors, each with its position.
pub(in crate::admission) fn check<'s>(
    program: &Program,
    variables: &[(&str, Type<'s>)],
) -> Result<Type<'s>, String> {
    let scope = variables.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    let mut checker = Checker { bindings: Bindings::default(), scope, mixes: false, errors: Vec::new() };
    let found = checker.value(&program.root);
    if checker.errors.is_empty() {
        return Ok(checker.bindings.resolve(&found));
    }
    let offsets: HashMap<u64, usize> = positions::of(&program.root, &program.source);
    let mut told: Vec<((usize, usize), String)> = checker
        .errors
        .into_iter()
        .map(|(id, message)| {
            let offset = offsets.get(&id).copied().unwrap_or_default();
            (positions::line_and_column(&program.source, offset), message)
        })
        .collect();
    told.sort();
    let told = told.iter().map(|(place, message)| positions::point_at(&program.source, *place, message));
    Err(told.collect::<Vec<_>>().join("\n"))
}

struct Checker<'s> {
    bindings: Bindings<'s>,
    /// Variables, the innermost last.
    scope: Vec<(String, Type<'s>)>,
    /// Whether elements of a list may have different types: among the arguments of `format` alone.
    mixes: bool,
    /// The errors, by the ID of the part.
    errors: Vec<(u64, String)>,
}

impl<'s> Checker<'s> {
    fn fail(&mut self, at: u64, message: String) -> Type<'s> {
        self.errors.push((at, message));
        Type::Error
    }

    fn undeclared(&mut self, at: u64, name: &str) -> Type<'s> {
        self.fail(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn value(&mut self, at: &IdedExpr) -> Type<'s> {
        let found = match &at.expr {
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.name(at.id, name),
            Expr::Select(select) => self.select(at, select),
            Expr::Call(call) => self.call(at.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::Struct(made) => self.undeclared(at.id, &made.type_name),
            Expr::Unspecified => Type::Dyn,
        };
        self.bindings.resolve(&found)
    }

    fn name(&mut self, at: u64, name: &str) -> Type<'s> {
        let known = self.scope.iter().rev().find(|(other, _)| other == name).map(|(_, of)| of.clone());
        match known.or_else(|| functions::type_named(name)) {
            Some(of) => of,
            None => self.undeclared(at, name),
        }
    }

    fn select(&mut self, at: &IdedExpr, select: &SelectExpr) -> Type<'s> {
        if let Some(of) = qualified(at).and_then(|name| functions::type_named(&name)) {
            return of;
        }
        let of = self.member(at.id, &select.operand, &select.field, false);
        if select.test { Type::Bool } else { of }
    }

    fn member(&mut self, at: u64, operand: &IdedExpr, name: &str, optional: bool) -> Type<'s> {
        let (of, was_optional) = self.value(operand).unwrapped();
        let found = match of {
            Type::Map(_, value) => *value,
            Type::Object(object) => match object.member(name) {
                Some(of) => of,
                None => self.fail(at, format!("undefined field '{name}'")),
            },
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => {
                self.fail(at, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || was_optional { Type::optional(found) } else { found }
    }

    fn call(&mut self, at: u64, call: &CallExpr) -> Type<'s> {
        let name = call.func_name.as_str();
        if let ("_?._", [operand, field]) = (name, call.args.as_slice()) {
            let Expr::Literal(LiteralValue::String(field)) = &field.expr else { return Type::Dyn };
            return self.member(at, operand, field.inner(), true);
        }
        if call.target.is_some() && call.args.len() > 2 && TWO_VARIABLES.contains(&name) {
            call.target.iter().for_each(|target| drop(self.value(target)));
            return Type::Dyn;
        }
        let mixed = self.mixes;
        self.mixes |= name == "format";
        let mut given: Vec<Type<'s>> = call.args.iter().map(|argument| self.value(argument)).collect();
        self.mixes = mixed;
        if matches!(name, "_&&_" | "_||_") {
            return self.truths(call, &given);
        }
        let Some(target) = &call.target else {
            return match functions::named(name) {
                Some(known) => self.resolve(at, name, known, false, &given),
                None => self.undeclared(at, name),
            };
        };
        let qualified = qualified(target).map(|target| format!("{target}.{name}"));
        if let Some((name, known)) =
            qualified.and_then(|name| functions::named(&name).map(|known| (name, known)))
        {
            return self.resolve(at, &name, known, false, &given);
        }
        given.insert(0, self.value(target));
        match functions::named(name) {
            Some(known) => self.resolve(at, name, known, true, &given),
            None => self.undeclared(at, name),
        }
    }

    fn truths(&mut self, call: &CallExpr, given: &[Type<'s>]) -> Type<'s> {
        let before = self.errors.len();
        for (argument, of) in call.args.iter().zip(given) {
            if !self.bindings.accept(of, &Type::Bool) {
                self.fail(argument.id, format!("expected type 'bool' but found '{of}'"));
            }
        }
        if self.errors.len() > before { Type::Error } else { Type::Bool }
    }

    /// The result type of all matching signatures: their common part.
    fn resolve(
        &mut self,
        at: u64,
        name: &str,
        known: &[Signature],
        member: bool,
        given: &[Type<'s>],
    ) -> Type<'s> {
        let mut result: Option<Type<'s>> = None;
        for signature in known.iter().filter(|signature| signature.target.is_some() == member) {
            let mut parameters = Vec::new();
            let wanted = signature.target.iter().chain(&signature.arguments);
            let wanted: Vec<Type<'s>> =
                wanted.map(|of| self.bindings.instantiate(of, &mut parameters)).collect();
            let answer = self.bindings.instantiate(&signature.result, &mut parameters);
            let (given, wanted): (Vec<_>, Vec<_>) = (given.iter().collect(), wanted.iter().collect());
            if !self.bindings.accept_all(&given, &wanted) {
                continue;
            }
            let answer = self.bindings.resolve(&answer);
            result = Some(match result {
                Some(before) if before != answer => Type::Dyn,
                _ => answer,
            });
        }
        if let Some(result) = result {
            return result;
        }
        let mut shown: Vec<String> = given.iter().map(|of| self.bindings.resolve(of).to_string()).collect();
        let target = if member { format!("{}.", shown.remove(0)) } else { String::new() };
        let message =
            format!("found no matching overload for '{name}' applied to '{target}({})'", shown.join(", "));
        self.fail(at, message)
    }

    /// The common type of the elements of a list or map.
    fn join(&mut self, before: Option<Type<'s>>, at: u64, of: Type<'s>) -> Type<'s> {
        match before {
            None => of,
            Some(before) if self.bindings.accept(&before, &of) => {
                if matches!(before, Type::Dyn) {
                    before
                } else {
                    of
                }
            }
            Some(_) if self.mixes => Type::Dyn,
            Some(before) => self.fail(at, format!("expected type '{before}' but found '{of}'")),
        }
    }

    fn list(&mut self, list: &ListExpr) -> Type<'s> {
        let mut shared = None;
        for (index, item) in list.elements.iter().enumerate() {
            let of = self.value(item);
            let of = if list.optional_indices.contains(&index) { of.unwrapped().0 } else { of };
            shared = Some(self.join(shared, item.id, of));
        }
        Type::List(Box::new(shared.unwrap_or_else(|| self.bindings.variable())))
    }

    fn map(&mut self, map: &MapExpr) -> Type<'s> {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.value(&entry.key);
            keys = Some(self.join(keys, entry.key.id, key));
            let value = self.value(&entry.value);
            let value = if entry.optional { value.unwrapped().0 } else { value };
            values = Some(self.join(values, entry.value.id, value));
        }
        let mut open = |of: Option<Type<'s>>| Box::new(of.unwrap_or_else(|| self.bindings.variable()));
        Type::Map(open(keys), open(values))
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Type<'s> {
        let range = self.value(&all.iter_range);
        let gathered = self.value(&all.accu_init);
        let each = match range {
            Type::List(item) => *item,
            Type::Map(key, _) => *key,
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => self.fail(
                all.iter_range.id,
                format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                ),
            ),
        };
        self.scope.push((all.accu_var.clone(), gathered.clone()));
        self.scope.push((all.iter_var.clone(), each));
        self.expect(&all.loop_cond, &Type::Bool);
        self.expect(&all.loop_step, &gathered);
        self.scope.pop();
        let result = self.value(&all.result);
        self.scope.pop();
        result
    }

    fn expect(&mut self, part: &IdedExpr, wanted: &Type<'s>) {
        let of = self.value(part);
        if !self.bindings.accept(&of, wanted) {
            let wanted = self.bindings.resolve(wanted);
            self.fail(part.id, format!("expected type '{wanted}' but found '{of}'"));
        }
    }
}

fn literal_type(literal: &LiteralValue) -> Type<'static> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// The qualified name that a chain of members forms.
fn qualified(at: &IdedExpr) -> Option<String> {
    match &at.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}
