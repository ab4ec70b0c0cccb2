// Package memory reports how much memory this process can still take, so that readers of others' files can bound what they hold.
package memory

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Available returns the bytes that this process can take at the moment: the smallest rest of Go's memory limit, of the limits of its
// cgroups and of the machine. Without any of them, as on systems other than Linux, it is math.MaxInt64.
func Available() int64 {
	return max(min(restOfGo(), available(os.DirFS("/"))), 0)
}

// restOfGo returns the rest of GOMEMLIMIT.
func restOfGo() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return limit
	}
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(held)
	return limit - int64(held[0].Value.Uint64()-held[1].Value.Uint64())
}

// available returns the rest of the machine and of the cgroups, read below a root folder.
func available(root fs.FS) int64 {
	out := int64(math.MaxInt64)
	if free, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		out = free << 10
	}
	raw, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			out = min(out, restOfCgroups(root, "sys/fs/cgroup", parts[2], "memory.max", "memory.current", "inactive_file"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			out = min(out, restOfCgroups(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"))
		}
	}
	return out
}

// restOfCgroups returns the smallest rest of a cgroup and its ancestors. In a container the own cgroup is usually the root of the mounted
// tree. The kernel drops inactive pages of files before it refuses memory.
func restOfCgroups(root fs.FS, mount, own, limitFile, usedFile, reclaimable string) int64 {
	out := int64(math.MaxInt64)
	for folder := path.Clean("/" + own); ; folder = path.Dir(folder) {
		at := path.Join(mount, folder)
		limit, limited := number(root, path.Join(at, limitFile))
		used, known := number(root, path.Join(at, usedFile))
		if limited && known {
			files, _ := field(root, path.Join(at, "memory.stat"), reclaimable)
			out = min(out, limit-used+files)
		}
		if folder == "/" {
			return out
		}
	}
}

// number reads a file with one number; the word max is none.
func number(root fs.FS, name string) (int64, bool) {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	out, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return out, err == nil
}

// field reads the number after a name at the beginning of a line.
func field(root fs.FS, file, name string) (int64, bool) {
	raw, _ := fs.ReadFile(root, file)
	for line := range strings.Lines(string(raw)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			out, err := strconv.ParseInt(words[1], 10, 64)
			return out, err == nil
		}
	}
	return 0, false
}
