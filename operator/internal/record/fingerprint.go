package record

// Keys of the environment fingerprint that the runner can report, which are those that a run can require.
// runner/schema/fixtures/environment-keys.json lists the same, and tests of both languages hold them together.
var (
	HardKeys = []string{
		"architecture", "aslr", "cgroupVersion", "clocksource", "cpuFamily", "cpuFeatures", "cpuMaxHertz", "cpuModel", "cpuModelNumber",
		"cpuStepping", "cpuVendor", "energyPreference", "governor", "idleDriver", "isa", "kernelCommandLine", "kernelRelease", "llcBytes",
		"machine", "memoryTotalRounded", "microcode", "numaBalancing", "numaNodes", "onlineCpus", "smt", "transparentHugepageDefrag",
		"transparentHugepages", "turbo", "virtualMachine", "vulnerabilities",
	}
	SoftKeys = []string{
		"bandwidthProbeBytes", "bootId", "hostname", "hugepagesTotal", "image", "imageFilesDigest", "kernelVersion", "layoutPadBytes",
		"loadAverage1",
		"memoryAvailableBytes", "nodeName", "nullProgram", "pressureOf", "programDigest", "roleCpus", "runnerVersion", "swapTotalBytes",
		"swapUsedBytes", "uptimeSeconds",
	}
)
