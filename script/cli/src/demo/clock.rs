//! Time on chain: set by us where the node lets us, else it passes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{json, Value};

use crate::chain::Chain;

pub struct Clock {
    /// Whether the node lets us set the time.
    pub travels: bool,
    pub now: u64,
}

impl Clock {
    /// One that begins after the newest block. In real time nothing is set.
    pub async fn of(chain: &Chain, real_time: bool) -> Result<Self> {
        let now = chain.now().await? + 1;
        Ok(Self { travels: !real_time && set(chain, now).await.is_ok(), now })
    }

    /// Before a transaction: its block gets the time it is.
    pub async fn before(&mut self, chain: &Chain) -> Result<()> {
        if self.travels {
            // Blocks mined without a time of their own follow the node's clock, which may be ahead.
            self.now = chain.now().await?.max(self.now);
            set(chain, self.now).await?;
        }
        Ok(())
    }

    /// After a transaction.
    pub async fn after(&mut self, chain: &Chain) -> Result<()> {
        if !self.travels {
            self.now = chain.now().await?.max(self.now);
        }
        Ok(())
    }

    /// Lets a block pass in which nothing happens.
    pub async fn pass(&mut self, chain: &Chain) -> Result<()> {
        if !self.travels {
            return self.wait_until(self.now + 1).await;
        }
        self.before(chain).await?;
        Ok(chain.endpoints.ask::<Value>("evm_mine", json!([])).await.map(drop)?)
    }

    /// Whether the chain has come as far as we have.
    pub async fn has_chain_caught_up(&self, chain: &Chain) -> Result<bool> {
        Ok(self.travels || chain.now().await? >= self.now)
    }

    pub async fn wait_until(&mut self, at: u64) -> Result<()> {
        if self.travels {
            self.now = self.now.max(at);
            return Ok(());
        }
        while self.now < at {
            tokio::time::sleep(Duration::from_secs((at - self.now).min(5))).await;
            let clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
            self.now = self.now.max(clock);
        }
        Ok(())
    }
}

async fn set(chain: &Chain, time: u64) -> Result<()> {
    Ok(chain.endpoints.ask::<Value>("evm_setNextBlockTimestamp", [time]).await.map(drop)?)
}
