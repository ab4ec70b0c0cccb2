// Package discover lists the benchmarks of the programs of a build, by running them as their tools document.
package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/operator/internal/suite"
)

// Found are the benchmarks of one build.
type Found struct {
	Members []suite.Member
	// Broken are the benchmarks that failed when they were listed, with the cause. Their sub-benchmarks may be unknown.
	Broken map[suite.Member]string
	// Failed are the programs that could not be asked, with the cause.
	Failed map[string]string
}

// Has reports whether the build has a benchmark, or has one that failed before it could begin it.
func (f *Found) Has(member suite.Member) bool {
	if slices.Contains(f.Members, member) {
		return true
	}
	for broken := range f.Broken {
		if broken.File == member.File && (broken.Name == member.Name || strings.HasPrefix(member.Name, broken.Name+"/")) {
			return true
		}
	}
	return false
}

// As returns the benchmarks with another name of their one file.
func (f *Found) As(file string) *Found {
	out := &Found{Broken: map[suite.Member]string{}, Failed: f.Failed}
	for _, member := range f.Members {
		out.Members = append(out.Members, suite.Member{File: file, Name: member.Name})
	}
	for member, why := range f.Broken {
		out.Broken[suite.Member{File: file, Name: member.Name}] = why
	}
	return out
}

// limit is the timeout of one listing.
const limit = 5 * time.Minute

// longestCause limits the text of a program in an error.
const longestCause = 300

// In lists the benchmarks of a tool in the files of a folder; without files, in those whose names are usual for the tool. A program that
// fails loses its own benchmarks only; it is an error if there is no program at all.
func In(ctx context.Context, tool suite.Tool, folder string, files ...string) (found *Found, err error) {
	if len(files) == 0 {
		if files, err = programs(tool, folder); err != nil {
			return nil, err
		}
	}
	found = &Found{Broken: map[suite.Member]string{}, Failed: map[string]string{}}
	for _, file := range files {
		has, err := list(ctx, tool, folder, file)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			found.Failed[file] = err.Error()
			continue
		}
		for name, why := range has.broken {
			found.Broken[suite.Member{File: file, Name: name}] = why
		}
		for _, name := range has.names {
			found.Members = append(found.Members, suite.Member{File: file, Name: name})
		}
	}
	return found, nil
}

// programs returns the files below a folder whose names are usual for a tool, relative to the folder.
func programs(tool suite.Tool, folder string) (files []string, err error) {
	if tool.Files == "" {
		return nil, fmt.Errorf("%s is a folder, and programs of --tool %s have no usual name: name them with --file", folder, tool.Name)
	}
	err = filepath.WalkDir(folder, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if at != folder && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		matches, err := filepath.Match(tool.Files, entry.Name())
		if err != nil || !matches {
			return err
		}
		if info, err := entry.Info(); err != nil || tool.Executable() && info.Mode()&0o111 == 0 || !info.Mode().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, at)
		files = append(files, filepath.ToSlash(name))
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: found no file %s for --tool %s: build the benchmarks there, or name the file", folder, tool.Files, tool.Name)
	}
	slices.Sort(files)
	return files, err
}

// list lists the benchmarks of one program.
func list(ctx context.Context, tool suite.Tool, folder, file string) (listed, error) {
	path := filepath.Join(folder, filepath.FromSlash(file))
	var parse func(string) []string
	var argv []string
	switch tool.Name {
	case "Go":
		return listGo(ctx, folder, path)
	case "Criterion":
		parse, argv = criterion, []string{path, "--bench", "--list"}
	case "Divan":
		parse, argv = divan, []string{path, "--bench", "--list"}
	case "PytestBenchmark":
		parse = func(output string) []string { return pytest(output, file) }
		argv = []string{tool.Program, "--collect-only", "-q", "-p", "no:cacheprovider", "--benchmark-only", file}
	case "JMH":
		parse, argv = jmh, []string{tool.Program, "-jar", path, "-l"}
	default:
		return listed{}, fmt.Errorf("tool %s has no list of benchmarks", tool.Name)
	}
	output, err := run(ctx, folder, argv)
	if err != nil {
		return listed{}, err
	}
	return listed{names: parse(output)}, nil
}

// listGo lists the benchmarks of a Go test with one iteration of each, because only running a benchmark tells its sub-benchmarks. Each
// benchmark of the top level has a process, so that one that crashes loses only itself.
func listGo(ctx context.Context, folder, path string) (listed, error) {
	output, err := run(ctx, folder, []string{path, "-test.list=^Benchmark"})
	if err != nil {
		return listed{}, err
	}
	out := listed{broken: map[string]string{}}
	for _, top := range goTop(output) {
		output, err := run(ctx, folder, []string{path, "-test.run=^$", "-test.bench=^" + top + "$", "-test.benchtime=1x", "-test.v"})
		cpus := ""
		if n := runtime.GOMAXPROCS(0); n > 1 {
			cpus = "-" + strconv.Itoa(n)
		}
		has := goBenchmarks(output, cpus)
		if err != nil && len(has.broken) == 0 {
			has.broken[top] = err.Error()
		}
		out.names = append(out.names, has.names...)
		maps.Copy(out.broken, has.broken)
	}
	return out, nil
}

// run runs a program and returns its standard output, also beside an error.
func run(ctx context.Context, folder string, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = folder
	// Child processes of the program are terminated with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(stderr.String()+"\n"+stdout.String()), "\n")
		if len(text) > longestCause {
			text = strings.ToValidUTF8(text[:longestCause], "") + "…"
		}
		err = fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), errors.Join(err, ctx.Err()), text)
	}
	return stdout.String(), err
}
