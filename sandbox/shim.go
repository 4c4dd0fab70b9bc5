package sandbox

// ShimArgument is the first argument with which a program that opens sandboxes is started again as their helper. Its main
// function must call Shim before it does anything else.
const ShimArgument = "sandbox-exec"
