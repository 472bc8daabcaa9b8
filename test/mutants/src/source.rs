//! A source with its mutants behind switches.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::{Span, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::list::{Mutant, Place};

/// Which change a run has switched on: read once from the environment. A run may also note the switches that it comes to.
pub const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(warnings)]
pub mod mutants {
    extern crate std;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    const UNREAD: u32 = 1 << 30;
    const NOTING: u32 = UNREAD + 1;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
    static SEEN: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];
    #[inline(always)]
    pub fn on(id: u32) -> bool {
        let active = ACTIVE.load(Relaxed);
        active == id || (active >= UNREAD && special(id))
    }
    #[cold]
    #[inline(never)]
    fn special(id: u32) -> bool {
        if SEEN[id as usize].load(Relaxed) {
            return false;
        }
        if ACTIVE.load(Relaxed) == UNREAD {
            let read = match std::env::var("MUTANT") {
                Ok(n) => n.parse().unwrap(),
                Err(_) if std::env::var_os("MUTANTS_REACHED").is_some() => NOTING,
                Err(_) => 0,
            };
            ACTIVE.store(read, Relaxed);
        }
        let active = ACTIVE.load(Relaxed);
        if active == NOTING && !SEEN[id as usize].swap(true, Relaxed) {
            let path = std::env::var_os("MUTANTS_REACHED").unwrap();
            let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, std::format!("{id}\n").as_bytes()).unwrap();
        }
        active == id
    }
}
"#;

/// The bytes of a place that cargo-mutants names by line and column, in characters from 1.
pub struct Lines(Vec<usize>);

impl Lines {
    pub fn of(text: &str) -> Lines {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    pub fn range(&self, text: &str, place: &Place) -> Range<usize> {
        let at = |line: usize, column: usize| {
            let start = self.0[line - 1];
            start + text[start..].char_indices().nth(column - 1).map_or(text.len() - start, |(at, _)| at)
        };
        at(place.start.line, place.start.column)..at(place.end.line, place.end.column)
    }
}

/// Writes `ensure!(condition, Error(..))` out, as the macro does: cargo-mutants does not look into macros.
pub fn with_conditions(text: &str) -> Result<String> {
    struct Found(Vec<(Range<usize>, String)>, String);
    impl Visit<'_> for Found {
        fn visit_macro(&mut self, call: &syn::Macro) {
            if !call.path.is_ident("ensure") {
                return;
            }
            let tokens: Vec<TokenTree> = call.tokens.clone().into_iter().collect();
            let comma = tokens.iter().position(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ','));
            let Some(comma) = comma else { return };
            let (open, close) = (bytes(call.delimiter.span().open()), bytes(call.delimiter.span().close()));
            let whole = bytes(call.path.span()).start..close.end;
            // With all line breaks, so that lines keep their numbers.
            let comma = bytes(tokens[comma].span());
            let (condition, error) = (&self.1[open.end..comma.start], &self.1[comma.end..close.start]);
            self.0.push((whole, format!("if !({condition}) {{ return Err(crate::refusal!({error})); }}")));
        }
    }
    let mut found = Found(Vec::new(), text.into());
    found.visit_file(&syn::parse_file(text)?);
    let mut out = text.to_string();
    for (range, with) in found.0.into_iter().rev() {
        out.replace_range(range, &with);
    }
    Ok(out)
}

/// A source with switches, and the mutants that got none.
pub struct Switched {
    pub text: String,
    /// In constants and constant functions, where nothing can be switched.
    pub constant: Vec<usize>,
    /// At no place that is known.
    pub lost: Vec<usize>,
}

/// Puts mutants behind switches. `on` is the path of the function that asks whether one is switched on.
pub fn switched(text: &str, mutants: &[(usize, &Mutant)], on: &str) -> Result<Switched> {
    let lines = Lines::of(text);
    let wanted = mutants.iter().map(|(id, mutant)| (lines.range(text, &mutant.span), *id, *mutant));
    let mut sites = Sites {
        text,
        on,
        wanted: BTreeMap::new(),
        constant: 0,
        wraps: BTreeMap::new(),
        inserts: BTreeMap::new(),
        found: Found::default(),
        above: Vec::new(),
    };
    for (range, id, mutant) in wanted {
        sites.wanted.entry((range.start, range.end)).or_default().push((id, mutant));
    }
    sites.visit_file(&syn::parse_file(text).context("a source that does not parse")?);
    let known: Vec<usize> = sites.found.switched.iter().chain(&sites.found.constant).copied().collect();
    let lost = mutants.iter().map(|(id, _)| *id).filter(|id| !known.contains(id)).collect();
    let wraps: Vec<_> = sites.wraps.iter().map(|(&(start, end), others)| (start..end.0, others.as_slice())).collect();
    let text = sites.render(0..text.len(), &wraps);
    Ok(Switched { text, constant: sites.found.constant, lost })
}

#[derive(Default)]
struct Found {
    switched: Vec<usize>,
    constant: Vec<usize>,
}

/// An end, the later ones first, so that what encloses comes before what it encloses.
#[derive(PartialEq, Eq, Clone, Copy)]
struct End(usize);

impl Ord for End {
    fn cmp(&self, other: &End) -> std::cmp::Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &End) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct Sites<'a> {
    text: &'a str,
    on: &'a str,
    /// By their places.
    wanted: BTreeMap<(usize, usize), Vec<(usize, &'a Mutant)>>,
    /// How many constants are around.
    constant: usize,
    /// Expressions, and what they become.
    wraps: BTreeMap<(usize, End), Vec<(usize, String)>>,
    /// Before which byte what is put.
    inserts: BTreeMap<usize, String>,
    found: Found,
    /// The binary expressions around, without anything between, from outside: precedence and place.
    above: Vec<(u8, Range<usize>)>,
}

/// An expression, and what it becomes.
type Wrap<'a> = (Range<usize>, &'a [(usize, String)]);

/// How tightly an operator binds.
fn precedence(operator: &str) -> u8 {
    match operator {
        "*" | "/" | "%" => 9,
        "+" | "-" => 8,
        "<<" | ">>" => 7,
        "&" => 6,
        "^" => 5,
        "|" => 4,
        "==" | "!=" | "<" | ">" | "<=" | ">=" => 3,
        "&&" => 2,
        "||" => 1,
        _ => 0,
    }
}

impl<'a> Sites<'a> {
    /// The mutants at a place; where they cannot be switched they are only counted.
    fn take(&mut self, place: &Range<usize>, genre: &str) -> Vec<(usize, &'a Mutant)> {
        let Some(all) = self.wanted.get_mut(&(place.start, place.end)) else { return Vec::new() };
        let (taken, rest) = all.drain(..).partition(|(_, mutant)| mutant.genre == genre);
        *all = rest;
        self.keep(taken)
    }

    fn keep(&mut self, taken: Vec<(usize, &'a Mutant)>) -> Vec<(usize, &'a Mutant)> {
        let ids = taken.iter().map(|(id, _)| *id);
        if self.constant > 0 {
            self.found.constant.extend(ids);
            return Vec::new();
        }
        self.found.switched.extend(ids);
        taken
    }

    /// Lets an expression become another one: its text, in which a place has another text.
    fn wrap(&mut self, expression: Range<usize>, id: usize, place: &Range<usize>, with: &str) {
        let (before, after) = (&self.text[expression.start..place.start], &self.text[place.end..expression.end]);
        let text = format!("{before}{with}{after}");
        self.wraps.entry((expression.start, End(expression.end))).or_default().push((id, text));
    }

    /// The text of a stretch, with all its switches.
    fn render(&self, stretch: Range<usize>, wraps: &[Wrap]) -> String {
        let (mut out, mut at, mut next) = (String::new(), stretch.start, 0);
        while next < wraps.len() {
            let (range, others) = &wraps[next];
            self.plain(at..range.start, &mut out);
            let inner = wraps[next + 1..].iter().take_while(|(inner, _)| inner.start < range.end).count();
            out.push('(');
            for (id, text) in *others {
                out += &format!("if {}({id}) {{ {text} /*~{id}*/}} else ", self.on);
            }
            out += &format!("{{ {} }})", self.render(range.clone(), &wraps[next + 1..next + 1 + inner]));
            at = range.end;
            next += 1 + inner;
        }
        self.plain(at..stretch.end, &mut out);
        out
    }

    fn plain(&self, stretch: Range<usize>, out: &mut String) {
        let mut at = stretch.start;
        for (&place, text) in self.inserts.range(stretch.clone()) {
            out.push_str(&self.text[at..place]);
            out.push_str(text);
            at = place;
        }
        out.push_str(&self.text[at..stretch.end]);
    }

    /// The match without an arm: it never fits.
    fn without(&mut self, arm: &syn::Arm) {
        let start = bytes(arm.span()).start;
        let keys: Vec<_> = self.wanted.range((start, 0)..(start + 1, 0)).map(|(key, _)| *key).collect();
        for key in keys {
            for (id, _) in self.take(&(key.0..key.1), "MatchArm") {
                if let Some((_, guard)) = &arm.guard {
                    let guard = bytes(guard.span());
                    self.wrap(guard.clone(), id, &guard, "false");
                } else {
                    let text = format!("if !{}({id}) ", self.on);
                    self.inserts.entry(bytes(arm.fat_arrow_token.span()).start).or_default().push_str(&text);
                }
            }
        }
    }

    fn in_constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constant += 1;
        visit(self);
        self.constant -= 1;
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let around = std::mem::replace(&mut self.constant, usize::from(signature.constness.is_some()));
        if let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) {
            let place = bytes(first.span()).start..bytes(last.span()).end;
            // A comment or an attribute may lie before the first statement: the mutant is the one within the block.
            let (open, close) = (bytes(block.brace_token.span.open()).end, bytes(block.brace_token.span.close()).start);
            let inside: Vec<_> = self.wanted.range((open, 0)..(close, 0)).map(|(place, _)| *place).collect();
            let mut bodies = Vec::new();
            for key in inside {
                let all = self.wanted.get_mut(&key).expect("it was there");
                let whole = key.0 <= place.start && key.1 >= place.end;
                let (taken, rest) = all.drain(..).partition(|(_, mutant)| whole && mutant.genre == "FnValue");
                *all = rest;
                bodies.extend::<Vec<_>>(taken);
            }
            for (id, mutant) in self.keep(bodies) {
                let text = format!(" if {}({id}) {{ return {}; /*~{id}*/}}", self.on, mutant.replacement);
                self.inserts.entry(open).or_default().push_str(&text);
            }
        }
        visit::visit_block(self, block);
        self.constant = around;
    }
}

fn bytes(span: Span) -> Range<usize> {
    span.byte_range()
}

impl Visit<'_> for Sites<'_> {
    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        self.in_constant(|sites| visit::visit_item_const(sites, item));
    }

    fn visit_item_static(&mut self, item: &syn::ItemStatic) {
        self.in_constant(|sites| visit::visit_item_static(sites, item));
    }

    fn visit_impl_item_const(&mut self, item: &syn::ImplItemConst) {
        self.in_constant(|sites| visit::visit_impl_item_const(sites, item));
    }

    fn visit_trait_item_const(&mut self, item: &syn::TraitItemConst) {
        self.in_constant(|sites| visit::visit_trait_item_const(sites, item));
    }

    fn visit_variant(&mut self, item: &syn::Variant) {
        self.in_constant(|sites| visit::visit_variant(sites, item));
    }

    fn visit_type(&mut self, item: &syn::Type) {
        self.in_constant(|sites| visit::visit_type(sites, item));
    }

    fn visit_generic_argument(&mut self, item: &syn::GenericArgument) {
        self.in_constant(|sites| visit::visit_generic_argument(sites, item));
    }

    fn visit_pat(&mut self, item: &syn::Pat) {
        self.in_constant(|sites| visit::visit_pat(sites, item));
    }

    fn visit_expr_const(&mut self, item: &syn::ExprConst) {
        self.in_constant(|sites| visit::visit_expr_const(sites, item));
    }

    fn visit_expr_repeat(&mut self, item: &syn::ExprRepeat) {
        self.visit_expr(&item.expr);
        self.in_constant(|sites| sites.visit_expr(&item.len));
    }

    fn visit_expr(&mut self, expression: &syn::Expr) {
        let place = bytes(expression.span());
        let above = std::mem::take(&mut self.above);
        match expression {
            syn::Expr::Binary(binary) => {
                let operator = bytes(binary.op.span());
                for (id, mutant) in self.take(&operator, "BinaryOperator") {
                    // The change is one of the text: an operator that binds less tightly takes what is beside it, too.
                    let new = precedence(&mutant.replacement);
                    let beside = above.iter().rev().take_while(|(other, _)| *other >= new);
                    let whole = beside.last().map_or(place.clone(), |(_, place)| place.clone());
                    self.wrap(whole, id, &operator, &mutant.replacement);
                }
                let own = (precedence(&self.text[operator]), place);
                for side in [&binary.left, &binary.right] {
                    self.above.clone_from(&above);
                    self.above.push(own.clone());
                    self.visit_expr(side);
                }
            }
            syn::Expr::Unary(unary) => {
                let operator = bytes(unary.op.span());
                for (id, mutant) in self.take(&operator, "UnaryOperator") {
                    self.wrap(place.clone(), id, &operator, &mutant.replacement);
                }
                visit::visit_expr(self, expression);
            }
            syn::Expr::Struct(literal) => {
                let keys: Vec<_> = self.wanted.range((place.start, 0)..(place.end, 0)).map(|(key, _)| *key).collect();
                for field in &literal.fields {
                    let start = bytes(field.span()).start;
                    for key in keys.iter().filter(|key| key.0 == start) {
                        for (id, mutant) in self.take(&(key.0..key.1), "StructField") {
                            self.wrap(place.clone(), id, &(key.0..key.1), &mutant.replacement);
                        }
                    }
                }
                visit::visit_expr(self, expression);
            }
            syn::Expr::Match(choice) => {
                // Without an arm for everything else, a match with fewer arms does not compile.
                let name = |name: &syn::Ident| name.to_string().starts_with(char::is_lowercase);
                let open =
                    |pat: &syn::Pat| matches!(pat, syn::Pat::Wild(_)) || matches!(pat, syn::Pat::Ident(pat) if name(&pat.ident));
                let all = |arm: &syn::Arm| arm.guard.is_none() && open(&arm.pat);
                if choice.arms.iter().any(all) {
                    choice.arms.iter().for_each(|arm| self.without(arm));
                }
                visit::visit_expr(self, expression);
            }
            _ => visit::visit_expr(self, expression),
        }
        self.above.clear();
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| bytes(guard.span()));
        if let Some(guard) = guard {
            for (id, mutant) in self.take(&guard, "MatchArmGuard") {
                self.wrap(guard.clone(), id, &guard, &mutant.replacement);
            }
        }
        visit::visit_arm(self, arm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Point;

    /// A mutant at the only place of a text in a source.
    fn mutant(source: &str, genre: &str, text: &str, replacement: &str) -> Mutant {
        let point = |at: usize| {
            let before = &source[..at];
            let line = before.rfind('\n').map_or(0, |at| at + 1);
            Point { line: before.matches('\n').count() + 1, column: before[line..].chars().count() + 1 }
        };
        let at = source.find(text).expect("it is there");
        let span = Place { start: point(at), end: point(at + text.len()) };
        let (genre, replacement) = (genre.into(), replacement.into());
        Mutant { package: String::new(), file: String::new(), genre, name: String::new(), replacement, span }
    }

    fn written(source: &str, genre: &str, text: &str, replacement: &str) -> String {
        switched(source, &[(7, &mutant(source, genre, text, replacement))], "on").unwrap().text
    }

    #[test]
    fn an_operator_becomes_another() {
        let text = written("fn f(a: u8) { g(a - 1) }", "BinaryOperator", "-", "+");
        assert_eq!(text, "fn f(a: u8) { g((if on(7) { a + 1 /*~7*/} else { a - 1 })) }");
    }

    #[test]
    fn an_operator_that_binds_less_tightly_takes_what_is_beside_it() {
        let text = written("fn f(a: u8) -> bool { 9 - a * 2 == 1 }", "BinaryOperator", "*", "+");
        assert_eq!(text, "fn f(a: u8) -> bool { (if on(7) { 9 - a + 2 /*~7*/} else { 9 - a * 2 }) == 1 }");
    }

    #[test]
    fn bodies_fields_arms_and_negations_can_be_left_out() {
        let body = written("fn f() -> bool { g() }", "FnValue", "g()", "true");
        assert_eq!(body, "fn f() -> bool { if on(7) { return true; /*~7*/} g() }");
        let field = written("fn f() -> S { S { é: 1, b: 2, ..d } }", "StructField", "b: 2,", "");
        assert_eq!(field, "fn f() -> S { (if on(7) { S { é: 1,  ..d } /*~7*/} else { S { é: 1, b: 2, ..d } }) }");
        let arm = written("fn f() { match x { 1 => g(), _ => h() } }", "MatchArm", "1 => g(),", "");
        assert_eq!(arm, "fn f() { match x { 1 if !on(7) => g(), _ => h() } }");
        let not = written("fn f() -> bool { !g() }", "UnaryOperator", "!", "");
        assert_eq!(not, "fn f() -> bool { (if on(7) { g() /*~7*/} else { !g() }) }");
    }

    #[test]
    fn switches_lie_within_each_other() {
        let source = "fn f(a: u8) -> bool { a + 1 > 2 && a < 9 }";
        let (sum, both) = (mutant(source, "BinaryOperator", "+", "-"), mutant(source, "BinaryOperator", "&&", "||"));
        let text = switched(source, &[(1, &sum), (2, &both)], "on").unwrap().text;
        let inner = "(if on(1) { a - 1 /*~1*/} else { a + 1 }) > 2 && a < 9";
        assert_eq!(text, format!("fn f(a: u8) -> bool {{ (if on(2) {{ a + 1 > 2 || a < 9 /*~2*/}} else {{ {inner} }}) }}"));
    }

    #[test]
    fn constants_are_left_as_they_are() {
        for source in ["const A: u8 = 1 + 2;", "const fn f() -> u8 { 1 + 2 }", "fn f() { g([0; 1 + 2]) }"] {
            let made = switched(source, &[(7, &mutant(source, "BinaryOperator", "+", "-"))], "on").unwrap();
            assert_eq!((made.text.as_str(), made.constant), (source, vec![7]));
        }
    }

    #[test]
    fn conditions_are_written_out_on_their_lines() {
        let source = "fn f() {\n    ensure!(\n        a < b,\n        TooMuch(a)\n    );\n    other!(a, b);\n}\n";
        let text = with_conditions(source).unwrap();
        assert!(text.starts_with("fn f() {\n    if !(\n        a < b) { return Err(crate::refusal!("), "{text}");
        assert_eq!(text.lines().position(|line| line.contains("other!")), Some(5));
    }
}
