package memory

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestAvailable_SmallestRestCounts(t *testing.T) {
	const machine = "MemTotal:  8192 kB\nMemAvailable:    4096 kB\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":                 {nil, math.MaxInt64},
		"a machine":                        {map[string]string{"proc/meminfo": machine}, 4 << 20},
		"a cgroup without a limit":         {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5\n"}, 4 << 20},
		"a container":                      {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "900\n"}, 100},
		"pages of files that can be freed": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "900\n", "sys/fs/cgroup/memory.stat": "anon 500\ninactive_file 300\n"}, 400},
		"an ancestor with a limit":         {map[string]string{"proc/self/cgroup": "0::/pod/main\n", "sys/fs/cgroup/pod/memory.max": "500", "sys/fs/cgroup/pod/memory.current": "100", "sys/fs/cgroup/pod/main/memory.max": "max", "sys/fs/cgroup/pod/main/memory.current": "90"}, 400},
		"version 1":                        {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "300"}, 700},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range tc.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := available(root); got != tc.want {
				t.Errorf("%d bytes, want %d", got, tc.want)
			}
		})
	}
}

func TestAvailable_GoMemoryLimitCounts(t *testing.T) {
	before := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(before)
	if got := Available(); got <= 0 || got >= 1<<30 {
		t.Errorf("%d bytes of a limit of %d", got, 1<<30)
	}
	debug.SetMemoryLimit(1)
	if got := Available(); got != 0 {
		t.Errorf("%d bytes beyond the limit", got)
	}
}
