// Package pullrequests attacks benchmarks on request of a comment: hostile comments, titles, branches, races and ledgers, against the
// commands of all three jobs and a local server that speaks the needed part of GitHub's API. Each attack names the guard that stands
// against it, and a test in long form takes each guard out and requires that its attack succeeds.
package pullrequests
