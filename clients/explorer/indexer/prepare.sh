# Sourced in this directory: installs the packages, and compiles the core's formulas to WASM.
# One at a time: the tests of the indexer and of the page may begin together.
{
  ! command -v flock >/dev/null || flock 8
  source ./ponder.sh
} 8<.
../../ts/verifier.sh verifier
