//! Random programs, run by the node and by a small interpreter written apart from it: the same result and the same ink.
//!
//! The node charges inside instrumented, compiled code; the interpreter walks the original instructions and pays for
//! each basic block when it enters it. Host functions and the start are covered elsewhere.

mod support;

use std::collections::HashMap;

use muster_devnode::evm::Status;
use support::chain::Chain;
use support::Random;
use wasmparser::{Operator, Parser, Payload};

/// Writes one function at a time; functions call later ones only, and loops share a budget, so all programs end.
struct Writer<'r> {
    random: &'r mut Random,
    function: usize,
    functions: usize,
}

const OPERATIONS: [&str; 14] = [
    "i32.add",
    "i32.sub",
    "i32.mul",
    "i32.and",
    "i32.or",
    "i32.xor",
    "i32.shl",
    "i32.rotl",
    "i32.lt_u",
    "i32.gt_s",
    "i32.eq",
    "i32.ne",
    "i32.shr_u",
    "i32.rotr",
];

impl Writer<'_> {
    fn value(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.random.below(2) {
                0 => format!("(i32.const {})", self.random.next() as i32 >> self.random.below(31)),
                _ => format!("(local.get {})", self.random.below(4)),
            };
        }
        let d = depth - 1;
        match self.random.below(9) {
            0 => self.value(0),
            1 => format!("(i32.div_u {} (i32.or (i32.const 1) {}))", self.value(d), self.value(d)),
            2 => format!("(select {} {} {})", self.value(d), self.value(d), self.value(d)),
            3 => format!("(i32.load (i32.and (i32.const 1020) {}))", self.value(d)),
            4 => format!("(i32.popcnt (i32.clz (i32.eqz {})))", self.value(d)),
            5 => format!("(local.tee {} {})", self.random.below(4), self.value(d)),
            6 if self.function + 1 < self.functions => {
                let callee = self.function + 1 + self.random.below(self.functions - self.function - 1);
                format!("(call $f{callee} {} {})", self.value(d), self.value(d))
            }
            7 => format!("(if (result i32) {} (then {}) (else {}))", self.value(d), self.value(d), self.value(d)),
            _ => {
                let operation = OPERATIONS[self.random.below(OPERATIONS.len())];
                format!("({operation} {} {})", self.value(d), self.value(d))
            }
        }
    }

    fn statements(&mut self, depth: u32) -> String {
        (0..=self.random.below(3)).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: u32) -> String {
        let d = depth.saturating_sub(1);
        match self.random.below(if depth == 0 { 5 } else { 11 }) {
            0 | 1 => format!("(local.set {} {})", self.random.below(4), self.value(2)),
            2 => format!("(drop {})", self.value(3)),
            3 => format!("(i32.store8 (i32.and (i32.const 1023) {}) {})", self.value(1), self.value(1)),
            4 => format!(
                "(memory.{} (i32.and (i32.const 255) {}) {} (i32.and (i32.const 255) {}))",
                ["fill", "copy"][self.random.below(2)],
                self.value(1),
                format_args!("(i32.and (i32.const 255) {})", self.value(1)),
                self.value(1)
            ),
            5 => format!("(if {} (then {}))", self.value(2), self.statements(d)),
            6 => format!("(if {} (then {}) (else {}))", self.value(2), self.statements(d), self.statements(d)),
            7 => format!("(block {} (br_if 0 {}) {})", self.statements(d), self.value(1), self.statements(d)),
            8 => format!(
                "(loop {} (global.set $budget (i32.sub (global.get $budget) (i32.const 1)))
                 (br_if 0 (i32.and (i32.gt_s (global.get $budget) (i32.const 0)) (i32.ne (i32.const 0) {}))))",
                self.statements(d),
                self.value(1)
            ),
            9 => format!(
                "(block (block (block (br_table 0 1 2 1 (i32.and (i32.const 3) {}))) {} (br 1)) {})",
                self.value(1),
                self.statements(d),
                self.statements(d)
            ),
            _ => format!("(if {} (then (return {})))", self.value(1), self.value(1)),
        }
    }

    fn function(&mut self) -> String {
        let (number, statements, result) = (self.function, self.statements(3), self.value(2));
        format!("(func $f{number} (param i32 i32) (result i32) (local i32 i32) {statements} {result})")
    }
}

fn program(random: &mut Random) -> String {
    let functions = 1 + random.below(4);
    let bodies: String = (0..functions).map(|function| Writer { random, function, functions }.function()).collect();
    format!(
        r#"(module
        (memory (export "memory") 1 1)
        (global $budget (mut i32) (i32.const 40))
        {bodies}
        (func (export "user_entrypoint") (param i32) (result i32)
            (i32.store (i32.const 2048) (call $f0 (i32.const 7) (i32.const 9)))
            (call $write_result (i32.const 2048) (i32.const 4))
            (i32.const 0)))"#
    )
}

/// The interpreter.
struct Machine<'a> {
    bodies: Vec<Vec<Operator<'a>>>,
    /// For each function: for each instruction, the block it begins, and where `end` and `else` of a scope lie.
    maps: Vec<Map>,
    memory: Vec<u8>,
    budget: i32,
    ink: u64,
}

#[derive(Default)]
struct Map {
    block_ink: HashMap<usize, u64>,
    ends: HashMap<usize, usize>,
    elses: HashMap<usize, usize>,
}

/// The price list again, for what the generator uses.
fn price(op: &Operator) -> u64 {
    use Operator::*;
    match op {
        I32Const { .. } | Return | Block { .. } | Loop { .. } | Else | End => 1,
        Drop => 9,
        Br { .. } | BrIf { .. } | If { .. } => 765,
        Select => 1250,
        Call { .. } => 3800,
        LocalGet { .. } | LocalTee { .. } => 75,
        LocalSet { .. } => 210,
        GlobalGet { .. } => 225,
        GlobalSet { .. } => 575,
        I32Load { .. } => 670,
        I32Store { .. } | I32Store8 { .. } => 825,
        I32Eqz | I32Eq | I32Ne | I32LtU | I32GtS => 170,
        I32Clz => 210,
        I32Popcnt => 2650,
        I32Mul => 160,
        I32DivU => 1120,
        I32Add | I32Sub | I32And | I32Or | I32Xor | I32Shl | I32ShrU | I32Rotl | I32Rotr => 70,
        MemoryFill { .. } | MemoryCopy { .. } => 950,
        BrTable { targets } => 2400 + 325 * u64::from(targets.len()),
        other => panic!("no price for {other:?}"),
    }
}

impl<'a> Machine<'a> {
    fn new(wasm: &'a [u8]) -> Self {
        let mut bodies = vec![];
        for payload in Parser::new(0).parse_all(wasm) {
            if let Payload::CodeSectionEntry(body) = payload.unwrap() {
                bodies.push(body.get_operators_reader().unwrap().into_iter().map(|op| op.unwrap()).collect::<Vec<_>>());
            }
        }
        let maps = bodies.iter().map(|body| Self::map(body)).collect();
        Self { bodies, maps, memory: vec![0; 65_536], budget: 40, ink: 0 }
    }

    fn map(body: &[Operator]) -> Map {
        use Operator::*;
        let mut map = Map::default();
        let (mut start, mut ink) = (0, 0);
        let mut open = vec![];
        for (at, op) in body.iter().enumerate() {
            ink += price(op);
            match op {
                Block { .. } | Loop { .. } | If { .. } => open.push(at),
                Else => drop(map.elses.insert(*open.last().unwrap(), at)),
                End => drop(open.pop().map(|scope| map.ends.insert(scope, at))),
                _ => {}
            }
            let ends = matches!(
                op,
                End | Else | Return | Loop { .. } | Br { .. } | BrIf { .. } | BrTable { .. } | If { .. } | Call { .. }
            );
            if ends {
                map.block_ink.insert(start, ink + 2450);
                (start, ink) = (at + 1, 0);
            }
        }
        map
    }

    /// Runs function `index`, not counting the import.
    fn call(&mut self, index: usize, parameters: &[i32]) -> i32 {
        use Operator::*;
        let body = self.bodies[index].clone();
        let mut locals = [0i32; 4];
        locals[..parameters.len()].copy_from_slice(parameters);
        let mut stack: Vec<i32> = vec![];
        // Scopes: where they begin, and the height of the stack there.
        let mut scopes: Vec<(usize, usize)> = vec![];
        let mut at = 0;
        while at < body.len() {
            self.ink += self.maps[index].block_ink.get(&at).copied().unwrap_or_default();
            let op = &body[at];
            let mut next = at + 1;
            macro_rules! pop {
                () => {
                    stack.pop().unwrap()
                };
            }
            macro_rules! binary {
                (|$a:ident, $b:ident| $result:expr) => {{
                    let ($b, $a) = (pop!(), pop!());
                    stack.push($result);
                }};
            }
            macro_rules! branch {
                ($depth:expr) => {{
                    let depth = $depth as usize;
                    let scope = scopes.len() - 1 - depth;
                    let (begin, height) = scopes[scope];
                    if matches!(body[begin], Loop { .. }) {
                        scopes.truncate(scope + 1);
                        next = begin + 1;
                    } else {
                        scopes.truncate(scope);
                        next = self.maps[index].ends[&begin] + 1;
                    }
                    stack.truncate(height);
                }};
            }
            match op {
                I32Const { value } => stack.push(*value),
                LocalGet { local_index } => stack.push(locals[*local_index as usize]),
                LocalSet { local_index } => locals[*local_index as usize] = pop!(),
                LocalTee { local_index } => locals[*local_index as usize] = *stack.last().unwrap(),
                GlobalGet { .. } => stack.push(self.budget),
                GlobalSet { .. } => self.budget = pop!(),
                Drop => drop(pop!()),
                Select => {
                    let (c, b, a) = (pop!(), pop!(), pop!());
                    stack.push(if c != 0 { a } else { b });
                }
                I32Add => binary!(|a, b| a.wrapping_add(b)),
                I32Sub => binary!(|a, b| a.wrapping_sub(b)),
                I32Mul => binary!(|a, b| a.wrapping_mul(b)),
                I32DivU => binary!(|a, b| (a as u32 / b as u32) as i32),
                I32And => binary!(|a, b| a & b),
                I32Or => binary!(|a, b| a | b),
                I32Xor => binary!(|a, b| a ^ b),
                I32Shl => binary!(|a, b| a.wrapping_shl(b as u32)),
                I32ShrU => binary!(|a, b| (a as u32).wrapping_shr(b as u32) as i32),
                I32Rotl => binary!(|a, b| a.rotate_left(b as u32 % 32)),
                I32Rotr => binary!(|a, b| a.rotate_right(b as u32 % 32)),
                I32LtU => binary!(|a, b| i32::from((a as u32) < b as u32)),
                I32GtS => binary!(|a, b| i32::from(a > b)),
                I32Eq => binary!(|a, b| i32::from(a == b)),
                I32Ne => binary!(|a, b| i32::from(a != b)),
                I32Eqz => {
                    let a = pop!();
                    stack.push(i32::from(a == 0));
                }
                I32Clz => {
                    let a = pop!();
                    stack.push(a.leading_zeros() as i32);
                }
                I32Popcnt => {
                    let a = pop!();
                    stack.push(a.count_ones() as i32);
                }
                I32Load { .. } => {
                    let a = pop!() as usize;
                    stack.push(i32::from_le_bytes(self.memory[a..a + 4].try_into().unwrap()));
                }
                I32Store { .. } => {
                    let (value, a) = (pop!(), pop!() as usize);
                    self.memory[a..a + 4].copy_from_slice(&value.to_le_bytes());
                }
                I32Store8 { .. } => {
                    let (value, a) = (pop!(), pop!() as usize);
                    self.memory[a] = value as u8;
                }
                MemoryFill { .. } => {
                    let (len, value, to) = (pop!() as usize, pop!(), pop!() as usize);
                    self.ink += 100 * len as u64;
                    self.memory[to..to + len].fill(value as u8);
                }
                MemoryCopy { .. } => {
                    let (len, from, to) = (pop!() as usize, pop!() as usize, pop!() as usize);
                    self.ink += 100 * len as u64;
                    self.memory.copy_within(from..from + len, to);
                }
                Block { .. } | Loop { .. } => scopes.push((at, stack.len())),
                If { .. } => {
                    let condition = pop!();
                    if condition != 0 {
                        scopes.push((at, stack.len()));
                    } else if let Some(other) = self.maps[index].elses.get(&at) {
                        scopes.push((at, stack.len()));
                        next = other + 1;
                    } else {
                        next = self.maps[index].ends[&at] + 1;
                    }
                }
                Else => {
                    let (begin, _) = scopes.pop().unwrap();
                    next = self.maps[index].ends[&begin] + 1;
                }
                End => drop(scopes.pop()),
                Br { relative_depth } => branch!(*relative_depth),
                BrIf { relative_depth } => {
                    if pop!() != 0 {
                        branch!(*relative_depth);
                    }
                }
                BrTable { targets } => {
                    let chosen = pop!() as u32;
                    let depths: Vec<u32> = targets.targets().map(|t| t.unwrap()).collect();
                    branch!(depths.get(chosen as usize).copied().unwrap_or(targets.default()));
                }
                Return => return pop!(),
                // The import: its price is added by the test.
                Call { function_index: 0 } => stack.truncate(stack.len() - 2),
                Call { function_index } => {
                    let (b, a) = (pop!(), pop!());
                    let result = self.call(*function_index as usize - 1, &[a, b]);
                    stack.push(result);
                }
                other => panic!("can't run {other:?}"),
            }
            at = next;
        }
        stack.pop().unwrap()
    }
}

#[test]
fn compiled_and_interpreted_programs_agree() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut chain = Chain::new();
    let start = chain.state.clone();
    let (mut total, mut longest) = (0u64, 0);
    for round in 0..200 {
        chain.state = start.clone();
        let wat = program(&mut random);
        let wasm = support::program::wasm(&wat);
        let address = chain.program(&wat);
        let outcome = chain.send(address, vec![]);
        assert_eq!(outcome.status, Status::Success, "round {round}: {outcome:?}\n{wat}");

        let mut machine = Machine::new(&wasm);
        let main = machine.bodies.len() - 1;
        assert_eq!(machine.call(main, &[0]), 0);
        // write_result: hostio and 4 bytes read twice.
        let expected = machine.ink + 8400 + 2 * 16_381;
        let frame = &outcome.stylus[0];
        assert_eq!(outcome.output.as_ref(), &machine.memory[2048..2052], "round {round}\n{wat}");
        assert_eq!(frame.ink_start - frame.ink_end, expected, "round {round}\n{wat}");
        total += expected;
        longest = longest.max(expected);
    }
    // The programs do something.
    assert!(total > 200 * 100_000 && longest > 5_000_000, "{total} ink in all, {longest} at most");
}
