// Package github publishes a run on GitHub as one comment on its pull request and one check of its commit. Later runs of the same title
// update both in place.
package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/google/go-github/v88/github"
	"k8s.io/utils/ptr"
)

// ErrForbidden is returned where the token may not write: that of a workflow which a fork's pull request started may only read.
var ErrForbidden = errors.New("the token has no write access; give the job the permissions pull-requests: write and checks: write; what " +
	"a fork's " +
	"pull request starts never has them")

// Client publishes to one place.
type Client struct {
	place *Place
	rest  *api.Client
	// bot is whether the token is an app's, whose comments are a bot's.
	bot bool
}

// answerTime bounds a request.
const answerTime = 30 * time.Second

// New makes a client with a token, which goes nowhere but into the header of its requests.
func New(place *Place, token string) (*Client, error) {
	if token == "" {
		return nil, errors.New("GITHUB_TOKEN is empty: give the step env: {GITHUB_TOKEN: ${{ github.token }}}")
	}
	address := strings.TrimSuffix(place.API, "/") + "/"
	rest, err := api.NewClient(api.WithAuthToken(token), api.WithURLs(&address, nil), api.WithTimeout(answerTime), api.WithEnvProxy(),
		api.WithUserAgent("assay"))
	if err != nil {
		return nil, fmt.Errorf("GitHub at %s: %w", place.API, err)
	}
	return &Client{place: place, rest: rest, bot: strings.HasPrefix(token, "ghs_")}, nil
}

// Comment puts a text, which begins with its marker, into the comment of that marker, or into a new one.
func (c *Client) Comment(ctx context.Context, marker, text string) error {
	return c.comment(ctx, marker, text, func(string) bool { return false })
}

func (c *Client) comment(ctx context.Context, marker, text string, keep func(old string) bool) error {
	login := ""
	if !c.bot {
		user, _, err := c.rest.Users.Get(ctx, "")
		if err != nil {
			return explain("whose token it is", err)
		}
		login = user.GetLogin()
	}
	options := &api.IssueListCommentsOptions{ListOptions: api.ListOptions{PerPage: 100}}
	for comment, err := range c.rest.Issues.ListCommentsIter(ctx, c.place.Owner, c.place.Repository, c.place.PullRequest, options) {
		if err != nil {
			return explain("comments of the pull request", err)
		}
		// The marker may occur in comments of other users, which must not be changed.
		ours := c.bot && comment.GetUser().GetType() == "Bot" || !c.bot && comment.GetUser().GetLogin() == login
		if !ours || !strings.HasPrefix(comment.GetBody(), marker) {
			continue
		}
		if comment.GetBody() == text || keep(comment.GetBody()) {
			return nil
		}
		_, _, err := c.rest.Issues.EditComment(ctx, c.place.Owner, c.place.Repository, comment.GetID(), &api.IssueComment{Body: &text})
		// Comments of other apps are by bots as well. The first comment of this token shows whether it may write.
		if err = explain("change the comment", err); !errors.Is(err, ErrForbidden) {
			return err
		}
	}
	_, _, err := c.rest.Issues.CreateComment(ctx, c.place.Owner, c.place.Repository, c.place.PullRequest, &api.IssueComment{Body: &text})
	return explain("comment on the pull request", err)
}

// Check is a check of a commit.
type Check struct {
	Name string
	// Conclusion is success, failure or neutral.
	Conclusion, Title, Summary string
	// Details is where more of it is; empty if nowhere.
	Details string
	// Path of the file that the annotations are on.
	Path        string
	Annotations []Annotation
}

// Annotation is a remark on a line.
type Annotation struct {
	Line int
	// Level is failure, warning or notice.
	Level, Title, Message string
}

// Check changes the check of that name, or makes it.
func (c *Client) Check(ctx context.Context, check Check) error {
	output := &api.CheckRunOutput{Title: &check.Title, Summary: &check.Summary}
	for i := range check.Annotations {
		of := &check.Annotations[i]
		if check.Path == "" {
			break
		}
		output.Annotations = append(output.Annotations, &api.CheckRunAnnotation{
			Path: &check.Path, StartLine: &of.Line, EndLine: &of.Line, AnnotationLevel: &of.Level, Title: &of.Title, Message: &of.Message,
		})
	}
	var details *string
	if strings.HasPrefix(check.Details, "https://") || strings.HasPrefix(check.Details, "http://") {
		details = &check.Details
	}
	runs, _, err := c.rest.Checks.ListCheckRunsForRef(ctx, c.place.Owner, c.place.Repository, c.place.Commit, &api.ListCheckRunsOptions{
		CheckName: &check.Name, Filter: ptr.To("latest"),
	})
	if err != nil {
		return explain("checks of the commit", err)
	}
	for _, run := range runs.CheckRuns {
		// GitHub adds annotations to those that are there: a check with some is superseded by one of the same name.
		if run.GetName() != check.Name || run.GetOutput().GetAnnotationsCount() > 0 {
			continue
		}
		_, _, err := c.rest.Checks.UpdateCheckRun(ctx, c.place.Owner, c.place.Repository, run.GetID(), api.UpdateCheckRunOptions{
			Name: check.Name, Status: ptr.To("completed"), Conclusion: &check.Conclusion, DetailsURL: details, Output: output,
		})
		// Any app may have made a check of that name, and only that app may change it.
		if err = explain("change the check", err); !errors.Is(err, ErrForbidden) {
			return err
		}
	}
	_, _, err = c.rest.Checks.CreateCheckRun(ctx, c.place.Owner, c.place.Repository, api.CreateCheckRunOptions{
		Name: check.Name, HeadSHA: c.place.Commit, Status: ptr.To("completed"), Conclusion: &check.Conclusion, DetailsURL: details,
		Output: output,
	})
	return explain("make the check", err)
}

// explain wraps an error with the failed operation. It returns ErrForbidden for read-only tokens.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*api.ErrorResponse](err); ok && refused.Response != nil &&
		refused.Response.StatusCode == http.StatusForbidden {
		return fmt.Errorf("GitHub: %s: %w (%s)", what, ErrForbidden, refused.Message)
	}
	return fmt.Errorf("GitHub: %s: %w", what, err)
}
