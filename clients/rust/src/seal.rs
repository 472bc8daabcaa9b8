//! A node's answers: commitments, their salts, and results sealed under them. docs/stores.md has the format; clients/vectors.json has test
//! vectors for this library and the TypeScript package.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use alloy::hex;
use alloy::primitives::{keccak256, Address, B256};
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolValue;
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hkdf};
use zeroize::Zeroizing;

use crate::{key, Error};

/// Secret bytes of a salt; the others are of the result's digest.
const SECRET: usize = 16;

/// The digest of an input or a result: SHA-256 of its bytes.
pub fn digest_of(bytes: &[u8]) -> B256 {
    B256::from_slice(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// The reason why a sealed result, or a note, does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// Changed, cut, or sealed under another key.
    #[error("the seal is broken")]
    Broken,
    /// Sealed under this key, but the salt was made for another result.
    #[error("the salt names another result")]
    OtherResult,
}

/// The opening of a commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// 0 for an answer, 1 for an error.
    pub kind: u8,
    /// The result's digest, the hashes of its images, or an error's code.
    pub value: B256,
    /// The secret that makes it impossible to guess.
    pub salt: B256,
}

impl Opening {
    /// The node's commitment: keccak256(abi.encode(id, node, kind, value, salt)).
    pub fn commitment(&self, id: u64, node: u32) -> B256 {
        keccak256((id, node, u16::from(self.kind), self.value, self.salt).abi_encode())
    }
}

/// The value of an answer of perceptual hashes: the first image's in the first eight bytes, the most significant first.
/// A hash is never 0, which means that the image was not asked for.
pub fn image_value(hashes: [u64; 4]) -> B256 {
    let mut value = B256::ZERO;
    for (bytes, hash) in value.chunks_exact_mut(8).zip(hashes) {
        bytes.copy_from_slice(&hash.to_be_bytes());
    }
    value
}

/// The hashes in an answer of images, 0 where there is none.
pub fn image_hashes(value: B256) -> [u64; 4] {
    std::array::from_fn(|i| u64::from_be_bytes(value[8 * i..8 * i + 8].try_into().expect("8 bytes")))
}

/// Key and name of a node's sealed result, which follow from the salt.
#[derive(Clone)]
pub struct Seal {
    key: LessSafeKey,
    name: B256,
    salt: B256,
}

impl Seal {
    /// The seal of a task's result by a node.
    pub fn new(id: u64, node: u32, salt: B256) -> Self {
        let info = [&b"muster result 1"[..], &id.to_be_bytes(), &node.to_be_bytes()];
        let material = derive::<64>(&salt[..], &info);
        Self { key: aes(&material[..32]), name: B256::from_slice(&material[32..]), salt }
    }

    /// The object's name in stores.
    pub fn name(&self) -> B256 {
        self.name
    }

    /// Seals bytes that [`seal_result`](crate::seal_result) has sealed to the creator, so that the creator cannot read them before the
    /// reveal either. A key seals one object only, so the bytes must be the same each time.
    #[cfg(feature = "private")]
    pub fn seal_private(&self, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.close(sealed)
    }

    /// Seals a result.
    ///
    /// # Errors
    /// [`SealError::OtherResult`] if the salt was made for another one: a key seals one result only.
    pub fn seal(&self, result: &[u8]) -> Result<Vec<u8>, SealError> {
        self.names(result)?;
        self.close(result)
    }

    fn close(&self, result: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut object = Vec::with_capacity(result.len() + AES_256_GCM.tag_len());
        object.extend_from_slice(result);
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        self.key.seal_in_place_append_tag(nonce, Aad::empty(), &mut object).map_err(|_| SealError::Broken)?;
        Ok(object)
    }

    /// Opens a store's object.
    pub fn open(&self, object: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let result = self.open_unnamed(object)?;
        self.names(&result)?;
        Ok(result)
    }

    /// As `open`, but the content may be sealed to the creator, and then does not match the salt's digest.
    pub(crate) fn open_unnamed(&self, mut object: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let length = self.key.open_in_place(nonce, Aad::empty(), &mut object).map_err(|_| SealError::Broken)?.len();
        object.truncate(length);
        Ok(object)
    }

    pub(crate) fn names(&self, result: &[u8]) -> Result<(), SealError> {
        let matches = digest_of(result)[..SECRET] == self.salt[SECRET..];
        matches.then_some(()).ok_or(SealError::OtherResult)
    }
}

/// The assignment of an answer to a node. A task given again, after a group that came to nothing, has another deadline and so other
/// secrets: the first ones are public once revealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The task.
    pub id: u64,
    /// The node's number.
    pub node: u32,
    /// The deadline of its answer, in seconds since 1970.
    pub deadline: u64,
}

/// The root of accounts' secrets: 32 random bytes in a file; keep a copy elsewhere. It signs nothing, so the account's key
/// can be kept where no program can read it.
pub struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    #[cfg(feature = "private")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..]
    }

    /// From these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// From a file; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Key`] if it is no seed, or can be read by others than its owner; [`Error::File`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        if matches!(path.try_exists(), Ok(false)) {
            return Ok(None);
        }
        let text = key::password_from(path)?;
        let mut bytes = Zeroizing::new([0; 32]);
        let decoded = hex::decode_to_slice(text.trim(), &mut bytes[..]);
        decoded.map_err(|_| Error::Key(format!("{} is no seed: 32 bytes in hexadecimal", path.display())))?;
        Ok(Some(Self(bytes)))
    }

    /// Creates one and writes it to a new file.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.into(), source };
        let mut bytes = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(&mut bytes[..]).expect("the system gives random numbers");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(failed)?;
        let text = Zeroizing::new(hex::encode(&bytes[..]) + "\n");
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(Self(bytes))
    }

    /// Identifies the seed without revealing anything of it.
    pub fn fingerprint(&self) -> String {
        hex::encode(&derive::<4>(&self.0[..], &[b"muster fingerprint"])[..])
    }
}

/// An account's secrets for the tasks of one contract: derived from a seed, so the seed alone opens all its commitments.
pub struct Secrets {
    root: Zeroizing<[u8; 32]>,
    /// An older key for reading notes: from before seeds existed.
    former: Option<Zeroizing<[u8; 32]>>,
}

impl Secrets {
    /// The secrets of a seed, for an account of a contract of a chain.
    pub fn new(seed: &Seed, account: Address, chain: u64, contract: Address) -> Self {
        let info = [&b"muster secrets 2"[..], &chain.to_be_bytes(), contract.as_slice(), account.as_slice()];
        Self { root: derive(&seed.0[..], &info), former: None }
    }

    /// Also reads the older notes, whose secrets were derived from the account's key.
    #[must_use]
    pub fn and_of(mut self, key: &PrivateKeySigner, chain: u64, contract: Address) -> Self {
        let secret = Zeroizing::new(key.to_bytes().0);
        self.former = Some(derive(&secret[..], &[&b"muster secrets 1"[..], &chain.to_be_bytes(), contract.as_slice()]));
        self
    }

    fn of<const N: usize>(&self, what: &[u8], given: Given) -> Zeroizing<[u8; N]> {
        let Given { id, node, deadline } = given;
        derive(&self.root[..], &[what, &id.to_be_bytes(), &node.to_be_bytes(), &deadline.to_be_bytes()])
    }

    /// The salt of a commitment to a result: 16 secret bytes, then the first 16 of the result's SHA-256.
    pub fn salt(&self, given: Given, result: &[u8]) -> B256 {
        salt_of(*self.of::<SECRET>(b"salt", given), result)
    }

    /// A commitment to a result by its digest.
    pub fn answer(&self, given: Given, result: &[u8]) -> Opening {
        Opening { kind: 0, value: digest_of(result), salt: self.salt(given, result) }
    }

    /// A commitment to images by their hashes; `result` is the delivered object.
    pub fn images(&self, given: Given, hashes: [u64; 4], result: &[u8]) -> Opening {
        Opening { kind: 0, value: image_value(hashes), salt: self.salt(given, result) }
    }

    /// A commitment to an error; no object is stored, and all of its salt is secret.
    pub fn error(&self, given: Given, code: u8) -> Opening {
        let value = B256::left_padding_from(&[code]);
        Opening { kind: 1, value, salt: B256::from(*self.of::<32>(b"error", given)) }
    }

    /// An opening, encrypted for the account itself. It accompanies the commitment, for recovery from the seed alone.
    pub fn note(&self, id: u64, node: u32, opening: &Opening) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).expect("the system gives random numbers");
        let mut text = [&[opening.kind][..], &opening.value[..], &opening.salt[..]].concat();
        let sealed =
            note_key(&self.root, id, node).seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut text);
        sealed.expect("65 bytes can be sealed");
        [&nonce[..], &text].concat()
    }

    /// The opening in a note of this account.
    pub fn read_note(&self, id: u64, node: u32, note: &[u8]) -> Result<Opening, SealError> {
        let roots = std::iter::once(&self.root).chain(&self.former);
        let mut read = roots.map(|root| read_note(root, id, node, note));
        read.find(Result::is_ok).unwrap_or(Err(SealError::Broken))
    }
}

fn note_key(root: &[u8; 32], id: u64, node: u32) -> LessSafeKey {
    let info = [&b"note"[..], &id.to_be_bytes(), &node.to_be_bytes()];
    aes(&derive::<32>(&root[..], &info)[..])
}

fn read_note(root: &[u8; 32], id: u64, node: u32, note: &[u8]) -> Result<Opening, SealError> {
    let (nonce, text) = note.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Broken)?;
    let mut text = text.to_vec();
    let opened = note_key(root, id, node).open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut text);
    let opened: &[u8; 65] = (&*opened.map_err(|_| SealError::Broken)?).try_into().map_err(|_| SealError::Broken)?;
    Ok(Opening { kind: opened[0], value: B256::from_slice(&opened[1..33]), salt: B256::from_slice(&opened[33..]) })
}

/// Bytes of a [`note`](Secrets::note).
pub const NOTE: usize = NONCE_LEN + 65 + 16;

/// A salt of these secret bytes.
fn salt_of(secret: [u8; SECRET], result: &[u8]) -> B256 {
    let mut salt = B256::ZERO;
    salt[..SECRET].copy_from_slice(&secret);
    salt[SECRET..].copy_from_slice(&digest_of(result)[..SECRET]);
    salt
}

/// A key for AES-256-GCM.
fn aes(key: &[u8]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("a key of 32 bytes"))
}

/// HKDF-SHA-256 without a salt.
pub(crate) fn derive<const N: usize>(secret: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; N]> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = Zeroizing::new([0; N]);
    let key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(secret);
    let filled = key.expand(info, Length(N)).and_then(|okm| okm.fill(&mut out[..]));
    filled.expect("at most 255 hashes are asked for");
    out
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Vectors {
        seals: Vec<Sealed>,
        commitments: Vec<Committed>,
        images: Vec<Packed>,
    }
    #[derive(Deserialize)]
    struct Sealed {
        id: String,
        node: u32,
        secret: String,
        result: String,
        digest: B256,
        salt: B256,
        name: String,
        object: String,
    }
    #[derive(Deserialize)]
    struct Committed {
        id: String,
        node: u32,
        kind: u8,
        value: B256,
        salt: B256,
        commitment: B256,
    }
    #[derive(Deserialize)]
    struct Packed {
        hashes: [String; 4],
        value: B256,
    }

    fn vectors() -> Vectors {
        serde_json::from_str(include_str!("../../vectors.json")).unwrap()
    }

    #[test]
    fn seals_are_those_of_the_other_package() {
        for vector in vectors().seals {
            let (id, result) = (vector.id.parse().unwrap(), hex::decode(&vector.result).unwrap());
            assert_eq!(digest_of(&result), vector.digest);
            let secret = hex::decode(&vector.secret).unwrap().try_into().unwrap();
            assert_eq!(salt_of(secret, &result), vector.salt);
            let seal = Seal::new(id, vector.node, vector.salt);
            assert_eq!(hex::encode(seal.name()), vector.name);
            assert_eq!(hex::encode(seal.seal(&result).unwrap()), vector.object);
            assert_eq!(seal.open(hex::decode(&vector.object).unwrap()).unwrap(), result);
        }
    }

    #[test]
    fn commitments_and_images_are_those_of_the_other_package() {
        for vector in vectors().commitments {
            let opening = Opening { kind: vector.kind, value: vector.value, salt: vector.salt };
            assert_eq!(opening.commitment(vector.id.parse().unwrap(), vector.node), vector.commitment);
        }
        for vector in vectors().images {
            let hashes = vector.hashes.map(|hash| u64::from_str_radix(&hash, 16).unwrap());
            assert_eq!(image_value(hashes), vector.value);
            assert_eq!(image_hashes(vector.value), hashes);
        }
    }

    #[test]
    fn what_was_changed_does_not_open() {
        let secrets = secrets(1, 42_161);
        let salt = secrets.salt(Given { id: 7, node: 3, deadline: 99 }, b"a result");
        let seal = Seal::new(7, 3, salt);
        let object = seal.seal(b"a result").unwrap();
        for at in 0..object.len() {
            let mut changed = object.clone();
            changed[at] ^= 1;
            assert_eq!(seal.open(changed), Err(SealError::Broken));
            assert_eq!(seal.open(object[..at].to_vec()), Err(SealError::Broken));
        }
        for other in [Seal::new(8, 3, salt), Seal::new(7, 4, salt)] {
            assert_eq!(other.open(object.clone()), Err(SealError::Broken));
            assert_ne!(other.name(), seal.name());
        }
        assert_eq!(seal.seal(b"another"), Err(SealError::OtherResult));
        // Possible for anyone with the salt.
        let mut forged = b"another".to_vec();
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        seal.key.seal_in_place_append_tag(nonce, Aad::empty(), &mut forged).unwrap();
        assert_eq!(seal.open(forged), Err(SealError::OtherResult));
    }

    fn secrets(seed: u8, chain: u64) -> Secrets {
        Secrets::new(&Seed::new([seed; 32]), Address::repeat_byte(8), chain, Address::repeat_byte(9))
    }

    #[test]
    fn a_seed_is_a_file_of_its_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("seed");
        assert!(Seed::read(&path).unwrap().is_none());
        let seed = Seed::create(&path).unwrap();
        assert!(Seed::create(&path).is_err(), "never over another");
        assert_eq!(Seed::read(&path).unwrap().unwrap().fingerprint(), seed.fingerprint());
        assert_ne!(seed.fingerprint(), Seed::new([0; 32]).fingerprint());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(Seed::read(&path).is_err(), "others can read it");
        }
        std::fs::write(&path, "00").unwrap();
        assert!(Seed::read(&path).is_err());
    }

    #[test]
    fn notes_from_before_there_was_a_seed_are_read_with_the_key() {
        // Secrets as derived from the key.
        let key = PrivateKeySigner::from_bytes(&B256::repeat_byte(1)).unwrap();
        let root = *derive::<32>(&key.to_bytes()[..], &[&b"muster secrets 1"[..], &1u64.to_be_bytes(), &[9; 20]]);
        let before = Secrets { root: Zeroizing::new(root), former: None };
        let opening = before.error(Given { id: 5, node: 6, deadline: 7 }, 200);
        let note = before.note(5, 6, &opening);
        assert!(secrets(3, 1).read_note(5, 6, &note).is_err());
        let after = secrets(3, 1).and_of(&key, 1, Address::repeat_byte(9));
        assert_eq!(after.read_note(5, 6, &note), Ok(opening));
        let own = after.error(Given { id: 5, node: 6, deadline: 7 }, 200);
        assert_ne!(own, opening, "new salts do not follow from the key");
        assert_eq!(secrets(3, 1).read_note(5, 6, &after.note(5, 6, &own)), Ok(own));
    }

    #[test]
    fn secrets_differ_by_seed_chain_task_node_and_deadline_and_come_again() {
        let of = |id, node, deadline| Given { id, node, deadline };
        let given = of(1, 1, 1);
        let salt = |seed, chain, given| secrets(seed, chain).salt(given, b"");
        let all = [
            salt(1, 1, given),
            salt(2, 1, given),
            salt(1, 2, given),
            salt(1, 1, of(2, 1, 1)),
            salt(1, 1, of(1, 2, 1)),
            salt(1, 1, of(1, 1, 2)),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other[..SECRET] != one[..SECRET]));
        }
        assert_eq!(salt(1, 1, given), all[0]);
        // For another result the secret half is the same, hence the other half is the result's.
        assert_eq!(secrets(1, 1).salt(given, b"x")[..SECRET], all[0][..SECRET]);
        assert_ne!(secrets(1, 1).error(given, 3).salt[..SECRET], all[0][..SECRET]);
    }

    #[test]
    fn notes_are_read_with_the_seed_alone() {
        let given = Given { id: 5, node: 6, deadline: 7 };
        for opening in [
            secrets(1, 1).answer(given, b"result"),
            secrets(1, 1).error(given, 200),
            secrets(1, 1).images(given, [1, u64::MAX, 3, 0], b"bytes"),
        ] {
            let note = secrets(1, 1).note(5, 6, &opening);
            assert_eq!(note.len(), NOTE);
            assert_eq!(secrets(1, 1).read_note(5, 6, &note), Ok(opening));
            assert_ne!(secrets(1, 1).note(5, 6, &opening), note);
            for at in 0..NOTE {
                let mut changed = note.clone();
                changed[at] ^= 1;
                assert_eq!(secrets(1, 1).read_note(5, 6, &changed), Err(SealError::Broken));
                assert_eq!(secrets(1, 1).read_note(5, 6, &note[..at]), Err(SealError::Broken));
            }
            assert!(secrets(2, 1).read_note(5, 6, &note).is_err() && secrets(1, 1).read_note(6, 6, &note).is_err());
        }
    }
}
