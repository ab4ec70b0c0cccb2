// Package docs compares docs/architecture.md with the tree, and checks that the commands in the documentation work. Every block of shell
// commands is either executed, page by page, or says in a comment above it why not:
//
//	<!-- run -->                 executed on the cluster of the end-to-end tests
//	<!-- run: BASH -->           the same, with a line of preparation that readers do not see
//	<!-- run, exit 3 too: … -->  the same, and a command may exit with 3: noise may leave a run without a verdict
//	<!-- not run: REASON -->     not executed
//
// A line of preparation creates the reader's starting state, such as a file that the page prints. It does not change the page's commands.
//
// The comment stands right above the block. Readers do not see it.
//
// Commands that nothing executes, in blocks, in sentences, in scripts and in the workflows of GitHub, are parsed, and the names that they
// use have to exist in this tree: targets and variables of make, commands of ours with their flags, values of the chart, files.
package docs
