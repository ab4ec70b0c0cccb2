package cli

// Version is the version of the program. Main sets it from the value that the linker writes.
var Version = "unreleased"

// Program is the name under which users start the program: assay or kubectl assay.
var Program = "assay"

// KubectlCompletion is the name under which kubectl starts a plugin for shell completion.
const KubectlCompletion = "kubectl_complete-assay"
