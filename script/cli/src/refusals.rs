//! `docs/generated/refusals.md` and `abi/refusals.json`: every typed error of the interface, when it is raised, and which public functions can raise it.
//!
//! The functions are read off the contracts' sources: from a function's row in the tables of `programs.rs` on, through every
//! function called that returns a `Result`, to the `ensure!` and `refusal!` at the end. Calls are resolved by name, so a
//! function may be named that cannot raise an error for another reason; none is left out that can. The integration tests
//! check every refusal they provoke against it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use alloy::{
    hex,
    json_abi::{Error, JsonAbi},
};
use anyhow::{Context, Result};
use serde_json::json;
use syn::{
    braced, parenthesized,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
    visit::{self, Visit},
    Attribute, Block, Expr, FnArg, Ident, ImplItem, Item, ReturnType, Token, Type,
};

use crate::markdown::{documented, row};

/// Errors that the router itself, or the platform, gives on any call.
const ANY: [&str; 3] = ["NoCode", "ProgramFailed", "UnknownFunction"];
/// The error of reading the arguments.
const UNREADABLE: &str = "MalformedCalldata";

/// The public interface.
fn interface() -> JsonAbi {
    serde_json::from_str(include_str!("../../../abi/IMuster.json")).expect("abi/IMuster.json is an ABI")
}

/// A function that returns a `Result`.
struct Function {
    module: String,
    owner: Option<String>,
    name: String,
    body: Block,
}

/// Which public functions can raise which error, by the sources.
///
/// # Errors
/// When a source cannot be read.
pub fn raised(root: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut functions = Vec::new();
    let mut folders = vec![root.join("contracts/protocol/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let file = entry?.path();
            if file.is_dir() {
                folders.push(file);
                continue;
            }
            let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().to_string();
            let module = if name(&file) == "mod" { name(&folder) } else { name(&file) };
            // The codec's functions have names that others have too; they refuse the same everywhere.
            if file.extension().is_some_and(|extension| extension == "rs") && module != "codec" {
                read(&file, &module, &mut functions)?;
            }
        }
    }
    let entries = rows(&root.join("contracts/protocol/src/interface/programs.rs"))?;
    let mut table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for public in interface().functions() {
        if public.name == "install" {
            // The router's own, and no Rust that could be followed.
            for error in muster_router::INSTALL_REFUSALS {
                table.entry(error.into()).or_default().insert(public.name.clone());
            }
            continue;
        }
        let entry = entries.iter().find(|entry| entry.name == public.name);
        let entry = entry.with_context(|| format!("no program answers {}: {} is to be mended", public.name, file!()))?;
        let mut walk = Walk { functions: &functions, here: entry, calls: BTreeSet::new(), errors: BTreeSet::new() };
        walk.visit_block(&entry.body);
        let mut found = std::mem::take(&mut walk.errors);
        close(&functions, walk.calls, &mut found);
        if !public.inputs.is_empty() {
            found.insert(UNREADABLE.into());
        }
        for error in found {
            table.entry(error).or_default().insert(public.name.clone());
        }
    }
    Ok(table)
}

/// The functions in the tables: the steps for each, its state's opening and the refusal of value first.
fn rows(file: &Path) -> Result<Vec<Function>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
    let mut found = Vec::new();
    let tables = |input: ParseStream| {
        input.parse::<Expr>()?;
        input.parse::<Token![;]>()?;
        while !input.is_empty() {
            input.call(Attribute::parse_outer)?;
            input.parse::<Ident>()?;
            input.parse::<Ident>()?;
            let program;
            braced!(program in input);
            while !program.is_empty() {
                let mode: Ident = program.parse()?;
                let (state, rows);
                parenthesized!(state in program);
                state.parse::<Ident>()?;
                let gas = if state.parse::<Option<Token![,]>>()?.is_some() {
                    state.parse::<Expr>()?;
                    "demand_gas(host, 0)?;"
                } else {
                    ""
                };
                braced!(rows in program);
                while !rows.is_empty() {
                    let attributes = rows.call(Attribute::parse_outer)?;
                    let call: Ident = rows.parse()?;
                    let arguments;
                    parenthesized!(arguments in rows);
                    Punctuated::<FnArg, Token![,]>::parse_terminated(&arguments)?;
                    rows.parse::<ReturnType>()?;
                    let mut body: Block = rows.parse()?;
                    let opening = match mode.to_string().as_str() {
                        "serving" => "Network::open_and_serve(host)?;",
                        "acting" | "reading" => "Network::open(host)?;",
                        _ => "",
                    };
                    let value = if attributes.is_empty() { "dispatch::no_value(host)?;" } else { "" };
                    let first: Block = syn::parse_str(&format!("{{ {value} {gas} {opening} }}"))?;
                    body.stmts.splice(0..0, first.stmts);
                    let name = call.to_string().trim_end_matches("Call").to_string();
                    found.push(Function { module: "programs".into(), owner: None, name, body });
                }
            }
        }
        Ok(())
    };
    let mut tables = Some(tables);
    for item in parsed.items {
        if let Item::Macro(item) = item {
            if item.mac.path.is_ident("program") {
                let Some(parse) = tables.take() else { break };
                parse.parse2(item.mac.tokens).with_context(|| file.display().to_string())?;
            }
        }
    }
    Ok(found)
}

/// Follows calls to their ends.
fn close(functions: &[Function], mut calls: BTreeSet<usize>, errors: &mut BTreeSet<String>) {
    let mut done = BTreeSet::new();
    while let Some(next) = calls.pop_first() {
        if done.insert(next) {
            let here = &functions[next];
            let mut walk = Walk { functions, here, calls: BTreeSet::new(), errors: BTreeSet::new() };
            walk.visit_block(&here.body);
            calls.append(&mut walk.calls);
            errors.append(&mut walk.errors);
        }
    }
}

fn read(file: &Path, module: &str, out: &mut Vec<Function>) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
    let falls = |output: &ReturnType| match output {
        ReturnType::Type(_, kind) => match &**kind {
            Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident.to_string().ends_with("Result")),
            _ => false,
        },
        ReturnType::Default => false,
    };
    let mut add = |owner: Option<&str>, signature: &syn::Signature, body: &Block| {
        if falls(&signature.output) {
            let (owner, name) = (owner.map(String::from), signature.ident.to_string());
            out.push(Function { module: module.into(), owner, name, body: body.clone() });
        }
    };
    for item in &parsed.items {
        match item {
            Item::Fn(function) => add(None, &function.sig, &function.block),
            Item::Impl(block) => {
                let Type::Path(owner) = &*block.self_ty else { continue };
                let owner = owner.path.segments.last().map(|last| last.ident.to_string());
                for item in &block.items {
                    if let ImplItem::Fn(function) = item {
                        add(owner.as_deref(), &function.sig, &function.block);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Collects the errors that a function's body raises, and its calls.
struct Walk<'a> {
    functions: &'a [Function],
    here: &'a Function,
    calls: BTreeSet<usize>,
    errors: BTreeSet<String>,
}

impl Walk<'_> {
    fn call(&mut self, fits: impl Fn(&Function) -> bool) {
        self.calls.extend(self.functions.iter().enumerate().filter(|(_, f)| fits(f)).map(|(i, _)| i));
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        self.call(|f| f.owner.is_some() && node.method == f.name);
        visit::visit_expr_method_call(self, node);
    }

    fn visit_expr_path(&mut self, node: &'ast syn::ExprPath) {
        let mut path: Vec<String> = node.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let name = path.pop().unwrap_or_default();
        let here = (self.here.module.clone(), self.here.owner.clone());
        match path.pop() {
            None => {
                let own = |f: &Function| f.owner.is_none() && f.name == name && f.module == here.0;
                let there = self.functions.iter().any(own);
                self.call(|f| if there { own(f) } else { f.owner.is_none() && f.name == name });
            }
            Some(of) => {
                self.call(|f| {
                    f.name == name && (f.owner.as_deref() == Some(&of) || f.module == of || (of == "Self" && f.owner == here.1))
                });
            }
        }
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        let Some(last) = node.path.segments.last() else { return };
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(node.tokens.clone());
        let Ok(arguments) = arguments else { return };
        let raised = match last.ident.to_string().as_str() {
            "refusal" => arguments.first(),
            "ensure" => arguments.iter().nth(1),
            _ => None,
        };
        let name = match raised {
            Some(Expr::Call(call)) => match &*call.func {
                Expr::Path(path) => path.path.get_ident(),
                _ => None,
            },
            Some(Expr::Path(path)) => path.path.get_ident(),
            _ => None,
        };
        self.errors.extend(name.map(|name| name.to_string()));
        arguments.iter().for_each(|argument| self.visit_expr(argument));
    }
}

/// An error of the interface.
struct Refusal {
    error: Error,
    /// When it is raised, as the interface has it.
    notice: String,
    /// The functions that can raise it; none for an error that any call can meet.
    by: Option<BTreeSet<String>>,
}

/// Every error of the interface.
fn refusals(root: &Path) -> Result<Vec<Refusal>> {
    let mut raised = raised(root)?;
    let mut notices = notices(&fs::read_to_string(root.join("abi/IMuster.sol"))?);
    let all = interface().errors.into_values().flatten();
    all.map(|error| {
        let notice =
            notices.remove(&error.name).with_context(|| format!("error {} has no @notice in abi/IMuster.sol", error.name))?;
        let raised = raised.remove(&error.name);
        let by = if ANY.contains(&error.name.as_str()) {
            None
        } else {
            Some(raised.with_context(|| format!("nothing raises {}: delete it from abi/IMuster.sol", error.name))?)
        };
        Ok(Refusal { error, notice, by })
    })
    .collect()
}

/// `abi/refusals.json`: of each error when it is raised, and by which functions; `null` for any call.
///
/// # Errors
/// As [`page`].
pub fn json(root: &Path) -> Result<String> {
    let line = |Refusal { error, notice, by }| {
        let [name, notice, by] = [json!(error.name), json!(notice), json!(by)];
        format!("  {{\"name\":{name},\"notice\":{notice},\"by\":{by}}}")
    };
    let lines: Vec<String> = refusals(root)?.into_iter().map(line).collect();
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

/// The text of the page.
///
/// # Errors
/// When a source cannot be read, or an error has no `@notice` or is raised by nothing.
pub fn page(root: &Path) -> Result<String> {
    let mut page = String::from(HEAD);
    let all: BTreeSet<String> = interface().functions().map(|function| function.name.clone()).collect();
    for Refusal { error, notice, by } in refusals(root)? {
        let values: Vec<String> = error.inputs.iter().map(|input| format!("{} {}", input.selector_type(), input.name)).collect();
        let list =
            |names: &mut dyn Iterator<Item = &String>| names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let by = match by {
            None => "any call".to_string(),
            Some(functions) => match functions.len() {
                n if n == all.len() => "every function".to_string(),
                n if n * 2 > all.len() => format!("every function but {}", list(&mut all.difference(&functions))),
                _ => list(&mut functions.iter()),
            },
        };
        let selector = hex::encode_prefixed(error.selector());
        page += &row(&[&format!("`{}({})`", error.name, values.join(", ")), &format!("`{selector}`"), &notice, &by]);
    }
    Ok(page)
}

const HEAD: &str = "\
# Refusals

[All pages](../README.md)

Written by `script/abi` from `abi/IMuster.sol` and the contracts' sources; `script/abi --check` fails when it differs.

A refused call changes nothing, keeps no value and returns one of these errors. The last column comes from the sources, by
following calls by name. It may name a function too many, and never one too few.

Two refusals have no type, because the platform gives them. A call that re-enters Muster during a payment reverts without
data. A call without enough gas fails as any call out of gas does. Muster ignores bytes after a function's declared arguments.

| error and its values | selector | raised when | by |
| --- | --- | --- | --- |
";

/// The `@notice` above each error.
fn notices(solidity: &str) -> BTreeMap<String, String> {
    let lines = documented(solidity).into_iter();
    let found = lines.filter_map(|(comment, line)| {
        let (name, _) = line.strip_prefix("error ")?.split_once('(')?;
        Some((name.to_string(), comment.strip_prefix("@notice ")?.to_string()))
    });
    found.collect()
}
