//! Profiles of applications: how their groups are chosen by ratings.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::flow::serve::settled;
use crate::host::{offset, Host};
use crate::policy::rated::profile_words;
use crate::store::layout::profile as words;
use crate::store::layout::profile_slot;
use crate::{IMuster, Result};
use muster_core::record::{Profile, TargetSearch};
use muster_core::word::Address;

impl<H: Host> Network<'_, H> {
    /// See `IMuster.setProfile`.
    pub fn set_profile(&mut self, given: IMuster::Profile) -> Result<()> {
        settled(self)?;
        let profile = Profile {
            algorithm: given.algorithm,
            least: given.least,
            most: given.most,
            reschedules: given.reschedules,
            targeting: given.targeting,
            target: given.target,
            alpha: given.alpha,
            period: given.period,
        };
        ensure!(profile.valid(), BadProfile);
        let application = self.host.sender();
        let at = profile_slot(self.host, application);
        self.host.put(offset(at, words::PROFILE), &profile);
        self.host.put(offset(at, words::TARGET_SEARCH), &TargetSearch::START);
        emit::<ProfileSet>(self.host, (application,), (given,));
        Ok(())
    }

    /// See `IMuster.profile`.
    pub fn profile(&self, application: Address) -> (IMuster::Profile, u32, u32, u32) {
        let (p, search) = profile_words(self, application);
        let profile = IMuster::Profile {
            algorithm: p.algorithm,
            least: p.least,
            most: p.most,
            reschedules: p.reschedules,
            targeting: p.targeting,
            target: p.target,
            alpha: p.alpha,
            period: p.period,
        };
        (profile, search.groups, search.successes, search.members)
    }
}
