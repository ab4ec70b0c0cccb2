// Package ondemand decides whether a comment on a pull request starts a benchmark, of which commits and with which recipe. Its input are
// the facts that the forge states; text of a comment, a title or a branch becomes neither a flag, a path nor a command.
package ondemand

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Command is the request of a comment.
type Command struct {
	// Cancel ends the request that is running or waiting.
	Cancel bool
	// Suite is a name in the policy.
	Suite string
	// Budget is 0 for that of the suite.
	Budget time.Duration
	// Head is the commit that the person looked at; "" if the comment does not name it.
	Head string
}

// Grammar is the form of a comment that asks for a benchmark.
const Grammar = "/bench [SUITE] [--budget DURATION] [--head COMMIT], or /bench cancel, on one line"

const (
	command = "/bench"
	// DefaultSuite is measured for a comment that names none.
	DefaultSuite = "default"
	// cancel is no name of a suite.
	cancel     = "cancel"
	maxComment = 200
)

var (
	suiteName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	duration   = regexp.MustCompile(`^[1-9][0-9]{0,4}[smh]$`)
	commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Asks reports whether a comment begins with the command. Other comments are none of this package's.
func Asks(comment string) bool {
	rest, ok := strings.CutPrefix(comment, command)
	return ok && (rest == "" || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// Parse reads a comment that Asks. The whole comment has to follow the grammar: no part of it is ignored.
func Parse(comment string) (*Command, error) {
	text := strings.TrimRight(comment, " \r\n")
	if !Asks(text) || len(text) > maxComment || strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return nil, fmt.Errorf("invalid comment: at most %d printable ASCII characters are allowed: write %s", maxComment, Grammar)
	}
	words := strings.Fields(strings.TrimPrefix(text, command))
	out := &Command{Suite: DefaultSuite}
	if len(words) == 1 && words[0] == cancel {
		out.Cancel = true
		return out, nil
	}
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		if !suiteName.MatchString(words[0]) || words[0] == cancel {
			return nil, fmt.Errorf("invalid suite %q: lower-case letters, digits and hyphens are allowed: write %s", words[0], Grammar)
		}
		out.Suite, words = words[0], words[1:]
	}
	for ; len(words) > 0; words = words[2:] {
		if len(words) == 1 {
			return nil, fmt.Errorf("invalid word %q: write %s", words[0], Grammar)
		}
		if err := out.option(words[0], words[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Command) option(name, value string) error {
	switch {
	case name == "--budget" && c.Budget == 0:
		// The form excludes other inputs of time.ParseDuration, such as a sign, "Inf" or several units.
		if !duration.MatchString(value) {
			return fmt.Errorf("invalid --budget %q: a number and s, m or h are allowed, such as 10m", value)
		}
		var err error
		c.Budget, err = time.ParseDuration(value)
		return err
	case name == "--head" && c.Head == "":
		// A shorter prefix can be given to another commit in seconds.
		if !commitHash.MatchString(value) {
			return fmt.Errorf("invalid --head %q: the whole hash of 40 hexadecimal digits is allowed", value)
		}
		c.Head = value
		return nil
	default:
		return fmt.Errorf("invalid option %q: --budget and --head are allowed, each once: write %s", name, Grammar)
	}
}

// errNoRequest is the error of a comment that asks for nothing.
var errNoRequest = errors.New("the comment does not begin with " + command)
