package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory reads a field of /proc/meminfo, in bytes.
func Memory(field string) (uint64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no %s", field)
}
