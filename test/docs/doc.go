// Package docs makes sure that what the documentation tells people to type works. Every block of shell commands is either
// executed, page by page, or says in a comment above it why not:
//
//	<!-- run -->                 executed on the cluster of the end-to-end tests
//	<!-- run: BASH -->           the same, with a line of preparation that readers do not see
//	<!-- not run: REASON -->     not executed
//
// The comment stands right above the block. Readers do not see it.
package docs
