//! Every record and its word are one to one, for all values, shown without a solver.
//!
//! The argument, of which each part is a test:
//!
//! 1. Reading and writing a field is linear: its result for a value is the bitwise or of its results for the value's single bits. The test sees
//!    this in the source: values meet shifts by constants, masks by constants and bitwise ors alone, and decide nothing.
//! 2. So single bits decide. A record's layout gives each bit of the word its field, and its place there. Each bit of the
//!    word, read alone, is exactly that bit of that field, and all other fields are zero. No field reads a bit outside it.
//! 3. Written again, it is the same bit of the word.
//!
//! From 2 and 3, `unpack` and `pack` are each other's inverse on single bits, and by 1 on all words and all records whose values fit. A `bool` has
//! eight bits in the word and one value: of its bits the lowest comes back, and the others read as true. Pairs of bits and random words check
//! the linearity once more, on the compiled code.

use muster_core::record::*;
use muster_core::word::{Address, Packed, Word};
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};
use std::collections::BTreeSet;
use std::fmt::Debug;
use syn::{BinOp, Block, Expr, Pat, Stmt, UnOp};

fn bit(i: u32) -> Word {
    let mut word = Word::ZERO;
    word.0[i as usize / 64] = 1 << (i % 64);
    word
}

/// The path of a function that is called.
fn quote(called: &Expr) -> String {
    let Expr::Path(path) = called else { return format!("{called:?}") };
    path.path.segments.iter().map(|part| part.ident.to_string()).collect::<Vec<_>>().join("::")
}

fn or(a: Word, b: Word) -> Word {
    Word(std::array::from_fn(|i| a.0[i] | b.0[i]))
}

/// The part of a word that comes back: every bit of a field, and of a `bool` whether there is any.
fn kept<T: Packed>(word: Word) -> Word {
    let (mut out, mut at) = (Word::ZERO, 0);
    for &(_, width, kind) in T::FIELDS {
        for i in (0..width).step_by(64) {
            let bits = word.bits(at + i, 64.min(width - i));
            out.set_bits(at + i, 64.min(width - i), if kind == "bool" { (bits != 0) as u64 } else { bits });
        }
        at += width;
    }
    out
}

/// A record's fields and their values, as it shows itself: `Name { field: value, ... }`. A value is the numbers in it, an address its bytes.
fn fields_of(record: &impl Debug) -> Vec<(String, Vec<u8>)> {
    let shown = format!("{record:?}");
    let inner = shown.split_once(" { ").expect("fields").1.strip_suffix(" }").expect("an end");
    let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
    for part in inner.split(", ") {
        // Bytes of an address are parts without a name.
        let (name, value) = part.split_once(": ").map_or((None, part), |(name, value)| (Some(name), value));
        let digits = value.trim_matches(|c: char| !c.is_ascii_digit());
        let value = match value {
            "true" => 1,
            "false" => 0,
            _ => digits.parse::<u128>().unwrap_or_else(|_| panic!("{value} is no number")),
        };
        match name {
            // The least significant byte first.
            Some(name) => fields.push((name.into(), value.to_le_bytes().to_vec())),
            None => {
                let all = &mut fields.last_mut().expect("a name").1;
                all.truncate(all.len().min(19));
                all.push(0);
                all.rotate_right(1);
                all[0] = value as u8;
            }
        }
    }
    fields
}

/// Checks single bits of a record; gives how many of them are a field's.
fn check<T: Packed + Debug>(name: &str) -> u32 {
    let through = |word: Word| T::unpack(word).pack();
    assert!(through(Word::ZERO).is_zero());
    let zero = fields_of(&T::unpack(Word::ZERO));
    assert!(zero.iter().all(|(_, value)| value.iter().all(|&byte| byte == 0)), "{name}: a word of zeros");
    // Each bit's field by the layout: disjoint, for each begins where the one before ends.
    let mut bits = T::FIELDS.iter().flat_map(|&(field, width, kind)| (0..width).map(move |i| (field, i, kind)));
    let mut used = 0;
    for i in 0..256 {
        let read = fields_of(&T::unpack(bit(i)));
        let owner = bits.next();
        used += u32::from(owner.is_some());
        for (field, value) in &read {
            let mine = owner.filter(|(name, ..)| name == field);
            let mut expected = vec![0; value.len()];
            if let Some((_, place, kind)) = mine {
                let place = if kind == "bool" { 0 } else { place };
                expected[place as usize / 8] = 1 << (place % 8);
            }
            assert_eq!(*value, expected, "{name}: bit {i} in {field}");
        }
        assert_eq!(
            read.iter().map(|(field, _)| field.as_str()).collect::<Vec<_>>(),
            T::FIELDS.iter().map(|f| f.0).collect::<Vec<_>>()
        );
        assert!(through(bit(i)) == kept::<T>(bit(i)), "{name}: bit {i}");
        for j in 0..i {
            let both = or(bit(i), bit(j));
            assert!(through(both) == kept::<T>(both), "{name}: bits {i} and {j}");
        }
    }
    assert!(bits.next().is_none() && used == T::FIELDS.iter().map(|f| f.1).sum());
    let mut rng = ChaCha8Rng::seed_from_u64(256);
    for _ in 0..10_000 {
        let word = Word(std::array::from_fn(|_| rng.next_u64()));
        assert!(through(word) == kept::<T>(word), "{name}: a random word");
    }
    used
}

macro_rules! all {
    ($($record:ident)*) => { [$((stringify!($record), check::<$record>(stringify!($record)), $record::FIELDS.len())),*] };
}

#[test]
fn every_record_and_its_word_are_one_to_one() {
    let checked = all!(Account Assignment Classes Commitment Escrow Head Limits Listed Members Models NextParameter Node Operator Order Ownership
        Places Pool Profile Proposal Queue Receipt Reserved Rules Scores Size TargetSearch Terms ValidatorDraw);
    let names: BTreeSet<&str> = checked.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, RECORDS.iter().map(|(name, _)| *name).collect(), "a record is not checked");
    let (bits, fields) = checked.iter().fold((0, 0), |(bits, fields), (_, b, f)| (bits + b, fields + f));
    println!("proof record: records = {}; fields = {fields}; bits = {bits}", checked.len());
}

/// An address alone in its word, of which the layout has no name.
#[test]
fn an_address_and_its_word_are_one_to_one() {
    for i in 0..256u32 {
        let mut expected: Address = [0; 20];
        if i < 160 {
            expected[19 - i as usize / 8] = 1 << (i % 8);
        }
        assert_eq!(Address::unpack(bit(i)), expected);
        assert!(expected.pack() == if i < 160 { bit(i) } else { Word::ZERO });
    }
}

// ---------------------------------------------------------------- linearity, seen in the source

/// Names that stand for a value that is read or written, or for a part of one. Everything else is a place, a width, or a constant.
#[derive(Default)]
struct Way(BTreeSet<String>);

/// Whether an expression has something of the value in it, or why it is not linear in it.
type Seen = Result<bool, String>;

impl Way {
    fn block(&mut self, block: &Block) -> Seen {
        let mut last = false;
        for statement in &block.stmts {
            last = match statement {
                Stmt::Local(local) => {
                    let made = &local.init.as_ref().ok_or("a name without a value")?.expr;
                    // A closure is judged where it is used: its arguments are then values.
                    let of_value = match made.as_ref() {
                        Expr::Closure(closure) => {
                            self.closure(closure, true)?;
                            true
                        }
                        made => self.see(made)?,
                    };
                    self.name(&local.pat, of_value);
                    false
                }
                Stmt::Expr(expr, None) => self.see(expr)?,
                Stmt::Expr(expr, Some(_)) => {
                    self.see(expr)?;
                    false
                }
                other => return Err(format!("a statement: {other:?}")),
            };
        }
        Ok(last)
    }

    fn name(&mut self, pattern: &Pat, of_value: bool) {
        match pattern {
            Pat::Ident(ident) => {
                let name = ident.ident.to_string();
                if of_value {
                    self.0.insert(name);
                } else {
                    self.0.remove(&name);
                }
            }
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|pattern| self.name(pattern, of_value)),
            Pat::Type(typed) => self.name(&typed.pat, of_value),
            Pat::Reference(reference) => self.name(&reference.pat, of_value),
            other => panic!("a pattern: {other:?}"),
        }
    }

    fn closure(&mut self, closure: &syn::ExprClosure, of_value: bool) -> Seen {
        let outside = self.0.clone();
        closure.inputs.iter().for_each(|input| self.name(input, of_value));
        let seen = self.see(&closure.body);
        self.0 = outside;
        seen
    }

    fn plain(&mut self, expr: &Expr, what: &str) -> Result<(), String> {
        if self.see(expr)? {
            return Err(format!("{what} hangs on the value"));
        }
        Ok(())
    }

    fn see(&mut self, expr: &Expr) -> Seen {
        match expr {
            Expr::Lit(_) => Ok(false),
            Expr::Path(path) => Ok(path.path.get_ident().is_some_and(|name| self.0.contains(&name.to_string()))),
            Expr::Paren(inner) => self.see(&inner.expr),
            Expr::Cast(cast) => self.see(&cast.expr),
            Expr::Reference(inner) => self.see(&inner.expr),
            Expr::Field(field) => self.see(&field.base),
            Expr::Block(block) => self.block(&block.block),
            Expr::Unary(unary) => match (unary.op, self.see(&unary.expr)?) {
                (UnOp::Deref(_), seen) => Ok(seen),
                (_, false) => Ok(false),
                (_, true) => Err("a value is turned over".into()),
            },
            Expr::Index(index) => {
                match index.index.as_ref() {
                    Expr::Range(range) => {
                        for end in range.start.iter().chain(&range.end) {
                            self.plain(end, "a place")?;
                        }
                    }
                    at => self.plain(at, "a place")?,
                }
                self.see(&index.expr)
            }
            Expr::Array(array) => array.elems.iter().try_fold(false, |all, item| Ok(self.see(item)? | all)),
            Expr::Tuple(tuple) => tuple.elems.iter().try_fold(false, |all, item| Ok(self.see(item)? | all)),
            Expr::If(condition) => {
                self.plain(&condition.cond, "a choice")?;
                let then = self.block(&condition.then_branch)?;
                let other = condition.else_branch.as_ref().map_or(Ok(false), |(_, expr)| self.see(expr))?;
                Ok(then | other)
            }
            Expr::Assign(assign) => self.assigned(&assign.left, &assign.right),
            Expr::Binary(binary) => {
                let (left, right) = (self.see(&binary.left)?, self.see(&binary.right)?);
                match binary.op {
                    BinOp::BitOr(_) | BinOp::BitOrAssign(_) => Ok(left | right),
                    BinOp::BitAnd(_) | BinOp::BitAndAssign(_) if left && right => Err("a value masks a value".into()),
                    BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => Ok(left | right),
                    BinOp::Shl(_) | BinOp::Shr(_) if right => Err("a shift hangs on the value".into()),
                    BinOp::Shl(_) | BinOp::Shr(_) => Ok(left),
                    _ if left || right => Err("neither a shift, a mask nor an or".into()),
                    _ => Ok(false),
                }
            }
            // These are judged by the same test: places and widths are constants, the value is on its way.
            Expr::MethodCall(call) => {
                let mut arguments = call.args.iter();
                let receiver = self.see(&call.receiver)?;
                match call.method.to_string().as_str() {
                    "bits" | "set_bits" | "write" | "read" => {
                        for argument in arguments {
                            let is_value = self.see(argument)?;
                            let name = matches!(argument, Expr::Reference(_) | Expr::Path(_));
                            if is_value && call.method == "bits" && !name {
                                return Err("a place hangs on the value".into());
                            }
                        }
                        Ok(true)
                    }
                    "iter" => Ok(receiver),
                    "fold" => {
                        self.plain(arguments.next().ok_or("a start")?, "a start")?;
                        match arguments.next() {
                            Some(Expr::Closure(closure)) => self.closure(closure, true),
                            other => Err(format!("a fold of {other:?}")),
                        }
                    }
                    other => Err(format!("a call of {other}")),
                }
            }
            Expr::Call(call) => {
                let called = quote(&call.func);
                // A closure that has a name was judged where it got it.
                if called != "core::array::from_fn" && !self.0.contains(&called) {
                    return Err(format!("a call of {called}"));
                }
                let mut all = false;
                for argument in &call.args {
                    all |= match argument {
                        // The places of an array that is made.
                        Expr::Closure(closure) => self.closure(closure, false)?,
                        argument => self.see(argument)?,
                    };
                }
                Ok(all)
            }
            other => Err(format!("an expression: {other:?}")),
        }
    }

    fn assigned(&mut self, left: &Expr, right: &Expr) -> Seen {
        let (of_value, before) = (self.see(right)?, self.see(left)?);
        if of_value && !before {
            return Err("a value becomes something else".into());
        }
        Ok(false)
    }
}

/// Every function of the source that reads or writes a field, by its name.
fn functions(source: &str) -> Vec<(String, syn::ImplItemFn)> {
    // The code that a macro makes for every type of number, for one of them.
    let made = source.split_once("($($t:ty)*) => {$(").expect("the numbers").1.split_once(")*};").expect("an end").0;
    let numbers: syn::File = syn::parse_str(&made.replace("$t", "u64")).expect("an impl");
    let file = syn::parse_file(source).expect("a source");
    let mut found = Vec::new();
    for item in file.items.into_iter().chain(numbers.items) {
        let syn::Item::Impl(block) = item else { continue };
        let of = match block.self_ty.as_ref() {
            syn::Type::Path(path) => path.path.get_ident().expect("a name").to_string(),
            _ => continue,
        };
        for part in block.items {
            if let syn::ImplItem::Fn(function) = part {
                found.push((format!("{of}::{}", function.sig.ident), function));
            }
        }
    }
    found
}

/// Sees whether a function is linear in the value that it reads or writes.
fn linear(function: &syn::ImplItemFn) -> Result<(), String> {
    let mut way = Way::default();
    for input in &function.sig.inputs {
        let name = match input {
            syn::FnArg::Receiver(_) => "self".to_string(),
            syn::FnArg::Typed(typed) => match typed.pat.as_ref() {
                Pat::Ident(name) => name.ident.to_string(),
                other => return Err(format!("an argument: {other:?}")),
            },
        };
        if ["self", "w", "v"].contains(&name.as_str()) {
            way.0.insert(name);
        }
    }
    way.block(&function.block).map(drop)
}

const SOURCE: &str = include_str!("../src/word.rs");

#[test]
fn reading_and_writing_a_field_is_linear() {
    let all = functions(SOURCE);
    let wanted = [
        "Word::bits",
        "Word::set_bits",
        "u64::read",
        "u64::write",
        "bool::write",
        "u128::read",
        "u128::write",
        "Address::read",
        "Address::write",
    ];
    for name in wanted {
        let function = all.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}"));
        linear(&function.1).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    // Reading a bool alone is not linear: it asks whether any bit is set.
    let read = &all.iter().find(|(name, _)| name == "bool::read").expect("bools").1;
    assert_eq!(linear(read), Err("neither a shift, a mask nor an or".into()));
    // Ids are as the numbers in them.
    assert!(include_str!("../src/id.rs").contains("$name(Field::read(w, at, width))"));
    assert!(include_str!("../src/id.rs").contains("self.0.write(w, at, width)"));
}

/// Functions that are not linear are refused.
#[test]
fn what_is_not_linear_is_refused() {
    let (_, bits) = functions(SOURCE).into_iter().find(|(name, _)| name == "Word::bits").expect("bits");
    assert_eq!(linear(&bits), Ok(()));
    for (body, why) in [
        ("{ self.0[0] + 1 }", "neither"),
        ("{ self.0[0] ^ 1 }", "neither"),
        ("{ !self.0[0] }", "turned over"),
        ("{ self.0[0] & self.0[1] }", "masks"),
        ("{ 1 << self.0[0] }", "shift"),
        ("{ self.0[self.0[1] as usize] }", "place"),
        ("{ if self.0[0] > 3 { 1 } else { 0 } }", "neither"),
        ("{ let v = self.0[0] >> 1; v * 2 }", "neither"),
        ("{ self.0[0].count_ones() as u64 }", "call"),
        ("{ u64::max(self.0[0], 3) }", "call of u64::max"),
        ("{ (|v: u64| v)(self.0[0]) }", "call"),
    ] {
        let changed = syn::ImplItemFn { block: syn::parse_str(body).expect("a body"), ..bits.clone() };
        assert!(linear(&changed).is_err_and(|found| found.contains(why)), "{body}");
    }
}
