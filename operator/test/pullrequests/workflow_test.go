package pullrequests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"assay.dev/assay/operator/internal/ondemand"
)

// job has the fields of a job that rights depend on.
type job struct {
	Permissions map[string]string
	Env         map[string]string
	Steps       []struct {
		Uses, Run string
		Env, With map[string]string
	}
	Concurrency map[string]string
}

var (
	pinned     = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40}$`)
	quotedText = regexp.MustCompile(`"[^"]*"`)
)

// problems returns the rules that a workflow breaks.
func problems(text string) (out []string) {
	var of struct {
		On          map[string]struct{ Types []string }
		Permissions map[string]string
		Concurrency any
		Jobs        map[string]job
	}
	if err := yaml.Unmarshal([]byte(text), &of); err != nil {
		return []string{err.Error()}
	}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(of.On) != 1 || !slices.Equal(of.On["issue_comment"].Types, []string{"created"}) {
		add("events are %v", of.On)
	}
	// A group of the whole workflow would let any comment end a request.
	if of.Permissions == nil || len(of.Permissions) > 0 || of.Concurrency != nil {
		add("permissions of the workflow are %v and concurrency is %v", of.Permissions, of.Concurrency)
	}
	allowed := map[string]string{"decide": "actions contents pull-requests", "execute": "", "cancel": "", "publish": "checks pull-requests"}
	for name, allowed := range allowed {
		found, ok := of.Jobs[name]
		if !ok || found.Permissions == nil {
			add("job %s sets no permissions", name)
		}
		for scope := range found.Permissions {
			if !slices.Contains(strings.Fields(allowed), scope) {
				add("job %s has %s", name, scope)
			}
		}
		for i, step := range found.Steps {
			if step.Uses != "" && !pinned.MatchString(step.Uses) {
				add("step %d of %s uses %s", i, name, step.Uses)
			}
			if strings.Contains(step.Uses, "checkout") || strings.Contains(step.Uses, "cache") {
				add("step %d of %s uses %s", i, name, step.Uses)
			}
			if strings.Contains(step.Run, "${{") || strings.Contains(quotedText.ReplaceAllString(step.Run, ""), "$") {
				add("step %d of %s has an expression or a variable outside of quotes: %s", i, name, step.Run)
			}
			for variable, value := range step.Env {
				if strings.Contains(value, "github.event") || strings.Contains(value, "secrets.") {
					add("variable %s of %s is %s", variable, name, value)
				}
				if name == "execute" && strings.Contains(value, "token") {
					add("variable %s of %s is %s", variable, name, value)
				}
				if variable == "ASSAY_DECISION" && value != "${{ needs.decide.outputs.decision }}" {
					add("the decision of %s is %s", name, value)
				}
			}
		}
	}
	if of.Jobs["execute"].Concurrency["group"] != "${{ needs.decide.outputs.group }}" {
		add("execute has the group %q", of.Jobs["execute"].Concurrency["group"])
	}
	return out
}

func TestWorkflow_GivesNoRightsToCodeOfAPullRequest(t *testing.T) {
	text := workflow(t, "bench.yaml")
	if got := problems(text); len(got) > 0 {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	for name, change := range map[string][2]string{
		"edited comments":        {"[created]", "[created, edited]"},
		"a right of the default": {"    permissions: {}\n    concurrency", "    concurrency"},
		"a right of execute": {"    timeout-minutes: 120\n    permissions: {}",
			"    timeout-minutes: 120\n    permissions: {contents: read}"},
		"a token of execute":      {`env: {ASSAY_DECISION: "${{ needs.decide`, `env: {GITHUB_TOKEN: "${{ github.token }}", ASSAY_DECISION: "${{ needs.decide`},
		"a comment in a command":  {`pr decide'`, `pr decide ${{ github.event.comment.body }}'`},
		"a comment in a variable": {"RESULT: ${{ needs.execute.result }}", "RESULT: ${{ github.event.comment.body }}"},
		"a word without quotes":   {`"--result=$RESULT"`, `--result=$RESULT`},
		"an action by its tag":    {"upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02", "upload-artifact@v4"},
		"a decision of execute":   {"ASSAY_DECISION: ${{ needs.decide.outputs", "ASSAY_DECISION: ${{ needs.execute.outputs"},
		"a group of all comments": {"permissions: {}\nenv:", "permissions: {}\nconcurrency: {group: bench}\nenv:"},
	} {
		weak := strings.Replace(text, change[0], change[1], 1)
		if weak == text || len(problems(weak)) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestPolicy_ExampleIsValid(t *testing.T) {
	got, err := ondemand.ParsePolicy([]byte(workflow(t, "policy.yaml")))
	if err != nil || got.Suites[ondemand.DefaultSuite].Program != "bin/server" {
		t.Errorf("%+v, %v", got, err)
	}
}
