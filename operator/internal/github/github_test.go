package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hub is a GitHub of one repository, with the shapes of testdata, which are those of GitHub's own documentation of its REST API.
type hub struct {
	t        *testing.T
	comments []map[string]any
	checks   []map[string]any
	// asked are the requests, and forbidden the methods that the token has no right to.
	asked     []string
	forbidden []string
	*httptest.Server
}

// The tokens of an app, such as that of a job, and of a person.
const token, personal = "ghs_secret", "ghp_secret"

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, _ *http.Request) {
		h.answer(w, map[string]any{"login": "someone", "type": "User"})
	})
	mux.HandleFunc("GET /repos/o/r/issues/7/comments", h.listComments)
	mux.HandleFunc("POST /repos/o/r/issues/7/comments", func(w http.ResponseWriter, r *http.Request) {
		comment := h.fixture("comment.json")
		comment["id"], comment["body"] = float64(1000+len(h.comments)), h.body(r)["body"]
		if r.Header.Get("Authorization") == "Bearer "+personal {
			comment["user"] = map[string]any{"login": "someone", "type": "User"}
		}
		h.comments = append(h.comments, comment)
		w.WriteHeader(http.StatusCreated)
		h.answer(w, comment)
	})
	mux.HandleFunc("PATCH /repos/o/r/issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		for _, comment := range h.comments {
			if fmt.Sprint(comment["id"]) == r.PathValue("id") {
				if comment["of"] == "another app" {
					h.forbid(w)
					return
				}
				comment["body"] = h.body(r)["body"]
				h.answer(w, comment)
				return
			}
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("GET /repos/o/r/commits/{sha}/check-runs", func(w http.ResponseWriter, r *http.Request) {
		var got []map[string]any
		for _, check := range h.checks {
			if check["head_sha"] == r.PathValue("sha") && check["name"] == r.URL.Query().Get("check_name") {
				got = append(got, check)
			}
		}
		h.answer(w, map[string]any{"total_count": len(got), "check_runs": got})
	})
	mux.HandleFunc("POST /repos/o/r/check-runs", func(w http.ResponseWriter, r *http.Request) {
		check := h.fixture("check.json")
		maps.Copy(check, h.counted(h.body(r)))
		check["id"] = float64(len(h.checks) + 1)
		h.checks = append(h.checks, check)
		w.WriteHeader(http.StatusCreated)
		h.answer(w, check)
	})
	mux.HandleFunc("PATCH /repos/o/r/check-runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.PathValue("id"))
		if err != nil || id > len(h.checks) {
			http.NotFound(w, r)
			return
		}
		if h.checks[id-1]["of"] == "another app" {
			h.forbid(w)
			return
		}
		maps.Copy(h.checks[id-1], h.counted(h.body(r)))
		h.answer(w, h.checks[id-1])
	})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked = append(h.asked, r.Method+" "+r.URL.String())
		if got := r.Header.Get("Authorization"); !strings.HasPrefix(got, "Bearer ") || strings.Contains(r.URL.String(), "secret") {
			t.Errorf("%s %s with authorization %q", r.Method, r.URL, got)
		}
		if slices.Contains(h.forbidden, r.Method) {
			h.forbid(w)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) forbid(w http.ResponseWriter) {
	w.WriteHeader(http.StatusForbidden)
	h.answer(w, h.fixture("forbidden.json"))
}

func (h *hub) fixture(name string) map[string]any {
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *hub) body(r *http.Request) map[string]any {
	raw, err := io.ReadAll(r.Body)
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		h.t.Errorf("%s %s: %v in %s", r.Method, r.URL, err, raw)
	}
	return out
}

// counted adds GitHub's counts to a check.
func (h *hub) counted(check map[string]any) map[string]any {
	output := check["output"].(map[string]any)
	annotations, _ := output["annotations"].([]any)
	output["annotations_count"] = len(annotations)
	return check
}

func (h *hub) answer(w http.ResponseWriter, value any) {
	if err := json.NewEncoder(w).Encode(value); err != nil {
		h.t.Error(err)
	}
}

// listComments answers page by page, as GitHub does.
func (h *hub) listComments(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, page = max(size, 30), max(page, 1)
	first, last := min((page-1)*size, len(h.comments)), min(page*size, len(h.comments))
	if last < len(h.comments) {
		w.Header().Set("Link", fmt.Sprintf(`<%s/repos/o/r/issues/7/comments?per_page=%d&page=%d>; rel="next"`, h.URL, size, page+1))
	}
	h.answer(w, h.comments[first:last])
}

// says adds a comment of a user.
func (h *hub) says(login, kind, text string) {
	comment := h.fixture("comment.json")
	comment["id"], comment["body"] = float64(1000+len(h.comments)), text
	comment["user"] = map[string]any{"login": login, "type": kind}
	h.comments = append(h.comments, comment)
}

func (h *hub) client(t *testing.T, token string) *Client {
	t.Helper()
	client, err := New(&Place{API: h.URL, Owner: "o", Repository: "r", Commit: "c0ffee", PullRequest: 7}, token)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const marker = "<!-- assay-report: mine -->"

func (h *hub) bodies() []string {
	var out []string
	for _, comment := range h.comments {
		out = append(out, fmt.Sprint(comment["body"]))
	}
	return out
}

func TestComment_IsUpdatedInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		token string
		there func(h *hub)
		// at is which comment is ours in the end.
		at int
	}{
		"the comment does not exist yet": {token, func(*hub) {}, 0},
		"others commented":               {token, func(h *hub) { h.says("someone", "User", "nice") }, 1},
		"it is on the second page": {token, func(h *hub) {
			for range 130 {
				h.says("someone", "User", "and another thing")
			}
			h.says("github-actions[bot]", "Bot", marker+"\nold")
			h.says("someone", "User", "done?")
		}, 130},
		"a user wrote the marker":  {token, func(h *hub) { h.says("someone", "User", marker+"\nfooled you") }, 1},
		"another run has one too":  {token, func(h *hub) { h.says("github-actions[bot]", "Bot", "<!-- assay-report: other -->\nits") }, 1},
		"it quotes the marker":     {token, func(h *hub) { h.says("github-actions[bot]", "Bot", "> "+marker) }, 1},
		"the token is a person's":  {personal, func(h *hub) { h.says("someone", "User", marker+"\nold") }, 0},
		"a bot is not that person": {personal, func(h *hub) { h.says("another[bot]", "Bot", marker+"\nold") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			tc.there(h)
			before := h.bodies()
			client := h.client(t, tc.token)
			for _, text := range []string{"first", "second", "second"} {
				if err := client.Comment(t.Context(), marker, marker+"\n"+text); err != nil {
					t.Fatal(err)
				}
			}
			want := slices.Clone(before)
			if tc.at == len(want) {
				want = append(want, "")
			}
			want[tc.at] = marker + "\nsecond"
			if got := h.bodies(); !slices.Equal(got, want) {
				t.Errorf("%d comments, the last is %q; want %d", len(got), got[len(got)-1], len(want))
			}
			if last := h.asked[len(h.asked)-1]; !strings.HasPrefix(last, "GET ") {
				t.Errorf("a comment that says the same already was written again: %s", last)
			}
		})
	}
}

func TestCheck_IsUpdatedInPlace(t *testing.T) {
	h := newHub(t)
	client := h.client(t, token)
	check := Check{Name: "assay: mine", Title: "a title", Summary: "a summary", Details: "https://reports.example/1", Path: "run.yaml"}
	for _, conclusion := range []string{"success", "failure"} {
		check.Conclusion = conclusion
		if conclusion == "failure" {
			check.Annotations = []Annotation{{3, "failure", "NoGo", "missed"}}
		}
		if err := client.Check(t.Context(), check); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Check(t.Context(), Check{Name: "assay: other", Conclusion: "neutral", Title: "t", Summary: "s", Details: "/a/folder",
		Annotations: []Annotation{{1, "notice", "a", "b"}}}); err != nil {
		t.Fatal(err)
	}
	if len(h.checks) != 2 {
		t.Fatalf("%d checks: %v", len(h.checks), h.checks)
	}
	mine, other := h.checks[0], h.checks[1]
	if mine["conclusion"] != "failure" || mine["head_sha"] != "c0ffee" || mine["status"] != "completed" ||
		mine["details_url"] != "https://reports.example/1" {
		t.Errorf("the check is %v", mine)
	}
	annotation := mine["output"].(map[string]any)["annotations"].([]any)[0].(map[string]any)
	if annotation["path"] != "run.yaml" || annotation["start_line"] != 3.0 || annotation["annotation_level"] != "failure" {
		t.Errorf("the annotation is %v", annotation)
	}
	if output := other["output"].(map[string]any); output["annotations"] != nil || other["details_url"] == "/a/folder" {
		t.Errorf("without a file nothing is annotated, and a folder is no address: %v", other)
	}
}

// GitHub adds annotations to those that a check has: one that has some is superseded, or it would have them twice.
func TestCheck_WithAnnotationsIsSuperseded(t *testing.T) {
	h := newHub(t)
	client := h.client(t, token)
	for range 2 {
		check := Check{Name: "c", Conclusion: "failure", Title: "t", Summary: "s", Path: "run.yaml",
			Annotations: []Annotation{{1, "failure", "a", "b"}}}
		if err := client.Check(t.Context(), check); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.checks) != 2 || len(h.checks[1]["output"].(map[string]any)["annotations"].([]any)) != 1 {
		t.Errorf("checks %v", h.checks)
	}
}

// Only the app that made a check or comment may change it, and any app may use the same names.
func TestCheck_OfAnotherAppIsIgnored(t *testing.T) {
	h := newHub(t)
	h.says("another[bot]", "Bot", marker+"\nfooled you")
	h.comments[0]["of"] = "another app"
	check := h.fixture("check.json")
	check["id"], check["name"], check["head_sha"], check["of"], check["conclusion"] = 1.0, "c", "c0ffee", "another app", "success"
	check["output"] = map[string]any{"annotations_count": 0}
	h.checks = append(h.checks, check)
	client := h.client(t, token)
	for range 2 {
		if err := client.Check(t.Context(), Check{Name: "c", Conclusion: "failure", Title: "t", Summary: "s"}); err != nil {
			t.Fatal(err)
		}
		if err := client.Comment(t.Context(), marker, marker+"\nNoGo"); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.bodies(); !slices.Equal(got, []string{marker + "\nfooled you", marker + "\nNoGo"}) {
		t.Errorf("comments %q", got)
	}
	if len(h.checks) != 2 || h.checks[0]["conclusion"] != "success" || h.checks[1]["conclusion"] != "failure" {
		t.Errorf("checks %v", h.checks)
	}
	h.forbidden = []string{"POST"}
	h.checks = h.checks[:1]
	err := client.Check(t.Context(), Check{Name: "c", Conclusion: "failure", Title: "t", Summary: "s"})
	if !errors.Is(err, ErrForbidden) {
		t.Errorf("a token that may write nothing gives %v", err)
	}
}

func TestToken_ReadOnlyIsRecognized(t *testing.T) {
	h := newHub(t)
	h.forbidden = []string{"POST", "PATCH"}
	client := h.client(t, token)
	for name, err := range map[string]error{
		"comment": client.Comment(t.Context(), marker, marker), "check": client.Check(t.Context(), Check{Name: "c", Conclusion: "success"}),
	} {
		if !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "Resource not accessible by integration") ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.Close()
	if err := client.Comment(t.Context(), marker, marker); err == nil || errors.Is(err, ErrForbidden) {
		t.Errorf("a GitHub that is away is no missing right: %v", err)
	}
}

func TestPlace_IsReadFromTheEnvironment(t *testing.T) {
	base := map[string]string{"GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "merge", "GITHUB_API_URL": "https://ghe.example/api/v3",
		"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": "event.json"}
	pull := map[string]string{"GITHUB_EVENT_NAME": "pull_request"}
	const event = `{"pull_request": {"number": 7, "head": {"sha": "head"}}}`
	for name, tc := range map[string]struct {
		change map[string]string
		event  string
		want   Place
		says   string
	}{
		"a push":                    {nil, `{"ref": "refs/heads/main"}`, Place{"https://ghe.example/api/v3", "o", "r", "merge", 0}, ""},
		"a pull request":            {pull, event, Place{"https://ghe.example/api/v3", "o", "r", "head", 7}, ""},
		"no address of the API":     {map[string]string{"GITHUB_API_URL": ""}, "", Place{"https://api.github.com", "o", "r", "merge", 0}, ""},
		"outside of GitHub":         {map[string]string{"GITHUB_REPOSITORY": ""}, "", Place{}, `invalid GITHUB_REPOSITORY ""`},
		"a path of three":           {map[string]string{"GITHUB_REPOSITORY": "a/b/c"}, "", Place{}, `invalid GITHUB_REPOSITORY "a/b/c"`},
		"no commit":                 {map[string]string{"GITHUB_SHA": ""}, "", Place{}, "GITHUB_SHA is empty"},
		"an event that is no JSON":  {pull, `{`, Place{}, "GITHUB_EVENT_PATH"},
		"no file of the event":      {map[string]string{"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": ""}, "", Place{}, "is empty"},
		"a pull request without it": {pull, `{}`, Place{}, "has no pull request"},
		"a head that is missing":    {pull, `{"pull_request": {"number": 7}}`, Place{}, "has no pull request with a number and a head"},
	} {
		t.Run(name, func(t *testing.T) {
			environment := maps.Clone(base)
			maps.Copy(environment, tc.change)
			got, err := FromEnvironment(func(name string) string { return environment[name] },
				func(string) ([]byte, error) { return []byte(tc.event), nil })
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want %q", err, tc.says)
				}
				return
			}
			if err != nil || *got != tc.want {
				t.Errorf("got %+v (%v), want %+v", got, err, tc.want)
			}
		})
	}
	if _, err := New(&Place{API: "https://api.github.com"}, ""); err == nil || !strings.Contains(err.Error(), "GITHUB_TOKEN is empty") {
		t.Errorf("without a token: %v", err)
	}
}

// The commit of such an event is that of the default branch, or of the base.
func TestPlace_EventsThatNameNoMeasuredCommitAreRefused(t *testing.T) {
	for _, event := range []string{"issue_comment", "issues", "pull_request_target", "workflow_run", "discussion_comment", "check_suite",
		"status", "an event of next year", ""} {
		got, err := FromEnvironment(func(name string) string {
			return map[string]string{"GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "main", "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": "e"}[name]
		}, func(string) ([]byte, error) {
			return []byte(`{"issue": {"number": 7, "pull_request": {}}, "pull_request": {"number": 7, "head": {"sha": "head"}}}`), nil
		})
		if err == nil || !strings.Contains(err.Error(), "invalid GITHUB_EVENT_NAME") {
			t.Errorf("a job of %q publishes to %+v: %v", event, got, err)
		}
	}
}
