// Command guards removes the guards against attacks, one after the other, in a copy of the tree, and requires that each attack then
// succeeds. Otherwise the guard is ineffective, or the attack fails for another reason.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"assay.dev/assay/operator/test/attacks"
)

// suite is the test that runs the attacks on a part of the platform.
type suite struct {
	folder, pack, test string
	arguments          []string
}

var suites = map[attacks.Part]suite{
	attacks.API:     {"operator", "./test/integration", "TestAPI_AttacksFail", nil},
	attacks.Limited: {"operator", "./test/integration", "TestAPI_AttacksFail", nil},
	attacks.Store:   {"operator", "./internal/storeusers", "TestStore_AttacksFail", nil},
	attacks.Cluster: {"test/e2e", ".", "TestAttacks", []string{"-args", "-attack"}},
}

// name returns an attack's test name, for the pattern of go test and for its output.
func (s suite) pattern(attack string) string {
	return "^" + s.test + "$/^" + regexp.QuoteMeta(subtest(attack)) + "$"
}

func subtest(attack string) string { return strings.ReplaceAll(attack, " ", "_") }

// outcome returns the outcome of an attack from the output of its test.
type outcome string

const (
	succeeded outcome = "succeeds"
	failed    outcome = "fails"
	untried   outcome = "was not tried"
)

func (s suite) judge(attack, output string) outcome {
	for line := range strings.Lines(output) {
		switch verdict, rest, _ := strings.Cut(strings.TrimSpace(line), ": "); {
		case !strings.HasPrefix(rest, s.test+"/"+subtest(attack)+" "):
		case verdict == "--- FAIL":
			return succeeded
		case verdict == "--- PASS":
			return failed
		}
	}
	return untried
}

func main() {
	only := flag.String("only", ".", "a regular expression that the names of attacks match")
	cluster := flag.Bool("cluster", false, "with those that take the release on the cluster of the kubeconfig, which is changed meanwhile")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *cluster); err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, cluster bool) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("invalid -only %q: %w", only, err)
	}
	tree, remove, err := copied(ctx)
	if err != nil {
		return err
	}
	defer remove()
	tried, missed := 0, 0
	for _, attack := range attacks.All {
		guard := attacks.Guards[attack.Name]
		if !chosen.MatchString(attack.Name) || attack.Needs == attacks.Cluster && !cluster {
			continue
		}
		if guard.Kept != "" {
			say("%q: not tried: %s", attack.Name, guard.Kept)
			continue
		}
		// With its guard the attack must fail; otherwise the comparison shows nothing.
		before, output, err := tree.attempt(ctx, attack)
		if err == nil && before != failed {
			err = fmt.Errorf("with its guard %q %s:\n%s", attack.Name, before, output)
		}
		if err != nil {
			return err
		}
		after, output, err := tree.without(ctx, attack, guard)
		if err != nil {
			return err
		}
		tried++
		say("%q without %s: %s", attack.Name, attack.Guard, after)
		if after != succeeded {
			missed++
			say("%s", output)
		}
	}
	line, err := json.Marshal(map[string]any{
		"figure": "security.guards_not_missed", "value": missed, "unit": "1", "low": missed, "high": missed, "samples": tried,
	})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	if missed > 0 || tried == 0 {
		return fmt.Errorf("of %d guards that were taken out %d are not missed", tried, missed)
	}
	return nil
}

func say(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }

// tree is a copy of the working tree.
type tree string

// copied copies all files that git tracks or would add.
func copied(ctx context.Context) (_ tree, remove func(), err error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", nil, fmt.Errorf("find the root of the tree: %w", err)
	}
	root := strings.TrimSpace(string(out))
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	if out, err = list.Output(); err != nil {
		return "", nil, fmt.Errorf("list the files of the tree: %w", err)
	}
	folder, err := os.MkdirTemp("", "assay-guards-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
			remove()
			return "", nil, err
		}
	}
	// Reuse the built programs until some are rebuilt here.
	if err := copyFolder(filepath.Join(root, programs), filepath.Join(folder, programs)); err != nil {
		remove()
		return "", nil, err
	}
	return tree(folder), remove, nil
}

// programs is the folder of the built programs.
const programs = "bin"

// copyFolder copies the files of a folder, which may be missing.
func copyFolder(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil // One that was deleted and is still in the index, or a link.
	}
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, raw, info.Mode().Perm()|0o200)
	}
	return err
}

// attempt runs an attack on the unmodified tree.
func (t tree) attempt(ctx context.Context, attack attacks.Attack) (outcome, string, error) {
	of := suites[attack.Needs]
	arguments := append([]string{"test", "-count=1", "-timeout=20m", "-v", "-run", of.pattern(attack.Name), of.pack}, of.arguments...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(string(t), of.folder)
	// An error is expected, because the attack's test fails; its output has the details.
	output, err := command.CombinedOutput()
	result := of.judge(attack.Name, string(output))
	if result == untried {
		return result, "", fmt.Errorf("attack %q was not tried: %w\n%s", attack.Name, err, output)
	}
	return result, string(output), ctx.Err()
}

// without runs an attack with its guard removed, and restores the guard.
func (t tree) without(ctx context.Context, attack attacks.Attack, guard attacks.Guard) (result outcome, output string, err error) {
	for _, edit := range guard.Edits {
		path := filepath.Join(string(t), edit.File)
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", "", err
		}
		if strings.Count(string(raw), edit.Old) != 1 {
			return "", "", fmt.Errorf("%s does not have %q once", edit.File, edit.Old)
		}
		defer func() { err = errors.Join(err, os.WriteFile(path, raw, 0o644)) }()
		if err := os.WriteFile(path, []byte(strings.Replace(string(raw), edit.Old, edit.New, 1)), 0o644); err != nil {
			return "", "", err
		}
	}
	if guard.Values != "" {
		values, err := exec.CommandContext(ctx, "helm", "get", "values", "assay", "-n", "assay-system", "-o", "json").Output()
		if err != nil {
			return "", "", fmt.Errorf("read the release's values: %w", err)
		}
		file := filepath.Join(string(t), "values-of-the-release.json")
		if err := os.WriteFile(file, values, 0o600); err != nil {
			return "", "", err
		}
		// Not under ctx, so that the release gets its guard back even when this program is interrupted.
		defer func() { err = errors.Join(err, t.upgrade(context.WithoutCancel(ctx), file)) }()
		if err := t.upgrade(ctx, file, "--set", guard.Values); err != nil {
			return "", "", err
		}
	}
	if guard.Builds != "" {
		kept := filepath.Join(string(t), "programs-with-the-guard")
		if err := copyFolder(filepath.Join(string(t), programs), kept); err != nil {
			return "", "", err
		}
		defer func() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(string(t), programs)), os.Rename(kept, filepath.Join(string(t), programs)),
				t.deploy(context.WithoutCancel(ctx)))
		}()
		if err := t.do(ctx, "make", guard.Builds); err != nil {
			return "", "", err
		}
		if err := t.deploy(ctx); err != nil {
			return "", "", err
		}
	}
	return t.attempt(ctx, attack)
}

// deploy installs the images of the tree's programs on the embedded cluster.
func (t tree) deploy(ctx context.Context) error {
	cluster := filepath.Join(programs, "cluster")
	list := exec.CommandContext(ctx, filepath.Join(string(t), cluster), "images", "--bin", programs)
	list.Dir = string(t)
	archives, err := list.Output()
	if err != nil {
		return fmt.Errorf("assemble images: %w", err)
	}
	operator := []string{"deploy/assay-operator", "--namespace", "assay-system"}
	for _, command := range [][]string{
		append([]string{filepath.Join(string(t), cluster), "load", "--mode", "embedded"}, strings.Fields(string(archives))...),
		append([]string{"kubectl", "rollout", "restart"}, operator...),
		append([]string{"kubectl", "rollout", "status", "--timeout", "3m"}, operator...),
	} {
		if err := t.do(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// do executes a command in the tree.
func (t tree) do(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir = string(t)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return nil
}

func (t tree) upgrade(ctx context.Context, values string, more ...string) error {
	return t.do(ctx, append([]string{"helm", "upgrade", "assay", "charts/assay", "-n", "assay-system", "--reset-values",
		"--values", values, "--wait", "--timeout", "3m"}, more...)...)
}
