# Sourced in this directory: installs the packages, and compiles the core's formulas to WASM.
source ./ponder.sh
../../ts/verifier.sh verifier
