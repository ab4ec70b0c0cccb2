package pullrequests

import (
	"archive/tar"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/internal/ondemand"
)

// guard is a place of the code that stands against an attack, with the text that takes it out.
type guard struct{ file, old, weak string }

// attack is an attempt to have something executed, published or read for which no person with rights asked.
type attack struct {
	name   string
	guards []guard
	// succeeds reports whether the attack reaches its aim.
	succeeds func(w *world) bool
	// live attacks execute code of a pull request, and need a sandbox.
	live bool
}

const (
	decideFile   = "internal/ondemand/decide.go"
	commandFile  = "internal/ondemand/command.go"
	decisionFile = "internal/ondemand/decision.go"
	requestFile  = "internal/github/request.go"
	publishFile  = "internal/cli/pullrequest/publish.go"
	executeFile  = "internal/cli/pullrequest/execute.go"
	sandboxFile  = "internal/sandbox/sandbox.go"
	archiveFile  = "internal/store/archive.go"
)

// event returns an attack that changes the event or the answers of the forge, and wants a benchmark.
func event(name string, change func(w *world), guards ...guard) attack {
	return attack{name: name, guards: guards, succeeds: func(w *world) bool {
		change(w)
		return w.starts()
	}}
}

// left returns an attack that leaves a hostile archive for a request whose head is 50 % slower, and wants a check that is a success.
func left(name string, leave func(w *world, made *ondemand.Decision, objects map[string][]byte), guards ...guard) attack {
	return attack{name: name, guards: guards, succeeds: func(w *world) bool {
		made := w.decided()
		leave(w, made, measured(w.t, frozen(w.t, made, ""), 1.5))
		return w.publishes() == "success"
	}}
}

// accepted returns an attack that adds a hostile entry to the archive of a head that is 50 % faster, and wants the archive to be accepted.
func accepted(name string, extra entry, guards ...guard) attack {
	return attack{name: name, guards: guards, succeeds: func(w *world) bool {
		made := w.decided()
		w.leaves(append(entries(measured(w.t, frozen(w.t, made, ""), 0.5)), extra)...)
		return w.publishes() == "success"
	}}
}

func attacks() []attack {
	return []attack{
		event("a person without the right to write asks", func(w *world) { w.permission["permission"] = "read" },
			guard{requestFile, `f.Permission != "admin" && f.Permission != "write"`, "false"},
			guard{decideFile, `f.Permission != "admin" && f.Permission != "write"`, "false"}),
		event("a bot asks", func(w *world) {
			in(w.event, "comment")["user"] = map[string]any{"login": "alice", "id": 11.0, "type": "Bot"}
		}, guard{decideFile, `c.Author.Type != "User" || `, ""}),
		event("a comment is edited into a request", func(w *world) { w.event["action"] = "edited" },
			guard{decideFile, `c.Action != "created"`, "c.Action == \"\""}),
		event("an account takes over the name of one with rights", func(w *world) {
			w.permission["user"] = map[string]any{"login": "alice", "id": 12.0, "type": "User"}
		}, guard{decideFile, "f.PermissionOf != author.ID", "false"}),
		event("an event of another account than the comment's", func(w *world) {
			w.event["sender"] = map[string]any{"login": "mallory", "id": 66.0, "type": "User"}
		}, guard{decideFile, "c.Sender.ID != c.Author.ID", "false"}),
		event("a push after the comment", func(w *world) { in(w.pull, "head", "repo")["pushed_at"] = at(30 * time.Second) },
			guard{decideFile, "f.Pull.HeadPushed.Add(Unseen).After(f.Comment.Created)", "false"}),
		event("a push while the comment is being written", func(w *world) { in(w.pull, "head", "repo")["pushed_at"] = at(70 * time.Second) },
			guard{decideFile, "f.Pull.HeadPushed.Add(Unseen).After(", "f.Pull.HeadPushed.After("}),
		event("a fork that is deleted hides its last push", func(w *world) { in(w.pull, "head")["repo"] = nil },
			guard{decideFile, "f.Pull.HeadPushed == nil:", "false:"},
			guard{decideFile, "f.Pull.HeadPushed.Add(Unseen).After(f.Comment.Created)", "false"}),
		event("the named head was replaced", func(w *world) { w.comment("/bench --head " + otherCommit) },
			guard{decideFile, `asked.Head != "" && asked.Head != f.Pull.Head`, "false"}),
		event("a head with the same first digits", func(w *world) { w.comment("/bench --head " + otherCommit[:7]) },
			guard{commandFile, "!commitHash.MatchString(value)", "len(value) < 7"},
			guard{decideFile, "asked.Head != f.Pull.Head", "!strings.HasPrefix(f.Pull.Head, asked.Head)"}),
		event("a comment on an issue", func(w *world) { delete(in(w.event, "issue"), "pull_request") },
			guard{decideFile, "!c.IsPullRequest || ", ""}),
		event("a pull request that is closed", func(w *world) { w.pull["state"] = "closed" },
			guard{decideFile, ` || f.Pull.State != "open"`, ""}),
		event("an old job is run again", func(w *world) {
			in(w.event, "comment")["created_at"], in(w.pull, "head", "repo")["pushed_at"] = at(48*time.Hour), at(72*time.Hour)
		}, guard{decideFile, "age > maxAge || ", ""}),
		event("a pull request to a branch with other rules", func(w *world) { in(w.pull, "base")["ref"] = "playground" },
			guard{decideFile, "!slices.Contains(branches, f.Pull.BaseBranch)", `slices.Contains(branches, "")`}),
		event("a workflow of another branch", func(w *world) {
			w.environment["GITHUB_WORKFLOW_REF"] = "o/r/.github/workflows/bench.yaml@refs/heads/faster"
		}, guard{decideFile, `f.workflowRef() != "refs/heads/"+f.DefaultBranch`, `f.workflowRef() == ""`}),
		event("an event of another repository", func(w *world) { in(w.event, "repository")["full_name"] = "mallory/r" },
			guard{decideFile, " || !strings.EqualFold(c.EventRepository, f.Repository)", ""}),
		event("a pull request of another repository", func(w *world) { in(w.pull, "base", "repo")["full_name"] = "mallory/r" },
			guard{decideFile, "!strings.EqualFold(f.Pull.BaseRepository, f.Repository)", "false"}),
		event("a budget beyond the limit", func(w *world) { w.comment("/bench --budget 6h") },
			guard{"internal/ondemand/policy.go", "budget > suite.MaxBudget.Duration", "false"}),
		event("more requests than a person may make", func(w *world) { w.made(1, 1, 1) },
			guard{decideFile, "f.Earlier >= f.Policy.PerPersonPerDay", "false"}),
		event("requests that are repeated as attempts of one job", func(w *world) { w.made(3) },
			guard{requestFile, "count += max(1, run.GetRunAttempt())", "count++"}),
		event("a flag of another command in a comment", func(w *world) { w.comment("/bench default --arm-binary head=/bin/sh") },
			guard{commandFile, `return fmt.Errorf("invalid option %q: --budget and --head are allowed, each once: write %s", name, Grammar)`,
				"return nil"}),
		event("a second line", func(w *world) { w.comment("/bench\n--budget 5m") },
			guard{commandFile, "r < ' ' || r > '~'", "r > '~' && r < ' '"}),
		{name: "a refusal mentions people", guards: []guard{
			{"internal/cli/pullrequest/decide.go", `strings.ReplaceAll(report.Escape(report.Printable(text)), "@", "@\u200b")`,
				`strings.ReplaceAll(report.Printable(text), "\x00", report.Escape(""))`},
		}, succeeds: func(w *world) bool {
			w.comment("/bench @everyone <img/src=x>")
			w.decides()
			return strings.Contains(w.said(), "@everyone") || strings.Contains(w.said(), "<img")
		}},
		{name: "a person without rights has comments written", guards: []guard{
			{requestFile, `f.Permission != "admin" && f.Permission != "write"`, "false"},
			{decideFile, "return nil, &Refusal{Err: err}\n\t}\n\tout, err", "return nil, &Refusal{Answer: true, Err: err}\n\t}\n\tout, err"},
		}, succeeds: func(w *world) bool {
			w.permission["permission"] = "read"
			w.decides()
			return w.said() != ""
		}},
		{name: "the head brings its own policy", guards: []guard{
			{requestFile, `"refs/heads/"+f.DefaultBranch)`, "f.Pull.Head)"},
		}, succeeds: func(w *world) bool {
			w.files[headCommit+":"+ondemand.PolicyPath] = strings.Replace(policy, "maxBudget: 10m", "maxBudget: 6h", 1)
			w.comment("/bench --budget 6h")
			return w.starts()
		}},
		{name: "the head brings its own run file", guards: []guard{
			{requestFile, "c.file(ctx, path, f.Pull.Base)", "c.file(ctx, path, f.Pull.Head)"},
		},
			succeeds: func(w *world) bool {
				w.files[headCommit+":benchmarks/run.yaml"] = strings.Replace(runFile, `"0.9"`, `"9"`, 1)
				return strings.Contains(w.decided().RunFile, `"9"`)
			}},
		{name: "a title, a branch and a suite with commands", guards: []guard{
			{"internal/cli/pullrequest/decide.go", "reason := report.Printable(refusal.Error())", "reason := refusal.Error()"},
			{decideFile, `goes to branch %q: %s`, "goes to branch %s: %s"},
		}, succeeds: func(w *world) bool {
			w.event["issue"].(map[string]any)["title"] = "\n::add-mask::title"
			in(w.pull, "head")["ref"] = "$(touch pwned)`touch pwned`\n::add-mask::head"
			in(w.pull, "base")["ref"] = "main\n::add-mask::base"
			out, log, err := w.assay("pr", "decide")
			return strings.Contains(out+log+fmt.Sprint(err), "\n::add-mask::")
		}},
		{name: "a job of a comment puts its check on the default branch", guards: []guard{
			{"internal/github/place.go", "kind := events[name]", "kind := max(events[name], ofJob)"},
		}, succeeds: func(w *world) bool {
			file := filepath.Join(w.folder, "gate.json")
			raw, err := json.Marshal(map[string]any{"namespace": "", "name": "", "title": "t", "passed": true, "exitCode": 0, "reason": "forged"})
			if err != nil || os.WriteFile(file, raw, 0o600) != nil {
				w.t.Fatal(err)
			}
			_, _, err = w.assay("report", file, "--publish")
			w.t.Logf("publish: %v", err)
			return len(w.checks) > 0
		}},

		{name: "the job that executes has a token", guards: []guard{
			{executeFile, `os.Getenv(name) != ""`, "false"},
		}, succeeds: func(w *world) bool {
			w.decided()
			_, _, err := w.assay("pr", "execute", "--out", filepath.Join(w.folder, "left"), "--repository", "/nonexistent")
			return err == nil || !strings.Contains(err.Error(), "GITHUB_TOKEN is set")
		}},

		left("a forged verdict", func(w *world, made *ondemand.Decision, objects map[string][]byte) {
			forged := map[string]any{}
			_ = json.Unmarshal(analysisOf(w, made, measured(w.t, frozen(w.t, made, ""), 0.5)), &forged)
			raw, err := json.Marshal(forged)
			if err != nil {
				w.t.Fatal(err)
			}
			objects["analysis/000/analysis.json"] = raw
			w.leaves(entries(objects)...)
		}, guard{publishFile, "return recompute.Ledger(ctx, s, wave)", "found, _, err := ledger.NewestAnalysis(ctx, s, wave, 0)\n" +
			"\treturn &recompute.Analyzed{Experiment: frozen, Analysis: found}, err"}),
		left("the ledger of another request", func(w *world, made *ondemand.Decision, _ map[string][]byte) {
			earlier := *made
			earlier.Comment--
			w.leaves(entries(measured(w.t, frozen(w.t, &earlier, ""), 0.5))...)
		}, unbound),
		left("the ledger of another head", func(w *world, made *ondemand.Decision, _ map[string][]byte) {
			other := *made
			other.Head = otherCommit
			w.leaves(entries(measured(w.t, frozen(w.t, &other, ""), 0.5))...)
		}, unbound),
		left("an experiment with a gate that asks for less", func(w *world, made *ondemand.Decision, _ map[string][]byte) {
			w.leaves(entries(measured(w.t, frozen(w.t, made, strings.Replace(runFile, `"0.9"`, `"9"`, 1)), 1.5))...)
		}, unbound),
		left("a link to a file of the reader", func(w *world, made *ondemand.Decision, _ map[string][]byte) {
			folder := w.leaves(entries(measured(w.t, frozen(w.t, made, ""), 0.5))...)
			file, elsewhere := filepath.Join(folder, "ledger.tar.zst"), filepath.Join(w.folder, "secret.tar.zst")
			if os.Rename(file, elsewhere) != nil || os.Symlink(elsewhere, file) != nil {
				w.t.Fatal("cannot link")
			}
		}, guard{publishFile, "os.Lstat(file)", "os.Stat(file)"}),
		left("files beside the archive", func(w *world, made *ondemand.Decision, _ map[string][]byte) {
			folder := w.leaves(entries(measured(w.t, frozen(w.t, made, ""), 0.5))...)
			if err := os.WriteFile(filepath.Join(folder, "zz.html"), []byte("<script>"), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, guard{publishFile, "len(there) != 1 || ", ""}),
		{name: "an archive of any size", guards: []guard{{publishFile, " || info.Size() > maxArchive", ""}}, succeeds: func(w *world) bool {
			w.decided()
			folder := w.leaves(entry{tar.Header{Typeflag: tar.TypeReg, Name: "a"}, nil})
			if err := os.Truncate(filepath.Join(folder, "ledger.tar.zst"), 65<<20); err != nil {
				w.t.Fatal(err)
			}
			w.publishes()
			return !strings.Contains(w.said(), "a file of at most")
		}},
		accepted("an entry that is a link", entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "attempts/link", Linkname: "/etc/passwd"}, nil},
			guard{archiveFile, " || header.Typeflag != tar.TypeReg", ""}),
		accepted("an entry outside of the archive", entry{tar.Header{Typeflag: tar.TypeReg, Name: "../../../etc/cron.d/x"}, nil},
			guard{archiveFile, "if err := CheckKey(key); err != nil {", "if err := CheckKey(key); err != nil && key == \"\" {"}),
		accepted("an entry that replaces an earlier one", entry{tar.Header{Typeflag: tar.TypeReg, Name: "./experiment.json"}, []byte("{}")},
			guard{archiveFile, "seen[key] || ", ""},
			guard{archiveFile, "objects[key] = make([]byte, size)", "if objects[key] != nil {\n\t\t\treturn nil\n\t\t}\n" +
				"\t\tobjects[key] = make([]byte, size)"}),
		{name: "an older request overwrites the result of a newer one", guards: []guard{
			{publishFile, "&& made.Newer(", "&& false && made.Newer("},
		},
			succeeds: func(w *world) bool {
				made := w.decided()
				w.comments = nil
				const newer = "the newer result"
				w.says("github-actions[bot]", "Bot", fmt.Sprintf("<!-- assay-bench: %s -->\n<!-- request %d 501 1 -->\n%s", headCommit, made.Comment+1,
					newer))
				w.leaves(entries(measured(w.t, frozen(w.t, made, ""), 1.5))...)
				w.publishes()
				return !strings.Contains(w.said(), newer)
			}},
		{name: "a comment of a person has the marker", guards: []guard{
			{"internal/github/github.go", "if !ours || !strings", "if ours && false || !strings"},
		}, succeeds: func(w *world) bool {
			made := w.decided()
			w.comments = nil
			w.says("mallory", "User", fmt.Sprintf("<!-- assay-bench: %s -->\nmine", headCommit))
			w.leaves(entries(measured(w.t, frozen(w.t, made, ""), 1.5))...)
			w.publishes()
			return !strings.HasSuffix(fmt.Sprint(w.comments[0]["body"]), "mine")
		}},
		{name: "a decision of another repository", guards: []guard{
			{requestFile, "!strings.EqualFold(own, repository)", "false"},
			{requestFile, "repositoryOf(repository)", "repositoryOf(getenv(\"GITHUB_REPOSITORY\"))"},
		}, succeeds: func(w *world) bool {
			made := w.decided()
			made.Repository = "mallory/r"
			made.Experiment = frozen(w.t, made, "").Digest
			text, err := made.Encode()
			if err != nil {
				w.t.Fatal(err)
			}
			w.environment["ASSAY_DECISION"] = text
			w.leaves(entries(measured(w.t, frozen(w.t, made, ""), 0.5))...)
			return w.publishes() == "success"
		}},

		{name: "a program that is a link out of its tree", live: true, guards: []guard{
			{executeFile, "root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)",
				"os.OpenFile(filepath.Join(tree, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)"},
		}, succeeds: func(w *world) bool {
			_, err := w.executes("mkdir bin && ln -s /etc/passwd bin/server")
			w.t.Log(err)
			return err == nil || !strings.Contains(err.Error(), "path escapes")
		}},
		{name: "a program that is a pipe", live: true, guards: []guard{
			{executeFile, "!info.Mode().IsRegular() || ", ""},
		}, succeeds: func(w *world) bool {
			_, err := w.executes("mkdir bin && mkfifo bin/server")
			w.t.Log(err)
			return err == nil || !strings.Contains(err.Error(), "a file of at most")
		}},
		{name: "a process that outlives its build", live: true, guards: []guard{
			{sandboxFile, `"--unshare-all", "--die-with-parent"`, `"--unshare-user", "--unshare-net", "--unshare-uts"`},
			{sandboxFile, `"--proc", "/proc"`, `"--ro-bind", "/proc", "/proc"`},
		}, succeeds: func(w *world) bool {
			_, err := w.executes("(exec setsid sleep 31.4159 </dev/null >/dev/null 2>&1) & mkdir bin && cp server bin/server")
			w.t.Log(err)
			return running("31.4159")
		}},
		{name: "a build reads the files of the user", live: true, guards: []guard{
			{sandboxFile, `"/etc/pki/tls/certs", "/sys"}`, `"/etc/pki/tls/certs", "/sys", os.TempDir()}`},
			{sandboxFile, `out = append(out, "--proc", "/proc", "--dev", "/dev", "--tmpfs", home)`,
				`out = append(out, "--proc", "/proc", "--dev", "/dev")`},
			{sandboxFile, `"io"`, "\"io\"\n\t\"os\""},
		}, succeeds: func(w *world) bool {
			secret := filepath.Join(w.folder, "credentials")
			if err := os.WriteFile(secret, []byte("key"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			log, _ := w.executes("cat '" + secret + "' && echo SECRET READ; exit 1")
			return strings.Contains(log, "SECRET READ")
		}},
		{name: "a build reads the environment", live: true, guards: []guard{
			{sandboxFile, `"--clearenv", `, ""},
			{sandboxFile, `command.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}`, ""},
		}, succeeds: func(w *world) bool {
			w.t.Setenv("DEPLOY_KEY", "deploy-key-of-the-runner")
			log, _ := w.executes("env; exit 1")
			return strings.Contains(log, "deploy-key-of-the-runner")
		}},
		{name: "a build reaches the network of the runner", live: true, guards: []guard{
			{sandboxFile, "if s.Network {", "if !s.Network {"},
		}, succeeds: func(w *world) bool {
			listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				w.t.Fatal(err)
			}
			defer listener.Close()
			port := listener.Addr().(*net.TCPAddr).Port
			log, _ := w.executes(fmt.Sprintf("bash -c 'exec 9<>/dev/tcp/127.0.0.1/%d' && echo CONNECTED; exit 1", port))
			return strings.Contains(log, "CONNECTED")
		}},
		{name: "a build changes the recipe", live: true, guards: []guard{
			{executeFile, "Writable: []string{tree}, Readable: append([]string{base}, made.Tools...)",
				"Writable: []string{tree, base}, Readable: made.Tools"},
		}, succeeds: func(w *world) bool {
			log, _ := w.executes("echo evil > \"$ASSAY_BASE/build.sh\" && echo CHANGED; exit 1")
			return strings.Contains(log, "CHANGED")
		}},
		{name: "a build leaves folders that cannot be removed", live: true, guards: []guard{
			{executeFile, "return os.RemoveAll(folder)", "return nil"},
		}, succeeds: func(w *world) bool {
			_, err := w.executes("mkdir -p a/b && touch a/b/c && chmod 0 a/b a; exit 1")
			w.t.Log(err)
			there, err := os.ReadDir(filepath.Join(w.folder, "work"))
			return err != nil || len(there) > 0
		}},
		{name: "a build prints commands for the runner", live: true, guards: []guard{
			{"internal/cli/pullrequest/pullrequest.go", `"| %s\n", report.Printable(string(line))`, `"%s\n", string(line)+report.Printable("")`},
		}, succeeds: func(w *world) bool {
			log, _ := w.executes("echo '::add-mask::a'; printf 'x\\r::add-mask::b\\n'; exit 1")
			for line := range strings.SplitSeq(strings.ReplaceAll(log, "\r", "\n"), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "::") {
					return true
				}
			}
			return false
		}},
		{name: "a build that never ends", live: true, guards: []guard{
			{sandboxFile, "context.WithTimeout(ctx, limit)", "context.WithTimeout(ctx, limit+time.Minute)"},
		}, succeeds: func(w *world) bool {
			w.files["refs/heads/main:"+ondemand.PolicyPath] = strings.Replace(policy, "budget: 5m", "buildTime: 1s, budget: 5m", 1)
			_, err := w.executes("sleep 20; exit 1")
			w.t.Log(err)
			return err == nil || !strings.Contains(err.Error(), "it took longer than 1s")
		}},
	}
}

// unbound takes the binding of a ledger to its decision out.
var unbound = guard{publishFile,
	"frozen.Run != asked.frozen.Run || frozen.Digest != asked.frozen.Digest || frozen.Digest != made.Experiment", "false"}

// made adds earlier requests with numbers of attempts.
func (w *world) made(attempts ...int) {
	for i, attempt := range attempts {
		w.runs = append(w.runs, map[string]any{"id": 400 + i, "run_attempt": attempt, "conclusion": "success",
			"actor": map[string]any{"login": "alice", "id": 11}})
	}
}

// said are the bodies of all comments.
func (w *world) said() string {
	var out []string
	for _, comment := range w.comments {
		out = append(out, fmt.Sprint(comment["body"]))
	}
	return strings.Join(out, "\n")
}

// running reports whether a process of this machine sleeps for a time.
func running(seconds string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), "sleep\x00"+seconds) {
			return true
		}
	}
	return false
}

// tally counts the attacks that were tried.
var tally struct {
	sync.Mutex
	tried, succeeded int
}

func TestAttacks_Fail(t *testing.T) {
	for _, one := range attacks() {
		t.Run(one.name, func(t *testing.T) {
			if one.live {
				sandboxed(t)
			}
			ok := one.succeeds(newWorld(t))
			tally.Lock()
			defer tally.Unlock()
			tally.tried++
			if ok {
				tally.succeeded++
				t.Errorf("the attack succeeded: %s", one.name)
			}
		})
	}
}

var figuresFile = flag.String("figures", "", "file for the figure of the attacks, one JSON line")

// TestMain writes the figure after all tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if *figuresFile != "" {
		file, err := os.Create(*figuresFile)
		if err == nil {
			value := float64(tally.succeeded)
			err = figures.Figure{Figure: "pr.attacks_succeeded", Value: value, Unit: "1", Low: value, High: value, Samples: tally.tried}.Write(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
