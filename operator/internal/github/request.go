package github

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	api "github.com/google/go-github/v88/github"

	"assay.dev/assay/operator/internal/ondemand"
)

// commentEvent has the fields of the event issue_comment that are used.
type commentEvent struct {
	Action string
	Issue  struct {
		Number      int
		PullRequest *struct{} `json:"pull_request"`
	}
	Comment struct {
		ID      int64
		Body    string
		Created time.Time `json:"created_at"`
		User    account
	}
	Sender     account
	Repository struct {
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
	}
}

type account struct {
	Login string
	ID    int64
	Type  string
}

// Request returns the facts about the comment that started a job. It reads the event alone.
func Request(getenv func(string) string, readFile func(string) ([]byte, error), now time.Time) (*ondemand.Facts, error) {
	if name := getenv("GITHUB_EVENT_NAME"); name != "issue_comment" {
		return nil, fmt.Errorf("invalid GITHUB_EVENT_NAME %q: issue_comment is allowed", name)
	}
	var event commentEvent
	if err := readEvent(getenv, readFile, &event); err != nil {
		return nil, err
	}
	if _, _, err := repositoryOf(getenv("GITHUB_REPOSITORY")); err != nil {
		return nil, err
	}
	run, err := strconv.ParseInt(getenv("GITHUB_RUN_ID"), 10, 64)
	attempt, err2 := strconv.Atoi(getenv("GITHUB_RUN_ATTEMPT"))
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("GITHUB_RUN_ID and GITHUB_RUN_ATTEMPT: %w", err)
	}
	return &ondemand.Facts{
		Repository: getenv("GITHUB_REPOSITORY"), DefaultBranch: event.Repository.DefaultBranch, Workflow: getenv("GITHUB_WORKFLOW_REF"),
		Run: run, Attempt: attempt, Now: now,
		Comment: ondemand.Comment{
			Action: event.Action, EventRepository: event.Repository.FullName, PullRequest: event.Issue.Number,
			IsPullRequest: event.Issue.PullRequest != nil, ID: event.Comment.ID, Body: event.Comment.Body, Created: event.Comment.Created,
			Author: ondemand.Account(event.Comment.User), Sender: ondemand.Account(event.Sender),
		},
	}, nil
}

// PlaceOf is where the result of a commit of a pull request is published.
func PlaceOf(getenv func(string) string, repository, commit string, pullRequest int) (*Place, error) {
	if own := getenv("GITHUB_REPOSITORY"); !strings.EqualFold(own, repository) {
		return nil, fmt.Errorf("the decision is of repository %q and the job of %q", repository, own)
	}
	owner, name, err := repositoryOf(repository)
	return &Place{API: apiOf(getenv), Owner: owner, Repository: name, Commit: commit, PullRequest: pullRequest}, err
}

// Learn adds the facts that the API states to those of the event, which are Relevant. It asks nothing but the permission about an author
// without one.
func (c *Client) Learn(ctx context.Context, f *ondemand.Facts) error {
	owner, name, author := c.place.Owner, c.place.Repository, f.Comment.Author
	level, _, err := c.rest.Repositories.GetPermissionLevel(ctx, owner, name, author.Login)
	if err != nil {
		return explain("permission of "+author.Login, err)
	}
	f.Permission, f.PermissionOf = level.GetPermission(), level.GetUser().GetID()
	if f.Permission != "admin" && f.Permission != "write" {
		return nil
	}
	pull, _, err := c.rest.PullRequests.Get(ctx, owner, name, f.Comment.PullRequest)
	if err != nil {
		return explain("the pull request", err)
	}
	f.Pull = ondemand.Pull{
		Number: pull.GetNumber(), State: pull.GetState(), BaseRepository: pull.GetBase().GetRepo().GetFullName(),
		BaseBranch: pull.GetBase().GetRef(), Base: pull.GetBase().GetSHA(), Head: pull.GetHead().GetSHA(),
	}
	if from := pull.GetHead().GetRepo(); from != nil && from.PushedAt != nil {
		f.Pull.HeadPushed = &from.PushedAt.Time
	}
	compared, _, err := c.rest.Repositories.CompareCommits(ctx, owner, name, f.Pull.Base, f.Pull.Head, &api.ListOptions{PerPage: 1})
	if err != nil {
		return explain("the merge base", err)
	}
	f.Pull.MergeBase = compared.GetMergeBaseCommit().GetSHA()
	if f.Earlier, err = c.earlier(ctx, f); err != nil {
		return err
	}
	raw, err := c.file(ctx, ondemand.PolicyPath, "refs/heads/"+f.DefaultBranch)
	if err != nil {
		return err
	}
	if f.Policy, err = ondemand.ParsePolicy(raw); err != nil {
		return err
	}
	if path := f.RunPath(); path != "" {
		f.RunFile, err = c.file(ctx, path, f.Pull.Base)
	}
	return err
}

// file returns a file of the repository at a commit or a branch.
func (c *Client) file(ctx context.Context, path, at string) ([]byte, error) {
	content, _, _, err := c.rest.Repositories.GetContents(ctx, c.place.Owner, c.place.Repository, path,
		&api.RepositoryContentGetOptions{Ref: at})
	if err != nil {
		return nil, explain("file "+path+" at "+at, err)
	}
	if content == nil || content.GetType() != "file" {
		return nil, fmt.Errorf("GitHub: %s at %s is no file", path, at)
	}
	text, err := content.GetContent()
	if err != nil {
		return nil, fmt.Errorf("GitHub: file %s at %s: %w", path, at, err)
	}
	return []byte(text), nil
}

// earlier counts the requests of the author in the last 24 hours, by the runs of this workflow: the author may delete comments. Runs of
// other comments are skipped, and do not count. Of several at once each counts the older ones.
func (c *Client) earlier(ctx context.Context, f *ondemand.Facts) (int, error) {
	path, _, _ := strings.Cut(f.Workflow, "@")
	file := path[strings.LastIndexByte(path, '/')+1:]
	options := &api.ListWorkflowRunsOptions{
		Actor: f.Comment.Author.Login, Event: "issue_comment", Created: ">=" + f.Now.Add(-24*time.Hour).UTC().Format(time.RFC3339),
		ListOptions: api.ListOptions{PerPage: 100},
	}
	count := f.Attempt - 1
	for run, err := range c.rest.Actions.ListWorkflowRunsByFileNameIter(ctx, c.place.Owner, c.place.Repository, file, options) {
		if err != nil {
			return 0, explain("earlier requests", err)
		}
		if run.GetID() < f.Run && run.GetConclusion() != "skipped" && run.GetActor().GetID() == f.Comment.Author.ID {
			count += max(1, run.GetRunAttempt())
		}
	}
	return count, nil
}

// CommentUnless is Comment, but leaves a comment of the marker for which keep returns true.
func (c *Client) CommentUnless(ctx context.Context, marker, text string, keep func(old string) bool) error {
	return c.comment(ctx, marker, text, keep)
}
