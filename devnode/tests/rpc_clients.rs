//! The Rust clients people use, ethers and alloy, over HTTP and WebSocket.

use std::sync::Arc;
use std::time::Duration;

use muster_devnode::chain::NITRO_DEV_KEY;
use muster_devnode::rpc::Patience;
use muster_devnode::{Config, Devnode};

const PROBE: &str = include_str!("Probe.json");

fn start() -> Devnode {
    Devnode::start(Config::default()).unwrap()
}

mod with_ethers {
    use super::*;
    use ethers::abi::{Abi, Token};
    use ethers::contract::{Contract, ContractFactory};
    use ethers::core::types::{Address, BlockNumber, Filter, TransactionRequest, H256, U256};
    use ethers::middleware::SignerMiddleware;
    use ethers::providers::{Http, Middleware, Provider, StreamExt, Ws};
    use ethers::signers::{LocalWallet, Signer};

    fn artefact() -> (Abi, Vec<u8>) {
        let json: serde_json::Value = serde_json::from_str(PROBE).unwrap();
        let abi = serde_json::from_value(json["abi"].clone()).unwrap();
        (abi, alloy_primitives::hex::decode(json["bytecode"].as_str().unwrap()).unwrap())
    }

    fn wallet() -> LocalWallet {
        NITRO_DEV_KEY.parse::<LocalWallet>().unwrap().with_chain_id(412_346u64)
    }

    type Client<P> = Arc<SignerMiddleware<Provider<P>, LocalWallet>>;

    async fn deploy(client: Client<Http>) -> Contract<SignerMiddleware<Provider<Http>, LocalWallet>> {
        let (abi, code) = artefact();
        let owner = client.address();
        ContractFactory::new(abi, code.into(), client).deploy((owner, U256::from(40))).unwrap().send().await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_contract_from_deployment_to_events() {
        let node = start();
        let provider = Provider::<Http>::try_from(node.url()).unwrap().interval(Duration::from_millis(5));
        assert_eq!(provider.get_chainid().await.unwrap(), U256::from(412_346));
        let client = Arc::new(SignerMiddleware::new(provider, wallet()));
        let probe = deploy(client.clone()).await;
        assert_eq!(probe.method::<_, U256>("number", ()).unwrap().call().await.unwrap(), U256::from(40));
        let receipt = probe.method::<_, U256>("count", U256::from(2)).unwrap().send().await.unwrap().await.unwrap().unwrap();
        assert_eq!(receipt.status, Some(1.into()));
        assert_eq!(receipt.logs.len(), 1);
        let logs = client
            .get_logs(&Filter::new().address(probe.address()).from_block(0).event("Counted(address,uint256,bytes32)"))
            .await
            .unwrap();
        assert_eq!(logs.len(), 1);
        assert_eq!(logs[0].topics[1], H256::from(client.address()));
        assert_eq!(logs[0].topics[2], H256::from_low_u64_be(42));
        // EIP-1559 by default, legacy on request.
        let tx = client.get_transaction(receipt.transaction_hash).await.unwrap().unwrap();
        assert_eq!(tx.transaction_type, Some(2.into()));
        let legacy = TransactionRequest::pay(Address::repeat_byte(3), 5);
        let receipt = client.send_transaction(legacy, None).await.unwrap().await.unwrap().unwrap();
        assert_eq!(receipt.gas_used, Some(21_000.into()));
        assert_eq!(client.get_balance(Address::repeat_byte(3), None).await.unwrap(), U256::from(5));
        let block = client.get_block_with_txs(BlockNumber::Latest).await.unwrap().unwrap();
        assert_eq!(block.transactions[0].hash, receipt.transaction_hash);
        let (_, old) = (client.get_block_number().await.unwrap(), Some(1u64.into()));
        assert_eq!(client.get_balance(Address::repeat_byte(3), old).await.unwrap(), U256::zero());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn typed_errors_arrive() {
        let node = start();
        let provider = Provider::<Http>::try_from(node.url()).unwrap().interval(Duration::from_millis(5));
        let client = Arc::new(SignerMiddleware::new(provider, wallet()));
        let probe = deploy(client).await;
        let call = probe.method::<_, U256>("count", U256::zero()).unwrap();
        let error = call.call().await.unwrap_err();
        let data = error.as_revert().expect("revert data").clone();
        let tokens = probe.abi().error("TooSmall").unwrap().decode(&data[4..]).unwrap();
        assert_eq!(tokens, vec![Token::Uint(0.into()), Token::Uint(1.into())]);
        // Sending asks for an estimate first, which carries the same data.
        assert!(call.send().await.unwrap_err().as_revert().is_some());
        let error = probe.method::<_, ()>("say", "not so".to_owned()).unwrap().call().await.unwrap_err();
        assert_eq!(error.decode_revert::<String>().as_deref(), Some("not so"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn subscriptions_over_websocket() {
        let node = start();
        let http = Provider::<Http>::try_from(node.url()).unwrap().interval(Duration::from_millis(5));
        let client = Arc::new(SignerMiddleware::new(http, wallet()));
        let probe = deploy(client.clone()).await;
        let ws = Provider::<Ws>::connect(node.ws_url()).await.unwrap();
        let mut heads = ws.subscribe_blocks().await.unwrap();
        let filter = Filter::new().address(probe.address());
        let mut logs = ws.subscribe_logs(&filter).await.unwrap();
        let mut of_the_past = ws.subscribe_logs(&filter.from_block(0).to_block(0)).await.unwrap();
        for by in 1..=3u64 {
            probe.method::<_, U256>("count", U256::from(by)).unwrap().send().await.unwrap().await.unwrap();
            let head = heads.next().await.unwrap();
            assert_eq!(head.number, Some((by + 1).into()));
            let log = logs.next().await.unwrap();
            assert_eq!(log.block_hash, head.hash);
        }
        assert!(tokio::time::timeout(Duration::from_millis(50), of_the_past.next()).await.is_err());
        // Dropping unsubscribes; ethers' own `unsubscribe` sends an id that the node has never given.
        drop((heads, logs, of_the_past));
        assert_eq!(ws.get_block_number().await.unwrap(), 4u64.into());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_senders_at_once() {
        let node = start();
        let mut tasks = Vec::new();
        for account in node.chain().accounts().to_vec() {
            let key = node.chain().signer(account).unwrap().to_bytes();
            let url = node.url();
            tasks.push(tokio::spawn(async move {
                let wallet = LocalWallet::from_bytes(&key.0).unwrap().with_chain_id(412_346u64);
                let provider = Provider::<Http>::try_from(url).unwrap().interval(Duration::from_millis(5));
                let client = SignerMiddleware::new(provider, wallet);
                for _ in 0..10 {
                    let tx = TransactionRequest::pay(Address::repeat_byte(8), 1);
                    let receipt = client.send_transaction(tx, None).await.unwrap().await.unwrap().unwrap();
                    assert_eq!(receipt.status, Some(1.into()));
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(node.chain().head().header.number, 110);
    }
}

mod with_alloy {
    use super::*;
    use alloy::network::TransactionBuilder;
    use alloy::primitives::{Address, B256, U256};
    use alloy::providers::{Provider, ProviderBuilder, WsConnect};
    use alloy::rpc::types::{Filter, TransactionRequest};
    use alloy::signers::local::PrivateKeySigner;
    use alloy::sol;
    use futures_util::StreamExt;

    sol! {
        #[sol(rpc)]
        #[derive(Debug)]
        Probe,
        "tests/Probe.json"
    }

    fn signer() -> PrivateKeySigner {
        NITRO_DEV_KEY.parse().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_contract_from_deployment_to_events() {
        let node = start();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let provider = ProviderBuilder::new().wallet(signer()).connect_http(node.url().parse().unwrap());
        provider.client().set_poll_interval(Duration::from_millis(5));
        assert_eq!(provider.get_chain_id().await.unwrap(), 412_346);
        let me = signer().address();
        let probe = Probe::deploy(&provider, me, U256::from(40)).await.unwrap();
        assert_eq!(probe.owner().call().await.unwrap(), me);
        let receipt = probe.count(U256::from(2)).send().await.unwrap().get_receipt().await.unwrap();
        let event = receipt.decoded_log::<Probe::Counted>().unwrap();
        assert_eq!((event.by, event.number), (me, U256::from(42)));
        probe.file(7, "llama".into()).send().await.unwrap().get_receipt().await.unwrap();
        let filed = probe.Filed_filter().topic1(U256::from(7)).from_block(0).query().await.unwrap();
        assert_eq!(filed.len(), 1);
        assert_eq!(filed[0].0.job.model, "llama");
        let error = probe.count(U256::ZERO).call().await.unwrap_err();
        let error = error.as_decoded_error::<Probe::TooSmall>().unwrap();
        assert_eq!((error.given, error.least), (U256::ZERO, U256::from(1)));
        let attempt = probe.attempt(U256::ZERO).call().await.unwrap();
        assert!(!attempt.ok);
        let logs = provider.get_logs(&Filter::new().address(*probe.address()).from_block(0)).await.unwrap();
        assert_eq!(logs.len(), 3);
        assert_eq!(provider.get_storage_at(*probe.address(), U256::ZERO).await.unwrap(), U256::from(42));
        let fees = provider.estimate_eip1559_fees().await.unwrap();
        assert!(fees.max_fee_per_gas >= 100_000_000);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn subscriptions_over_websocket() {
        let node = start();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let provider = ProviderBuilder::new().wallet(signer()).connect_ws(WsConnect::new(node.ws_url())).await.unwrap();
        let mut heads = provider.subscribe_blocks().await.unwrap().into_stream();
        let probe = Probe::deploy(&provider, signer().address(), U256::from(1)).await.unwrap();
        let mut counted = probe.Counted_filter().subscribe().await.unwrap().into_stream();
        probe.count(U256::from(5)).send().await.unwrap().get_receipt().await.unwrap();
        let (event, log) = counted.next().await.unwrap().unwrap();
        assert_eq!(event.number, U256::from(6));
        assert_eq!(heads.next().await.unwrap().number, 1);
        let second = heads.next().await.unwrap();
        assert_eq!((second.number, Some(second.hash)), (2, log.block_hash));
        // Subscriptions that do not exist, and ids of none.
        let refused = |error: alloy::transports::RpcError<alloy::transports::TransportErrorKind>| {
            let error = error.as_error_resp().unwrap().clone();
            (error.code, error.message.to_string())
        };
        let nothing = provider.raw_request::<_, String>("eth_subscribe".into(), ["blobs"]).await.unwrap_err();
        assert_eq!(refused(nothing), (-32601, r#"no "blobs" subscription in eth namespace"#.into()));
        let unknown = provider.raw_request::<_, bool>("eth_unsubscribe".into(), ["0x1"]).await.unwrap_err();
        assert_eq!(refused(unknown), (-32000, "subscription not found".into()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nonces_sent_together_all_arrive() {
        let patience = Patience { nonce: Duration::from_mins(2), ..Patience::default() };
        let node = Devnode::start(Config { patience, ..Config::default() }).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let provider = ProviderBuilder::new().wallet(signer()).connect_http(node.url().parse().unwrap());
        provider.client().set_poll_interval(Duration::from_millis(5));
        let sends = (0..20).map(|_| {
            let tx = TransactionRequest::default().with_to(Address::repeat_byte(4)).with_value(U256::from(1));
            let provider = provider.clone();
            async move { provider.send_transaction(tx).await.unwrap().watch().await.unwrap() }
        });
        let hashes: Vec<B256> = futures_util::future::join_all(sends).await;
        assert_eq!(hashes.len(), 20);
        assert_eq!(provider.get_balance(Address::repeat_byte(4)).await.unwrap(), U256::from(20));
    }
}
