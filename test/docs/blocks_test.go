package docs

import (
	"os/exec"
	"strings"
	"testing"
)

const root = "../.."

func TestBlocks_StateWhetherTheyAreRun(t *testing.T) {
	fenced := func(above, language string) string { return above + "\n```" + language + "\nmake test\n```\n" }
	for name, test := range map[string]struct {
		text string
		want []Block
		says string
	}{
		"executed":                        {text: fenced("<!-- run -->", "sh"), want: []Block{{Line: 3, Commands: "make test\n", Run: true}}},
		"executed after some preparation": {text: fenced("<!-- run: cd out -->", "sh"), want: []Block{{Line: 3, Commands: "make test\n", Run: true, Prepare: "cd out"}}},
		"not executed, and why":           {text: fenced("<!-- not run: takes an hour -->", "bash"), want: []Block{{Line: 3, Commands: "make test\n", Why: "takes an hour"}}},
		"executed, and 3 is no failure":   {text: fenced("<!-- run, exit 3 too: cd out -->", "sh"), want: []Block{{Line: 3, Commands: "make test\n", Run: true, MayExit: 3, Prepare: "cd out"}}},
		"in a list":                       {text: "1. First\n   <!-- run -->\n   ```sh\n   make test\n   ```\n", want: []Block{{Line: 4, Commands: "make test\n", Run: true}}},
		"no shell commands":               {text: fenced("", "yaml")},
		"output, which is not typed":      {text: fenced("", "")},
		"without a word":                  {text: fenced("Type this:", "sh"), says: "page.md:2: the block has no comment above it"},
		"not executed, for no reason":     {text: fenced("<!-- not run -->", "sh"), says: "page.md:2: it is not run and gives no reason"},
		"a block that never ends":         {text: "<!-- run -->\n```sh\nmake test\n", says: "page.md:2: the block has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Blocks("page.md", test.text)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if !strings.HasPrefix(said, test.says) || (test.says == "") != (err == nil) {
				t.Fatalf("it says %q, want %q", said, test.says)
			}
			if err == nil && len(got) != len(test.want) {
				t.Fatalf("%+v, want %+v", got, test.want)
			}
			for i := range test.want {
				if got[i] != test.want[i] {
					t.Errorf("%+v, want %+v", got[i], test.want[i])
				}
			}
		})
	}
}

func TestBlocks_PageIsOneShellAndNamesTheFailedBlock(t *testing.T) {
	blocks := []Block{
		{Line: 3, Commands: "said=hello\n", Run: true}, {Line: 9, Commands: "exit 7\n", Why: "never"}, {Line: 12, Commands: "echo \"$said\"\nfalse\necho after\n", Run: true},
	}
	out, err := exec.Command("bash", "-c", Script("docs/page.md", blocks)).CombinedOutput()
	if err == nil || string(out) != "hello\ndocs/page.md:12: this block failed\n" {
		t.Errorf("%v, it printed %q", err, out)
	}
	if script := Script("docs/page.md", blocks[1:2]); script != "" {
		t.Errorf("a page without a block to run gives %q", script)
	}
}

// Every block of every page of the tree.
func TestBlocks_OfDocumentationAreRunOrExcused(t *testing.T) {
	pages, err := Pages(root)
	if err != nil || len(pages) < 10 {
		t.Fatalf("pages %v: %v", pages, err)
	}
	runs := 0
	for _, page := range pages {
		blocks, err := ReadPage(root, page)
		if err != nil {
			t.Error(err)
		}
		for _, block := range blocks {
			if block.Run {
				runs++
			}
		}
		script := Script(page, blocks)
		if out, err := exec.Command("bash", "-n", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s is no shell script: %v\n%s", page, err, out)
		}
	}
	if runs == 0 {
		t.Error("no block of the documentation is run")
	}
}

func TestBlocks_OnlyAllowedExitCodesSucceed(t *testing.T) {
	lenient := Block{Line: 3, Commands: "(exit 3)\necho after\n", Run: true, MayExit: 3}
	next := Block{Line: 9, Commands: "(exit 3)\necho never\n", Run: true}
	for name, c := range map[string]struct {
		blocks []Block
		want   string
		fails  bool
	}{
		"the code allowed":            {[]Block{lenient}, "page.md:3: a command exited with 3\nafter\n", false},
		"another code":                {[]Block{{Line: 3, Commands: "(exit 4)\necho after\n", Run: true, MayExit: 3}}, "page.md:3: a command exited with 4\n", true},
		"of another block":            {[]Block{lenient, next}, "page.md:3: a command exited with 3\nafter\npage.md:9: this block failed\n", true},
		"of a command in an if is no": {[]Block{{Line: 3, Commands: "if (exit 4); then echo no; fi\necho after\n", Run: true, MayExit: 3}}, "after\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command("bash", "-c", Script("page.md", c.blocks)).CombinedOutput()
			if string(out) != c.want || (err != nil) != c.fails {
				t.Errorf("%v, it printed %q, want %q", err, out, c.want)
			}
		})
	}
}

func TestBlocks_PreparationChangesNoPrintedRun(t *testing.T) {
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		blocks, err := ReadPage(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			if strings.Contains(block.Prepare, "run.yaml") && strings.Contains(block.Prepare, ">>") {
				t.Errorf("%s:%d: the preparation adds to a run that the page prints: %s", page, block.Line, block.Prepare)
			}
		}
	}
}
