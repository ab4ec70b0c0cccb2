package ondemand

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/suggest"
)

// PolicyPath is the file of the policy in a repository. It is read from the default branch.
const PolicyPath = ".assay/bench.yaml"

// Policy limits the benchmarks that comments may start.
type Policy struct {
	// Branches are those that pull requests may go to; empty for the default branch only.
	Branches []string `json:"branches,omitempty"`
	// PerPersonPerDay is the number of requests of a person in 24 hours, over all pull requests; 0 for 10.
	PerPersonPerDay int `json:"perPersonPerDay,omitempty"`
	// SecondRequest is the effect of a request on an earlier one of the same pull request: queue behind it, or cancel it.
	SecondRequest string `json:"secondRequest,omitempty"`
	// NamedHead requires --head in every comment.
	NamedHead bool `json:"namedHead,omitempty"`
	// Suites by their names.
	Suites map[string]Suite `json:"suites"`
}

// Suite is one experiment, with the recipe that builds a commit for it.
type Suite struct {
	// Run is the file of the BenchmarkRun, in the base branch. It has one baseline, the merge base, and one candidate, the head.
	Run string `json:"run"`
	// Build is a shell command, which runs in a checkout of the commit. ASSAY_BASE is a read-only checkout of the base branch.
	Build string `json:"build"`
	// Program is the file that it makes, which has the name of the template's command.
	Program string `json:"program"`
	// Budget is the time for measuring, and MaxBudget the most that a comment may ask for; 0 for Budget.
	Budget    metav1.Duration `json:"budget"`
	MaxBudget metav1.Duration `json:"maxBudget,omitzero"`
	// BuildTime limits each of the two builds; 0 for 10 minutes.
	BuildTime metav1.Duration `json:"buildTime,omitzero"`
	// Network gives the builds the network of the runner. Trials never have it.
	Network bool `json:"network,omitempty"`
	// Tools are folders of the runner that builds and trials may read, beside those of the system.
	Tools []string `json:"tools,omitempty"`
}

// The values of SecondRequest.
const (
	Queue          = "queue"
	CancelPrevious = "cancel"
)

const (
	defaultPerDay    = 10
	defaultBuildTime = 10 * time.Minute
	longest          = 6 * time.Hour
)

// filePath is a path in a repository, and toolPath one of a runner. Neither needs quotes anywhere.
var (
	filePath = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_./-]{0,199}$`)
	toolPath = regexp.MustCompile(`^/[A-Za-z0-9_./+-]{1,199}$`)
)

// ParsePolicy reads a policy and sets its defaults.
func ParsePolicy(raw []byte) (*Policy, error) {
	out := &Policy{}
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		return nil, fmt.Errorf("invalid %s: %w", PolicyPath, err)
	}
	invalid := func(field string, found any, allowed string) error {
		return fmt.Errorf("invalid %s: %s is %q: %s", PolicyPath, field, fmt.Sprint(found), allowed)
	}
	if out.PerPersonPerDay == 0 {
		out.PerPersonPerDay = defaultPerDay
	}
	if out.SecondRequest == "" {
		out.SecondRequest = Queue
	}
	switch {
	case out.PerPersonPerDay < 1 || out.PerPersonPerDay > 1000:
		return nil, invalid("perPersonPerDay", out.PerPersonPerDay, "1 to 1000 are allowed")
	case out.SecondRequest != Queue && out.SecondRequest != CancelPrevious:
		return nil, invalid("secondRequest", out.SecondRequest, "queue and cancel are allowed")
	case len(out.Suites) == 0:
		return nil, invalid("suites", "", "at least one suite is required")
	}
	for _, name := range slices.Sorted(maps.Keys(out.Suites)) {
		suite, field := out.Suites[name], "suites."+name
		if suite.MaxBudget.Duration == 0 {
			suite.MaxBudget = suite.Budget
		}
		if suite.BuildTime.Duration == 0 {
			suite.BuildTime.Duration = defaultBuildTime
		}
		switch {
		case !suiteName.MatchString(name) || name == cancel:
			return nil, invalid(field, name, "names of lower-case letters, digits and hyphens, other than cancel, are allowed")
		case !localPath(suite.Run):
			return nil, invalid(field+".run", suite.Run, "a path in the repository is allowed")
		case !localPath(suite.Program):
			return nil, invalid(field+".program", suite.Program, "a path in the repository is allowed")
		case strings.TrimSpace(suite.Build) == "" || len(suite.Build) > 4096:
			return nil, invalid(field+".build", suite.Build, "a shell command of at most 4096 bytes is required")
		case suite.Budget.Duration < time.Second || suite.MaxBudget.Duration < suite.Budget.Duration || suite.MaxBudget.Duration > longest:
			return nil, invalid(field+".budget", suite.Budget.Duration, "1s to maxBudget, and for maxBudget at most 6h, are allowed")
		case suite.BuildTime.Duration < time.Second || suite.BuildTime.Duration > longest:
			return nil, invalid(field+".buildTime", suite.BuildTime.Duration, "1s to 6h are allowed")
		}
		for _, folder := range suite.Tools {
			if !toolPath.MatchString(folder) || path.Clean(folder) != folder {
				return nil, invalid(field+".tools", folder, "absolute paths of folders below / are allowed")
			}
		}
		out.Suites[name] = suite
	}
	return out, nil
}

// localPath reports whether a path stays in its folder.
func localPath(name string) bool {
	return filePath.MatchString(name) && path.Clean(name) == name && name != "." && name != ".." && !strings.HasPrefix(name, "../")
}

// suite returns the suite of a command with the budget.
func (p *Policy) suite(of *Command) (Suite, time.Duration, error) {
	suite, ok := p.Suites[of.Suite]
	if !ok {
		return suite, 0, fmt.Errorf("invalid suite %q: %s (%s of the default branch)", of.Suite,
			suggest.Allowed(of.Suite, slices.Sorted(maps.Keys(p.Suites))), PolicyPath)
	}
	budget := suite.Budget.Duration
	if of.Budget != 0 {
		budget = of.Budget
	}
	if budget > suite.MaxBudget.Duration {
		return suite, 0, fmt.Errorf("invalid --budget %s: at most %s is allowed for suite %s (maxBudget in %s of the default branch)", budget,
			suite.MaxBudget.Duration, of.Suite, PolicyPath)
	}
	return suite, budget, nil
}
