package ondemand

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/quantity"
)

// Facts are the statements of the forge about a comment and its pull request.
type Facts struct {
	// Repository is OWNER/NAME of the job, and DefaultBranch its default branch.
	Repository, DefaultBranch string
	// Workflow is OWNER/NAME/PATH@REF of the workflow that the job is from.
	Workflow string
	// Run and Attempt identify the job's workflow run.
	Run     int64
	Attempt int

	Comment Comment
	// Permission is that of the comment's author, as the forge computes it, of the account with the id PermissionOf.
	Permission   string
	PermissionOf int64
	// Earlier is the number of earlier requests of the same author in the last 24 hours.
	Earlier int
	Pull    Pull
	Policy  *Policy
	// RunFile is the content of the suite's run in the base branch at Pull.Base.
	RunFile []byte
	Now     time.Time
}

// Comment is the event of a comment.
type Comment struct {
	// Action is created, edited or deleted.
	Action string
	// EventRepository is OWNER/NAME of the event.
	EventRepository string
	// PullRequest is its number, and IsPullRequest is false for a comment on an issue.
	PullRequest   int
	IsPullRequest bool
	ID            int64
	Body          string
	Created       time.Time
	Author        Account
	// Sender is the account that caused the event.
	Sender Account
}

// Account is a person or a program.
type Account struct {
	Login string
	ID    int64
	// Type is User for people.
	Type string
}

// Pull is the pull request now.
type Pull struct {
	Number                     int
	State                      string
	BaseRepository, BaseBranch string
	Base, Head, MergeBase      string
	// HeadPushed is when the repository of the head was pushed to last; nil if that repository is gone.
	HeadPushed *time.Time
}

// Limits in time.
const (
	// maxAge is the most time between a comment and its decision: a job that is repeated later is another decision.
	maxAge = time.Hour
	// Unseen is the time before a comment in which a push may not have reached its author's page.
	Unseen = time.Minute
	// clockSkew is the most by which a comment may be newer than this machine's time.
	clockSkew  = 5 * time.Minute
	maxRunFile = 48 << 10
)

// Refusal is the reason for not running a benchmark.
type Refusal struct {
	// Answer is whether the author has the right to be answered in public. Others could have the platform write comments.
	Answer bool
	Err    error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// login is the form of an account's name, which becomes a part of an address.
var login = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// repository is OWNER/NAME.
var repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9._-]{1,100}$`)

// Relevant returns an error for an event that is no new comment of a person that asks for a benchmark of a pull request. It needs the
// event only, so that other comments cost no request.
func (f *Facts) Relevant() error {
	c := &f.Comment
	switch {
	case !Asks(c.Body):
		return errNoRequest
	case c.Action != "created":
		return fmt.Errorf("the comment was %s: only new comments are read, because an edit may change a request of another person", c.Action)
	case !c.IsPullRequest || c.PullRequest < 1:
		return errors.New("the comment is on an issue, not on a pull request")
	case !repository.MatchString(f.Repository) || !strings.EqualFold(c.EventRepository, f.Repository):
		return fmt.Errorf("the event is of repository %q and the job of %q", c.EventRepository, f.Repository)
	case c.Author.Type != "User" || !login.MatchString(c.Author.Login) || c.Author.ID <= 0:
		return fmt.Errorf("the comment is of the account %q of type %q: only people start benchmarks", c.Author.Login, c.Author.Type)
	case c.Sender.ID != c.Author.ID:
		return fmt.Errorf("the event was caused by account %d and the comment is of account %d", c.Sender.ID, c.Author.ID)
	case f.workflowRef() != "refs/heads/"+f.DefaultBranch:
		return fmt.Errorf("the workflow is that of %q: only that of the default branch %s decides", f.Workflow, f.DefaultBranch)
	}
	return nil
}

func (f *Facts) workflowRef() string {
	_, ref, _ := strings.Cut(f.Workflow, "@")
	return ref
}

// Decide returns the decision on a request, or a *Refusal.
func Decide(f *Facts) (*Decision, error) {
	if err := f.Relevant(); err != nil {
		return nil, &Refusal{Err: err}
	}
	if err := f.permitted(); err != nil {
		return nil, &Refusal{Err: err}
	}
	out, err := f.decide()
	if err != nil {
		return nil, &Refusal{Answer: true, Err: err}
	}
	return out, nil
}

// RunPath returns the file of the run that the comment asks for, in the base branch; "" for a comment that asks for none.
func (f *Facts) RunPath() string {
	asked, err := Parse(f.Comment.Body)
	if err != nil || asked.Cancel || f.Policy == nil {
		return ""
	}
	return f.Policy.Suites[asked.Suite].Run
}

// permitted checks the rights of the author by the answer of the forge. author_association in an event says less: a MEMBER may have no
// right to write.
func (f *Facts) permitted() error {
	author := f.Comment.Author
	if f.PermissionOf != author.ID {
		return fmt.Errorf("the forge answered about account %d and the comment is of account %d", f.PermissionOf, author.ID)
	}
	if f.Permission != "admin" && f.Permission != "write" {
		return fmt.Errorf("%s has the permission %q: write and admin may start benchmarks", author.Login, f.Permission)
	}
	return nil
}

func (f *Facts) decide() (*Decision, error) {
	asked, err := Parse(f.Comment.Body)
	if err != nil {
		return nil, err
	}
	age := f.Now.Sub(f.Comment.Created)
	switch {
	case age > maxAge || age < -clockSkew:
		return nil, fmt.Errorf("the comment is %s old: at most %s is allowed: write a new one", quantity.Seconds(age), maxAge)
	case f.Pull.Number != f.Comment.PullRequest || f.Pull.State != "open":
		return nil, fmt.Errorf("pull request %d is %s: it has to be open", f.Pull.Number, f.Pull.State)
	case !strings.EqualFold(f.Pull.BaseRepository, f.Repository):
		return nil, fmt.Errorf("pull request %d goes to %q and the job is of %q", f.Pull.Number, f.Pull.BaseRepository, f.Repository)
	case f.Run <= 0 || f.Attempt <= 0:
		return nil, fmt.Errorf("the workflow run is %d, attempt %d: both are positive in a job", f.Run, f.Attempt)
	}
	out := &Decision{
		Schema: DecisionSchema, Action: ActionRun, Repository: f.Repository, PullRequest: f.Pull.Number,
		Comment: f.Comment.ID, Person: f.Comment.Author.Login, Run: f.Run, Attempt: f.Attempt, Second: f.Policy.SecondRequest,
	}
	if asked.Cancel {
		out.Action, out.Second = ActionCancel, CancelPrevious
		return out, nil
	}
	if f.Earlier >= f.Policy.PerPersonPerDay {
		return nil, fmt.Errorf("%s has asked for %d benchmarks in 24 hours: at most %d are allowed (perPersonPerDay in %s)",
			f.Comment.Author.Login, f.Earlier, f.Policy.PerPersonPerDay, PolicyPath)
	}
	suite, budget, err := f.Policy.suite(asked)
	if err != nil {
		return nil, err
	}
	if err := f.pinned(asked); err != nil {
		return nil, err
	}
	if len(f.RunFile) == 0 || len(f.RunFile) > maxRunFile {
		return nil, fmt.Errorf("%s of branch %s has %d bytes: 1 to %d are allowed", suite.Run, f.Pull.BaseBranch, len(f.RunFile), maxRunFile)
	}
	out.Suite, out.Budget = asked.Suite, budget.String()
	out.Base, out.MergeBase, out.Head = f.Pull.Base, f.Pull.MergeBase, f.Pull.Head
	out.RunPath, out.RunFile = suite.Run, string(f.RunFile)
	out.Build, out.Program, out.BuildTime = suite.Build, suite.Program, suite.BuildTime.Duration.String()
	out.Network, out.Tools = suite.Network, suite.Tools
	return out, nil
}

// pinned checks that the commits are known, and that the head is the one that the author saw.
func (f *Facts) pinned(asked *Command) error {
	branches := f.Policy.Branches
	if len(branches) == 0 {
		branches = []string{f.DefaultBranch}
	}
	if !slices.Contains(branches, f.Pull.BaseBranch) {
		return fmt.Errorf("the pull request goes to branch %q: %s are allowed (branches in %s of the default branch)", f.Pull.BaseBranch,
			strings.Join(branches, ", "), PolicyPath)
	}
	for _, hash := range []string{f.Pull.Base, f.Pull.MergeBase, f.Pull.Head} {
		if !commitHash.MatchString(hash) {
			return fmt.Errorf("invalid commit %q of the pull request: 40 hexadecimal digits are expected", hash)
		}
	}
	advice := fmt.Sprintf("look at commit %s, and write %s %s --head %s", f.Pull.Head, command, asked.Suite, f.Pull.Head)
	switch {
	case asked.Head != "" && asked.Head != f.Pull.Head:
		return fmt.Errorf("the head is not %s any more: %s", asked.Head, advice)
	case asked.Head != "":
		return nil
	case f.Policy.NamedHead:
		return fmt.Errorf("the comment does not name the head, as namedHead in %s requires: %s", PolicyPath, advice)
	case f.Pull.HeadPushed == nil:
		return fmt.Errorf("the repository of the head is gone, so that the time of its last push is not known: %s", advice)
	case f.Pull.HeadPushed.Add(Unseen).After(f.Comment.Created):
		return fmt.Errorf("the repository of the head was pushed to at %s, and the comment is of %s: a push less than %s before the comment, or "+
			"after it, may not have been seen: %s", f.Pull.HeadPushed.UTC().Format(time.RFC3339), f.Comment.Created.UTC().Format(time.RFC3339),
			Unseen, advice)
	}
	return nil
}
