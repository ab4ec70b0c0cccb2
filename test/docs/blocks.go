package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Block is a block of shell commands in a page.
type Block struct {
	// Line of the page where the commands begin, from 1.
	Line int
	// Commands as they are printed.
	Commands string
	// Run reports whether they are executed; Prepare comes before them. Otherwise Why explains why they are not.
	Run bool
	// MayExit is an exit code beside 0 that a command may end with; 0 allows no other.
	MayExit      int
	Prepare, Why string
}

// shells are the languages of blocks that a reader would type in.
var shells = []string{"sh", "bash", "shell", "console"}

var (
	fence  = regexp.MustCompile("^( *)```([a-zA-Z0-9-]*)")
	marker = regexp.MustCompile(`^<!-- *(?:(run)(?:, exit ([0-9]+) too)?|(not run)) *(?:: *(.*?))? *-->$`)
)

// Blocks are the blocks of shell commands of a page, in its order. A block without a marker, or without a reason not to be
// run, is an error.
func Blocks(page string, text string) ([]Block, error) {
	var out []Block
	var problems []error
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
			end++
		}
		if end == len(lines) {
			return nil, errors.Join(append(problems, fmt.Errorf("%s:%d: the block has no end", page, i+1))...)
		}
		if slices.Contains(shells, open[2]) {
			block, err := read(lines, i, end, open[1])
			if err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", page, i+1, err))
			}
			out = append(out, block)
		}
		i = end
	}
	return out, errors.Join(problems...)
}

func read(lines []string, begin, end int, indent string) (Block, error) {
	block := Block{Line: begin + 2}
	for _, line := range lines[begin+1 : end] {
		block.Commands += strings.TrimPrefix(line, indent) + "\n"
	}
	above := ""
	if begin > 0 {
		above = strings.TrimSpace(lines[begin-1])
	}
	match := marker.FindStringSubmatch(above)
	switch {
	case match == nil:
		return block, fmt.Errorf("the block has no comment above it on whether its commands are executed: write <!-- run --> or <!-- not " +
			"run: why -->")
	case match[1] == "run":
		block.Run, block.Prepare = true, match[4]
		block.MayExit, _ = strconv.Atoi(match[2]) // Digits, or nothing: 0.
	case match[4] == "":
		return block, fmt.Errorf("it is not run and gives no reason: write <!-- not run: why -->")
	default:
		block.Why = match[4]
	}
	return block, nil
}

// Pages are the Markdown pages of the tree, by their path from its root.
func Pages(root string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch name := entry.Name(); {
			// Vendored files, build output, and results.
			case slices.Contains([]string{"node_modules", "target", "out", "dist", "bin", "testdata", "results"}, name):
				return fs.SkipDir
			case strings.HasPrefix(name, ".") && path != root:
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".md" {
			relative, err := filepath.Rel(root, path)
			out = append(out, filepath.ToSlash(relative))
			return err
		}
		return nil
	})
	return out, err
}

// Script is the executed part of a page: its blocks in one shell, so that later blocks use the state of earlier ones. Empty when
// there is nothing to execute.
func Script(page string, blocks []Block) string {
	var out strings.Builder
	for _, block := range blocks {
		if !block.Run {
			continue
		}
		fmt.Fprintf(&out, "at=%q\n%s\n", fmt.Sprintf("%s:%d", page, block.Line), block.Prepare)
		if block.MayExit > 0 {
			fmt.Fprintf(&out, "set +e\ntrap 'code=$?; echo \"$at: a command exited with $code\" >&2; [ $code = %d ] || exit $code' ERR\n",
				block.MayExit)
		}
		out.WriteString(block.Commands)
		if block.MayExit > 0 {
			out.WriteString(strict)
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return strict + out.String()
}

// strict ends a page at the first command that fails, and names its block.
const strict = "set -euo pipefail\ntrap 'echo \"$at: this block failed\" >&2' ERR\n"

// ReadPage reads the blocks of a page of the tree.
func ReadPage(root, page string) ([]Block, error) {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	return Blocks(page, string(raw))
}
