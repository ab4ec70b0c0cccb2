package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/checkout"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/ondemand"
	"assay.dev/assay/operator/internal/sandbox"
)

type executeOptions struct {
	out, work, repository string
	local                 runs.LocalOptions
}

func newExecuteCommand() *cobra.Command {
	var options executeOptions
	command := &cobra.Command{
		Use:   "execute --out FOLDER",
		Short: "Build and measure a decision in a sandbox, without a token",
		Long: "Build the merge base and the head of the decision in " + decisionVariable + " and measure both, and write the ledger as an " +
			"archive. " +
			"Builds and trials run in a sandbox (bubblewrap): they see no other process, no environment, no file of the user and, but for " +
			"builds with network: true, no network. The temporary folder is removed and all their processes end, also on failure.\n\n" +
			"The job needs no token and gets none: a token or a key in the environment is an error.",
		Example: "  assay pr execute --out left",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := decision()
			if err != nil {
				return err
			}
			log := &quoted{to: cmd.ErrOrStderr()}
			return errors.Join(execute(cmd.Context(), made, options, log), log.Flush())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.out, "out", "", "folder for the archive of the ledger")
	flags.StringVar(&options.work, "work", "", "folder for temporary files (default: RUNNER_TEMP, else that of the system)")
	flags.StringVar(&options.repository, "repository", "",
		"https address, or absolute path, of the repository with the commits (default: that of the decision at GITHUB_SERVER_URL)")
	options.local.AddSources(flags, "")
	flags.BoolVar(&options.local.Pin, "pin", true, "pin blocks to spec.placement.cpus CPUs")
	_ = command.MarkFlagRequired("out")
	return command
}

// secrets are the variables of credentials that a job may have by mistake.
var secrets = []string{"GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN", "KUBECONFIG", "CI_JOB_TOKEN", "SSH_AUTH_SOCK"}

func execute(ctx context.Context, made *ondemand.Decision, options executeOptions, log io.Writer) (err error) {
	for _, name := range secrets {
		if os.Getenv(name) != "" {
			return cli.UsageError(fmt.Errorf("%s is set: the job that executes code of a pull request has permissions: {} and no credentials", name))
		}
	}
	asked, err := freeze(made)
	if err != nil {
		return cli.UsageError(err)
	}
	if err := sandbox.Check(ctx); err != nil {
		return cli.UsageError(err)
	}
	if options.work == "" {
		options.work = os.Getenv("RUNNER_TEMP")
	}
	work, err := os.MkdirTemp(options.work, "assay-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(work)) }()
	// The sandbox has folders at their own paths.
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	address := options.repository
	if address == "" {
		server := os.Getenv("GITHUB_SERVER_URL")
		if server == "" {
			server = "https://github.com"
		}
		address = server + "/" + made.Repository
	}
	base := filepath.Join(work, "recipe")
	if err := checkout.Fetch(ctx, address, made.Base, base); err != nil {
		return err
	}
	programs := filepath.Join(work, "programs")
	for _, side := range []struct{ arm, name, hash string }{{asked.base, "base", made.MergeBase}, {asked.head, "head", made.Head}} {
		fmt.Fprintf(log, "build %s of commit %s\n", side.arm, side.hash)
		tree := filepath.Join(work, side.name)
		if err := checkout.Fetch(ctx, address, side.hash, tree); err != nil {
			return err
		}
		if err := build(ctx, made, tree, base, side.hash, log); err != nil {
			return fmt.Errorf("build of commit %s: %w", side.hash, err)
		}
		program := filepath.Join(programs, side.name, path.Base(made.Program))
		if err := takeProgram(tree, made.Program, program); err != nil {
			return fmt.Errorf("program of commit %s: %w", side.hash, err)
		}
		// The other build sees neither the tree nor the program.
		if err := removeAll(tree); err != nil {
			return err
		}
		options.local.Arms = append(options.local.Arms, side.arm+"="+program)
	}
	options.local.Out = filepath.Join(work, "ledger")
	return measure(ctx, made, asked, options, programs, log)
}

// maxBuildLog is the most bytes of the output of a build that are kept.
const maxBuildLog = 1 << 20

// build runs the recipe in a tree.
func build(ctx context.Context, made *ondemand.Decision, tree, base, hash string, log io.Writer) error {
	_, limit := made.Durations()
	box := sandbox.Sandbox{
		Writable: []string{tree}, Readable: append([]string{base}, made.Tools...), Folder: tree, Network: made.Network,
		Environment: []string{"ASSAY_BASE=" + base, "ASSAY_REVISION=" + hash},
	}
	return box.Run(ctx, made.Build, limit, log, maxBuildLog)
}

// maxProgram is the most bytes of a program.
const maxProgram = 512 << 20

// takeProgram copies the program out of a tree that a build has written. No link leads out of the tree, and nothing but a file is read.
func takeProgram(tree, name, to string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	// A FIFO would block the opening.
	from, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxProgram {
		return fmt.Errorf("%s is of type %s with %d bytes: a file of at most %d is expected", name, info.Mode().Type(), info.Size(), maxProgram)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, from, info.Size())
	return errors.Join(err, out.Close())
}

// measure runs the blocks, the runner and the trials of which are in a sandbox, and writes the archive of the ledger.
func measure(ctx context.Context, made *ondemand.Decision, asked *question, options executeOptions, programs string, log io.Writer) error {
	folders, err := runs.ProgramFolders(options.local.BinDirs)
	if err != nil {
		return err
	}
	for i, folder := range folders {
		if folders[i], err = filepath.Abs(folder); err != nil {
			return err
		}
	}
	options.local.BinDirs = folders
	here, err := runs.PrepareLocal(asked.file, options.local, log)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(options.local.Out, 0o755); err != nil {
		return err
	}
	box := sandbox.Sandbox{Readable: append(append([]string{options.local.Out, programs}, folders...), made.Tools...)}
	here.Executor.Within = box.Command()
	here.Budget, _ = made.Durations()
	if _, err := here.Run(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(options.out, 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(options.out, archiveName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(ledger.WriteArchive(ctx, here.Store, out), out.Close())
}

// removeAll removes a folder, also one in which a build has taken the right to write from folders.
func removeAll(folder string) error {
	_ = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, _ error) error {
		// WalkDir follows no links, and calls this before it reads a folder.
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(folder)
}
