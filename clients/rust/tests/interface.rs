//! Every error and every event of the interface can be read, also future ones.

use alloy::dyn_abi::{DynSolType, DynSolValue, Specifier};
use alloy::json_abi::JsonAbi;
use alloy::primitives::{Address, Log, LogData, B256, I256, U256};
use muster_client::{abi, Refusal};

fn interface() -> JsonAbi {
    serde_json::from_str(include_str!("../../../abi/IMuster.json")).unwrap()
}

/// A value of a type, another for each seed.
fn sample(ty: &DynSolType, seed: u8) -> DynSolValue {
    match ty {
        DynSolType::Bool => DynSolValue::Bool(seed % 2 == 1),
        DynSolType::Int(bits) => DynSolValue::Int(I256::try_from(seed).unwrap(), *bits),
        DynSolType::Uint(bits) => DynSolValue::Uint(U256::from(seed), *bits),
        DynSolType::FixedBytes(size) => DynSolValue::FixedBytes(B256::right_padding_from(&vec![seed; *size]), *size),
        DynSolType::Address => DynSolValue::Address(Address::repeat_byte(seed)),
        DynSolType::Bytes => DynSolValue::Bytes(vec![seed; seed as usize]),
        DynSolType::String => DynSolValue::String("x".repeat(seed as usize)),
        DynSolType::Array(of) => DynSolValue::Array((0..=seed % 3).map(|i| sample(of, seed + i)).collect()),
        DynSolType::FixedArray(of, size) => DynSolValue::FixedArray((0..*size).map(|i| sample(of, seed + i as u8)).collect()),
        DynSolType::Tuple(parts) => DynSolValue::Tuple(parts.iter().zip(seed..).map(|(part, seed)| sample(part, seed)).collect()),
        DynSolType::CustomStruct { name, prop_names, tuple } => {
            let tuple = tuple.iter().zip(seed..).map(|(part, seed)| sample(part, seed)).collect();
            DynSolValue::CustomStruct { name: name.clone(), prop_names: prop_names.clone(), tuple }
        }
        other @ DynSolType::Function => panic!("{other:?} is new in the interface"),
    }
}

#[test]
fn every_error_is_read_with_its_arguments() {
    let interface = interface();
    assert!(interface.errors().count() > 60);
    for error in interface.errors() {
        for seed in [1, 7] {
            let values = error.inputs.iter().zip(seed..).map(|(input, seed)| sample(&input.resolve().unwrap(), seed)).collect();
            let arguments = DynSolValue::Tuple(values).abi_encode_params();
            let data = [&error.selector()[..], &arguments].concat();
            let refusal = Refusal::decode(&data);
            assert_eq!(refusal.name(), Some(error.name.as_str()));
            let Refusal::Known(reason) = &refusal else { panic!("{} is not known", error.name) };
            assert_eq!(alloy::sol_types::SolInterface::abi_encode(reason), data, "{}", error.name);
            assert!(refusal.notice().is_some_and(|text| text.len() > 10), "{}", error.name);
            assert!(refusal.to_string().starts_with(&error.name), "{refusal}");
            for input in &error.inputs {
                assert!(refusal.to_string().contains(&format!("{}: ", input.name)), "{refusal}");
            }
        }
    }
}

#[test]
fn every_event_is_read_with_its_values() {
    let interface = interface();
    assert!(interface.events().count() > 50);
    for event in interface.events() {
        let (mut topics, mut plain) = (vec![event.selector()], Vec::new());
        for (input, seed) in event.inputs.iter().zip(3..) {
            let value = sample(&input.resolve().unwrap(), seed);
            if input.indexed {
                topics.push(value.as_word().expect("only words are indexed"));
            } else {
                plain.push(value);
            }
        }
        let data = DynSolValue::Tuple(plain).abi_encode_params();
        let log = Log { address: Address::ZERO, data: LogData::new(topics, data.into()).unwrap() };
        let read = abi::event(&log).unwrap_or_else(|| panic!("{} is not read", event.name));
        let text = abi::describe(&read);
        assert!(text.starts_with(&event.name), "{text}");
        assert_eq!(alloy::primitives::IntoLogData::to_log_data(&read), log.data, "{}", event.name);
    }
}
