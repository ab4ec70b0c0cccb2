package github

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Place is where a job of GitHub Actions publishes to.
type Place struct {
	// API is the address of the REST API.
	API               string
	Owner, Repository string
	// Commit is the one that the check is of: of a pull request its head, which is no commit that the job checked out.
	Commit string
	// PullRequest is 0 for a job that none started.
	PullRequest int
}

// measured is the commit that a job of an event measures.
type measured int

const (
	// ofJob is GITHUB_SHA, which the job checks out.
	ofJob measured = iota + 1
	// ofHead is the head of the pull request in the payload. GITHUB_SHA is a merge of it.
	ofHead
)

// events are the events whose jobs measure the commit that GitHub names for them. For all others GITHUB_SHA is the last commit of the
// default branch or of the base, whatever the event is about, and a check of it would be one of another commit than the measured one:
// https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows
var events = map[string]measured{
	"create": ofJob, "deployment": ofJob, "merge_group": ofJob, "push": ofJob, "registry_package": ofJob, "release": ofJob,
	"repository_dispatch": ofJob, "schedule": ofJob, "workflow_dispatch": ofJob,
	"pull_request": ofHead, "pull_request_review": ofHead, "pull_request_review_comment": ofHead,
}

// FromEnvironment reads the place from the variables that GitHub gives to every job:
// https://docs.github.com/actions/reference/workflows-and-actions/variables
// It fails for a job of an event that does not name the measured commit, such as a comment.
func FromEnvironment(getenv func(string) string, readFile func(string) ([]byte, error)) (*Place, error) {
	owner, repository, err := repositoryOf(getenv("GITHUB_REPOSITORY"))
	if err != nil {
		return nil, err
	}
	name := getenv("GITHUB_EVENT_NAME")
	kind := events[name]
	if kind == 0 {
		return nil, fmt.Errorf("invalid GITHUB_EVENT_NAME %q: --publish is for jobs whose event names the measured commit (%s); publish "+
			"benchmarks that a comment asks for with assay pr publish", name, strings.Join(slices.Sorted(maps.Keys(events)), ", "))
	}
	out := &Place{API: apiOf(getenv), Owner: owner, Repository: repository, Commit: getenv("GITHUB_SHA")}
	if kind == ofHead {
		var event struct {
			PullRequest *struct {
				Number int
				Head   struct{ SHA string }
			} `json:"pull_request"`
		}
		if err := readEvent(getenv, readFile, &event); err != nil {
			return nil, err
		}
		if event.PullRequest == nil || event.PullRequest.Number < 1 || event.PullRequest.Head.SHA == "" {
			return nil, fmt.Errorf("GITHUB_EVENT_PATH: the event %s has no pull request with a number and a head", name)
		}
		out.PullRequest, out.Commit = event.PullRequest.Number, event.PullRequest.Head.SHA
	}
	if out.Commit == "" {
		return nil, errors.New("GITHUB_SHA is empty: it is the commit of every job of GitHub Actions")
	}
	return out, nil
}

func apiOf(getenv func(string) string) string {
	return cmp.Or(getenv("GITHUB_API_URL"), "https://api.github.com")
}

// repositoryOf splits OWNER/NAME.
func repositoryOf(text string) (owner, repository string, err error) {
	owner, repository, ok := strings.Cut(text, "/")
	if !ok || owner == "" || repository == "" || strings.Contains(repository, "/") {
		return "", "", fmt.Errorf("invalid GITHUB_REPOSITORY %q: it is OWNER/NAME in every job of GitHub Actions, and elsewhere there is "+
			"nothing to publish to", text)
	}
	return owner, repository, nil
}

// readEvent reads the payload of the event that started the job.
func readEvent(getenv func(string) string, readFile func(string) ([]byte, error), into any) error {
	path := getenv("GITHUB_EVENT_PATH")
	if path == "" {
		return errors.New("GITHUB_EVENT_PATH is empty: it is the file of the event of every job of GitHub Actions")
	}
	raw, err := readFile(path)
	if err != nil {
		return fmt.Errorf("GITHUB_EVENT_PATH: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("GITHUB_EVENT_PATH %s: %w", path, err)
	}
	return nil
}
