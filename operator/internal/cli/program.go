package cli

// Version is the version that the program reports.
var Version = "unreleased"

// Program is the name that users type to start the program, assay or the kubectl plugin.
var Program = "assay"

// KubectlCompletion is the name under which kubectl asks a plugin to complete a word.
const KubectlCompletion = "kubectl_complete-assay"
