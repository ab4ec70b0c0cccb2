package record

// Keys of the environment fingerprint that the runner can report and a run can require. runner/schema/fixtures/environment-keys.json lists
// them too, and tests of both languages compare against it.
var (
	HardKeys = []string{
		"architecture", "aslr", "cgroupVersion", "clocksource", "cpuFamily", "cpuFeatures", "cpuMaxHertz", "cpuModel", "cpuModelNumber",
		"cpuStepping", "cpuVendor", "energyPreference", "governor", "idleDriver", "isa", "kernelCommandLine", "kernelRelease", "llcBytes",
		"machine", "memoryTotalRounded", "microcode", "numaBalancing", "numaNodes", "onlineCpus", "smt", "transparentHugepageDefrag",
		"transparentHugepages", "turbo", "virtualMachine", "vulnerabilities",
	}
	SoftKeys = []string{
		"bandwidthProbeBytes", "bootId", "hostname", "hugepagesTotal", "image", "imageFilesDigest", "inheritedEnvironment",
		"kernelVersion", "layoutPadBytes", "loadAverage1", "memoryAvailableBytes", "nodeName", "nullProgram", "pressureOf",
		"programDigest", "roleCpus", "runnerVersion", "swapTotalBytes", "swapUsedBytes", "uptimeSeconds",
	}
)
